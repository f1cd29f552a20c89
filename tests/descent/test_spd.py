from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

import corank
from corank import SPD, PairSampler, RankingData
from corank.data.make import make_ranking
from corank.descent.runs import Runs
from corank.errors import InputError

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
    "logistic by query": {"loss": "squared_hinge", "sampling": "query"},
    "rows": {"sampling": "rows", "rate": "sqrt"},
}


def spd(**changes):
    return SPD(**{"alpha": 1e-3, "solver": "sgd", "n_steps": 2000, "random_state": 0, **changes})


@parametrize_with_checks(
    [spd(), spd(rate="adagrad", l1=1e-3), spd(n_jobs=2)],
    expected_failed_checks=lambda _: STOCHASTIC,
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
    assert trace[-1, 0] == model.n_steps_ == 20_000
    assert trace[-1, 1] < trace[0, 1]
    assert model.intercept_ == 0.0
    assert model.coef_.dtype == np.float64


@pytest.mark.parametrize("changes", SETTINGS.values(), ids=SETTINGS)
@pytest.mark.parametrize(("k", "m"), [(1000, 1537), (1, 600), (0, 3)])
def test_a_resumed_run_is_the_whole_run_bit_for_bit(changes, k, m, tmp_path):
    whole = spd(n_steps=k + m, **changes).fit(X, Y, qid=QID)
    corank.save(spd(n_steps=k, **changes).fit(X, Y, qid=QID), tmp_path / "model.safetensors")
    resumed = corank.load(tmp_path / "model.safetensors").set_params(n_steps=m).partial_fit(X, Y, qid=QID)
    assert resumed.n_steps_ == k + m
    np.testing.assert_array_equal(resumed.coef_, whole.coef_)
    for name in ("weights", "sums", "ledger", "dice", "steps"):
        np.testing.assert_array_equal(getattr(resumed, f"run_{name}_"), getattr(whole, f"run_{name}_"))
    warm = spd(n_steps=k, warm_start=True, **changes).fit(X, Y, qid=QID).set_params(n_steps=m).fit(X, Y, qid=QID)
    np.testing.assert_array_equal(warm.coef_, whole.coef_)
    assert (np.diff(warm.objective_trace_[:, 0]) > 0).all()


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
    assert model.n_steps_ == 0


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
    one, other = spd().fit(X, Y, qid=QID), spd().fit(more, y, qid=qid)
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
    with pytest.raises(InputError, match="y came beside pairs; pass scores or preferences, not both"):
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
    assert one.run_steps_.tolist() == [[1000], [1000]]
    of_runs = one.run_weights_ * one.run_ledger_[:, :, 0]
    np.testing.assert_allclose(one.coef_, of_runs.mean(axis=0))
    with pytest.raises(InputError, match="n_jobs is 3, but this model was begun with 2 runs; set n_jobs=2"):
        one.set_params(n_jobs=3).partial_fit(X, Y, qid=QID)


def test_early_stopping_keeps_the_best_check():
    model = spd(tol=0.0, n_steps=200_000, n_iter_no_change=3, validation_fraction=0.3).fit(X, Y, qid=QID)
    assert 0 < model.n_steps_ < 200_000
    assert model.n_steps_ % 10_000 == 0
    # one query: rows are held out
    assert spd(tol=0.0, validation_fraction=0.3).fit(X, Y).n_steps_ <= 2000
    pairs = np.array([(i, i + 1) if Y[i] > Y[i + 1] else (i + 1, i) for i in range(len(Y) - 1) if Y[i] != Y[i + 1]])
    assert spd(tol=0.0, validation_fraction=0.3).fit(X, pairs=pairs).n_steps_ <= 2000
    with pytest.raises(InputError, match="validation_fraction leaves no pair to learn from or none to judge by"):
        spd(tol=0.0).fit(X[:2], [0, 1])


def test_a_memory_mapped_problem_is_read_row_by_row(tmp_path):
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    data = RankingData.of_checked(mapped, Y, RankingData.of(X, Y, QID).queries)
    np.testing.assert_array_equal(spd().fit(data).coef_, spd().fit(X, Y, qid=QID).coef_)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"rate": "adagrad", "average": True}, "rate='adagrad' already averages pulls"),
        ({"l1": 0.1, "average": True}, "l1 asks for exact zeros, which average and project would undo"),
        ({"project": True, "alpha": 0.0}, "project needs alpha above 0"),
        ({"n_jobs": 0}, "n_jobs is 0"),
        ({"solver": "exact", "loss": "squared", "l1": 0.1}, "solver='exact' minimises the mean over all pairs"),
        ({"solver": "exact"}, "solver='exact' knows no solver for the hinge loss"),
        ({"rate": "constant", "eta0": 10.0, "alpha": 0.2}, "eta0 · alpha is 2, so a step would wipe out the weights"),
        ({"loss": "logistic"}, "logistic loss needs scores that differ by at most 1 inside a query"),
        ({"loss": "squared", "eta0": 1e3, "rate": "constant", "alpha": 0.0}, "overflowed with a first rate of 1000"),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_contradictions_get_one_sentence(changes, sentence):
    with pytest.raises(InputError, match=sentence):
        spd(**changes).fit(X, Y, qid=QID)


@pytest.mark.parametrize("changes", [{"alpha": -1.0}, {"loss": "absolute"}, {"n_steps": -1}, {"rate": "adam"}])
def test_parameters_out_of_range(changes):
    with pytest.raises(ValueError, match="parameter of SPD must be"):
        spd(**changes).fit(X, Y, qid=QID)


def test_partial_fit_checks_columns_and_solver():
    model = spd().fit(X, Y, qid=QID)
    with pytest.raises(ValueError, match="X has 3 features, but SPD is expecting 20 features as input"):
        model.partial_fit(X[:, :3], Y, qid=QID)
    assert model.predict(X).shape == Y.shape
    with pytest.raises(InputError, match="partial_fit takes stochastic steps, but solver is 'exact'"):
        spd(solver="exact", loss="squared").partial_fit(X, Y, qid=QID)
    with pytest.raises(NotFittedError):
        spd().predict(X)


@pytest.mark.parametrize(
    ("before", "after", "sentence"),
    [
        ({"average": False}, {"average": True}, "begun with plain weights and cannot go on with averaged ones"),
        ({"l1": 0.1}, {"l1": 0.0}, "begun with L1-penalised weights and cannot go on with averaged ones"),
        ({"rate": "adagrad"}, {"rate": "sqrt"}, "begun with AdaGrad weights and cannot go on with averaged ones"),
        ({}, {"project": True}, "averaged weights and cannot go on with averaged and projected ones"),
    ],
)
def test_weights_of_another_kind_cannot_go_on(before, after, sentence):
    with pytest.raises(InputError, match=sentence):
        spd(**before).fit(X, Y, qid=QID).set_params(**after).partial_fit(X, Y, qid=QID)


def test_a_warm_start_wants_the_same_columns():
    model = spd(warm_start=True).fit(X, Y, qid=QID)
    with pytest.raises(ValueError, match="X has 3 features, but SPD is expecting 20 features as input"):
        model.fit(X[:, :3], Y, qid=QID)


def test_partial_fit_wants_the_columns_in_their_order():
    names = [f"f{j}" for j in range(X.shape[1])]
    frame = pd.DataFrame(X, columns=names)
    model = spd().fit(frame, Y, qid=QID)
    with pytest.raises(ValueError, match="Feature names must be in the same order as they were in fit"):
        model.partial_fit(frame[names[::-1]], Y, qid=QID)
    assert model.partial_fit(frame, Y, qid=QID).feature_names_in_.tolist() == names


def test_a_warm_start_with_the_exact_solver_solves():
    exact = spd(loss="squared", solver="exact").fit(X, Y, qid=QID)
    model = spd(loss="squared", warm_start=True).fit(X, Y, qid=QID).set_params(solver="exact").fit(X, Y, qid=QID)
    np.testing.assert_array_equal(model.coef_, exact.coef_)
    assert model.n_steps_ == 0


@pytest.mark.parametrize("changes", [{}, {"n_jobs": 2}, {"l1": 1e-3}, {"tol": 0.0}], ids=str)
def test_an_interrupt_keeps_the_steps_taken_so_far(monkeypatch, changes):
    advance, calls = Runs.advance, []

    def interrupted(runs, task, n):
        calls.append(n)
        if len(calls) == 4:
            raise KeyboardInterrupt
        advance(runs, task, n)

    whole = spd(**changes)
    monkeypatch.setattr(Runs, "advance", interrupted)
    model = spd(**changes)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y, qid=QID)
    monkeypatch.setattr(Runs, "advance", advance)
    assert 0 < model.n_steps_ <= 300
    if "tol" not in changes:
        whole.set_params(n_steps=300).fit(X, Y, qid=QID)
        np.testing.assert_array_equal(model.coef_, whole.coef_)
        np.testing.assert_array_equal(
            model.partial_fit(X, Y, qid=QID).coef_, whole.set_params(n_steps=2000).partial_fit(X, Y, qid=QID).coef_
        )


def test_a_failed_fit_leaves_the_model_as_it_was():
    model = spd().fit(X, Y, qid=QID)
    before = model.predict(X)
    with pytest.raises(InputError, match="there is no pair to learn from"):
        model.fit(X, np.ones(len(Y)), qid=QID)
    with pytest.raises(InputError, match="logistic loss needs"):
        model.set_params(loss="logistic", solver="exact").fit(X, Y, qid=QID)
    np.testing.assert_array_equal(model.predict(X), before)


def test_the_defaults_come_near_the_optimum():
    data = RankingData.of(X, Y, QID)
    pairs = PairSampler.of(data).draw(20_000, np.random.default_rng(0))
    D = X[pairs[:, 0]] - X[pairs[:, 1]]

    def objective(model):
        return np.maximum(0.0, 1.0 - D @ model.coef_).mean() + 0.5e-4 * model.coef_ @ model.coef_

    long = SPD(rate="sqrt", n_steps=3_000_000, random_state=0).fit(data)
    assert all(objective(SPD(random_state=seed).fit(data)) < 1.05 * objective(long) for seed in range(3))


def test_extreme_float32_values_do_not_overflow():
    for form in (np.ascontiguousarray, sparse.csr_array):
        model = spd(loss="squared").fit(form((1e25 * X).astype(np.float32)), Y, qid=QID)
        assert np.isfinite(model.coef_).all()


@pytest.mark.parametrize("loss", ["hinge", "squared", "squared_hinge"])
def test_numbers_whose_products_overflow_are_refused(loss):
    with pytest.raises(InputError, match="X holds numbers so large that their products overflow; scale its columns"):
        SPD(loss, random_state=0).fit(1e200 * X, Y, qid=QID)


def test_an_exact_model_goes_on_from_its_weights():
    exact = spd(loss="squared", solver="auto").fit(X, Y, qid=QID)
    before = exact.coef_.copy()
    exact.set_params(n_steps=1, eta0=1e-9).partial_fit(X, Y, qid=QID)
    np.testing.assert_allclose(exact.coef_, before, atol=1e-5)
    with pytest.raises(InputError, match="from where AdaGrad cannot go on"):
        spd(loss="squared", solver="auto").fit(X, Y, qid=QID).set_params(rate="adagrad").partial_fit(X, Y, qid=QID)
