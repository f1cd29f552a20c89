"""
Sites of expectation propagation: moments of truncated Gaussians, updates of sites, and evidence.

A site observes that g + noise lies in (lo, hi), where g = f_left − f_right (f_left if `right` is −1). It is stored as
exp(−½ τ g² + ν g), to the power of `weight`. The noise is a scale mixture of Gaussians (`shares`, `ratios`).
"""

from __future__ import annotations

import math

import numpy as np

from corank.core.jit import inline, jit

_ROOT_HALF = math.sqrt(0.5)
_ROOT_TWO_PI = math.sqrt(2.0 * math.pi)
_LOG_ROOT_TWO_PI = math.log(_ROOT_TWO_PI)
# from here on, the tail of the normal distribution is a continued fraction; below, erfc is accurate
_TAIL = 5.0
_TERMS = 80
# exp(−_NEGLIGIBLE) is negligible against 1
_NEGLIGIBLE = 42.0
_NODES, _SHARES = np.polynomial.legendre.leggauss(40)
# smallest share of the precision that a cavity keeps
_LEAST = 1e-8


@jit
def above(a):  # type: ignore[no-untyped-def]
    """Return log P(x > a), φ(a)/P(x > a), 1 − Var(x | x > a) and Var(x | x > a) of a standard normal x."""
    if a < _TAIL:
        tail = 0.5 * math.erfc(a * _ROOT_HALF)
        log_tail = math.log(tail) if tail < 0.5 else math.log1p(-0.5 * math.erfc(-a * _ROOT_HALF))
        hazard = math.exp(-0.5 * a * a) / (_ROOT_TWO_PI * tail)
        shrink = hazard * (hazard - a)
        return log_tail, hazard, shrink, 1.0 - shrink
    # hazard = a + δ, δ = 1/(a + ε), ε = 2/(a + 3/(a + ...)): no cancellation
    epsilon = 0.0
    for k in range(_TERMS, 1, -1):
        epsilon = k / (a + epsilon)
    delta = 1.0 / (a + epsilon)
    left = delta * (epsilon - delta)
    return -0.5 * a * a - _LOG_ROOT_TWO_PI - math.log(a + delta), a + delta, 1.0 - left, left


@jit
def between(lo, hi, width):  # type: ignore[no-untyped-def]
    """
    Return log P(lo < x < hi), E(x), 1 − Var(x) and Var(x) of a standard normal x, the last three inside the interval.

    Accurate in both tails and for intervals of any width; narrow ones are integrated by Gauss-Legendre quadrature.
    """
    if lo == -math.inf and hi == math.inf:
        return 0.0, 0.0, 0.0, 1.0
    sign = 1.0
    if hi == math.inf or (lo != -math.inf and lo + hi >= 0.0):
        a, b = lo, hi
    else:
        a, b, sign = -hi, -lo, -1.0
    if b == math.inf:
        log_z, mean, shrink, left = above(a)
        return log_z, sign * mean, shrink, left
    # φ(a + t)/φ(a) = exp(−a t − t²/2) is negligible here
    reach = math.sqrt(a * a + 2.0 * _NEGLIGIBLE) - a
    if a >= 0.0 and width >= reach:
        log_z, mean, shrink, left = above(a)
        return log_z, sign * mean, shrink, left
    if a < 0.0 and width >= 2.0:
        z = 0.5 * (math.erf(b * _ROOT_HALF) + math.erf(-a * _ROOT_HALF))
        low, high = math.exp(-0.5 * a * a) / (_ROOT_TWO_PI * z), math.exp(-0.5 * b * b) / (_ROOT_TWO_PI * z)
        mean = low - high
        shrink = mean * mean - (a * low - b * high)
        return math.log(z), sign * mean, shrink, 1.0 - shrink
    mass, first = 0.0, 0.0
    for i in range(len(_NODES)):
        t = 0.5 * width * (1.0 + _NODES[i])
        p = _SHARES[i] * math.exp(-a * t - 0.5 * t * t)
        mass += p
        first += p * t
    first /= mass
    left = 0.0
    for i in range(len(_NODES)):
        t = 0.5 * width * (1.0 + _NODES[i])
        left += _SHARES[i] * math.exp(-a * t - 0.5 * t * t) * (t - first) ** 2
    left /= mass
    log_z = math.log(0.5 * width * mass) - 0.5 * a * a - _LOG_ROOT_TWO_PI
    return log_z, sign * (a + first), 1.0 - left, left


@jit
def tilted(m, v, lo, hi, noise, shares, ratios):  # type: ignore[no-untyped-def]
    """
    For g ~ N(m, v): log P(lo < g + e < hi), where the variance of e is noise · ratios_i with the probability shares_i.

    Also returns its derivatives by m, v, lo and hi, minus the second by m (κ), that by noise, and 1 − v κ, which is
    summed without cancellation.
    """
    log_z, of_m, of_var, of_lo, of_hi, curvature, of_noise, kept = -math.inf, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    spread = 0.0  # variance of the derivatives by m over the components
    for i in range(len(shares)):
        total = v + noise * ratios[i]
        s = math.sqrt(total)
        a, b = (lo - m) / s, (hi - m) / s
        log_i, shift, shrink, left = between(a, b, (hi - lo) / s)
        low = 0.0 if a == -math.inf else -math.exp(-0.5 * a * a - _LOG_ROOT_TWO_PI - log_i) / s
        high = 0.0 if b == math.inf else math.exp(-0.5 * b * b - _LOG_ROOT_TWO_PI - log_i) / s
        log_i += math.log(shares[i])
        largest = max(log_z, log_i)
        new = largest + math.log(math.exp(log_z - largest) + math.exp(log_i - largest))
        # posterior probabilities of the components before, and of this one
        p, q = math.exp(log_z - new), math.exp(log_i - new)
        spread = p * spread + p * q * (of_m - shift / s) ** 2
        second = 0.5 * (shift * shift - shrink) / total
        log_z, of_m = new, p * of_m + q * shift / s
        of_var, of_noise = p * of_var + q * second, p * of_noise + q * second * ratios[i]
        of_lo, of_hi = p * of_lo + q * low, p * of_hi + q * high
        curvature, kept = p * curvature + q * shrink / total, p * kept + q * (noise * ratios[i] + v * left) / total
    return log_z, of_m, of_var, of_lo, of_hi, max(curvature - spread, 0.0), of_noise, kept + v * spread


@jit
def interval_moments(mean, var, noise, lo, hi, shares, ratios, out):  # type: ignore[no-untyped-def]
    """Write to out (n, 6), row by row, the first six results of `tilted` for g ~ N(mean, var)."""
    for i in range(len(mean)):
        row = tilted(mean[i], var[i], lo[i], hi[i], noise[i], shares, ratios)
        for j in range(6):
            out[i, j] = row[j]


@inline
def cavity(mean, c, tau, nu):  # type: ignore[no-untyped-def]
    """Return mean and variance of the cavity, g without one site, and the share of the precision that it keeps."""
    rest = max(1.0 - tau * c, _LEAST)
    return (mean - c * nu) / rest, c / rest, rest


@inline
def matched(mean, c, tau, nu, lo, hi, noise, weight, shares, ratios):  # type: ignore[no-untyped-def]
    """Match moments of one site (eq. 8)."""
    m, v, _ = cavity(mean, c, tau, nu)
    _, of_m, _, _, _, curvature, _, kept = tilted(m, v, lo, hi, noise, shares, ratios)
    # 1/v' − 1/v = κ/(1 − v κ), where v' = v (1 − v κ)
    more_tau = curvature / kept - tau
    more_nu = (of_m + m * curvature) / kept - nu
    change = weight * max(abs(more_tau) * c, abs(more_nu - more_tau * mean) * math.sqrt(c))
    return tau + more_tau, nu + more_nu, change


@jit
def match_sites(means, variances, lo, hi, noise, shares, ratios, weight, tau, nu, new_tau, new_nu):  # type: ignore[no-untyped-def]
    """Update all sites, to `new_tau` and `new_nu`; return the largest change and the norm of all."""
    largest, squares = 0.0, 0.0
    for k in range(len(tau)):
        new_tau[k], new_nu[k], change = matched(
            means[k], variances[k], tau[k], nu[k], lo[k], hi[k], noise[k], weight[k], shares, ratios
        )
        largest = max(largest, change)
        squares += change * change
    return largest, math.sqrt(squares)


@jit
def spread_sites(R, left, right, t, out):  # type: ignore[no-untyped-def]
    """out (n, r) += Bᵀ diag(t) B R, B the functionals of the sites."""
    for k in range(len(t)):
        i, j = left[k], right[k]
        for c in range(R.shape[1]):
            if j >= 0:
                x = t[k] * (R[i, c] - R[j, c])
                out[i, c] += x
                out[j, c] -= x
            else:
                out[i, c] += t[k] * R[i, c]


@jit
def gaps(V, values, left, right, variances, means):  # type: ignore[no-untyped-def]
    """Write the variance ‖V_i − V_j‖² and mean values_i − values_j of each site's g."""
    for k in range(len(left)):
        i, j = left[k], right[k]
        total = 0.0
        if j >= 0:
            for c in range(V.shape[1]):
                d = V[i, c] - V[j, c]
                total += d * d
            means[k] = values[i] - values[j]
        else:
            for c in range(V.shape[1]):
                total += V[i, c] * V[i, c]
            means[k] = values[i]
        variances[k] = total


@jit
def site_evidence(means, variances, lo, hi, noise, shares, ratios, weight, tau, nu, gradient):  # type: ignore[no-untyped-def]
    """
    Return Σ weight · (log Z of a site − log of the same integral of its Gaussian approximation).

    gradient (m, 3): receives weight times the derivatives of log Z by noise, lo and hi.
    """
    total = 0.0
    for k in range(len(tau)):
        mean, c = means[k], variances[k]
        m, v, rest = cavity(mean, c, tau[k], nu[k])
        log_z, _, _, of_lo, of_hi, _, of_noise, _ = tilted(m, v, lo[k], hi[k], noise[k], shares, ratios)
        of_site = 0.5 * (tau[k] * mean * mean - 2.0 * nu[k] * mean + c * nu[k] * nu[k]) / rest - 0.5 * math.log(rest)
        total += weight[k] * (log_z + of_site)
        gradient[k, 0], gradient[k, 1], gradient[k, 2] = weight[k] * of_noise, weight[k] * of_lo, weight[k] * of_hi
    return total
