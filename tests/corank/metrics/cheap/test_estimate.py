"""Corrected estimates against refits without each query, limits, and measured coverage."""

from __future__ import annotations

import numpy as np
import pytest

from corank.errors import InputError
from corank.metrics.cheap.estimate import corrected, human_only, simplex_weights, stack


def values(rng, S=8, N=60, *, bias=0.0, noise=0.1, skill=1.0):
    """Draw human and cheap values: levels of queries, differences of systems, and bias of the cheap judge."""
    systems, levels = rng.normal(0, 0.1, (S, 1)), rng.normal(0, 0.15, (1, N))
    interaction = rng.normal(0, 0.15, (S, N))
    H = 0.5 + systems + levels + interaction
    C = 0.6 + skill * (systems + levels + interaction) + bias * rng.normal(size=(S, 1)) + rng.normal(0, noise, (S, N))
    return H, C


def by_hand(h, c, everywhere):
    """The definition: one slope of the levels and one of all deviations, cut to [0, 1]."""

    def part(a, b, whole):
        x, y = b - b.mean(axis=1, keepdims=True), a - a.mean(axis=1, keepdims=True)
        slope = min(max(float((x * y).sum() / (x * x).sum()), 0.0), 1.0)
        return a.mean(axis=1) + slope * (whole - b.mean(axis=1))

    level = part(h.mean(axis=0)[None], c.mean(axis=0)[None], everywhere.mean(keepdims=True))
    return level + part(h - h.mean(axis=0), c - c.mean(axis=0), everywhere - everywhere.mean())


def test_estimates_and_pseudo_values_are_those_of_refits_without_each_query():
    H, C = values(np.random.default_rng(0))
    gold = np.arange(0, 60, 5)
    found = corrected(H[:, gold], C, gold)
    np.testing.assert_allclose(found.unbiased, by_hand(H[:, gold], C[:, gold], C.mean(axis=1)))
    left_out = np.array(
        [by_hand(H[:, one], C[:, one], C.mean(axis=1)) for one in (np.delete(gold, at) for at in range(len(gold)))]
    ).T
    expected = -(len(gold) - 1) * (left_out - left_out.mean(axis=1, keepdims=True))
    np.testing.assert_allclose(found.noise, expected, atol=1e-12)


def test_gold_grades_of_all_queries_leave_no_error_for_these_queries():
    H, C = values(np.random.default_rng(1), N=20)
    found = corrected(H, C, np.arange(20), these=True)
    np.testing.assert_allclose(found.values, H.mean(axis=1))
    one = found.interval(2, 3)
    assert one.low == pytest.approx(one.high) == pytest.approx(H[2].mean() - H[3].mean())
    like_these = corrected(H, C, np.arange(20)).interval(2)
    assert like_these.high > like_these.low


def test_a_difference_of_estimates_is_the_estimate_of_the_difference_and_intervals_contain_it():
    H, C = values(np.random.default_rng(2), bias=0.05)
    found = corrected(H[:, :10], C, np.arange(10))
    for a in range(8):
        for b in range(a):
            one = found.interval(a, b)
            assert one.value == pytest.approx(found.values[a] - found.values[b])
            assert one.low <= one.value <= one.high


@pytest.mark.parametrize("bias", [0.0, 0.3])
def test_shrinkage_beats_cheap_alone_and_the_correction_alone(bias):
    rng, errors, kept = np.random.default_rng(3), [], []
    for _ in range(60):
        H, C = values(rng, S=16, bias=bias, noise=0.15)
        found = corrected(H[:, :10], C, np.arange(10), these=True)
        kept.append(found.kept)
        centred = [x - x.mean() for x in (found.values, C.mean(axis=1), found.unbiased, H[:, :10].mean(axis=1))]
        truth = H.mean(axis=1) - H.mean()
        errors.append([np.sqrt(np.mean((x - truth) ** 2)) for x in centred])
    shrunk, cheap, direct, human = np.mean(errors, axis=0)
    assert direct < human
    assert shrunk < 1.05 * min(cheap, direct)
    assert np.mean(kept) > 0.9 if bias else np.mean(kept) < 0.4


@pytest.mark.parametrize("kind", ["useful", "random", "constant", "reversed", "ties"])
def test_intervals_cover_for_every_judge_and_useless_ones_cost_little(kind):
    rng, hits, widths = np.random.default_rng(4), [], []
    for _ in range(250):
        H, C = values(rng, S=6, N=40, bias=0.1)
        if kind == "random":
            C = rng.permuted(C, axis=1)
        elif kind == "constant":
            C = np.full_like(C, 0.5)
        elif kind == "reversed":
            C = 1.0 - H
        elif kind == "ties":
            H, C = np.round(H, 0), np.round(C, 0)
        gold = rng.permutation(40)[:8]
        ours, human = corrected(H[:, gold], C, gold, these=True), human_only(H[:, gold], 40, these=True)
        one, plain, mean = ours.interval(1, 0), human.interval(1, 0), ours.interval(3)
        truth = H[1].mean() - H[0].mean()
        hits.append((one.low <= truth <= one.high, mean.low <= H[3].mean() <= mean.high))
        widths.append((one.standard_error, plain.standard_error))
    assert (np.mean(hits, axis=0) > 0.91).all()
    ours, human = np.mean(widths, axis=0)
    assert ours < (0.95 if kind == "useful" else 1.05) * human or kind == "ties"


def test_values_for_queries_like_these_cover_the_population_mean():
    rng, hits = np.random.default_rng(5), []
    for _ in range(300):
        systems = np.array([[0.0], [0.1], [0.2]])
        level, own = rng.normal(0, 0.1, (1, 30)), rng.normal(0, 0.2, (3, 30))
        H, C = systems + level + own, level + own + rng.normal(0, 0.1, (3, 30))
        one = corrected(H[:, :10], C, np.arange(10)).interval(2, 0)
        hits.append(one.low <= 0.2 <= one.high)
    assert np.mean(hits) > 0.92


def test_weights_minimise_the_penalised_error_over_the_simplex():
    rng = np.random.default_rng(6)
    for _ in range(20):
        X, y = rng.normal(size=(30, 3)), rng.normal(size=30)
        A, b = X.T @ X, X.T @ y
        w = simplex_weights(A, b, 0.7)
        assert w.min() >= 0
        assert w.sum() == pytest.approx(1.0)

        def cost(v, A=A, b=b):
            return v @ A @ v - 2 * b @ v + 0.7 * ((v - 1 / 3) ** 2).sum()

        grid = [np.array([i, j, 40 - i - j]) / 40 for i in range(41) for j in range(41 - i)]
        assert cost(w) <= min(map(cost, grid)) + 1e-9


def test_stacking_prefers_the_better_judge_and_does_not_use_a_querys_own_gold():
    rng = np.random.default_rng(7)
    H, good = values(rng, noise=0.05)
    cheap = np.stack([good, rng.permuted(good, axis=1)])
    gold = np.arange(12)
    combined, weights = stack(H[:, :12], cheap, gold)
    assert weights[0] > 0.8
    np.testing.assert_allclose(combined[:, 12:], np.einsum("j,jsq->sq", weights, cheap)[:, 12:])
    changed = H[:, :12].copy()
    changed[:, 3] = rng.normal(size=8)
    np.testing.assert_allclose(stack(changed, cheap, gold)[0][:, 3], combined[:, 3])


def test_too_few_gold_queries_are_refused():
    with pytest.raises(InputError, match="4 queries have gold grades"):
        human_only(np.zeros((2, 4)), 20)


def test_two_systems_that_rarely_differ_are_covered():
    """RR of two systems is often 1 for both, so that few gold queries show no variance."""
    rng, hits = np.random.default_rng(8), []
    for _ in range(300):
        ranks = rng.geometric(0.75, size=(2, 45))
        H = 1.0 / ranks
        C = 1.0 / np.where(rng.random(ranks.shape) < 0.7, ranks, rng.geometric(0.6, size=ranks.shape))
        gold = rng.permutation(45)[:8]
        one = corrected(H[:, gold], C, gold, these=True).interval(1, 0)
        hits.append(one.low <= H[1].mean() - H[0].mean() <= one.high)
    assert np.mean(hits) > 0.9
