from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.preprocessing import StandardScaler

import corank
from corank.base import Calibrated, ColumnMean, ResidualRanker, reliability_curve
from corank.base.calibration import _strict_curve
from corank.data.ranking import RankingData
from corank.data.rows import as_objects
from corank.data.splits import QueryKFold, QueryShuffleSplit, mask_scores
from corank.data.synthetic import make_ranking
from corank.errors import InputError
from corank.models.linear import SPD
from corank.models.rls import RankRLS

METHOD_NAMES = ("isotonic", "logistic")
METHODS = pytest.mark.parametrize("method", METHOD_NAMES)
PROBLEM = make_ranking(60, (5, 15), random_state=0)
X, QID, GRADES = PROBLEM.X, PROBLEM.qid, PROBLEM.y
BINARY = (np.median(GRADES) < GRADES).astype(float)


def ranker():
    return SPD(loss="squared", alpha=0.1)


def held_out_scores(y, folds, make=ranker):
    """Scores by models that did not see them, moved to the mean and deviation of the model of all queries."""
    scores, whole = np.full(len(y), np.nan), make().fit(X, y, qid=QID).predict(X)
    for train, test in folds:
        own = make().fit(X[train], y[train], qid=QID[train]).predict(X)
        scores[test] = (StandardScaler().fit_transform(own[:, None])[:, 0] * whole.std() + whole.mean())[test]
    return scores


def test_isotonic_is_fitted_on_queries_that_the_ranker_did_not_see():
    scores = held_out_scores(GRADES, QueryKFold(4).split(X, qid=QID))
    knots, levels = _strict_curve(scores, GRADES, np.ones(len(X)))
    model = Calibrated(ranker(), cv=4).fit(X, GRADES, qid=QID)
    whole = ranker().fit(X, GRADES, qid=QID)
    np.testing.assert_allclose(model.predict(X), np.interp(whole.predict(X), knots, levels), rtol=1e-6)


class FirstColumn(ColumnMean):
    """A ranker whose scores are the first column, as they are."""

    def _predict_queries(self, X, qid, prior):
        return np.asarray(X, dtype=np.float64)[:, 0]


def drawn(probability, n, seed=0):
    """Return scores in queries of 20 rows, and labels 0 and 1 of the given probability."""
    rng = np.random.default_rng(seed)
    s = 1.5 * rng.normal(size=(n, 1))
    return s, (rng.random(n) < probability(s[:, 0])).astype(float), np.arange(n) // 20


def rare(s):
    return expit(s - 5.0)


def steep(s):
    return expit(4.0 * np.tanh(3.0 * s))


@pytest.mark.parametrize("probability", [rare, steep, lambda s: np.full(len(s), 0.5), lambda s: expit(-s)])
def test_order_and_ties_are_those_of_the_scores(probability):
    """Isotonic regression alone made 1,257 different probabilities of 4,000 different scores."""
    s, y, qid = drawn(probability, 4000)
    model = Calibrated(FirstColumn([0]), cv=2).fit(s, y, qid=qid)
    rng = np.random.default_rng(1)
    fresh = 1.5 * rng.normal(size=4000)
    samples = {
        "new": fresh,
        "with ties": np.round(fresh, 1),
        "single precision": fresh.astype(np.float32),
        "adjacent": np.nextafter(np.float32(3.0) + np.zeros(2, np.float32), np.float32([4.0, 2.0])),
        "outside the range": np.concatenate([20.0 * fresh, 1000.0 * fresh]),
        "extreme": np.concatenate([-np.logspace(0, 37, 500), np.logspace(0, 37, 500)]).astype(np.float32),
    }
    for name, scores in samples.items():
        p = model.predict(np.asarray(scores, dtype=np.float64)[:, None])
        _, wanted = np.unique(scores, return_inverse=True)
        _, places = np.unique(p, return_inverse=True)
        np.testing.assert_array_equal(places, wanted, err_msg=name)
        assert 0.0 < p.min() < p.max() < 1.0


def test_logistic_scores_of_few_relevant_rows_are_as_good_as_by_scikit_learn():
    """A logistic prior of 400 rows, of which 1.5 % are relevant, left isotonic regression a log loss of .0715."""
    s, y, qid = drawn(rare, 4000, seed=3)
    new, truth, _ = drawn(rare, 40_000, seed=4)
    p = Calibrated(FirstColumn([0])).fit(s, y, qid=qid).predict(new)
    platt = CalibratedClassifierCV(LogisticRegression(), method="sigmoid").fit(s, y).predict_proba(new)[:, 1]
    assert log_loss(truth, p) < log_loss(truth, platt) + 2e-4
    errors = [reliability_curve(truth, values, strategy="quantile").expected_error for values in (p, platt)]
    assert errors[0] < errors[1] + 5e-4


def test_scores_that_are_not_logistic_are_not_forced_to_be():
    s, y, qid = drawn(steep, 4000)
    new, truth, _ = drawn(steep, 20_000, seed=1)
    p, logistic = (Calibrated(FirstColumn([0]), method).fit(s, y, qid=qid).predict(new) for method in METHOD_NAMES)
    assert log_loss(truth, p) < log_loss(truth, steep(new[:, 0])) + 0.01 < log_loss(truth, logistic) - 0.03
    assert reliability_curve(truth, p).expected_error < 0.03


class Drifting(SPD):
    """A ranker whose scores have another origin and another scale for every number of training rows."""

    def _fit(self, data, held, rng):
        fitted = super()._fit(data, held, rng)
        return replace(fitted, coef=fitted.coef * data.n_rows)

    def predict(self, X, *, prior=None):
        return super().predict(X, prior=prior) + np.abs(self.coef_).sum()


@METHODS
def test_origin_and_scale_of_the_scores_do_not_matter(method):
    """Losses of pairs leave both open, and models of different folds would have different ones."""
    plain = Calibrated(ranker(), method).fit(X, GRADES, qid=QID).predict(X)
    drifting = Calibrated(Drifting(loss="squared", alpha=0.1), method).fit(X, GRADES, qid=QID).predict(X)
    np.testing.assert_allclose(drifting, plain, rtol=1e-6)


def test_isotonic_probabilities_of_few_rows_are_not_0_and_1():
    few = QID < 3
    p = Calibrated(ranker(), cv=3).fit(X[few], BINARY[few], qid=QID[few]).predict(X)
    assert p.min() > 0.0
    assert p.max() < 1.0


def test_logistic_balances_the_held_out_scores():
    """At the optimum of a sigmoid with free level and slope, residuals average to 0, alone and against the scores."""
    scores = held_out_scores(GRADES, QueryKFold(5).split(X, qid=QID))
    model = Calibrated(ranker(), "logistic").fit(X, GRADES, qid=QID)
    p = 1 / (1 + np.exp(-(model.slope_ * scores + model.offset_)))
    residual = (GRADES - model.low_) / (model.high_ - model.low_) - p
    assert abs(residual.mean()) < 1e-7
    assert abs((residual * (scores - scores.mean())).mean()) < 1e-5 * scores.std()


@METHODS
def test_predictions_rise_with_the_scores_of_the_ranker(method):
    model = Calibrated(ranker(), method).fit(X, GRADES, qid=QID)
    order = np.argsort(model.ranker_scores(X))
    assert (np.diff(model.predict(X)[order]) >= 0).all()
    np.testing.assert_array_equal(model.rank(X, QID), ranker().fit(X, GRADES, qid=QID).rank(X, QID))
    assert model.predict(X).min() >= GRADES.min()
    assert model.predict(X).max() <= GRADES.max()


@METHODS
def test_grades_from_two_up_are_predicted_from_two_up(method):
    one, other = (Calibrated(ranker(), method).fit(X, y, qid=QID).predict(X) for y in (GRADES, GRADES + 2))
    np.testing.assert_allclose(other, one + 2, rtol=1e-6)


@METHODS
def test_probabilities_come_true(method):
    new = make_ranking(400, 15, random_state=0)
    y, train = (new.y > np.median(new.y)).astype(float), new.qid < 200
    model = Calibrated(ranker(), method).fit(new.X[train], y[train], qid=new.qid[train])
    proba = model.predict_proba(new.X[~train])
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    np.testing.assert_array_equal(proba[:, 1], model.predict(new.X[~train]))
    raw = np.clip(model.ranker_scores(new.X[~train]), 0, 1)
    error = reliability_curve(y[~train], proba[:, 1]).expected_error
    assert error < 0.05 < reliability_curve(y[~train], raw).expected_error


def test_splitters_and_lists_of_folds():
    folds = list(QueryKFold(3).split(X, qid=QID))
    one, other = (Calibrated(ranker(), cv=cv).fit(X, GRADES, qid=QID) for cv in (3, folds))
    np.testing.assert_array_equal(one.predict(X), other.predict(X))
    Calibrated(ranker(), cv=QueryShuffleSplit(2, random_state=0)).fit(X, GRADES, qid=QID)
    more_parts_than_queries = Calibrated(ranker(), cv=1000).fit(X, GRADES, qid=QID)
    assert np.isfinite(more_parts_than_queries.predict(X)).all()


def test_rows_are_held_out_where_there_is_one_query():
    model = Calibrated(ranker(), cv=5).fit(X, GRADES)
    assert np.corrcoef(model.predict(X), GRADES)[0, 1] > 0.3


@pytest.mark.parametrize("cv", [2, 5, 10_000])
def test_the_order_of_rows_does_not_matter_where_there_is_one_query(cv):
    # scores without ties; rows come in ascending order of score, as sorted files do
    utility, rows = PROBLEM.utility[:60], X[:60]
    ascending = np.argsort(utility)
    one = Calibrated(ranker(), cv=cv).fit(rows[ascending], utility[ascending])
    np.testing.assert_allclose(one.predict(rows), Calibrated(ranker(), cv=cv).fit(rows, utility).predict(rows))
    binary = Calibrated(ranker(), cv=2).fit(rows[ascending], np.sort(utility > np.median(utility)))
    assert binary.predict_proba(rows).shape == (60, 2)


def test_scores_the_wrong_way_round_are_not_turned():
    class Backwards(SPD):
        def _score_rows(self, X):
            return -super()._score_rows(X)

    for method in ("isotonic", "logistic"):
        model = Calibrated(Backwards(loss="squared", alpha=0.1), method).fit(X, GRADES, qid=QID)
        np.testing.assert_allclose(model.predict(X), GRADES.mean(), rtol=0.05)


def test_a_ranker_that_looks_at_whole_queries_gets_them():
    y = mask_scores(GRADES, fraction=0.5, random_state=0)
    on_top = ResidualRanker(ColumnMean([0, 1]), SPD(loss="squared", alpha=0.1))
    model = Calibrated(on_top, "logistic").fit(X, y, qid=QID)
    np.testing.assert_array_equal(model.ranker_scores(X, QID), clone(on_top).fit(X, y, qid=QID).predict(X, QID))
    scores, targets = [], []
    whole = model.ranker_scores(X, QID)
    for train, test in QueryKFold(5).split(X, y, QID):
        own = clone(on_top).fit(X[train], y[train], qid=QID[train]).predict(X, QID)
        held = (own - own.mean()) * (whole.std() / own.std()) + whole.mean()
        scores.append(held[test][~np.isnan(y[test])])
        targets.append(y[test][~np.isnan(y[test])])
    known = Calibrated(on_top, "logistic")._held_out(RankingData.of(X, y, QID), model.ranker_, lambda n: None)
    np.testing.assert_allclose(known[0], np.concatenate(scores), rtol=1e-6)
    np.testing.assert_array_equal(known[1], np.concatenate(targets))
    assert model.score(X, GRADES, QID) > 0.5


def test_separable_scores_stay_finite():
    Z = np.tile([[0.0], [1.0]], (20, 1))
    model = Calibrated(ranker(), "logistic").fit(Z, Z[:, 0], qid=np.repeat(np.arange(10), 4))
    np.testing.assert_allclose(model.predict([[0.0], [1.0]]), [0, 1], atol=0.01)


def test_a_nested_ranker_survives_saving(tmp_path):
    model = Calibrated(ranker(), "logistic").fit(X, BINARY, qid=QID)
    corank.save(model, tmp_path / "model.safetensors")
    again = corank.load(tmp_path / "model.safetensors")
    assert again.ranker.get_params() == model.ranker.get_params()
    assert not hasattr(again.ranker, "coef_")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(again.rank(X, QID), model.rank(X, QID))


def test_gram_matrices_and_objects_are_calibrated_as_the_rows_they_stand_for():
    def dot(a, b):
        return np.array(list(a)) @ np.array(list(b)).T

    rows, y, qid = X[:120], GRADES[:120], QID[:120]
    wanted = Calibrated(RankRLS(kernel="linear", alpha=0.1, scale=False)).fit(rows, y, qid=qid).predict(rows)
    gram = Calibrated(RankRLS(kernel="precomputed", alpha=0.1)).fit(rows @ rows.T, y, qid=qid)
    np.testing.assert_allclose(gram.predict(rows @ rows.T), wanted, atol=1e-6)
    objects = [tuple(row) for row in rows]
    found = Calibrated(RankRLS(kernel=dot, alpha=0.1), cv=2).fit(as_objects(objects), y, qid=qid)
    wanted = Calibrated(RankRLS(kernel="linear", alpha=0.1, scale=False), cv=2).fit(rows, y, qid=qid).predict(rows)
    np.testing.assert_allclose(found.predict(as_objects(objects)), wanted, atol=1e-6)


def test_bad_input():
    with pytest.raises(InputError, match="ranker is a IsotonicRegression"):
        Calibrated(IsotonicRegression()).fit(X, GRADES, qid=QID)
    with pytest.raises(ValueError, match="method is 'other'"):
        Calibrated(ranker(), "other").fit(X, GRADES, qid=QID)
    with pytest.raises(InputError, match="calibration needs scores"):
        Calibrated(ranker()).fit(RankingData.of_pairs(X, [[0, 1]]))
    with pytest.raises(InputError, match="cv holds out no scored row"):
        Calibrated(ranker(), cv=[]).fit(X, GRADES, qid=QID)
    model = Calibrated(ranker()).fit(X, GRADES, qid=QID)
    assert not hasattr(model, "predict_proba")
    assert clone(model).ranker is not model.ranker


@pytest.mark.parametrize("scale", [1e-30, 1e-10, 1e10])
def test_what_all_rows_weigh_changes_no_sigmoid(scale):
    problem = make_ranking(10, 8, random_state=0)
    how = {"ranker": SPD(loss="squared", alpha=0.1), "method": "logistic", "cv": 3}
    one = Calibrated(**how).fit(problem.X, problem.y, qid=problem.qid)
    other = Calibrated(**how).fit(problem.X, problem.y, qid=problem.qid, sample_weight=np.full(80, scale))
    np.testing.assert_allclose([other.slope_, other.offset_], [one.slope_, one.offset_], rtol=1e-6)
