from __future__ import annotations

import joblib
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from corank.comparison.problem import (
    ALWAYS,
    InputRows,
    assign_folds,
    assign_groups,
    comparable,
    make_problem,
)
from corank.comparison.runner import PROBLEM
from corank.data.ranking import RankingData
from corank.errors import InputError, UsageWarning


def made(y, qid, pool_qid=None, folds=3, seed=0, kind=np.asarray):
    X = np.random.default_rng(0).normal(size=(len(y), 3))
    pool = None if pool_qid is None else InputRows(kind(np.ones((len(pool_qid), 3))), None, np.asarray(pool_qid))
    return make_problem(InputRows(kind(X), np.asarray(y, dtype=float), qid), pool, folds, seed)[0]


@given(
    st.lists(st.tuples(st.integers(0, 6), st.sampled_from([0.0, 1.0, 2.0, np.nan])), min_size=6, max_size=60),
    st.lists(st.integers(0, 9), max_size=10),
    st.integers(2, 6),
)
def test_no_query_is_learnt_from_and_judged_in_one_fold(rows, pool, folds):
    qid, y = (np.array(column) for column in zip(*rows, strict=True))
    scored = ~np.isnan(y)
    if len(comparable(y[scored], qid[scored])) == 0:
        return
    one_query = len(np.unique(qid[scored])) == 1
    if one_query and scored.sum() < 4:
        return
    problem = made(y, qid, pool or None, folds)
    codes = problem.codes
    judged = []
    for fold in range(problem.n_folds):
        train, _ = problem.train(fold)
        test = problem.test(fold)
        judged += test.tolist()
        assert len(test)
        assert test.max() < problem.n_own
        assert not set(train) & set(test)
        if not one_query:
            # neither rows of the data nor of the pool
            assert not set(codes[train]) & set(codes[test])
    assert len(judged) == len(set(judged))
    assert set(np.flatnonzero(scored)) <= set(judged)
    never = np.flatnonzero(problem.parts == ALWAYS)
    assert np.isnan(problem.y[never]).all()


NUMBERS = np.array([1, 2, 3, 4])
KINDS = [NUMBERS, NUMBERS.astype(str), NUMBERS.astype(float), NUMBERS.astype(object)]


@pytest.mark.parametrize("pool_names", KINDS)
@pytest.mark.parametrize("names", KINDS)
def test_the_pool_of_a_left_out_query_is_left_out_whatever_the_kinds_of_ids(names, pool_names):
    twice = np.repeat(np.arange(4), 2)
    problem = made([0, 1] * 4, names[twice], pool_names[twice], folds=2)
    assert problem.codes[8:].tolist() == problem.codes[:8].tolist()
    for fold in range(2):
        assert not set(problem.train(fold)[0] % 8) & set(problem.test(fold))


def test_queries_keep_the_ids_of_the_data_and_differ_where_it_tells_them_apart():
    rows, y = np.zeros((6, 1)), np.array([0.0, 1, 0, 1, 0, 1])
    pool = InputRows(np.zeros((3, 1)), None, ["1", "2", "5"])
    _, queries = make_problem(InputRows(rows, y, [1, 1, "1", "1", 2, 2]), pool, 2, 0)
    assert queries.ids[queries.codes].tolist() == [1, 1, "1", "1", 2, 2, "1", 2, "5"]


def test_training_rows_without_a_test_fold_are_all_rows():
    problem = made([0, 1, 0, 1, 0, 1], [1, 1, 2, 2, 3, 3])
    rows, y = problem.train(None)
    assert rows.tolist() == list(range(6))
    assert y.tolist() == problem.y.tolist()


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3)), max_size=40))
def test_comparable_groups_are_those_of_two_scores(rows):
    groups, y = np.array([g for g, _ in rows], dtype=int), np.array([s for _, s in rows], dtype=float)
    expected = [g for g in np.unique(groups) if len(np.unique(y[groups == g])) > 1]
    assert comparable(y, groups).tolist() == expected


def test_folds_share_the_queries_that_can_be_learnt_from():
    # six queries hold a pair, six do not
    y = np.array([0, 1] * 6 + [1, 1] * 6, dtype=float)
    groups = np.repeat(np.arange(12), 2)
    fold = assign_folds(y, groups, 3, np.random.default_rng(0))
    assert np.bincount(fold).tolist() == [4, 4, 4]
    assert np.bincount(fold[:6]).tolist() == [2, 2, 2]


def test_rows_of_one_query_are_dealt_alike():
    y = np.repeat([0.0, 1.0, 2.0], 20)
    group = assign_groups(y, 5, np.random.default_rng(0))
    for grade in (0.0, 1.0, 2.0):
        assert np.bincount(group[y == grade]).tolist() == [4] * 5


def test_smaller_shares_are_part_of_larger_ones_and_hold_a_pair():
    qid = np.repeat(np.arange(40), 3)
    y = np.where(qid == 7, [0, 1, 2] * 40, 1.0)  # one query can be learnt from
    problem = made(y, qid, folds=2)
    fold = int(1 - problem.parts[7 * 3])
    kept = []
    for share in (0.1, 0.3, 0.6):
        rows, scores = problem.train(fold, share, (3,))
        kept.append(set(qid[rows[~np.isnan(scores)]]))
        assert 7 in kept[-1]
        assert len(kept[-1]) == round(share * 20)
    assert kept[0] < kept[1] < kept[2]
    assert problem.train(fold, 0.3, (4,))[1].tolist() != problem.train(fold, 0.3, (3,))[1].tolist()


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
def test_a_problem_survives_the_disk(tmp_path, kind):
    problem = made([0, 1, 0, 1, np.nan, 1], [1, 1, 2, 2, 3, 3], [3, 4], kind=kind)
    joblib.dump(problem, tmp_path / PROBLEM)
    found = joblib.load(tmp_path / PROBLEM, mmap_mode="r")
    for name in ("y", "codes", "parts", "units"):
        np.testing.assert_array_equal(getattr(found, name), getattr(problem, name))
    dense = [X.toarray() if sparse.issparse(X) else X for X in (problem.X, found.X)]
    np.testing.assert_array_equal(*dense)
    assert (found.n_own, found.fingerprint) == (6, problem.fingerprint)


def test_a_fingerprint_depends_on_every_number():
    base = ([0, 1, 0, 1], [1, 1, 2, 2])
    prints = {made(*base).fingerprint, made(*base, [5]).fingerprint}
    prints |= {made([0, 1, 1, 0], base[1]).fingerprint, made(base[0], [1, 2, 2, 1]).fingerprint}
    moved = make_problem(InputRows(np.eye(4), np.array(base[0], float), base[1]), None, 2, 0)[0]
    assert len(prints | {moved.fingerprint}) == 5
    assert made(*base, folds=2, seed=9).fingerprint == made(*base).fingerprint


def test_data_that_cannot_be_evaluated_raise():
    with pytest.raises(InputError, match="all 3 scored rows are in one query, too few"):
        made([0, 1, 2], None)
    with pytest.raises(InputError, match="no two of the 4 scored rows share a query"):
        made([0, 1, 2, 3], [1, 2, 3, 4])
    with pytest.raises(InputError, match="y is NaN for all 2 rows"):
        made([np.nan, np.nan], [1, 1])
    rows = InputRows(np.zeros((4, 3)), np.array([0.0, 1, 0, 1]), [1, 1, 2, 2])
    with pytest.raises(InputError, match="the unjudged rows have 2 features and the"):
        make_problem(rows, InputRows(np.zeros((2, 2)), None, [1, 1]), 2, 0)
    with pytest.raises(InputError, match="only one of the data and the unjudged rows"):
        make_problem(rows, InputRows(np.zeros((2, 3)), None, None), 2, 0)
    with pytest.raises(InputError, match="y is missing, but methods are evaluated by scores"):
        make_problem(InputRows.of(np.zeros((2, 2)), None, None), None, 2, 0)
    with pytest.raises(InputError, match="holds preferences only"):
        InputRows.of(RankingData.of_pairs(np.eye(2), [[0, 1]]), None, None)


def test_rows_of_a_test_query_are_not_learnt_from_in_another():
    rng = np.random.default_rng(0)
    items, grades = rng.normal(size=(30, 2)), rng.integers(0, 3, 30)
    chosen = np.concatenate([rng.choice(30, 5, replace=False) for _ in range(9)])
    inputs = InputRows(items[chosen], grades[chosen].astype(float), np.repeat(np.arange(9), 5))
    with pytest.warns(UsageWarning, match="scored rows occur in several queries"):
        problem = make_problem(inputs, None, 9, 0)[0]
    for fold in range(9):
        rows, y = problem.train(fold)
        assert not set(chosen[rows[~np.isnan(y)]]) & set(chosen[problem.test(fold)])
    every = np.tile(np.arange(30), 2)
    inputs = InputRows(items[every], grades[every].astype(float), np.repeat([0, 1], 30))
    with pytest.warns(UsageWarning, match=r"^30 scored rows occur in several queries"):
        problem = make_problem(inputs, None, 2, 0)[0]
    assert not np.isnan(problem.train(0)[1]).any()
