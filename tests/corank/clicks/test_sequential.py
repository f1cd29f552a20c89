"""The sequential test: its martingale by quadrature, its false alarms by simulation, its state bit by bit."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import gamma

from corank.clicks import InterleavingTest, TeamDraft
from corank.clicks.sequential import log_mixture
from corank.errors import InputError


@pytest.mark.parametrize(("s", "v", "rho"), [(0.0, 0.0, 3.0), (4.0, 10.0, 3.0), (-2.0, 6.0, 12.0), (40.0, 300.0, 50.0)])
def test_the_mixture_is_the_integral_over_bets(s, v, rho):
    prior = gamma(rho, scale=1.0 / rho)  # of 1 - λ, cut at 1

    def capital(rest):
        bet = 1.0 - rest
        psi = -np.log(rest) - bet
        return np.exp(bet * s - psi * v) * prior.pdf(rest) / prior.cdf(1.0)

    wanted = quad(capital, 0.0, 1.0, epsabs=1e-14, epsrel=1e-11, limit=200)[0]
    assert log_mixture(s, v, rho) == pytest.approx(np.log(wanted), abs=1e-8)


def test_the_inequality_behind_it():
    """exp(λ x − ψ(λ) x²) ≤ 1 + λ x on a grid of both."""
    bets, x = np.meshgrid(np.linspace(0.0, 0.999, 300), np.linspace(-1.0, 1.0, 401))
    psi = -np.log1p(-bets) - bets
    assert (np.exp(bets * x - psi * x * x) <= (1.0 + bets * x) * (1.0 + 1e-12)).all()


@pytest.mark.parametrize("kind", ["signs", "skewed"])
def test_false_alarms_under_continuous_looking(kind):
    """2,000 runs of 2,000 lists, looked at after each; alpha is 0.1, so that more would be noticed."""
    rng, test = np.random.default_rng(0), InterleavingTest(0.1)
    total, squares, alarmed = np.zeros(2000), np.zeros(2000), np.zeros(2000, dtype=bool)
    for _ in range(20):
        draws = rng.random((2000, 100))
        if kind == "signs":
            x = np.where(draws < 0.25, -1.0, np.where(draws < 0.5, 1.0, 0.0))
        else:  # seldom large, mostly small: mean 0
            x = np.where(draws < 0.05, -0.95, 0.05)
        sums, v = total[:, None] + np.cumsum(x, axis=1), squares[:, None] + np.cumsum(x * x, axis=1)
        alarmed |= (log_mixture(np.abs(sums), v, test._rho) >= np.log(2.0 / 0.1)).any(axis=1)
        total, squares = sums[:, -1], v[:, -1]
    assert 0.001 < alarmed.mean() <= 0.1


def test_a_batch_single_lists_and_a_restart_leave_the_same_bits():
    rng = np.random.default_rng(3)
    credits = rng.choice([-1.0, 0.0, 1.0, 0.3], p=[0.2, 0.4, 0.3, 0.1], size=1500)
    batch, single = InterleavingTest().add(credits), InterleavingTest()
    for number, one in enumerate(credits):
        single.add(one)
        if number in (10, 700):
            single = InterleavingTest.of_state(json.loads(json.dumps(single.state())))
    assert single.state() == batch.state()
    found = batch.verdict()
    assert found == single.verdict()
    assert found.mean == pytest.approx(credits.mean())
    assert (found.winner, found.n_lists, found.n_decisive) == ("A", 1500, np.count_nonzero(credits))
    # the decision is the first time at which an interval excludes 0
    before = InterleavingTest().add(credits[: found.decided_at - 1]).verdict()
    at = InterleavingTest().add(credits[: found.decided_at]).verdict()
    assert before.winner is None
    assert before.low <= 0.0 < at.low
    assert at.p_value <= 0.05 < before.p_value
    # the mirrored test finds the mirrored verdict
    mirrored = InterleavingTest().add(-credits).verdict()
    assert (mirrored.winner, mirrored.decided_at) == ("B", found.decided_at)
    assert (mirrored.low, mirrored.high) == pytest.approx((-found.high, -found.low))


def test_other_bounds_scale_the_interval():
    credits = np.random.default_rng(4).uniform(-1.0, 1.0, 300)
    one, ten = InterleavingTest().add(credits).verdict(), InterleavingTest(bound=10.0).add(10.0 * credits).verdict()
    assert (ten.low, ten.high, ten.p_value) == pytest.approx((10 * one.low, 10 * one.high, one.p_value))


def test_it_finds_the_better_of_two_rankers_by_clicks():
    rng, wanted, test = np.random.default_rng(5), np.linspace(0.6, 0.05, 8), InterleavingTest()
    method = TeamDraft(5)
    worse = np.roll(np.arange(8), 3)
    for _ in range(600):
        merged = method.interleave([worse, np.arange(8)], rng)
        clicks = rng.random(len(merged.rows)) < wanted[merged.rows]
        test.add(method.preferences(merged, clicks)[0, 1])
    found = test.verdict()
    assert found.winner == "B"
    assert str(found).startswith(f"B is better, decided after {found.decided_at} lists: mean credit -0.")


def test_without_lists_nothing_is_decided():
    found = InterleavingTest().add([]).verdict()
    assert (found.winner, found.low, found.high, found.p_value, found.n_lists) == (None, -1.0, 1.0, 1.0, 0)
    assert str(InterleavingTest().add(0.0).verdict()).startswith(
        "not decided: mean credit +0.0000 (-1.0000 to +1.0000)"
    )


def test_bad_values_get_one_sentence_and_change_nothing():
    test = InterleavingTest().add([1.0, -1.0])
    before = test.state()
    for bad, sentence in ((1.5, "1.5 for list 0"), ([0.0, np.nan], "nan for list 1"), ([[0.0]], r"shape \(1, 1\)")):
        with pytest.raises(InputError, match=sentence):
            test.add(bad)
    assert test.state() == before
    with pytest.raises(InputError, match="does not have the keys"):
        InterleavingTest.of_state({"alpha": 0.05})
    for change in ({"total": 3.0}, {"squares": -1.0}, {"winner": "A"}, {"evidence": float("nan")}):
        with pytest.raises(InputError, match="contradict"):
            InterleavingTest.of_state({**before, **change})
