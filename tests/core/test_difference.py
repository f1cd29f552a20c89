from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from corank.core.difference import list_difference, list_row
from corank.core.jit import jit
from corank.core.rows import as_core_rows

X = np.random.default_rng(0).integers(-1, 2, (12, 9)).astype(float)
X[3] = X[4]
X[5] = 0.0


@jit
def _rows(rows, i, columns, values):
    return list_row(rows, i, columns, values)


@jit
def _differences(rows, a, b, columns, values):
    return list_difference(rows, a, b, columns, values)


@pytest.mark.parametrize("form", [np.ascontiguousarray, sparse.csr_array], ids=["dense", "csr"])
def test_lists_hold_each_column_that_differs_once(form):
    rows = as_core_rows(form(X))
    columns, values = np.empty(10, dtype=np.uint64), np.empty(10)
    for a in range(len(X)):
        n = _rows(rows, np.uint64(a), columns, values)
        np.testing.assert_array_equal(columns[:n], np.flatnonzero(X[a]))
        np.testing.assert_array_equal(values[:n], X[a][np.flatnonzero(X[a])])
        for b in range(len(X)):
            n = _differences(rows, np.uint64(a), np.uint64(b), columns, values)
            differing = np.flatnonzero(X[a] - X[b])
            np.testing.assert_array_equal(columns[:n], differing)
            np.testing.assert_array_equal(values[:n], (X[a] - X[b])[differing])
