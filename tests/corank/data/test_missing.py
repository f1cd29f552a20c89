"""Missing values are replaced by means and marked."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from corank.data.columns import MissingValues
from corank.data.queries import qid_of_group
from corank.errors import InputError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40_000, 4)) * (RNG.random((40_000, 4)) < 0.5)
X[RNG.random(X.shape) < [0.0, 0.1, 0.0, 0.3]] = np.nan


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_filled_rows_are_those_of_an_explicit_loop(kind):
    found = MissingValues.of(kind(X))
    assert found.columns.tolist() == [1, 3]
    np.testing.assert_allclose(found.means, [np.mean([x for x in X[:, j] if x == x]) for j in range(4)], rtol=1e-10)
    filled = found.fill(kind(X))
    filled = filled.toarray() if sparse.issparse(filled) else filled
    np.testing.assert_array_equal(filled[:, :4], np.where(np.isnan(X), found.means, X))
    np.testing.assert_array_equal(filled[:, 4:], np.isnan(X[:, [1, 3]]))


def test_large_values_have_a_finite_mean_and_an_empty_column_has_mean_zero():
    found = MissingValues.of(np.array([[1e308, np.nan], [1e308, np.nan], [np.nan, np.nan]]))
    np.testing.assert_allclose(found.means, [1e308, 0.0])


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("value", [0.1, 7.3, 1.0, 0.0])
def test_one_value_and_gaps_become_exactly_this_value(kind, value):
    rows = np.where(RNG.random((1001, 2)) < 0.4, np.nan, value)
    rows[:, 1] = np.arange(1001)
    found = MissingValues.of(kind(rows))
    assert found.means[0] == value
    assert found.one_valued(kind(rows)).tolist() == [0]
    assert np.ptp(MissingValues.of(rows).fill(rows)[:, 0]) == 0.0


def test_group_sizes_become_query_ids():
    assert qid_of_group([2, 0, 1], 3).tolist() == [0, 0, 2]
    for bad in ([2, 2], [[1, 2]], [-1, 4], [1.5, 1.5]):
        with pytest.raises(InputError, match=r"group has .* but X has 3 rows"):
            qid_of_group(bad, 3)
