"""Intervals of a Gaussian variable, against sums over many small panels."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special, stats

from corank.models.gp.sites import IntervalProbability


def by_quadrature(mean, var, lo, hi):
    """log Z, E(x − mean) and Var(x) inside the interval in units of the deviation, by 200 panels of 20 points each."""
    s = np.sqrt(var)
    a, b = (lo - mean) / s, (hi - mean) / s
    if abs(a) > abs(b):
        log_z, shift, spread = by_quadrature(-mean, var, -hi, -lo)
        return log_z, -shift, spread
    peak = max(a, 0.0)
    # beyond these ends, seen from the peak, the density is below exp(−50) of it
    reach = np.sqrt(peak**2 + 100.0) - peak if peak < 10 else 50.0 / peak
    edges = np.linspace(max(a - peak, -reach), min((hi - lo) / s if peak > 0 else b, reach), 201)
    nodes, shares = np.polynomial.legendre.leggauss(20)
    half = 0.5 * np.diff(edges)[:, None]
    t = 0.5 * (edges[1:] + edges[:-1])[:, None] + half * nodes
    p = half * shares * np.exp(-peak * t - 0.5 * t * t)
    mass = p.sum()
    first = (p * t).sum() / mass
    log_z = np.log(mass) - 0.5 * peak**2 - 0.5 * np.log(2 * np.pi)
    return log_z, peak + first, (p * (t - first) ** 2).sum() / mass


ENDS = [
    (0.0, np.inf), (-np.inf, 0.3), (-1.0, 2.0), (3.0, 3.001), (-7.0, -6.5), (30.0, np.inf), (-np.inf, -200.0),
    (40.0, 40.5), (0.2, 9.0), (-0.4, 0.5), (4.9, np.inf), (5.1, np.inf), (-1.5, 1.5), (12.0, 60.0), (1e-9, 2e-9),
    (-60.0, -59.0), (0.0, 30.0), (-9.0, np.inf), (1e4, np.inf), (1e3, 1e3 + 1e-3),
]  # fmt: skip


@pytest.mark.parametrize("ends", ENDS)
@pytest.mark.parametrize(("mean", "var"), [(0.0, 1.0), (0.25, 0.5)])
def test_moments_keep_ten_digits_everywhere(ends, mean, var):
    lo, hi = ends
    log_z, shift, spread = by_quadrature(mean, var, lo, hi)
    found = IntervalProbability(lo, hi)(mean, var)
    np.testing.assert_allclose(found.log_z, log_z, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(found.gradient, shift / np.sqrt(var), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(found.curvature, (1 - spread) / var, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(found.var_gradient, 0.5 * (shift**2 - 1 + spread) / var, rtol=1e-9, atol=1e-11)


def test_truncated_variances_keep_ten_digits_too():
    from corank.core.models.sites import between

    for lo, hi in ENDS:
        np.testing.assert_allclose(between(lo, hi, hi - lo)[3], by_quadrature(0.0, 1.0, lo, hi)[2], rtol=1e-10)


def test_derivatives_agree_with_finite_differences():
    rng = np.random.default_rng(0)
    mean, var, lo = rng.normal(size=50), rng.uniform(0.5, 2.0, 50), rng.normal(size=50)
    hi, noise, h = lo + rng.uniform(0.01, 3.0, 50), rng.uniform(0.0, 1.0, 50), 1e-5
    found = IntervalProbability(lo, hi, noise)(mean, var)

    def gradient(change):
        up, down = (change(step) for step in (h, -h))
        return (up.log_z - down.log_z) / (2 * h)

    np.testing.assert_allclose(
        found.gradient, gradient(lambda t: IntervalProbability(lo, hi, noise)(mean + t, var)), atol=1e-6
    )
    np.testing.assert_allclose(
        found.var_gradient, gradient(lambda t: IntervalProbability(lo, hi, noise + t)(mean, var)), atol=1e-6
    )
    np.testing.assert_allclose(
        found.lo_gradient, gradient(lambda t: IntervalProbability(lo + t, hi, noise)(mean, var)), rtol=1e-4
    )
    np.testing.assert_allclose(
        found.hi_gradient, gradient(lambda t: IntervalProbability(lo, hi + t, noise)(mean, var)), rtol=1e-4
    )


def test_probabilities_of_disjoint_intervals_add_up():
    cuts = np.array([-np.inf, -2.0, -0.1, 0.4, 7.0, np.inf])
    found = IntervalProbability(cuts[:-1], cuts[1:], 0.3).probability(0.7, 1.2)
    np.testing.assert_allclose(found, np.diff(stats.norm.cdf(cuts, 0.7, np.sqrt(1.5))), rtol=1e-9)
    assert found.sum() == pytest.approx(1.0, abs=1e-14)
    assert float(IntervalProbability(-np.inf, np.inf)(3.0, 2.0).log_z) == 0.0
    np.testing.assert_allclose(IntervalProbability()(-20.0, 1.0).log_z, special.log_ndtr(-20.0), rtol=1e-13)


def logistic_by_quadrature(mean, var, noise):
    """log Z of 1/(1 + exp(−g/τ)) for g ~ N(mean, var), and E(g), Var(g) after it; τ² = 3 noise/π²."""
    x = np.linspace(-12.0, 12.0, 20_001)
    g = mean + np.sqrt(var) * x
    p = np.exp(-0.5 * x * x) * special.expit(g * np.pi / np.sqrt(3.0 * noise))
    mass = p.sum()
    first = (p * g).sum() / mass
    return np.log(mass * (x[1] - x[0]) / np.sqrt(2 * np.pi)), first, (p * (g - first) ** 2).sum() / mass


@pytest.mark.parametrize(
    ("mean", "var", "noise"), [(0.3, 1.0, 0.5), (-2.0, 0.1, 2.0), (4.0, 9.0, 0.02), (-6.0, 4.0, 1.0)]
)
def test_logistic_answers_agree_with_quadrature(mean, var, noise):
    log_z, first, spread = logistic_by_quadrature(mean, var, noise)
    answer = IntervalProbability(noise=noise, likelihood="logistic")(mean, var)
    assert answer.log_z == pytest.approx(log_z, abs=1e-6)
    assert mean + var * answer.gradient == pytest.approx(first, abs=1e-5)
    assert var - var**2 * answer.curvature == pytest.approx(spread, rel=1e-4)
    h = 1e-4
    either = [IntervalProbability(noise=noise, likelihood="logistic")(mean, var + step).log_z for step in (h, -h)]
    assert answer.var_gradient == pytest.approx((either[0] - either[1]) / (2 * h), rel=1e-4)
