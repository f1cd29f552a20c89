"""The bound by cross-validation: against every labelling of short lists, by hand, and by repeated draws."""

from __future__ import annotations

import math
from itertools import permutations, product

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.optimize import brentq
from scipy.stats import rankdata
from sklearn.linear_model import Ridge
from sklearn.model_selection import GroupKFold, KFold
from sklearn.pipeline import make_pipeline

from corank import QueryKFold, QueryScaler, QuerySearchCV, RankRLS, make_ranking
from corank.data.queries import Queries
from corank.errors import InputError
from corank.metrics.bounds import DistanceScorer, cv_bound, randomised_bound, ranking_distance
from corank.metrics.bounds.cross_validation import list_distances, mean_ranks

RNG = np.random.default_rng(0)
DATA = make_ranking(60, 6, random_state=0)
JUDGED = DATA.qid < 40
X, Y, QID = DATA.X[JUDGED], DATA.y[JUDGED].astype(float), DATA.qid[JUDGED]
FURTHER = DATA.X[~JUDGED], DATA.qid[~JUDGED]


class ByRows:
    """A splitter that does not look at queries."""

    def split(self, X, y=None, groups=None):
        return KFold(7).split(X)


def error(scores, y):
    """Share of the differences of grades that are lost in wrong pairs; 0 where there is no pair."""
    above = y[:, None] > y
    weight = (y[:, None] - y)[above]
    wrong = (scores[:, None] < scores) + 0.5 * (scores[:, None] == scores)
    return float(weight @ wrong[above] / weight.sum()) if weight.size else 0.0


def distance(scores, others):
    one_list = Queries.of(None, len(scores))
    return float(list_distances(mean_ranks(scores, one_list), mean_ranks(others, one_list), one_list)[0])


def largest_gap(scores, others, labels):
    return max(error(scores, y) - error(others, y) for y in labels)


def test_distance_is_the_largest_gap_over_all_labels():
    """Brute force over p + q = K, and over which rows are relevant."""
    labels = [np.array(y) for y in product([0, 1], repeat=5)]
    for order in list(permutations(range(5)))[::7]:
        scores, others = np.arange(5.0), np.array(order, dtype=float)
        rises = np.sort((-scores).argsort().argsort() - (-others).argsort().argsort())[::-1]
        by_p = max(rises[:p].sum() / (p * (5 - p)) for p in range(1, 5))
        assert distance(scores, others) == pytest.approx(by_p)
        assert distance(scores, others) == pytest.approx(largest_gap(scores, others, labels))


def test_distance_holds_for_grades_and_ties():
    labels = [np.array(y, dtype=float) for y in product([0, 1, 3], repeat=5)]
    binary = [y for y in labels if set(y) <= {0, 1}]
    for _ in range(40):
        scores, others = RNG.integers(0, 3, (2, 5)).astype(float)
        assert distance(scores, others) == pytest.approx(largest_gap(scores, others, binary))
        assert distance(scores, others) >= largest_gap(scores, others, labels) - 1e-12


def test_distances_and_ranks_are_those_of_each_query():
    sizes = RNG.integers(1, 9, 30)
    qid = RNG.permutation(np.repeat(np.arange(30), sizes))
    scores, others = RNG.integers(0, 5, (2, len(qid))).astype(float)
    queries = Queries.of(qid, len(qid))
    ranks = mean_ranks(scores, queries)
    found = list_distances(ranks, mean_ranks(others, queries), queries)
    for query, value in zip(queries.ids, found, strict=True):
        rows = qid == query
        np.testing.assert_allclose(ranks[rows], rankdata(-scores[rows]) - 1)
        assert value == pytest.approx(distance(scores[rows], others[rows]) if rows.sum() > 1 else 0.0)
    assert (found >= 0).all()
    assert (found <= 1).all()


def by_hand(estimator, n_folds, delta):
    f, errors, apart, sizes = estimator().fit(X, Y, qid=QID).predict(FURTHER[0]), [], [], []
    for train, test in QueryKFold(n_folds).split(X, qid=QID):
        g = estimator().fit(X[train], Y[train], qid=QID[train])
        scores = g.predict(X)
        errors.append(np.mean([error(scores[q == QID], Y[q == QID]) for q in np.unique(QID[test])]))
        sizes.append(len(np.unique(QID[test])))
        others = g.predict(FURTHER[0])
        lists = [FURTHER[1] == q for q in np.unique(FURTHER[1])]
        apart.append(np.mean([distance(f[rows], others[rows]) for rows in lists]))
    width = math.sqrt(math.log(2 / delta) / (2 * min(sizes)))
    D = np.mean(apart)
    further = brentq(
        lambda p: 20 * (D * math.log(D / p) + (1 - D) * math.log((1 - D) / (1 - p))) - math.log(2 / delta), D, 1 - 1e-9
    )
    assert further <= D + math.sqrt(math.log(2 / delta) / (2 * 20))
    return np.mean(errors), np.mean(errors) + width + further


def test_against_the_sum_by_hand():
    bound = cv_bound(RankRLS(), X, Y, QID, FURTHER, cv=4, delta=0.9)
    observed, high = by_hand(RankRLS, 4, 0.9)
    assert bound.error == pytest.approx(observed)
    assert bound.high == pytest.approx(min(1.0, high))
    assert bound.high < 1.0
    assert bound.high == pytest.approx(bound.error + sum(value for name, value in bound.parts[3:]))


def test_the_printed_form_is_equation_2_with_one_fold_drawn_for_each_unjudged_query():
    delta, K = 0.4, 4
    folds = list(QueryKFold(K).split(X, qid=QID))
    models = [RankRLS().fit(X[train], Y[train], qid=QID[train]) for train, _ in folds]
    scores, others = RankRLS().fit(X, Y, qid=QID).predict(FURTHER[0]), [g.predict(FURTHER[0]) for g in models]
    lists = [FURTHER[1] == q for q in np.unique(FURTHER[1])]
    # each pair of a query and a fold is drawn equally often over many seeds
    means = [
        cv_bound(RankRLS(), X, Y, QID, FURTHER, cv=K, delta=delta, form="printed", random_state=s) for s in range(6)
    ]
    possible = np.array([[distance(scores[rows], other[rows]) for rows in lists] for other in others])
    for bound in means:
        parts = dict(bound.parts)
        assert possible.min(axis=0).mean() - 1e-12 <= parts["distance to the folds' models"]
        assert parts["distance to the folds' models"] <= possible.max(axis=0).mean() + 1e-12
        widths = [math.sqrt(math.log(2 * K / delta) / (2 * len(np.unique(QID[test])))) for _, test in folds]
        assert parts["width of the folds"] == pytest.approx(np.mean(widths))
        assert parts["width of the distance"] == pytest.approx(math.sqrt(math.log(2 / delta) / (2 * len(lists))))
        assert bound.high >= cv_bound(RankRLS(), X, Y, QID, FURTHER, cv=K, delta=delta).high - 0.05
    general = randomised_bound(scores, others, FURTHER[1], 0.3, delta=delta, random_state=0)
    assert dict(general.parts)["distance to its rankers"] == dict(means[0].parts)["distance to the folds' models"]
    assert general.high == pytest.approx(0.3 + sum(value for name, value in general.parts[3:]))


def test_a_randomised_ranker_draws_by_its_weights_and_the_distance_is_a_mean():
    scores, others = RNG.normal(size=(2, 60))
    qid = np.repeat(np.arange(12), 5)
    apart = np.mean([distance(scores[qid == q], others[qid == q]) for q in range(12)])
    assert ranking_distance(scores, others, qid) == pytest.approx(apart)
    certain = randomised_bound(scores, [scores, others], qid, 0.1, weights=[0, 2])
    assert dict(certain.parts)["distance to its rankers"] == pytest.approx(apart)
    assert dict(randomised_bound(scores, [scores], qid, 0.1).parts)["distance to its rankers"] == 0.0
    for given, name in (
        ({"weights": [1.0]}, "weights"), ({"weights": [-1.0, 2.0]}, "weights"), ({"upper": 1.5}, "upper"),
        ({"others": []}, "weights"), ({"others": [scores[:3]]}, "scores"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=name):
            randomised_bound(**{"scores": scores, "others": [scores, others], "qid": qid, "upper": 0.1, **given})


def test_rows_may_come_in_many_forms():
    names = [f"c{j}" for j in range(X.shape[1])]
    expected = cv_bound(RankRLS(), X, Y, QID, FURTHER)
    order = np.argsort(QID % 7, kind="stable")
    frames = pd.DataFrame(X, columns=names), pd.DataFrame(FURTHER[0], columns=names)
    assert cv_bound(RankRLS(), frames[0], Y, QID, (frames[1], FURTHER[1])).high == pytest.approx(expected.high)
    rows = sparse.csr_matrix(X), sparse.csr_matrix(FURTHER[0])
    assert cv_bound(RankRLS(), rows[0], Y, QID, (rows[1], FURTHER[1])).high == pytest.approx(expected.high)
    assert cv_bound(RankRLS(), X.tolist(), Y.tolist(), QID.tolist(), FURTHER).high == pytest.approx(expected.high)
    texts = np.array([f"q{q}" for q in QID])
    assert cv_bound(RankRLS(), X, Y, texts, FURTHER).high == pytest.approx(expected.high)
    scattered = cv_bound(RankRLS(), X[order], Y[order], QID[order], FURTHER, cv=GroupKFold(4))
    assert 0 < scattered.error < 0.5
    piped = cv_bound(make_pipeline(QueryScaler(), Ridge()), X, Y, QID, FURTHER)
    assert 0 < piped.error < 0.5


def test_unscored_queries_to_learn_from_are_in_every_fold():
    told = []

    class Watching(Ridge):
        def fit(self, X, y, sample_weight=None):
            told.append(np.isnan(y).sum())
            return super().fit(X[~np.isnan(y)], y[~np.isnan(y)])

    cv_bound(Watching(), X, np.where(QID < 3, np.nan, Y), QID, FURTHER, cv=3)
    assert told == [18, 18, 18, 18]


@pytest.mark.long
def test_the_bound_holds_as_often_as_it_says():
    population, delta, held = make_ranking(4000, 5, random_state=3), 0.3, 0
    y = (population.y > 1).astype(float)
    rng = np.random.default_rng(4)
    lists = np.arange(len(y)).reshape(-1, 5)
    model = Ridge(1.0)
    for _ in range(60):
        drawn = rng.integers(0, 4000, 90)
        qid = np.repeat(np.arange(90), 5)
        rows = lists[drawn].ravel()
        bound = cv_bound(
            model, population.X[rows[:200]], y[rows[:200]], qid[:200], (population.X[rows[200:]], qid[200:]), cv=4,
            delta=delta,
        )  # fmt: skip
        f = model.fit(population.X[rows[:200]], y[rows[:200]]).predict(population.X)
        wrong = [error(f[one], y[one]) for one in lists[::8]]
        held += np.mean(wrong) <= bound.high
    assert held / 60 >= 1 - delta


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"delta": 1.0}, "delta is 1.0; pass a number above 0 and below 1"),
        ({"cv": 1}, "cv is 1; pass a whole number of at least 2, or a splitter"),
        ({"cv": 41}, "40 queries cannot make 41 folds"),
        ({"cv": ByRows()}, "cv holds out 5 of the 6 rows of query 5; pass a splitter that keeps queries whole"),
        ({"unjudged": FURTHER[0]}, r"unjudged is a ndarray; pass a pair \(X, qid\)"),
        ({"unjudged": (FURTHER[0], None)}, "rows without qid; pass rows with their query ids"),
        ({"unjudged": (FURTHER[0][:0], [])}, "unjudged has 0 rows"),
        ({"y": np.where(np.arange(len(Y)) == 8, np.nan, Y)}, "query 1 has 5 of 6 rows scored, but whole lists"),
        ({"y": np.full(len(Y), np.nan)}, "y holds no score; pass some judged queries"),
        ({"estimator": RankRLS(kernel="precomputed")}, "kernel='precomputed' cannot score the unjudged rows"),
    ],
)
def test_what_cannot_be_bounded_gets_one_sentence(given, sentence):
    with pytest.raises(InputError, match=sentence):
        cv_bound(**{"estimator": RankRLS(), "X": X, "y": Y, "qid": QID, "unjudged": FURTHER, **given})


def test_a_search_by_distance_ranks_models_by_the_bound_without_its_widths():
    alphas = [1e-3, 1.0, 1e3]
    search = QuerySearchCV(RankRLS(), {"alpha": alphas}, metric=DistanceScorer(X, Y, QID, FURTHER), cv=4)
    search.fit(X, Y, qid=QID)
    bounds = [cv_bound(RankRLS(alpha), X, Y, QID, FURTHER, cv=4) for alpha in alphas]
    expected = [-bound.error - dict(bound.parts)["distance to the folds' models"] for bound in bounds]
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], expected, atol=1e-12)
    # the chosen model is at distance 0 from itself
    scores = search.predict(X)
    errors = [error(scores[of], Y[of]) for of in (q == QID for q in np.unique(QID))]
    assert search.score(X, Y, QID) == pytest.approx(-np.mean(errors))


def test_models_that_differ_in_one_of_many_numbers_or_in_a_function_are_not_confused():
    numbers = np.full(2000, 1e8)
    other = numbers.copy()
    other[1000] = 0.01  # printed in the same way
    rankers = [RankRLS(alphas=alphas, metric="evidence") for alphas in (numbers, other)]
    rankers += [RankRLS(kernel=lambda a, b, n=n: np.asarray(a)[:, n:] @ np.asarray(b)[:, n:].T) for n in (0, 3)]
    shared, values = DistanceScorer(X, Y, QID, FURTHER), []
    for ranker in rankers:
        model = ranker.fit(X[:60], Y[:60], qid=QID[:60])
        values.append(DistanceScorer(X, Y, QID, FURTHER)(model, X[60:], Y[60:], qid=QID[60:]))
        assert shared(model, X[60:], Y[60:], qid=QID[60:]) == values[-1]
    assert len(set(values)) == 4
