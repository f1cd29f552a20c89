"""Folds of judged queries, and values of left-out scores, against evaluation query by query."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from corank.data.ranking import RankingData
from corank.data.splits import mask_scores
from corank.data.synthetic import make_ranking
from corank.metrics import disagreement_error, evaluate
from corank.models.auto.left_out import ValidationFolds, is_constant_inside, schedule, spread_inside

PROBLEM = make_ranking(12, (2, 9), random_state=3)
X, QID = PROBLEM.X, PROBLEM.qid
Y = mask_scores(PROBLEM.y, fraction=0.3, random_state=1)
DATA = RankingData.of(X, Y, QID)


def left_out(data=DATA, metric=None):
    return ValidationFolds.of(data, metric, np.random.default_rng(0))


def test_every_query_with_a_pair_is_left_out_once():
    found = left_out()
    comparable = [q for q in np.unique(QID) if len(np.unique(Y[(q == QID) & ~np.isnan(Y)])) > 1]
    assert sorted(set(QID[found.rows])) == comparable
    seen = np.zeros(len(found.rows), dtype=int)
    for part, out in found.parts():
        assert not set(QID[found.rows[out]]) & set(QID[part.scored_rows])
        seen += out
    assert (seen == 1).all()


def test_folds_do_not_depend_on_the_order_or_the_names_of_queries():
    shuffled = np.random.default_rng(1).permutation(len(Y))
    other = left_out(RankingData.of(X[shuffled], Y[shuffled], [f"q{q}" for q in QID[shuffled]]))
    fold_of = dict(zip(shuffled[other.rows], other.folds, strict=True))
    found = left_out()
    assert [fold_of[row] for row in found.rows] == found.folds.tolist()
    as_sparse = left_out(RankingData.of(sparse.csr_array(X), Y, QID))
    np.testing.assert_array_equal(as_sparse.folds, found.folds)


@pytest.mark.parametrize("metric", ["nDCG@10", "AP"])
def test_values_are_those_of_evaluate(metric):
    found = left_out(metric=metric)
    scores = np.random.default_rng(2).normal(size=len(found.rows))
    by_hand = evaluate(Y[found.rows], scores, QID[found.rows], metric)[metric]
    np.testing.assert_allclose(np.sort(found.values(scores)), np.sort(by_hand.values))


def test_real_scores_are_evaluated_by_pairs():
    data = RankingData.of(X, Y - 0.5, QID)
    found = left_out(data)
    scores = np.random.default_rng(2).normal(size=len(found.rows))
    assert found.metric == "disagreement"
    expected = 1.0 - disagreement_error(Y[found.rows], scores, QID[found.rows])
    assert np.nanmean(found.values(scores)) == pytest.approx(expected)


def test_preferences_are_evaluated_pair_by_pair():
    pairs = np.array([(i, j) for i in range(len(Y)) for j in range(len(Y)) if QID[i] == QID[j] and Y[i] > Y[j]])
    weights = np.random.default_rng(0).integers(1, 4, len(pairs))
    found = left_out(RankingData.of_pairs(X, pairs, QID, pair_weights=weights))
    scores = np.random.default_rng(2).normal(size=len(Y))
    for k, value in enumerate(found.values(scores[found.rows])):
        (q,) = np.unique(QID[found.rows[found.lists == k]])
        own = QID[pairs[:, 0]] == q
        is_right = scores[pairs[own, 0]] > scores[pairs[own, 1]]
        assert value == pytest.approx(np.average(is_right, weights=weights[own]))


def test_rows_of_one_query_are_dealt_by_score():
    y = np.arange(20.0)
    found = left_out(RankingData.of(X[:20], y))
    assert not found.is_by_query
    assert found.n_folds == 5
    for fold in range(5):
        assert found.folds[fold] == fold


def test_too_few_rows_of_one_query_are_not_left_out():
    assert left_out(RankingData.of(X[:6], np.arange(6.0))) is None


def test_spread_is_the_deviation_inside_queries():
    scores = np.random.default_rng(3).normal(size=len(Y)) + 100.0 * QID
    centred = np.concatenate([scores[q == QID] - scores[q == QID].mean() for q in np.unique(QID)])
    assert spread_inside(DATA, scores) == pytest.approx(np.sqrt(np.mean(centred**2)))
    assert is_constant_inside(DATA, 100.0 * QID)
    assert not is_constant_inside(DATA, scores)
    assert spread_inside(DATA, 100.0 * QID) == 1.0


def test_large_problems_use_fewer_folds():
    assert [schedule(100, n)[1] for n in (10_000, 50_000, 500_000)] == [5, 2, 1]


@pytest.mark.parametrize("is_pairs", [False, True])
def test_several_models_are_evaluated_together(is_pairs):
    pairs = np.array([(i, j) for i in range(len(Y)) for j in range(len(Y)) if QID[i] == QID[j] and Y[i] > Y[j]])
    found = left_out(RankingData.of_pairs(X, pairs, QID) if is_pairs else DATA)
    scores = np.random.default_rng(2).normal(size=(len(found.rows), 3)).round(1)
    expected = np.column_stack([found.values(one) for one in scores.T])
    np.testing.assert_allclose(found.values(scores), expected)


def test_coarse_parts_leave_out_several_folds_together():
    found = left_out()
    parts = [out for _, out in found.parts(3)]
    assert len(parts) == 3
    np.testing.assert_array_equal(np.sum(parts, axis=0), 1)
    assert all(out[found.folds == fold].all() for fold in range(found.n_folds) for out in [parts[fold % 3]])


def several_times(n_items, n_queries, n_rows=6, seed=0):
    """Items with a random grade each, in several queries."""
    rng = np.random.default_rng(seed)
    items, grades = rng.normal(size=(n_items, 3)), rng.integers(0, 3, n_items)
    chosen = np.concatenate([rng.choice(n_items, n_rows, replace=False) for _ in range(n_queries)])
    return chosen, RankingData.of(items[chosen], grades[chosen], np.repeat(np.arange(n_queries), n_rows))


@pytest.mark.parametrize("n_queries", [12, 1])
def test_rows_of_a_left_out_query_are_not_learnt_from_in_another(n_queries):
    chosen, data = several_times(40, n_queries, 6 if n_queries > 1 else 40)
    if n_queries == 1:
        data = RankingData.of(np.vstack([data.X, data.X]), np.tile(data.y, 2), np.zeros(80))
        chosen = np.tile(chosen, 2)
    found = left_out(data)
    for part, out in found.parts():
        assert len(part.scored_rows)
        assert not set(chosen[found.rows[out]]) & set(chosen[part.scored_rows])


def test_preferences_between_shared_rows_are_left_out_too():
    chosen, graded = several_times(40, 12)
    pairs = [(6 * q + i, 6 * q + j) for q in range(12) for i in range(6) for j in range(i)]
    pairs = np.array([pair for pair in pairs if graded.y[pair[0]] > graded.y[pair[1]]])
    found = left_out(RankingData.of_pairs(graded.X, pairs, graded.queries.codes))
    for part, out in found.parts():
        assert not set(chosen[found.rows[out]]) & set(chosen[part.pairs].ravel())


def test_nothing_is_left_out_if_all_queries_have_the_same_rows():
    _, data = several_times(6, 8)
    assert left_out(data) is None
