from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from corank.clicks import PDGD, CascadeClicks, SimulatedUsers, simulate_clicks
from corank.core.random import seed_state
from corank.core.rows.access import as_core_rows
from corank.data.ranking import RankingData
from corank.data.synthetic import make_ranking
from corank.errors import InputError
from experiments.clicks.dueling import DBGD, MGD
from experiments.clicks.dueling_kernels import DuelSettings, draw_directions, duel_scratch, learn_duel, show_duel
from experiments.clicks.interleaving_kernels import expected_sign

SETTINGS = DuelSettings(0.1, 1.0, 1.0, 3.0)


@pytest.mark.parametrize("d", [1, 2, 5])
def test_directions_have_length_one_and_no_favourite(d):
    U = np.empty((20_000, d))
    draw_directions(seed_state(np.random.default_rng(0)), U)
    np.testing.assert_allclose(np.linalg.norm(U, axis=1), 1.0)
    np.testing.assert_allclose(U.T @ U / len(U), np.eye(d) / d, atol=0.02)
    np.testing.assert_allclose(U.mean(axis=0), 0.0, atol=0.03)


@pytest.mark.long
def test_candidates_rank_by_their_own_weights():
    rng = np.random.default_rng(0)
    X, w, prior = rng.normal(size=(8, 4)), rng.normal(size=4), rng.normal(size=8)
    scratch = duel_scratch(8, 5, 3, 4, 3.0)
    length = show_duel(as_core_rows(X), np.arange(8), prior, w, SETTINGS, seed_state(rng), 5, scratch)
    assert length == 5
    for j, weights in enumerate([w, *(w + scratch.directions)]):
        np.testing.assert_array_equal(np.argsort(scratch.ranks[j]), np.argsort(-(prior + X @ weights)))
    assert len(set(scratch.shown.tolist())) == 5


def winners(ranks, shown, clicks, tau):
    """Who is expected to win, every assignment of clicks to rankings visited."""
    m, shares = len(ranks), []
    for at in np.flatnonzero(clicks):
        left = [row for row in range(ranks.shape[1]) if row not in shown[:at]]
        chances = (ranks[:, shown[at]] + 1.0) ** -tau / ((ranks[:, left] + 1.0) ** -tau).sum(axis=1)
        shares.append(chances / chances.sum())
    value = np.zeros(m)
    for owners in product(range(m), repeat=len(shares)):
        p = np.prod([share[j] for share, j in zip(shares, owners, strict=True)])
        counts = np.bincount(owners, minlength=m)
        value += p * np.sign(counts - counts[0])
    return value, np.array(shares)


@pytest.mark.long
def test_a_step_goes_to_the_mean_of_expected_winners():
    rng = np.random.default_rng(1)
    X, rng_state = rng.normal(size=(6, 4)), seed_state(rng)
    for _ in range(20):
        scratch, w = duel_scratch(6, 4, 3, 4, 3.0), np.zeros(4)
        length = show_duel(as_core_rows(X), np.arange(6), np.empty(0), w, SETTINGS, rng_state, 4, scratch)
        scratch.clicks[:] = rng.random(4) < 0.6
        learn_duel(w, SETTINGS, 0, 6, length, scratch)
        if not scratch.clicks.any():
            assert not w.any()
            continue
        value, shares = winners(scratch.ranks, scratch.shown, scratch.clicks, 3.0)
        memory = np.zeros(20), np.zeros(20)
        found = [expected_sign(shares, len(shares), j, 0, *memory) for j in range(1, 4)]
        np.testing.assert_allclose(found, value[1:], atol=1e-12)
        won = np.flatnonzero(value[1:] > 1e-12)
        wanted = 0.1 * scratch.directions[won].mean(axis=0) if len(won) else np.zeros(4)
        np.testing.assert_allclose(w, wanted, atol=1e-14)


@pytest.mark.long
@pytest.mark.parametrize("model", [DBGD(decay=0.999), MGD(4)], ids=str)
def test_the_compiled_loop_equals_show_and_learn(model):
    made, user = make_ranking(15, (1, 14), random_state=0), CascadeClicks("navigational", 5, "any")
    data = RankingData.of(made.X, made.y, made.qid)
    found = simulate_clicks(model, data, user, 120, k=5, random_state=7)
    users = SimulatedUsers(data, user, random_state=7)
    served = type(model)(**{**model.get_params(), "random_state": users.ranker_seed})
    for _ in range(120):
        rows = users.ask()
        impression = served.show(data.X[rows], 5)
        served.learn(impression, users.click(rows[impression.rows]))
    assert found.coefs[0].tobytes() == served.coef_.tobytes()
    assert served.coef_.any()


def test_a_list_of_another_ranker_is_refused():
    with pytest.raises(InputError, match="has no duel; pass an impression that show of"):
        DBGD().learn(PDGD(random_state=0).show(np.eye(3)), [1, 0, 0])


@pytest.mark.long
def test_candidates_that_order_rows_alike_do_not_win():
    """Steps of 1e-9 change no order: nobody can have won by clicks."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(10, 4))
    model = MGD(9, delta=1e-9, random_state=0).fit(X, X @ [4.0, 3.0, 2.0, 1.0])
    before = model.coef_.copy()
    for _ in range(100):
        model.learn(model.show(X), rng.random(10) < 0.4)
    assert (model.coef_ == before).all()
