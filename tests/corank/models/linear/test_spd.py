from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

import corank
from corank import SPD, RankingData
from corank.base import PairSampler
from corank.base.solvers.penalty import default_alpha
from corank.data.columns import column_factors
from corank.data.synthetic import make_ranking
from corank.errors import InputError
from corank.models.linear.descent import ParallelDescent

PROBLEM = make_ranking(30, (2, 12), random_state=0)
X, Y, QID = PROBLEM.X, PROBLEM.y, PROBLEM.qid
# writing a row twice changes which pairs the dice hit, so this check holds in the mean only
STOCHASTIC = {
    "check_sample_weight_equivalence_on_dense_data": "other draws",
    "check_sample_weight_equivalence_on_sparse_data": "other draws",
}

SETTINGS = {
    "hinge": {},
    "plain, the rate of the paper": {"average": False, "eta0": 1e3},
    "l1": {"l1": 0.01},
    "adagrad": {"rate": "adagrad"},
    "projected": {"project": True},
    "two runs": {"n_jobs": 2},
    "queries alike": {"loss": "squared_hinge", "query_weight": "equal"},
    "a row, then a partner": {"draw": "rows", "rate": "sqrt"},
    "columns as they are, alpha chosen": {"scale": False, "alpha": None, "query_weight": "rows"},
}


def spd(**changes):
    return SPD(**{"loss": "hinge", "alpha": 1e-3, "solver": "sgd", "n_steps": 2000, "random_state": 0, **changes})


@pytest.mark.long  # the laws have it of the exact solvers, whose fit and predict are the same
@parametrize_with_checks(
    [spd(), spd(rate="adagrad", l1=1e-3), spd(n_jobs=2)],
    expected_failed_checks=lambda model: STOCHASTIC,
    xfail_strict=False,
)
def test_scikit_learn_accepts_the_descent(estimator, check):
    check(estimator)


@pytest.mark.parametrize("changes", SETTINGS.values(), ids=SETTINGS)
def test_learns_and_traces(changes):
    model = spd(n_steps=20_000, **changes).fit(X, Y, qid=QID)
    assert model.score(X, Y, qid=QID) > 0.75
    trace = model.objective_trace_
    assert trace[0, 0] == 0
    assert trace[-1, 0] == model.n_iter_ == 20_000
    assert trace[-1, 1] < trace[0, 1]
    assert model.intercept_ == 0.0
    assert model.coef_.dtype == np.float64


@pytest.mark.parametrize("changes", SETTINGS.values(), ids=SETTINGS)
@pytest.mark.parametrize(("k", "m"), [(1000, 1537), (1, 600), (0, 3)])
def test_a_resumed_run_is_the_whole_run_bit_for_bit(changes, k, m, tmp_path):
    whole = spd(n_steps=k + m, **changes).fit(X, Y, qid=QID)
    corank.save(spd(n_steps=k, **changes).fit(X, Y, qid=QID), tmp_path / "model.safetensors")
    resumed = corank.load(tmp_path / "model.safetensors").set_params(n_steps=m).partial_fit(X, Y, qid=QID)
    assert resumed.n_iter_ == k + m
    np.testing.assert_array_equal(resumed.coef_, whole.coef_)
    for name, value in whole.run_.items():
        np.testing.assert_array_equal(resumed.run_[name], value)
    warm = spd(n_steps=k, warm_start=True, **changes).fit(X, Y, qid=QID).set_params(n_steps=m).fit(X, Y, qid=QID)
    np.testing.assert_array_equal(warm.coef_, whole.coef_)
    assert (np.diff(warm.objective_trace_[:, 0]) > 0).all()


@pytest.mark.thin(4)
@pytest.mark.parametrize("changes", SETTINGS.values(), ids=SETTINGS)
def test_dense_csr_and_float32_agree(changes):
    dense = spd(**changes).fit(X, Y, qid=QID).coef_
    np.testing.assert_allclose(spd(**changes).fit(sparse.csr_array(X), Y, qid=QID).coef_, dense, atol=1e-10)
    np.testing.assert_allclose(spd(**changes).fit(X.astype(np.float32), Y, qid=QID).coef_, dense, atol=1e-2)


def test_hinge_gives_the_better_row_the_higher_score():
    model = spd(n_steps=10).fit([[0.0, 1.0], [1.0, 0.0]], [0, 1])
    assert model.coef_[0] > 0 > model.coef_[1]
    assert model.rank([[0.0, 1.0], [1.0, 0.0]]).tolist() == [2, 1]


def test_no_steps_give_zero_weights():
    model = spd(n_steps=0).fit(X, Y, qid=QID)
    np.testing.assert_array_equal(model.coef_, 0.0)
    assert model.n_iter_ == 0


def test_l1_gives_exact_zeros_and_more_of_them_when_stronger():
    zeros = [
        int((spd(loss="squared", l1=l1, rate=rate, n_steps=50_000).fit(X, Y, qid=QID).coef_ == 0).sum())
        for rate in ("sqrt", "adagrad")
        for l1 in (0.0, 1.0, 100.0)
    ]
    assert zeros[0] == zeros[3] == 0
    assert 0 < zeros[1] < zeros[2] == X.shape[1]
    assert 0 < zeros[4] < zeros[5] == X.shape[1]


def test_queries_without_pairs_are_skipped_and_counted():
    more = np.vstack([X, 100 * np.ones((3, X.shape[1]))])
    y, qid = np.append(Y, [5.0, 3.0, 3.0]), np.append(QID, [900, 901, 901])
    # rows of a query count among the deviations of columns, pair or not
    one, other = spd(scale=False).fit(X, Y, qid=QID), spd(scale=False).fit(more, y, qid=qid)
    assert other.n_skipped_queries_ == one.n_skipped_queries_ + 2
    np.testing.assert_array_equal(one.coef_, other.coef_)


def test_preferences():
    data = RankingData.of(X, Y, QID)
    pairs = np.array([(i, j) for i in range(len(Y)) for j in range(len(Y)) if QID[i] == QID[j] and Y[i] > Y[j]])
    by_pairs = spd(n_steps=50_000, average=True, rate="sqrt").fit(X, pairs=pairs, qid=QID)
    by_scores = spd(n_steps=50_000, average=True, rate="sqrt").fit(data)
    np.testing.assert_allclose(by_pairs.coef_, by_scores.coef_, atol=0.05)
    np.testing.assert_array_equal(
        spd().fit(RankingData.of_pairs(X, pairs, QID)).coef_, spd().fit(X, pairs=pairs, qid=QID).coef_
    )
    with pytest.raises(InputError, match="y and pairs were both given"):
        spd().fit(X, Y, pairs=pairs)


def test_rows_of_weight_zero_are_never_looked_at():
    spoiled, weights = X.copy(), np.ones(len(Y))
    out = np.random.default_rng(0).random(len(Y)) < 0.3
    spoiled[out], weights[out] = 1e6, 0.0
    model = spd(n_steps=20_000).fit(spoiled, Y, qid=QID, sample_weight=weights)
    assert model.score(X, Y, qid=QID) > 0.75


def test_two_runs_are_averaged_and_repeatable():
    one, other = (spd(n_jobs=2, average=False).fit(X, Y, qid=QID) for _ in range(2))
    np.testing.assert_array_equal(one.coef_, other.coef_)
    assert one.run_["steps"].tolist() == [[1000], [1000]]
    of_runs = one.run_["weights"] * one.run_["ledger"][:, :, 0]
    np.testing.assert_allclose(one.coef_, of_runs.mean(axis=0) * one.column_scale_)
    with pytest.raises(InputError, match="n_jobs is 3, but this model was started with 2 runs"):
        one.set_params(n_jobs=3).partial_fit(X, Y, qid=QID)


def test_early_stopping_keeps_the_best_check():
    stopping = {"early_stopping": True, "validation_fraction": 0.3}
    model = spd(n_steps=200_000, n_iter_no_change=3, **stopping).fit(X, Y, qid=QID)
    assert 0 < model.n_iter_ < 200_000
    best = int(np.argmin(model.validation_errors_))
    assert model.n_iter_ == 10_000 * (best + 1)
    assert len(model.validation_errors_) in (best + 4, 20)
    # one query: rows are held out
    assert spd(**stopping).fit(X, Y, qid=np.zeros(len(Y))).n_iter_ <= 2000
    pairs = np.array([(i, i + 1) if Y[i] > Y[i + 1] else (i + 1, i) for i in range(len(Y) - 1) if Y[i] != Y[i + 1]])
    assert spd(**stopping).fit(X, pairs=pairs).n_iter_ <= 2000
    with pytest.raises(InputError, match=r"early_stopping holds out 0\.1 of 2"):
        spd(early_stopping=True).fit(X[:2], [0, 1])


@pytest.mark.parametrize("seed", range(16))
def test_early_stopping_finds_something_to_judge_by_in_one_small_query(seed):
    rows = np.random.default_rng(seed).standard_normal((12, 3))
    model = spd(early_stopping=True, n_steps=100, random_state=seed).fit(rows, (rows[:, 0] > 0) * 1.0)
    assert 1 <= len(model.validation_errors_) <= 20


def test_columns_divided_inside_are_columns_divided_before():
    data = RankingData.of(X * 10.0 ** np.arange(-10, 10), Y, QID)
    factors = column_factors(data)
    for form in (np.ascontiguousarray, sparse.csr_array):
        inside = spd().fit(form(data.X), Y, qid=QID)
        np.testing.assert_allclose(inside.column_scale_, factors)
        before = spd(scale=False).fit(form(data.X * factors), Y, qid=QID)
        np.testing.assert_allclose(inside.coef_, before.coef_ * factors, rtol=1e-7)


def test_alpha_is_chosen_once():
    chosen, given = spd(alpha=None).fit(X, Y, qid=QID), spd(alpha=0.25).fit(X, Y, qid=QID)
    assert (given.alpha_, given.alpha_from_) == (0.25, "given")
    scaled = RankingData.of(X * chosen.column_scale_, Y, QID)
    assert chosen.alpha_ == pytest.approx(default_alpha(scaled))
    assert chosen.alpha_from_ == "pair differences"
    before = chosen.alpha_
    chosen.partial_fit(100 * X[:50], Y[:50], qid=QID[:50])
    assert (chosen.alpha_, chosen.alpha_from_) == (before, "pair differences")


def test_a_memory_mapped_problem_is_read_row_by_row(tmp_path):
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    data = RankingData.of_checked(mapped, Y, RankingData.of(X, Y, QID).queries)
    np.testing.assert_array_equal(spd().fit(data).coef_, spd().fit(X, Y, qid=QID).coef_)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"rate": "adagrad", "average": True}, "rate='adagrad' already averages gradients"),
        ({"l1": 0.1, "average": True}, "l1 gives exact zeros, which average and project would undo"),
        ({"project": True, "alpha": 0.0}, "alpha is 0, but project needs a ball"),
        ({"n_jobs": -2}, "n_jobs is -2; pass a number of threads, -1 for every processor, or None"),
        ({"n_jobs": 0}, "n_jobs is 0; pass a number of threads, -1 for every processor, or None"),
        ({"draw": "rows", "query_weight": "equal"}, "draw='rows' does not support query weights, but query_weight is"),
        ({"solver": "exact", "loss": "squared", "draw": "rows"}, "solver='exact' minimises the mean over all pairs"),
        ({"solver": "exact", "loss": "squared", "early_stopping": True}, "set l1=0, early_stopping=False and draw="),
        ({"solver": "exact", "loss": "squared", "l1": 0.1}, "solver='exact' minimises the mean over all pairs"),
        ({"solver": "exact"}, "solver='exact' is not available for SPD with the hinge loss"),
        ({"rate": "constant", "eta0": 10.0, "alpha": 0.2}, "eta0 · alpha is 2, so one step would"),
        ({"loss": "squared", "eta0": 1e3, "rate": "constant", "alpha": 0.0}, "a first learning rate of 1000"),
        ({"loss": "squared", "eta0": 1e3, "rate": "constant", "alpha": 0.0, "early_stopping": True}, "overflowed with"),
    ],
)  # fmt: skip
def test_contradictions_get_one_sentence(changes, sentence):
    with pytest.raises(InputError, match=sentence):
        spd(**changes).fit(X, Y, qid=QID)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"alpha": -1.0}, "alpha is -1.0; pass a number of at least 0, or None"),
        ({"loss": "absolute"}, "loss is 'absolute'; pass 'hinge'"),
        ({"n_steps": -1}, "n_steps is -1; pass a whole number of at least 0"),
        ({"rate": "adam"}, "rate is 'adam'; pass 'pegasos' or"),
        ({"query_weight": "query"}, "query_weight is 'query'; pass 'pairs' or 'equal' or 'rows'"),
        ({"eta0": 0.0}, "eta0 is 0.0; pass a number above 0, or None"),
        ({"tol": 0.0}, "tol is 0.0; pass a number above 0 and below 1"),
    ],
)
def test_parameters_out_of_range(changes, sentence):
    with pytest.raises(InputError, match=sentence):
        spd(**changes).fit(X, Y, qid=QID)


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_names_of_columns_outlast_rows_that_have_none():
    frame = pd.DataFrame(X, columns=[f"c{k}" for k in range(X.shape[1])])
    model = spd().fit(frame, Y, qid=QID).partial_fit(X, Y, qid=QID)
    assert model.feature_names_in_.tolist() == frame.columns.tolist()


def test_a_rate_is_held_against_a_new_alpha():
    model = spd(rate="constant").fit(X, Y, qid=QID).set_params(alpha=1e6)
    with pytest.raises(InputError, match="so one step would shrink the weights to zero"):
        model.partial_fit(X, Y, qid=QID)


def test_partial_fit_checks_columns_and_solver():
    model = spd().fit(X, Y, qid=QID)
    with pytest.raises(ValueError, match="X has 3 features"):
        model.partial_fit(X[:, :3], Y, qid=QID)
    assert model.predict(X).shape == Y.shape
    with pytest.raises(InputError, match="solver is 'exact'"):
        spd(solver="exact", loss="squared").partial_fit(X, Y, qid=QID)
    with pytest.raises(NotFittedError):
        spd().predict(X)


@pytest.mark.parametrize(
    ("before", "after", "sentence"),
    [
        ({"average": False}, {"average": True}, "started with plain weights and cannot continue with averaged ones"),
        ({"l1": 0.1}, {"l1": 0.0}, "started with L1-penalised weights and cannot continue with averaged ones"),
        ({"rate": "adagrad"}, {"rate": "sqrt"}, "started with AdaGrad weights and cannot continue with averaged ones"),
        ({}, {"project": True}, "averaged weights and cannot continue with averaged and projected ones"),
        ({}, {"scale": False}, "scale is False, but this model was started with True; fit it again"),
        ({"scale": False}, {"scale": True}, "scale is True, but this model was started with False; fit it again"),
    ],
)
def test_weights_of_another_kind_cannot_go_on(before, after, sentence):
    model = spd(warm_start=True, **before).fit(X, Y, qid=QID).set_params(**after)
    with pytest.raises(InputError, match=sentence):
        model.partial_fit(X, Y, qid=QID)
    with pytest.raises(InputError, match=sentence):
        model.fit(X, Y, qid=QID)


def test_a_warm_start_wants_the_same_columns():
    model = spd(warm_start=True).fit(X, Y, qid=QID)
    with pytest.raises(ValueError, match="X has 3 features"):
        model.fit(X[:, :3], Y, qid=QID)


def test_partial_fit_wants_the_columns_in_their_order():
    names = [f"f{j}" for j in range(X.shape[1])]
    frame = pd.DataFrame(X, columns=names)
    model = spd().fit(frame, Y, qid=QID)
    with pytest.raises(ValueError, match="Feature names must be in the same order as"):
        model.partial_fit(frame[names[::-1]], Y, qid=QID)
    assert model.partial_fit(frame, Y, qid=QID).feature_names_in_.tolist() == names


def test_a_warm_start_with_the_exact_solver_solves():
    exact = spd(loss="squared", solver="exact").fit(X, Y, qid=QID)
    model = spd(loss="squared", warm_start=True).fit(X, Y, qid=QID).set_params(solver="exact").fit(X, Y, qid=QID)
    np.testing.assert_array_equal(model.coef_, exact.coef_)
    assert model.n_iter_ == 0


@pytest.mark.parametrize("changes", [{}, {"n_jobs": 2}, {"l1": 1e-3}, {"early_stopping": True}], ids=str)
def test_an_interrupt_keeps_the_steps_taken_so_far(monkeypatch, changes):
    advance, calls = ParallelDescent.advance, []

    def interrupted(runs, task, n):
        calls.append(n)
        if len(calls) == 4:
            raise KeyboardInterrupt
        advance(runs, task, n)

    whole = spd(**changes)
    monkeypatch.setattr(ParallelDescent, "advance", interrupted)
    model = spd(**changes)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y, qid=QID)
    monkeypatch.setattr(ParallelDescent, "advance", advance)
    assert 0 < model.n_iter_ <= 300
    if "early_stopping" not in changes:
        whole.set_params(n_steps=300).fit(X, Y, qid=QID)
        np.testing.assert_array_equal(model.coef_, whole.coef_)
        np.testing.assert_array_equal(
            model.partial_fit(X, Y, qid=QID).coef_, whole.set_params(n_steps=2000).partial_fit(X, Y, qid=QID).coef_
        )


def test_an_interrupt_before_the_first_step_leaves_the_model_as_it_was(monkeypatch):
    def interrupted(runs, task, n):
        raise KeyboardInterrupt

    model, fresh = spd().fit(X, Y, qid=QID), spd()
    before = dict(vars(model))
    monkeypatch.setattr(ParallelDescent, "advance", interrupted)
    for estimator in (model, fresh):
        with pytest.raises(KeyboardInterrupt):
            estimator.fit(X[:, :5], Y, qid=QID)
    assert all(vars(model)[name] is value for name, value in before.items())
    with pytest.raises(NotFittedError):
        fresh.predict(X)


def test_a_failed_fit_leaves_the_model_as_it_was():
    model = spd().fit(X, Y, qid=QID)
    before, run = model.predict(X), {name: np.copy(value) for name, value in model.run_.items()}
    with pytest.raises(InputError, match="no pair can be compared"):
        model.fit(X, np.ones(len(Y)), qid=QID)
    with pytest.raises(InputError, match="too large or too small to be squared"):
        model.set_params(loss="squared", solver="exact").fit(X, 1e200 * Y, qid=QID)
    model.set_params(loss="squared", solver="sgd", eta0=1e3, rate="constant", alpha=0.0, average=True)
    with pytest.raises(InputError, match="overflowed"), np.errstate(all="ignore"):
        model.fit(X[:, :4], Y, qid=QID)
    np.testing.assert_array_equal(model.predict(X), before)
    for name, value in run.items():
        np.testing.assert_array_equal(model.run_[name], value)


def test_the_first_rate_and_the_mean_of_iterates_come_near_the_optimum():
    data = RankingData.of(X, Y, QID)
    pairs = PairSampler.of(data).draw(20_000, np.random.default_rng(0))
    D = X[pairs[:, 0]] - X[pairs[:, 1]]

    def objective(**changes):
        model = SPD("hinge", alpha=1e-4, scale=False, **changes).fit(data)
        return np.maximum(0.0, 1.0 - D @ model.coef_).mean() + 0.5e-4 * model.coef_ @ model.coef_

    long = objective(rate="sqrt", n_steps=3_000_000, random_state=0)
    assert all(objective(random_state=seed) < 1.05 * long for seed in range(3))


@pytest.mark.long
def test_extreme_float32_values_do_not_overflow():
    for form in (np.ascontiguousarray, sparse.csr_array):
        model = spd(loss="squared").fit(form((1e25 * X).astype(np.float32)), Y, qid=QID)
        assert np.isfinite(model.coef_).all()


@pytest.mark.parametrize("loss", ["hinge", "squared", "squared_hinge"])
def test_numbers_whose_products_overflow_are_refused(loss):
    with pytest.raises(InputError, match="so large, or so small, that their products"):
        SPD(loss, alpha=0.1, random_state=0).fit(1e200 * X, Y, qid=QID)
    with pytest.raises(InputError, match="so large, or so small, that their products"):
        SPD(loss, random_state=0).fit(1e200 * X, Y, qid=QID)


def test_an_exact_model_goes_on_from_its_weights():
    exact = spd(loss="squared", solver="auto").fit(X, Y, qid=QID)
    before = exact.coef_.copy()
    exact.set_params(n_steps=1, eta0=1e-9).partial_fit(X, Y, qid=QID)
    np.testing.assert_allclose(exact.coef_, before, atol=1e-5)
    with pytest.raises(InputError, match="cannot continue from an exactly solved model"):
        spd(loss="squared", solver="auto").fit(X, Y, qid=QID).set_params(rate="adagrad").partial_fit(X, Y, qid=QID)
