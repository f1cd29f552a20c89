"""RankingPursuit as its user meets it."""

from __future__ import annotations

import numpy as np
import pytest

from corank.data.make import make_ranking
from corank.data.ranking import RankingData
from corank.data.split import hide_scores
from corank.errors import InputError
from corank.kernels import GaussianKernel
from corank.metrics import disagreement_error
from corank.pursuit import RankingPursuit

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
    for x in X[:5]:
        pulls = model.explain(x)
        assert sum(pull.contribution for pull in pulls) == pytest.approx(model.predict(x[None])[0])
        assert sorted((pull.contribution for pull in pulls), reverse=True) == [pull.contribution for pull in pulls]
        assert {pull.chosen for pull in pulls} == set(model.indices_.tolist())
    with pytest.raises(InputError, match="explain one row at a time"):
        model.explain(X[:2])


def test_terms_stand_on_the_rows_they_name():
    y = hide_scores(Y, fraction=0.4, random_state=0)
    scored = RankingPursuit(8, KERNEL).fit(X, y, qid=QID)
    assert not np.isnan(y[scored.indices_]).any()
    named = RankingPursuit(8, KERNEL, dictionary=[3, 5, 9]).fit(X, y, qid=QID)
    assert set(named.indices_) <= {3, 5, 9}
    by_hand = KERNEL(X, X[named.indices_]) @ named.coef_
    np.testing.assert_allclose(named.predict(X), by_hand, rtol=1e-12, atol=1e-12)
    drawn = RankingPursuit(8, KERNEL, dictionary=6, random_state=1, fitting="back").fit(X, y, qid=QID)
    assert len(drawn.indices_) <= 6
    everything = RankingPursuit(8, KERNEL, dictionary="all").fit(X, y, qid=QID)
    assert everything.objective_[-1] <= scored.objective_[-1] * 1.5


def test_solutions_share_no_row_and_get_no_better():
    model = RankingPursuit(5, KERNEL, fitting="back", n_solutions=3).fit(X, Y, qid=QID)
    chosen = [set(solution["indices"].tolist()) for solution in model.solutions_]
    assert len(chosen[0] | chosen[1] | chosen[2]) == sum(map(len, chosen))
    assert model.solutions_[0]["gains"][0] >= model.solutions_[1]["gains"][0] >= model.solutions_[2]["gains"][0]
    left = np.setdiff1d(np.arange(len(Y)), model.solutions_[0]["indices"])
    second = RankingPursuit(5, KERNEL, fitting="back", dictionary=left).fit(X, Y, qid=QID)
    np.testing.assert_allclose(model.predict(X, solution=1), second.predict(X), rtol=1e-9, atol=1e-9)


def test_early_stopping_keeps_the_best_length_on_held_out_queries():
    noisy = make_ranking(40, 8, random_state=0)
    how = {"kernel": KERNEL, "fitting": "back", "random_state": 3}
    model = RankingPursuit(100, early_stopping=True, n_iter_no_change=8, **how).fit(noisy.X, noisy.y, qid=noisy.qid)
    errors = model.validation_errors_
    best = max(int(np.argmin(errors)), 1)
    assert len(model.indices_) == best
    assert len(errors) - 1 - int(np.argmin(errors)) <= 8
    assert errors[0] == 0.5
    refit = RankingPursuit(best, **how).fit(noisy.X, noisy.y, qid=noisy.qid)
    np.testing.assert_array_equal(model.predict(noisy.X), refit.predict(noisy.X))
    one_query = RankingPursuit(20, KERNEL, early_stopping=True, random_state=0).fit(X[:40], Y[:40])
    assert 1 <= len(one_query.indices_) <= 20


def test_preferences_teach_what_scores_of_two_rows_teach():
    pairs = np.array([[0, 1], [2, 1], [3, 0], [4, 2], [4, 0]])
    model = RankingPursuit(4, "linear", fitting="back").fit(RankingData.of_pairs(X[:6], pairs))
    K = X[:6] @ X[:6].T
    S = K[:, model.indices_]
    gaps = S[pairs[:, 0]] - S[pairs[:, 1]]
    np.testing.assert_allclose(model.coef_, np.linalg.lstsq(gaps, np.ones(5), rcond=None)[0], rtol=1e-6, atol=1e-8)
    with pytest.raises(InputError, match="preference pairs hold no scores to regress on"):
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
        ({"dictionary": [0, 999]}, r"dictionary names row 999, but X has rows 0 to \d+"),
        ({"dictionary": [1, 1]}, "dictionary names a row twice"),
        ({"dictionary": [[1]]}, "pass row numbers, a number of rows"),
        ({"early_stopping": True, "validation_fraction": 0.999}, "leaves no pair to learn from or none to judge by"),
    ],
)
def test_parameters_that_do_not_fit_the_data(parameters, sentence):
    with pytest.raises(InputError, match=sentence):
        RankingPursuit(5, KERNEL, **parameters).fit(X, Y, qid=QID)


def test_lengths_and_solutions_that_are_not_there():
    model = RankingPursuit(5, KERNEL).fit(X, Y, qid=QID)
    with pytest.raises(InputError, match="n_terms is 6; this model has 0 to 5 terms"):
        model.predict(X, n_terms=6)
    with pytest.raises(InputError, match="solution is 1; this model has solutions 0 to 0"):
        model.predict(X, solution=1)


@pytest.mark.parametrize("n_terms", [True, 2.0, "2", -1, 6, np.int64(7), [1]])
def test_a_length_is_a_whole_number_of_terms(n_terms):
    model = RankingPursuit(5, KERNEL).fit(X, Y, qid=QID)
    np.testing.assert_array_equal(model.predict(X, n_terms=np.int32(2)), model.predict(X, n_terms=2))
    for ask in (model.predict, model.explain):
        with pytest.raises(InputError, match=r"n_terms is .*; this model has 0 to 5 terms, so pass a whole number"):
            ask(X[:1], n_terms=n_terms)


def test_a_precomputed_kernel_gives_the_same_model():
    K = KERNEL(X)
    one = RankingPursuit(8, KERNEL).fit(X, Y, qid=QID)
    other = RankingPursuit(8, "precomputed").fit(K, Y, qid=QID)
    np.testing.assert_allclose(one.predict(X), other.predict(K), rtol=1e-9, atol=1e-9)
