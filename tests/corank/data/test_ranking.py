from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from corank.data.inputs import as_scores
from corank.data.ranking import RankingData
from corank.errors import InputError
from helpers.columns import COLUMNS

rows = st.lists(st.tuples(st.integers(0, 4), st.sampled_from([0.0, 1.0, 2.0, -1.5, np.nan])), min_size=1, max_size=40)


@given(rows)
def test_index_agrees_with_counting_every_pair(problem):
    qid = [q for q, _ in problem]
    y = np.array([s for _, s in problem])
    data = RankingData.of(np.zeros((len(y), 1)), y, qid)
    for code, q in enumerate(data.queries.ids):
        members = [i for i in range(len(y)) if qid[i] == q]
        pairs = [(i, j) for i, j in itertools.combinations(members, 2) if y[i] < y[j] or y[i] > y[j]]
        assert data.pairs_per_query[code] == len(pairs)
        block = data.order[data.starts[code] : data.starts[code + 1]]
        scored = data.order[data.starts[code] : data.scored_stops[code]]
        assert sorted(block) == members
        assert sorted(scored) == [i for i in members if not np.isnan(y[i])]
        assert (np.diff(y[scored]) >= 0).all()
        grades = [
            data.order[data.grade_starts[g] : data.grade_stops[g]]
            for g in range(data.query_grades[code], data.query_grades[code + 1])
        ]
        assert [set(y[g]) for g in grades] == [{s} for s in sorted(set(y[scored]))]
        assert sum(map(len, grades)) == len(scored)
        assert (code in data.single_grade_queries) == (len(set(y[scored])) == 1)
    assert data.n_scored == np.sum(~np.isnan(y))


def test_half_a_million_rows_in_one_query_neither_overflow_nor_build_pairs():
    n = 531_049
    y = (np.arange(n) % 2).astype(float)
    data = RankingData.of(np.zeros((n, 1), dtype=np.float32), y)
    assert data.n_pairs == (n // 2) * (n - n // 2)
    assert data.n_pairs > 2**32


def test_x_is_never_copied():
    y, dense = [0, 1, 2], np.random.default_rng(0).normal(size=(3, 2))
    single = dense.astype(np.float32)
    assert np.shares_memory(RankingData.of(dense, y).X, dense)
    assert np.shares_memory(RankingData.of(single, y).X, single)
    csr = sparse.csr_array(dense)
    assert np.shares_memory(RankingData.of(csr, y).X.data, csr.data)


@pytest.mark.parametrize("frame", [pd.DataFrame, lambda d: pl.DataFrame(d)])
def test_frames_are_rows(frame):
    data = RankingData.of(frame({"a": [1.0, 2.0], "b": [3, 4]}), [0, 1])
    np.testing.assert_array_equal(data.X, [[1, 3], [2, 4]])


def test_preferences_know_their_queries():
    data = RankingData.of_pairs(np.eye(4), [[0, 1], [3, 2], [2, 3]], qid=["a", "a", "b", "b"])
    assert data.pairs_per_query.tolist() == [1, 2]
    assert data.n_pairs == 3
    assert data.y is None
    assert data.n_scored == 4
    data.require_pairs()


@pytest.mark.parametrize(
    ("pairs", "sentence"),
    [
        ([[0, 1, 2]], r"pairs has shape \(1, 3\)"),
        ([[0.0, 1.0]], "type float64; pass integers"),
        (np.empty((0, 2), dtype=int), "pairs is empty"),
        ([[0, 9]], "pairs names row 9, but X has rows 0 to 3"),
        ([[0, -1]], "pairs names row -1"),
        ([[0, 1], [2]], "pairs has rows of different lengths; pass integers"),
        ([[0, 1], [2, 2]], "pairs compares row 2 with itself at pair 1"),
        ([[0, 3]], "pairs joins rows of two queries at pair 0"),
    ],
)
def test_bad_preferences_get_one_sentence(pairs, sentence):
    with pytest.raises(InputError, match=sentence):
        RankingData.of_pairs(np.eye(4), pairs, qid=[0, 0, 1, 1])


@pytest.mark.parametrize(
    ("X", "y", "sentence"),
    [
        (np.zeros(3), [0, 1, 2], r"X has shape \(3,\); pass a table"),
        (np.zeros((3, 0)), [0, 1, 2], r"0 feature\(s\)"),
        (np.zeros((0, 3)), [], r"0 sample\(s\)"),
        (np.zeros((3, 1)), ["a", "b", "c"], "y cannot be read as numbers"),
        (np.zeros((3, 1)), np.zeros((3, 2)), r"y has shape \(3, 2\); pass one score per row"),
        (np.zeros((3, 1)), None, "requires y to be passed"),
        (sparse.csr_array([[0, np.inf], [0, 0]]), [0, 1], "X contains infinity at row 0, column 1"),
    ],
)
def test_bad_arrays_get_one_sentence(X, y, sentence):
    with pytest.raises(InputError, match=sentence):
        RankingData.of(X, y)


def test_huge_but_finite_values_pass():
    RankingData.of(np.full((4, 1), np.finfo(np.float32).max, dtype=np.float32), [0, 1, 2, 3])
    RankingData.of(np.full((4, 1), np.finfo(np.float64).max), [0, 1, 2, 3])


@pytest.mark.parametrize("column", COLUMNS)
def test_scores_come_from_columns_of_any_library_and_none_is_unscored(column):
    np.testing.assert_array_equal(as_scores(column([2, None, 1]), 3), [2, np.nan, 1])


@pytest.mark.parametrize(
    "y", [np.array([1j, 2, 3]), np.array(["2020-01-01"] * 3, dtype="M8[D]"), ["a", "b", "c"], [[1], [2, 3], [4]],
          sparse.csr_matrix([[1], [2], [3]])]
)  # fmt: skip
def test_what_is_no_number_is_no_score(y):
    with pytest.raises(InputError, match=r"^y cannot be read as numbers"):
        as_scores(y, 3)


def test_no_pairs_at_all_are_called_empty():
    with pytest.raises(InputError, match="pairs is empty"):
        RankingData.of_pairs(np.zeros((3, 1)), [])
