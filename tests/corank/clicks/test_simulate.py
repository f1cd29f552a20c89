"""The compiled loop against show and learn, list by list."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from corank.clicks import (
    PDGD,
    CascadeClicks,
    PairwiseEpsilonGreedy,
    PositionClicks,
    SimulatedUsers,
    simulate_clicks,
)
from corank.data.ranking import RankingData
from corank.data.synthetic import make_ranking
from corank.deploy.persist import load, save
from corank.errors import InputError
from corank.metrics import evaluate
from corank.models.rls import RankRLS

PROBLEM = make_ranking(15, (1, 14), random_state=0)
DATA = RankingData.of(PROBLEM.X, PROBLEM.y, PROBLEM.qid)
TEST = make_ranking(10, 8, random_state=1)
MODELS = {
    "PDGD": PDGD(),
    "PairwiseEpsilonGreedy": PairwiseEpsilonGreedy(0.4, "logistic", 0.01),
}
USERS = {"any": CascadeClicks("navigational", 5, "any"), "fading": PositionClicks(1.0, "informational", 5)}


def by_hand(model, data, user, n, k, seed, discount, saved_at=None):
    """Do what `simulate_clicks` documents, with show and learn."""
    users = SimulatedUsers(data, user, random_state=seed)
    model = type(model)(**{**model.get_params(), "random_state": users.ranker_seed})
    total = 0.0
    for t in range(n):
        rows = users.ask()
        prior = None if data.prior is None else data.prior[rows]
        impression = model.show(data.X[rows], k, prior=prior)
        grades = data.y[rows].astype(np.int64)
        place = np.full(len(rows), -1e9)
        place[impression.rows] = -np.arange(len(impression))
        if grades.any():
            total += discount**t * evaluate(grades, place, None, f"nDCG@{k}")[f"nDCG@{k}"].mean
        model.learn(impression, users.click(rows[impression.rows]))
        if saved_at is not None and t in (n // 3, n // 2):  # a restart in the middle
            save(model, saved_at, overwrite=True)
            model = load(saved_at)
    return model, total


@pytest.mark.parametrize("user", USERS.values(), ids=USERS.keys())
@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS.keys())
def test_the_compiled_loop_equals_show_and_learn_and_restarts(model, user, tmp_path):
    found = simulate_clicks(model, DATA, user, 120, k=5, discount=0.99, evaluate_at=[0, 50, 120], random_state=7)
    wanted, total = by_hand(model, DATA, user, 120, 5, 7, 0.99, tmp_path / "model.safetensors")
    assert found.coefs[0].tobytes() == wanted.coef_.tobytes()
    assert found.online[0, -1] == pytest.approx(total, rel=1e-12)
    assert wanted.coef_.any()
    offline = evaluate(PROBLEM.y, wanted.predict(PROBLEM.X), PROBLEM.qid, "nDCG@5")["nDCG@5"].mean
    assert found.offline[0, -1] == pytest.approx(offline, rel=1e-12)
    assert found.online[0, 0] == 0.0


@pytest.mark.parametrize("name", ["PDGD", "PairwiseEpsilonGreedy"])
def test_the_same_with_a_prior_and_sparse_rows(name):
    prior = np.random.default_rng(0).normal(size=DATA.n_rows)
    data = RankingData.of(sparse.csr_array(PROBLEM.X), PROBLEM.y, PROBLEM.qid).with_prior(prior)
    found = simulate_clicks(MODELS[name], data, USERS["any"], 60, k=5, random_state=3)
    wanted, _ = by_hand(MODELS[name], data, USERS["any"], 60, 5, 3, 1.0)
    assert found.coefs[0].tobytes() == wanted.coef_.tobytes()
    dense = RankingData.of(PROBLEM.X, PROBLEM.y, PROBLEM.qid).with_prior(prior)
    other = simulate_clicks(MODELS[name], dense, USERS["any"], 60, k=5, random_state=3)
    np.testing.assert_allclose(found.coefs, other.coefs, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("user", [USERS["any"], "own"], ids=["compiled", "own"])
def test_simulated_users_are_those_of_every_run(user):
    user = InPython("navigational", 5) if user == "own" else user
    found = simulate_clicks(PDGD(), DATA, user, 40, k=5, n_runs=3, random_state=5)
    for run in range(3):
        users = SimulatedUsers(DATA, user, random_state=5, run=run)
        model = PDGD(random_state=users.ranker_seed)
        model._begin(DATA.X, None)
        np.testing.assert_array_equal(model.run_["rng_state"][0], users.list_state)
        for _ in range(40):
            rows = users.ask()
            impression = model.show(DATA.X[rows], 5)
            model.learn(impression, users.click(rows[impression.rows]))
        assert found.coefs[run].tobytes() == model.coef_.tobytes()
    assert len(np.unique(found.coefs, axis=0)) == 3


class NeverClicks(CascadeClicks):
    """A user who never clicks."""

    def clicks(self, grades, rng):
        return np.zeros(len(grades), dtype=bool)


class InPython(CascadeClicks):
    """A cascade model whose own `clicks` method must be called."""

    n_calls = 0

    def clicks(self, grades, rng):
        InPython.n_calls += 1
        return super().clicks(grades, rng)


class FirstRow:
    """Clicks on the first row; not one of corank's classes."""

    def clicks(self, grades, rng):
        return [1] + [0] * (len(grades) - 1)


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS.keys())
def test_a_user_who_never_clicks_teaches_nothing(model):
    curve = simulate_clicks(model, DATA, NeverClicks("perfect", 5), 60, random_state=0)
    assert not curve.coefs.any()
    assert len(set(curve.offline[0].tolist())) == 1
    assert curve.online[0, -1] > 0.0


def test_the_python_loop_serves_the_lists_of_the_compiled_one():
    """Without learning, lists do not depend on clicks: both loops show the same."""
    for model in (PDGD(0.0), PairwiseEpsilonGreedy(eta0=0.0)):
        fast = simulate_clicks(model, DATA, CascadeClicks("perfect", 5), 50, k=5, random_state=3)
        slow = simulate_clicks(model, DATA, InPython("perfect", 5), 50, k=5, random_state=3)
        np.testing.assert_array_equal(fast.online, slow.online)


def test_the_python_loop_learns_what_show_and_learn_do():
    """With click probabilities of 0 and 1 the draws of the user do not matter: both loops learn the same bits."""
    sure = {"click": [1.0, 1.0, 0.0, 0.0, 0.0], "stop": [0.0] * 5}
    for model in MODELS.values():
        fast = simulate_clicks(model, DATA, CascadeClicks(**sure), 80, k=5, random_state=1)
        slow = simulate_clicks(model, DATA, InPython(**sure), 80, k=5, random_state=1)
        np.testing.assert_array_equal(fast.coefs, slow.coefs)
        assert fast.coefs.any()


def test_any_object_with_clicks_is_a_user():
    before = InPython.n_calls
    simulate_clicks(PDGD(), DATA, InPython("navigational", 5), 25, n_runs=2, random_state=0)
    assert InPython.n_calls == before + 50
    curve = simulate_clicks(PDGD(), DATA, FirstRow(), 40, random_state=0)
    assert curve.coefs.any()
    assert "FirstRow" in curve.user
    again = simulate_clicks(PDGD(), DATA, FirstRow(), 40, random_state=0)
    np.testing.assert_array_equal(curve.coefs, again.coefs)


def test_clicks_of_own_users_are_checked():
    class TooMany:
        def clicks(self, grades, rng):
            return np.ones(len(grades) + 1, dtype=bool)

    with pytest.raises(InputError, match="clicks has shape"):
        simulate_clicks(PDGD(), DATA, TooMany(), 5, random_state=0)


def test_the_order_of_rows_in_a_file_does_not_matter():
    """Queries may be scattered: what is served is the same."""
    order = np.argsort(np.random.default_rng(0).random(DATA.n_rows), kind="stable")
    kept = np.argsort(PROBLEM.qid[order], kind="stable")
    scattered = RankingData.of(PROBLEM.X[order], PROBLEM.y[order], PROBLEM.qid[order])
    together = RankingData.of(PROBLEM.X[order][kept], PROBLEM.y[order][kept], PROBLEM.qid[order][kept])
    ids = scattered.queries.ids
    found = simulate_clicks(PDGD(), scattered, "perfect", 50, random_state=0)
    if (ids == together.queries.ids).all():
        np.testing.assert_allclose(found.coefs, simulate_clicks(PDGD(), together, "perfect", 50, random_state=0).coefs)
    wanted, _ = by_hand(PDGD(), scattered, CascadeClicks("perfect", 5), 50, 10, 0, 1.0)
    np.testing.assert_allclose(found.coefs[0], wanted.coef_, rtol=1e-12, atol=1e-12)


def test_runs_differ_and_a_seed_repeats_them():
    one, other = (simulate_clicks(PDGD(), DATA, "perfect", 30, n_runs=3, random_state=0) for _ in range(2))
    np.testing.assert_array_equal(one.coefs, other.coefs)
    assert len(np.unique(one.coefs[:, 0])) == 3
    mean, error = one.gain(simulate_clicks(PDGD(0.0), DATA, "perfect", 30, n_runs=3, random_state=0))
    assert mean.shape == error.shape == one.impressions.shape
    assert mean[0] == 0.0
    with pytest.raises(InputError, match="differ in their runs or points"):
        one.gain(simulate_clicks(PDGD(), DATA, "perfect", 30, random_state=0))
    with pytest.raises(InputError, match="kind is 'both'"):
        one.mean("both")
    assert np.isnan(simulate_clicks(PDGD(), DATA, "perfect", 3).error("online")).all()


def test_pieces_do_not_matter():
    """Measuring more often does not change what is learnt, nor what lists were worth."""
    coarse = simulate_clicks(PDGD(), DATA, "perfect", 100, evaluate_at=[100], random_state=1)
    fine = simulate_clicks(PDGD(), DATA, "perfect", 100, evaluate_at=np.arange(101), random_state=1)
    np.testing.assert_allclose(coarse.coefs, fine.coefs, rtol=1e-12)
    assert coarse.online[0, -1] == pytest.approx(fine.online[0, -1], rel=1e-12)
    assert (np.diff(fine.online[0]) >= 0).all()


def test_a_fitted_ranker_goes_on_and_is_not_changed():
    model = PDGD(random_state=0).fit(PROBLEM.X, PROBLEM.y, qid=PROBLEM.qid)
    coef = model.coef_.copy()
    test = RankingData.of(TEST.X, TEST.y, TEST.qid)
    curve = simulate_clicks(model, DATA, "perfect", 50, test=test, n_runs=2, random_state=0)
    np.testing.assert_array_equal(model.coef_, coef)
    assert model.n_learnt_ == 0
    start = evaluate(TEST.y, model.predict(TEST.X), TEST.qid, "nDCG@10")["nDCG@10"].mean
    np.testing.assert_allclose(curve.offline[:, 0], start)
    assert curve.coefs[0, 0] != curve.coefs[1, 0]


def test_clicks_teach():
    big = make_ranking(60, 20, random_state=0)
    data = RankingData.of(big.X, big.y, big.qid)
    for model in (PDGD(), PairwiseEpsilonGreedy()):
        curve = simulate_clicks(model, data, "perfect", 1500, evaluate_at=[0, 1500], n_runs=2, random_state=0)
        assert curve.mean()[-1] > curve.mean()[0] + 0.1, str(model)


def test_no_lists_at_all():
    curve = simulate_clicks(PDGD(), DATA, "perfect", 0)
    assert curve.impressions.tolist() == [0]
    assert curve.online.tolist() == [[0.0]]
    assert not curve.coefs.any()


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: simulate_clicks(RankRLS(), DATA), "ranker is a RankRLS, which cannot learn from clicks"),
        (lambda: simulate_clicks(PDGD(), DATA, "perfect", -1), "impressions is -1; pass a whole number of at least 0"),
        (lambda: simulate_clicks(PDGD(), DATA, "perfect", 5, discount=1.5), "discount is 1.5"),
        (
            lambda: simulate_clicks(PDGD(), DATA, "perfect", 5, evaluate_at=[3, 2]),
            "pass increasing numbers of lists between 0 and 5",
        ),
        (
            lambda: simulate_clicks(PDGD(), DATA, "perfect", 5, evaluate_at=[6]),
            "pass increasing numbers of lists between 0 and 5",
        ),
        (lambda: simulate_clicks(PDGD(), DATA, "perfect", 5, evaluate_at=[]), "pass increasing numbers of lists"),
        (lambda: simulate_clicks(PDGD(), DATA, CascadeClicks("perfect", 3)), "grades of this click model are 0 to 2"),
        (lambda: simulate_clicks(PDGD(), RankingData.of([[0.0], [1.0]], [0, np.nan])), "some rows have no grade"),
        (lambda: simulate_clicks(PDGD(), RankingData.of_pairs([[0.0], [1.0]], [[0, 1]])), "some rows have no grade"),
        (lambda: simulate_clicks(PDGD().fit(PROBLEM.X[:, :3], PROBLEM.y), DATA), "data has 20 features"),
        (lambda: simulate_clicks(PDGD(eta0=-1.0), DATA), r"eta0 is -1\.0"),
        (lambda: simulate_clicks(PDGD(), DATA, test=DATA.with_prior(np.zeros(DATA.n_rows))), "only one has a prior"),
        (lambda: simulate_clicks(PDGD(), DATA, test=RankingData.of([[0.0], [1.0]], [0, 1])), "test differs from data"),
    ],
)
def test_bad_calls_get_one_sentence(call, sentence):
    with pytest.raises(InputError, match=sentence):
        call()


def test_a_curve_is_printed():
    curve = simulate_clicks(PDGD(), DATA, "navigational", 20, n_runs=2, random_state=0)
    assert "online" in repr(curve)
    assert "discount 0.9995" in repr(curve)
