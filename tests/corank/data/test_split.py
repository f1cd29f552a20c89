from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from corank.data.splits import QueryKFold, QueryShuffleSplit, mask_scores, shared_rows
from corank.errors import InputError

QID = np.random.default_rng(0).permutation(np.repeat(np.arange(11), np.arange(1, 12)))


@given(st.integers(2, 11), st.booleans(), st.integers(0, 5))
def test_folds_cover_every_row_once_and_keep_queries_whole(k, shuffle, seed):
    seen = np.zeros(len(QID), dtype=int)
    sizes = []
    for train, test in QueryKFold(k, shuffle=shuffle, random_state=seed).split(QID, qid=QID):
        seen[test] += 1
        assert not set(QID[train]) & set(QID[test])
        assert sorted([*train, *test]) == list(range(len(QID)))
        sizes.append(len(set(QID[test])))
    assert (seen == 1).all()
    assert max(sizes) - min(sizes) <= 1
    assert QueryKFold(k).get_n_splits() == k


def test_groups_serve_where_routing_is_off():
    one = list(QueryKFold(3).split(QID, None, QID))
    other = list(QueryKFold(3).split(QID, qid=QID))
    for (a, b), (c, d) in zip(one, other, strict=True):
        np.testing.assert_array_equal(a, c)
        np.testing.assert_array_equal(b, d)


def test_shuffle_split_draws_the_share_of_queries():
    splits = list(QueryShuffleSplit(4, test_size=0.4, random_state=1).split(QID, qid=QID))
    assert len(splits) == 4
    for train, test in splits:
        assert len(set(QID[test])) == 4
        assert not set(QID[train]) & set(QID[test])
    assert any((a[1].tolist() != b[1].tolist()) for a, b in itertools.pairwise(splits))


def test_hiding_rows_and_queries():
    y = np.arange(len(QID), dtype=float)
    y[:6] = np.nan
    rows = mask_scores(y, fraction=0.25, random_state=0)
    assert np.isnan(rows).sum() == 6 + round(0.25 * (len(y) - 6))
    assert np.isnan(rows[:6]).all()
    kept = ~np.isnan(rows)
    np.testing.assert_array_equal(rows[kept], y[kept])
    whole = mask_scores(np.arange(len(QID)), QID, 0.5, by="query", random_state=0)
    hidden = {q for q in set(QID) if np.isnan(whole[q == QID]).all()}
    assert len(hidden) == round(0.5 * 11)
    assert not np.isnan(whole[~np.isin(QID, list(hidden))]).any()


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: QueryKFold(1), "n_splits is 1; pass a whole number of at least 2"),
        (lambda: QueryKFold(2.5), "n_splits is 2.5; pass a whole number of at least 2"),
        (lambda: QueryShuffleSplit(2.5), "n_splits is 2.5; pass a whole number of at least 1"),
        (lambda: mask_scores([1.0], fraction=None), "fraction is None; pass a number of at least 0 and up to 1"),
        (lambda: next(QueryKFold(12).split(QID, qid=QID)), "11 queries cannot make 12 folds"),
        (lambda: next(QueryKFold(2).split(QID)), "qid is missing"),
        (lambda: QueryShuffleSplit(test_size=1.5), "test_size is 1.5"),
        (lambda: QueryShuffleSplit(0), "n_splits is 0"),
        (lambda: next(QueryShuffleSplit(test_size=0.01).split(QID, qid=QID)), "leaves 0 for testing"),
        (lambda: mask_scores([1.0], fraction=2), "fraction is 2"),
        (lambda: mask_scores([1.0], by="query"), "qid is missing"),
        (lambda: mask_scores([1.0], by="document"), "choose 'row' or 'query'"),
    ],
)
def test_bad_settings_get_one_sentence(call, sentence):
    with pytest.raises(InputError, match=sentence):
        call()


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_rows_with_missing_values_may_be_shared(kind):
    """NaN equals nothing, but a row with a gap in the same place is the same row; its mean is another one."""
    rows = np.array([[1.0, np.nan], [2.0, 3.0], [1.0, np.nan], [1.0, 3.0], [np.nan, 1.0]])
    assert shared_rows(kind(rows), np.array([0, 0, 1, 1, 1]), np.arange(5)).tolist() == [0, 1, 0, 3, 4]
    assert shared_rows(kind(rows), np.array([0, 0, 0, 1, 1]), np.arange(5)) is None
