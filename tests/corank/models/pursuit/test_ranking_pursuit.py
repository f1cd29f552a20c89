"""RankingPursuit through its public interface."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from scipy import sparse
from sklearn import config_context
from sklearn.model_selection import cross_val_score

from corank import explain
from corank.base.kernels import GaussianKernel
from corank.data.ranking import RankingData
from corank.data.splits import QueryKFold, mask_scores
from corank.data.synthetic import make_ranking
from corank.errors import InputError, UsageWarning
from corank.metrics import disagreement_error
from corank.models import pursuit
from corank.models.pursuit import dictionary

# columns as they are: these tests compute by hand
RankingPursuit = partial(pursuit.RankingPursuit, scale=False)
CoRankingPursuit = partial(pursuit.CoRankingPursuit, scale=False)

PROBLEM = make_ranking(15, (3, 10), random_state=2)
X, Y, QID = PROBLEM.X, PROBLEM.y, PROBLEM.qid
KERNEL = GaussianKernel(0.03)


@pytest.mark.parametrize("fitting", ["basic", "back", "pre"])
def test_every_shorter_model_is_that_of_a_shorter_fit(fitting):
    whole = RankingPursuit(10, KERNEL, fitting=fitting).fit(X, Y, qid=QID)
    for p in (1, 4, 10):
        short = RankingPursuit(p, KERNEL, fitting=fitting).fit(X, Y, qid=QID)
        np.testing.assert_allclose(whole.predict(X, n_terms=p), short.predict(X), rtol=1e-9, atol=1e-9)
    assert not whole.predict(X, n_terms=0).any()


@pytest.mark.parametrize("dictionary", ["scored", "columns"])
def test_the_explanation_adds_up_to_the_score(dictionary):
    model = RankingPursuit(12, KERNEL, dictionary=dictionary).fit(X, Y, qid=QID)
    for row in range(1, 5):
        explanation = explain(model, X, (row, 0))
        gap = model.predict(X)[row] - model.predict(X)[0]
        assert explanation.contributions.sum() == pytest.approx(gap)


def test_terms_refer_to_rows_of_x():
    y = mask_scores(Y, fraction=0.4, random_state=0)
    scored = RankingPursuit(8, KERNEL).fit(X, y, qid=QID)
    assert not np.isnan(y[scored.terms_]).any()
    named = RankingPursuit(8, KERNEL, dictionary=[3, 5, 9]).fit(X, y, qid=QID)
    assert set(named.terms_) <= {3, 5, 9}
    by_hand = KERNEL(X, X[named.terms_]) @ named.term_coefs_
    np.testing.assert_allclose(named.predict(X), by_hand, rtol=1e-12, atol=1e-12)
    drawn = RankingPursuit(8, KERNEL, dictionary=6, random_state=1, fitting="back").fit(X, y, qid=QID)
    assert len(drawn.terms_) <= 6


def test_the_first_term_lowers_the_objective_most():
    y = mask_scores(Y, fraction=0.7, random_state=0)
    K, s = KERNEL(X), np.flatnonzero(~np.isnan(y))
    L = -(QID[s][:, None] == QID[s]).astype(float)
    L -= np.diag(L.sum(axis=1))
    J = [y[s] @ L @ y[s]]
    for k in K[s].T:
        a = (k @ L @ y[s]) / (k @ L @ k)
        J.append((y[s] - a * k) @ L @ (y[s] - a * k))
    best = int(np.argmin(J[1:]))
    assert np.isnan(y[best])
    model = RankingPursuit(1, KERNEL, dictionary="all").fit(X, y, qid=QID)
    assert model.terms_.tolist() == [best]
    np.testing.assert_allclose(model.objective_path_, [J[0], J[1 + best]])


def test_solutions_share_no_row_and_get_no_better():
    model = RankingPursuit(5, KERNEL, fitting="back", n_solutions=3).fit(X, Y, qid=QID)
    chosen = [set(solution["terms"].tolist()) for solution in model.solutions_]
    assert len(chosen[0] | chosen[1] | chosen[2]) == sum(map(len, chosen))
    assert model.solutions_[0]["gains"][0] >= model.solutions_[1]["gains"][0] >= model.solutions_[2]["gains"][0]
    left = np.setdiff1d(np.arange(len(Y)), model.solutions_[0]["terms"])
    second = RankingPursuit(5, KERNEL, fitting="back", dictionary=left).fit(X, Y, qid=QID)
    np.testing.assert_allclose(model.predict(X, solution=1), second.predict(X), rtol=1e-9, atol=1e-9)


def test_early_stopping_keeps_the_best_length_on_held_out_queries():
    noisy = make_ranking(40, 8, random_state=0)
    how = {"kernel": KERNEL, "fitting": "back", "random_state": 3}
    model = RankingPursuit(100, early_stopping=True, n_iter_no_change=8, **how).fit(noisy.X, noisy.y, qid=noisy.qid)
    errors = model.validation_errors_
    best = max(int(np.argmin(errors)), 1)
    assert len(model.terms_) == best
    assert len(errors) - 1 - int(np.argmin(errors)) <= 8
    assert errors[0] == 0.5
    refit = RankingPursuit(best, **how).fit(noisy.X, noisy.y, qid=noisy.qid)
    np.testing.assert_array_equal(model.predict(noisy.X), refit.predict(noisy.X))


def test_early_stopping_holds_out_rows_where_there_is_one_query():
    one_query = RankingPursuit(20, KERNEL, early_stopping=True, random_state=0).fit(X[:40], Y[:40])
    assert 1 <= len(one_query.terms_) <= 20
    few = RankingPursuit(5, KERNEL, early_stopping=True, random_state=0).fit(X[:12], np.arange(12))
    assert few.validation_errors_[0] == 0.5


def test_early_stopping_by_squares_judges_single_rows():
    how = {"kernel": KERNEL, "mix": 1.0, "dictionary": "all"}
    model = RankingPursuit(
        6, early_stopping=True, validation_fraction=0.01, n_iter_no_change=6, random_state=0, **how
    ).fit(X, Y, qid=np.arange(len(Y)))
    # the first error is that of the empty model, and tells which row was held out
    (candidates,) = np.nonzero(np.isclose(((Y - Y.mean()) * len(Y) / (len(Y) - 1)) ** 2, model.validation_errors_[0]))
    by_hand = []
    for row in candidates:
        path = RankingPursuit(6, **how).fit(X, np.where(np.arange(len(Y)) == row, np.nan, Y), qid=np.arange(len(Y)))
        by_hand.append([(Y[row] - path.predict(X[[row]], n_terms=p)[0]) ** 2 for p in range(7)])
    assert any(np.allclose(errors, model.validation_errors_) for errors in by_hand)


@pytest.mark.parametrize("mix", [0.0, 0.5, 1.0])
def test_early_stopping_does_not_see_rows_of_weight_zero(mix):
    weights = np.random.default_rng(0).integers(0, 3, len(Y))
    kept = weights > 0
    how = {"mix": mix, "early_stopping": True, "validation_fraction": 0.3, "random_state": 0}
    # scores of rows of weight 0 are arbitrary
    y = np.where(kept, Y, 1e3)
    one = RankingPursuit(10, KERNEL, **how).fit(X, y, qid=QID, sample_weight=weights)
    other = RankingPursuit(10, KERNEL, **how).fit(X[kept], Y[kept], qid=QID[kept], sample_weight=weights[kept])
    np.testing.assert_allclose(one.validation_errors_, other.validation_errors_)
    np.testing.assert_allclose(one.predict(X), other.predict(X), rtol=1e-9, atol=1e-9)


def test_early_stopping_holds_out_what_can_be_judged():
    first = np.unique(QID)[:3]
    y = np.where(np.isin(QID, first), Y, 0.0)
    for seed in range(20):
        model = RankingPursuit(5, KERNEL, early_stopping=True, random_state=seed).fit(X, y, qid=QID)
        assert model.validation_errors_[0] == 0.5
    y = np.where(np.isin(QID, QID[np.bincount(QID)[QID] == 9][:1]), Y, 0.0)
    judged = RankingPursuit(5, KERNEL, early_stopping=True, validation_fraction=0.6, random_state=0).fit(X, y, qid=QID)
    assert judged.validation_errors_[0] == 0.5


@pytest.mark.parametrize("dictionary", [[0, 1], 1])
def test_early_stopping_keeps_the_rows_that_were_named(dictionary):
    for seed in range(8):
        model = RankingPursuit(
            5, KERNEL, early_stopping=True, validation_fraction=0.6, dictionary=dictionary, random_state=seed
        ).fit(X, Y, qid=QID)
        assert len(model.terms_)


def test_rows_without_pairs_have_no_effect():
    rng = np.random.default_rng(0)
    pairs, named = rng.permutation(30)[:20].reshape(-1, 2) * 3, np.arange(0, 90, 3)
    strangers = np.full((90, X.shape[1]), 7.0)
    strangers[named] = X[:30]
    weights = np.ones(90)
    weights[pairs[0, 0]] = 0.0
    model = RankingPursuit(90, KERNEL, fitting="back").fit(
        RankingData.of_pairs(strangers, pairs), sample_weight=weights
    )
    assert set(model.terms_) <= set(pairs[1:].ravel())
    alone = RankingPursuit(90, KERNEL, fitting="back").fit(RankingData.of_pairs(X[:30], pairs[1:] // 3))
    np.testing.assert_allclose(model.predict(X), alone.predict(X), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("Pursuit", [RankingPursuit, CoRankingPursuit])
def test_weights_and_pairs_that_cannot_be_learnt_from(Pursuit):
    lone = (np.arange(len(Y)) == 3).astype(float)
    with pytest.raises(InputError, match="no pair has a positive weight"):
        Pursuit(5, kernel=KERNEL).fit(X, Y, qid=QID, sample_weight=lone)
    equal = (Y[0] == Y).astype(float)
    with pytest.raises(InputError, match="no pair has a positive weight"):
        Pursuit(5, kernel=KERNEL).fit(X, Y, qid=QID, sample_weight=equal)
    data = RankingData.of_pairs(X, [[0, 1]])
    with pytest.raises(InputError, match="no pair has a positive weight"):
        Pursuit(5, kernel=KERNEL).fit(data, sample_weight=lone)


def test_preferences_equal_scores_of_two_rows():
    pairs = np.array([[0, 1], [2, 1], [3, 0], [4, 2], [4, 0]])
    model = RankingPursuit(4, "linear", fitting="back").fit(RankingData.of_pairs(X[:6], pairs))
    K = X[:6] @ X[:6].T
    S = K[:, model.terms_]
    gaps = S[pairs[:, 0]] - S[pairs[:, 1]]
    np.testing.assert_allclose(
        model.term_coefs_, np.linalg.lstsq(gaps, np.ones(5), rcond=None)[0], rtol=1e-6, atol=1e-8
    )
    with pytest.raises(InputError, match="preference pairs have no scores for"):
        RankingPursuit(4, "linear", mix=0.5).fit(RankingData.of_pairs(X[:6], pairs))


def test_pure_regression_needs_no_pair():
    model = RankingPursuit(3, "linear", mix=1.0, fitting="back").fit(X[:5], np.ones(5))
    assert np.isfinite(model.predict(X)).all()


def test_more_terms_order_the_training_rows_better():
    errors = [
        disagreement_error(Y, RankingPursuit(p, KERNEL, fitting="pre").fit(X, Y, qid=QID).predict(X), QID)
        for p in (1, 5, 40)
    ]
    assert errors[0] > errors[1] > errors[2]


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"dictionary": [0, 999]}, r"dictionary contains row 999; pass rows of X, from 0 to \d+"),
        ({"dictionary": [1, 1]}, "dictionary contains a row twice"),
        (
            {"dictionary": [[1]]},
            r"dictionary is \[\[1\]\]; pass 'auto' or 'scored' or 'all' or 'columns', or a whole number",
        ),
        ({"dictionary": np.ones(len(Y), dtype=bool)}, rf"dictionary has type bool and shape \({len(Y)},\); pass row"),
        ({"dictionary": True}, "dictionary is True; pass 'auto' or 'scored' or 'all' or 'columns'"),
        ({"kernel": "precomputed"}, r"needs the Gram matrix of the training rows, but X has shape"),
    ],
)
def test_parameters_that_do_not_fit_the_data(parameters, sentence):
    with pytest.raises(InputError, match=sentence):
        RankingPursuit(5, **{"kernel": KERNEL, **parameters}).fit(X, Y, qid=QID)


def test_unavailable_lengths_and_solutions_are_refused():
    model = RankingPursuit(5, KERNEL).fit(X, Y, qid=QID)
    with pytest.raises(InputError, match="n_terms is 6; this model has 0 to 5 terms"):
        model.predict(X, n_terms=6)
    with pytest.raises(InputError, match="solution is 1; pass one from 0 to 0"):
        model.predict(X, solution=1)


@pytest.mark.parametrize("n_terms", [True, 2.0, "2", -1, 6, np.int64(7), [1]])
def test_a_length_is_a_whole_number_of_terms(n_terms):
    model = RankingPursuit(5, KERNEL).fit(X, Y, qid=QID)
    np.testing.assert_array_equal(model.predict(X, n_terms=np.int32(2)), model.predict(X, n_terms=2))
    with pytest.raises(InputError, match=r"n_terms is .*; this model has 0 to 5 terms"):
        model.predict(X[:1], n_terms=n_terms)


def test_a_precomputed_kernel_gives_the_same_model():
    K = KERNEL(X)
    one = RankingPursuit(8, KERNEL).fit(X, Y, qid=QID)
    other = RankingPursuit(8, "precomputed").fit(K, Y, qid=QID)
    np.testing.assert_allclose(one.predict(X), other.predict(K), rtol=1e-9, atol=1e-9)


def test_a_precomputed_kernel_is_split_by_scikit_learn():
    K, how = KERNEL(X), {"params": {"qid": QID}, "cv": QueryKFold(3), "error_score": "raise"}
    with config_context(enable_metadata_routing=True):
        by_rows = cross_val_score(RankingPursuit(6, KERNEL), X, Y, **how)
        by_similarities = cross_val_score(RankingPursuit(6, "precomputed"), K, Y, **how)
        by_columns = cross_val_score(RankingPursuit(6, "precomputed", dictionary="columns"), X, Y, **how)
    np.testing.assert_allclose(by_rows, by_similarities)
    assert np.isfinite(by_columns).all()
    for part in (K[:20], K[:, :20]):
        with pytest.raises(InputError, match="needs the Gram matrix of the training rows"):
            RankingPursuit(5, "precomputed").fit(part, Y[: len(part)])


def test_a_second_fit_forgets_the_first_and_a_failed_one_does_not():
    model = RankingPursuit(5, KERNEL, early_stopping=True, random_state=0).fit(X, Y, qid=QID)
    before = model.predict(X)
    with pytest.raises(InputError, match="dictionary contains a row twice"):
        model.set_params(dictionary=[1, 1]).fit(X, Y, qid=QID)
    np.testing.assert_array_equal(model.predict(X), before)
    model.set_params(dictionary="scored", early_stopping=False).fit(X, Y, qid=QID)
    assert not hasattr(model, "validation_errors_")


def test_solutions_end_when_the_dictionary_is_exhausted():
    with pytest.warns(UserWarning, match="n_solutions is 4"):
        model = RankingPursuit(3, KERNEL, n_solutions=4, fitting="back").fit(X[:4], [0, 3, 1, 2])
    assert [len(solution["terms"]) for solution in model.solutions_] == [3, 1]
    with pytest.raises(InputError, match="solution is 2; pass one from 0 to 1"):
        model.predict(X, solution=2)


@pytest.mark.parametrize("scale", [1e160, 1e-170])
def test_scores_that_cannot_be_squared_get_one_sentence(scale):
    problem = make_ranking(5, 6, random_state=0)
    with pytest.raises(InputError, match="too large or too small to be squared"):
        RankingPursuit(3, "linear").fit(problem.X, scale * problem.y, qid=problem.qid)


@pytest.mark.parametrize("mix", [0.5, 1.0])
def test_the_mean_score_is_subtracted_and_added_to_predictions(mix):
    problem = make_ranking(6, 8, random_state=0)
    w = np.random.default_rng(0).integers(1, 4, len(problem.y))
    model = RankingPursuit(5, "linear", mix).fit(problem.X, problem.y + 100.0, qid=problem.qid, sample_weight=w)
    mean = np.average(problem.y + 100.0, weights=w)
    assert model.intercept_ == pytest.approx(mean)
    np.testing.assert_allclose(model.predict(problem.X, n_terms=0), mean)
    plain = RankingPursuit(5, "linear", mix, fit_intercept=False)
    plain.fit(problem.X, problem.y + 100.0 - mean, qid=problem.qid, sample_weight=w)
    np.testing.assert_allclose(model.predict(problem.X), plain.predict(problem.X) + mean)


def test_ranking_alone_has_no_intercept():
    problem = make_ranking(6, 8, random_state=0)
    model = RankingPursuit(5, "linear").fit(problem.X, problem.y + 100.0, qid=problem.qid)
    assert model.intercept_ == 0.0
    np.testing.assert_allclose(
        model.predict(problem.X),
        RankingPursuit(5, "linear").fit(problem.X, problem.y, qid=problem.qid).predict(problem.X),
        rtol=1e-9,
        atol=1e-9,
    )


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_columns_whose_squares_overflow_are_refused(kind):
    x = kind(np.array([[1.0, 1e200], [2.0, 0.0], [0.0, 3.0]]))
    with pytest.raises(InputError, match="products overflow; scale its columns"):
        RankingPursuit(2, dictionary="columns").fit(x, [0, 1, 2])


def test_many_rows_have_a_random_dictionary_by_default(monkeypatch):
    y = mask_scores(Y, QID, fraction=0.3, random_state=0)
    scored = np.flatnonzero(~np.isnan(y))
    whole = RankingPursuit(8, KERNEL, random_state=0).fit(X, y, qid=QID)
    np.testing.assert_array_equal(
        whole.predict(X), RankingPursuit(8, KERNEL, dictionary="scored").fit(X, y, qid=QID).predict(X)
    )
    monkeypatch.setattr(dictionary, "_MANY_ROWS", 40)
    monkeypatch.setattr(dictionary, "_AUTO_ROWS", 20)
    with pytest.warns(UsageWarning, match=f"20 of {len(scored)} scored rows .* set dictionary"):
        model = RankingPursuit(40, KERNEL, fitting="back", random_state=0).fit(X, y, qid=QID)
    # no term twice, so that they are exactly the candidates
    rows = np.unique(model.terms_)
    assert len(rows) <= 20
    assert np.isin(rows, scored).all()
    same = RankingPursuit(40, KERNEL, fitting="back", dictionary=rows.tolist()).fit(X, y, qid=QID)
    np.testing.assert_allclose(model.predict(X), same.predict(X), rtol=1e-6, atol=1e-8)
