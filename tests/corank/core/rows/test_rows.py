"""Row steps on dense and CSR rows against numpy's own products."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from corank.core.jit import jit
from corank.core.rows import access as core
from corank.core.rows.access import ScaledRows, as_core_rows

FACTORS = np.random.default_rng(2).uniform(0.1, 10.0, 37)


@jit
def one_row(rows, i, scale, w):
    core.prefetch_row(rows, i)
    product = core.dot(rows, i, w)
    core.add_scaled(rows, i, scale, w)
    return product


@jit
def two_rows(rows, a, b, scale, w):
    product = core.dot_difference(rows, a, b, w)
    core.add_difference(rows, a, b, scale, w)
    return product


@jit
def listed_row(rows, i, columns, values):
    return core.list_row(rows, i, columns, values)


@jit
def listed_difference(rows, a, b, columns, values):
    return core.list_difference(rows, a, b, columns, values)


def table(dtype):
    X = np.random.default_rng(0).standard_normal((6, 37)).astype(dtype)
    X[X < 0.3] = 0.0
    X[4] = 0.0
    return X


@pytest.mark.thin(7)
@pytest.mark.parametrize("as_rows", [np.asarray, sparse.csr_matrix, sparse.csr_array])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weight_dtype", [np.float32, np.float64])
@pytest.mark.parametrize("scaled", [False, True])
def test_steps_equal_numpy(as_rows, dtype, weight_dtype, scaled):
    X = table(dtype)
    rows = as_core_rows(as_rows(X))
    if scaled:
        rows = as_core_rows(ScaledRows(as_rows(X), FACTORS))
        X = X * FACTORS
    start = np.random.default_rng(1).standard_normal(37).astype(weight_dtype)
    close = {"rtol": 1e-5, "atol": 1e-5} if np.float32 in (dtype, weight_dtype) else {"rtol": 1e-12, "atol": 1e-12}
    for a in range(6):
        w = start.copy()
        np.testing.assert_allclose(one_row(rows, np.uint64(a), 0.5, w), X[a] @ start, **close)
        np.testing.assert_allclose(w, start + 0.5 * X[a], **close)
        for b in range(6):
            w = start.copy()
            np.testing.assert_allclose(
                two_rows(rows, np.uint64(a), np.uint64(b), -2.0, w), (X[a] - X[b]) @ start, **close
            )
            np.testing.assert_allclose(w, start - 2.0 * (X[a] - X[b]), **close)


@pytest.mark.parametrize("form", [np.ascontiguousarray, sparse.csr_array], ids=["dense", "csr"])
@pytest.mark.parametrize("scaled", [False, True])
def test_lists_hold_each_column_that_differs_once(form, scaled):
    X = np.random.default_rng(0).integers(-1, 2, (12, 9)).astype(float)
    X[3] = X[4]
    X[5] = 0.0
    rows = as_core_rows(form(X))
    if scaled:
        # powers of two change no digit
        factors = 2.0 ** np.arange(-4, 5)
        rows = as_core_rows(ScaledRows(form(X), factors))
        X = X * factors
    columns, values = np.empty(10, dtype=np.uint64), np.empty(10)
    for a in range(len(X)):
        n = listed_row(rows, np.uint64(a), columns, values)
        np.testing.assert_array_equal(columns[:n], np.flatnonzero(X[a]))
        np.testing.assert_array_equal(values[:n], X[a][np.flatnonzero(X[a])])
        for b in range(len(X)):
            n = listed_difference(rows, np.uint64(a), np.uint64(b), columns, values)
            differing = np.flatnonzero(X[a] - X[b])
            np.testing.assert_array_equal(columns[:n], differing)
            np.testing.assert_array_equal(values[:n], (X[a] - X[b])[differing])


def test_sums_of_float32_rows_are_kept_in_float64():
    X = np.full((1, 1000), 1e-4, dtype=np.float32)
    X[0, 0] = 1e4
    product = one_row(as_core_rows(X), np.uint64(0), 0.0, np.ones(1000))
    assert abs(product - X.astype(np.float64).sum()) < 1e-9


def test_arrays_are_not_copied():
    X = table(np.float64)
    assert as_core_rows(X).values is X
    assert as_core_rows(ScaledRows(X, FACTORS)).values is X
    csr = sparse.csr_matrix(X)
    csr.indptr = csr.indptr.astype(np.int64)
    rows = as_core_rows(csr)
    assert rows.data is csr.data
    assert np.shares_memory(rows.indices, csr.indices)
    assert np.shares_memory(rows.indptr, csr.indptr)
    wide = csr.copy()
    wide.indices = wide.indices.astype(np.int64)
    assert as_core_rows(wide).indices.dtype == np.uint32
    assert (as_core_rows(wide).indices == csr.indices).all()


KERNEL = """
import numpy as np
from corank.core.jit import jit
from corank.core.rows.access import CSRRows, dot

@jit
def product(rows, i, w):
    return dot(rows, i, w)

rows = CSRRows(np.ones(2), np.array([0, 2], dtype=np.uint32), np.array([0, 2], dtype=np.uint64))
print(product(rows, np.uint64(0), np.arange(3.0)), sum(product.stats.cache_hits.values()))
"""


@pytest.mark.long
def test_a_second_process_finds_the_compiled_kernel_on_disk(tmp_path):
    script = tmp_path / "kernel.py"
    script.write_text(KERNEL)
    source = str(Path(core.__file__).parents[2])
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": source}
    outputs = [
        subprocess.run(
            [sys.executable, str(script)], env=environment, capture_output=True, text=True, check=True
        ).stdout
        for _ in range(2)
    ]
    assert [output.split() for output in outputs] == [["2.0", "0"], ["2.0", "1"]]
