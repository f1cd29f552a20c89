"""The checks against brute force: every matrix and index of a few rows, and scipy's own full check."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest
from scipy import sparse

from corank.core.rows import structure
from corank.core.rows.structure import ProblemIndex, all_finite, csr_structure, index_fault
from corank.data.ranking import RankingData


def slowly(indptr, indices, n_columns):
    """What `csr_structure` says, row by row and with Python's own lists."""
    for i, (begin, end) in enumerate(pairwise(indptr)):
        if indptr[0] or not 0 <= begin <= end <= len(indices):
            return structure.BAD_POINTERS, 0 if indptr[0] else i
    rows = [indices[begin:end] for begin, end in pairwise(indptr)]
    for i, row in enumerate(rows):
        if any(not 0 <= column < n_columns for column in row):
            return structure.BAD_COLUMN, i
    rises = all(a < b for row in rows for a, b in pairwise(row))
    return (structure.ASCENDING if rises else structure.IN_BOUNDS), 0


@pytest.mark.parametrize("pointer", [np.int32, np.int64])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_every_small_matrix_is_judged_as_by_hand(pointer, index):
    n_seen = set()
    for indptr in product([-1, 0, 1, 2, 3, 2**31 - 1], repeat=3):
        for indices in product([-1, 0, 1, 2], repeat=2):
            found = csr_structure(np.array(indptr, pointer), np.array(indices, index), 2)
            kind, row = slowly(list(indptr), list(indices), 2)
            if found != (kind, row):  # of several faults, any may be named
                assert {found[0], kind} == {structure.BAD_POINTERS, structure.BAD_COLUMN}, (indptr, indices)
            n_seen.add(found[0])
    assert n_seen == {0, 1, 2, 3}


def test_large_matrices_and_the_place_of_a_fault():
    rng = np.random.default_rng(0)
    X = sparse.random_array((500, 300), density=0.2, rng=rng, format="csr")
    X.sort_indices()
    assert csr_structure(X.indptr, X.indices, 300) == (structure.ASCENDING, 0)
    for at in rng.choice(X.nnz, 50, replace=False):
        row = int(np.searchsorted(X.indptr, at, side="right")) - 1
        for bad in (300, -1, 2**31 - 1, -(2**31)):
            indices = X.indices.copy()
            indices[at] = bad
            assert csr_structure(X.indptr, indices, 300) == (structure.BAD_COLUMN, row)
        if at + 1 < X.indptr[row + 1]:
            indices = X.indices.copy()
            indices[[at, at + 1]] = indices[[at + 1, at]]
            assert csr_structure(X.indptr, indices, 300) == (structure.IN_BOUNDS, 0)
            indices[at] = indices[at + 1]
            assert csr_structure(X.indptr, indices, 300) == (structure.IN_BOUNDS, 0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_finite_numbers_are_told_as_numpy_tells_them(dtype):
    special = [0.0, -0.0, np.nan, -np.nan, np.inf, -np.inf, np.finfo(dtype).max, -np.finfo(dtype).max]
    special += [np.finfo(dtype).smallest_subnormal, 1.0]
    for value in special:
        for n, at in ((1, 0), (1 << 14, 5), (40_000, 39_999), (40_000, 1 << 14)):
            values = np.zeros(n, dtype)
            values[at] = value
            assert all_finite(values) == np.isfinite(value)
    table = np.zeros((6, 8), dtype)
    table[3, 3] = np.inf
    assert not all_finite(np.asfortranarray(table))
    assert not all_finite(table[:, 3:4])
    assert all_finite(table[::2, ::2])
    assert all_finite(np.empty(0, dtype))


def index_of(y, qid) -> ProblemIndex:
    data = RankingData.of(np.zeros((len(y), 1)), y, qid)
    q = data.queries
    return ProblemIndex(
        q.codes, q.order, q.starts, data.order, data.scored_stops, data.grade_starts, data.grade_stops,
        data.query_grades,
    )  # fmt: skip


def problems():
    for y in product([0.0, 1.0, np.nan], repeat=3):
        for qid in product([0, 1], repeat=3):
            yield np.array(y), list(qid)
    rng = np.random.default_rng(0)
    for n in (1, 10, 200):
        yield np.where(rng.random(n) < 0.3, np.nan, rng.integers(0, 4, n)), rng.integers(0, 1 + n // 4, n).tolist()


def test_the_index_that_belongs_to_the_scores_is_taken():
    for y, qid in problems():
        assert index_fault(index_of(y, qid), y) is None, (y, qid)


def test_any_other_index_is_refused():
    """Every entry of every array, set to every other value of a small range: only what changes nothing may pass."""
    n_refused = 0
    for y, qid in problems():
        if len(y) > 3:
            continue
        right = index_of(y, qid)
        for name in ProblemIndex._fields:
            for at in range(len(getattr(right, name))):
                for value in (-(2**62), -1, 0, 1, 2, 3, 4, 2**62):
                    wrong = getattr(right, name).copy()
                    if wrong[at] == value:
                        continue
                    wrong[at] = value
                    # another grouping has another index: `codes` itself is what the rest is held against
                    assert index_fault(right._replace(**{name: wrong}), y) is not None, (y, qid, name, at, value)
                    n_refused += 1
    assert n_refused > 10_000


def test_grades_beyond_the_last_and_swapped_rows_are_refused():
    y, qid = np.array([1.0, 0.0, 0.0, np.nan, np.nan]), [0] * 5
    right = index_of(y, qid)
    more = right._replace(grade_starts=np.append(right.grade_starts, 3), grade_stops=np.append(right.grade_stops, 4))
    assert index_fault(more, y) == "grade_starts"
    assert index_fault(right._replace(order=np.array([2, 1, 0, 3, 4])), y) == "order"
    assert index_fault(right._replace(order=np.array([1, 2, 0, 4, 3])), y) == "order"
    assert index_fault(right._replace(order=np.array([1, 1, 0, 3, 4])), y) == "order"
