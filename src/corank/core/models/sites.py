"""
Sites of expectation propagation: what an interval tells of a Gaussian number, and what many such tell of each other.

A site sees one number g = f_left − f_right (f_left where `right` is −1), to which noise is added, and knows that the
sum lies in (lo, hi). It is held as exp(−½ τ g² + ν g), `weight` times over.
"""

from __future__ import annotations

import math

import numpy as np

from corank.core.jit import inline, jit

_ROOT_HALF = math.sqrt(0.5)
_ROOT_TWO_PI = math.sqrt(2.0 * math.pi)
_LOG_ROOT_TWO_PI = math.log(_ROOT_TWO_PI)
# from here on the tail of the normal law is a continued fraction, and before it erfc loses no digits
_TAIL = 5.0
_TERMS = 80
# exp(−_NOTHING) is nothing beside 1
_NOTHING = 42.0
_NODES, _SHARES = np.polynomial.legendre.leggauss(40)
# a Gaussian without one of its sites has at least this share of the precision it has with it
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
    # hazard = a + δ, δ = 1/(a + ε), ε = 2/(a + 3/(a + ...)): nothing large is subtracted from anything
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

    Digits are kept in both tails and in intervals of any width: there, moments are integrated with Gauss and Legendre.

    width: hi − lo, of which a caller may know more digits.
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
    # φ(a + t)/φ(a) = exp(−a t − t²/2) has come to nothing here
    reach = math.sqrt(a * a + 2.0 * _NOTHING) - a
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
def interval_moments(mean, var, lo, hi, out):  # type: ignore[no-untyped-def]
    """
    For x ~ N(mean, var), row by row: log P(lo < x < hi), ∂/∂mean, ∂/∂var, ∂/∂lo and ∂/∂hi of it, −∂²/∂mean².

    out (n, 6): receives them.
    """
    for i in range(len(mean)):
        s = math.sqrt(var[i])
        a, b = (lo[i] - mean[i]) / s, (hi[i] - mean[i]) / s
        log_z, shift, shrink, _ = between(a, b, (hi[i] - lo[i]) / s)
        out[i, 0] = log_z
        out[i, 1] = shift / s
        out[i, 2] = 0.5 * (shift * shift - shrink) / var[i]
        out[i, 3] = 0.0 if a == -math.inf else -math.exp(-0.5 * a * a - _LOG_ROOT_TWO_PI - log_z) / s
        out[i, 4] = 0.0 if b == math.inf else math.exp(-0.5 * b * b - _LOG_ROOT_TWO_PI - log_z) / s
        out[i, 5] = shrink / var[i]


@inline
def without(mean, c, tau, nu):  # type: ignore[no-untyped-def]
    """Mean and variance of g without one site, and the share of its precision that is left."""
    rest = max(1.0 - tau * c, _LEAST)
    return (mean - c * nu) / rest, c / rest, rest


@inline
def moved(mean, c, tau, nu, lo, hi, noise, weight):  # type: ignore[no-untyped-def]
    """
    Return τ and ν of the Gaussian that has the moments of the site itself (eq. 8), and the way there.

    mean, c: mean and variance of g with all sites.
    Returns: τ, ν, and how far that moves the posterior of g, in units of that posterior.
    """
    m, v, _ = without(mean, c, tau, nu)
    total = noise + v
    s = math.sqrt(total)
    _, shift, shrink, left = between((lo - m) / s, (hi - m) / s, (hi - lo) / s)
    # 1/v' − 1/v = shrink/(noise + v·left), where v' = v (noise + v·left)/(noise + v)
    scale = total / (noise + v * left)
    more = scale * shrink / total - tau
    push = scale * (shift / s + m * shrink / total) - nu
    way = weight * max(abs(more) * c, abs(push - more * mean) * math.sqrt(c))
    return tau + more, nu + push, way


@jit
def match_all(means, variances, lo, hi, noise, weight, tau, nu, new_tau, new_nu):  # type: ignore[no-untyped-def]
    """Move every site at once, to `new_tau` and `new_nu`; return how far the farthest and all had to go."""
    farthest, total_way = 0.0, 0.0
    for k in range(len(tau)):
        new_tau[k], new_nu[k], way = moved(means[k], variances[k], tau[k], nu[k], lo[k], hi[k], noise[k], weight[k])
        farthest = max(farthest, way)
        total_way += way * way
    return farthest, math.sqrt(total_way)


@jit
def match_in_turn(R, left, right, lo, hi, noise, weight, tau, nu, step, cov, mu):  # type: ignore[no-untyped-def]
    """
    Move sites one after the other, each by a rank-one step of the posterior of w, f = R w; return as `match_all` does.

    tau, nu (m,), cov (r, r), mu (r,): changed in place.
    step: share of the way that is gone.
    """
    r = R.shape[1]
    a, s = np.empty(r), np.empty(r)
    farthest, total_way = 0.0, 0.0
    for k in range(len(tau)):
        for j in range(r):
            a[j] = R[left[k], j] - (R[right[k], j] if right[k] >= 0 else 0.0)
        c, mean = 0.0, 0.0
        for i in range(r):
            total = 0.0
            for j in range(r):
                total += cov[i, j] * a[j]
            s[i] = total
            c += total * a[i]
            mean += mu[i] * a[i]
        c = max(c, 0.0)
        t, h, way = moved(mean, c, tau[k], nu[k], lo[k], hi[k], noise[k], weight[k])
        more, push = step * (t - tau[k]), step * (h - nu[k])
        farthest = max(farthest, way)
        total_way += way * way
        tau[k] += more
        nu[k] += push
        factor = 1.0 / (1.0 + weight[k] * more * c)
        change = factor * weight[k] * (push - more * mean)
        for i in range(r):
            mu[i] += change * s[i]
            for j in range(r):
                cov[i, j] -= factor * weight[k] * more * s[i] * s[j]
    return farthest, math.sqrt(total_way)


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
    """Variance ‖V_i − V_j‖² and mean values_i − values_j of each site's g."""
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
def site_evidence(means, variances, lo, hi, noise, weight, tau, nu, gradient):  # type: ignore[no-untyped-def]
    """
    Return Σ weight · (log Z of a site − log of what its Gaussian gives in its place).

    gradient (m, 3): receives weight times the derivatives of log Z by noise, lo and hi.
    """
    total = 0.0
    for k in range(len(tau)):
        mean, c = means[k], variances[k]
        m, v, rest = without(mean, c, tau[k], nu[k])
        s = math.sqrt(noise[k] + v)
        a, b = (lo[k] - m) / s, (hi[k] - m) / s
        log_z, shift, shrink, _ = between(a, b, (hi[k] - lo[k]) / s)
        given = 0.5 * (tau[k] * mean * mean - 2.0 * nu[k] * mean + c * nu[k] * nu[k]) / rest - 0.5 * math.log(rest)
        total += weight[k] * (log_z + given)
        gradient[k, 0] = weight[k] * 0.5 * (shift * shift - shrink) / (s * s)
        gradient[k, 1] = 0.0 if a == -math.inf else -weight[k] * math.exp(-0.5 * a * a - _LOG_ROOT_TWO_PI - log_z) / s
        gradient[k, 2] = 0.0 if b == math.inf else weight[k] * math.exp(-0.5 * b * b - _LOG_ROOT_TWO_PI - log_z) / s
    return total


ENTROPY, BALD, UNCERTAINTY = 0, 1, 2

# Houlsby et al., 2011: the entropy of Φ(x) is nearly exp(−x²/(π ln 2)) bits
_WIDTH = 0.5 * math.pi * math.log(2.0)


@inline
def worth(rule, mean, var, noise):  # type: ignore[no-untyped-def]
    """
    Return what the answer about g ~ N(mean, var) is worth, seen through noise of a variance.

    ENTROPY: Σ over answers P ½ log(var/var after it) (eq. 10), in nats. BALD: the information that the answer has about
    g, in nats. UNCERTAINTY: −|mean|/√var.
    """
    total = var + noise
    if rule == UNCERTAINTY:
        return -abs(mean) / math.sqrt(var) if var > 0.0 else -math.inf
    if total <= 0.0:
        return 0.0
    z = abs(mean) / math.sqrt(total)
    log_p, _, shrink, _ = above(-z)
    log_q, _, shrink_q, _ = above(z)
    p, q = math.exp(log_p), math.exp(log_q)
    if rule == ENTROPY:
        share = var / total
        return -0.5 * (p * math.log1p(-share * shrink) + q * math.log1p(-share * shrink_q))
    entropy = -p * log_p - q * log_q
    if noise <= 0.0:
        return entropy
    wide = _WIDTH + var / noise
    known = math.log(2.0) * math.sqrt(_WIDTH / wide) * math.exp(-0.5 * mean * mean / noise / wide)
    return max(entropy - known, 0.0)


@jit
def worth_of_all(rule, mean, cov, noise, out):  # type: ignore[no-untyped-def]
    """out (n (n − 1)/2,): the worth of (0, 1), (0, 2), ..., (n − 2, n − 1)."""
    n, at = len(mean), 0
    for i in range(n):
        for j in range(i + 1, n):
            var = max(cov[i, i] + cov[j, j] - 2.0 * cov[i, j], 0.0)
            out[at] = worth(rule, mean[i] - mean[j], var, noise)
            at += 1


@jit
def worth_of_some(rule, means, variances, noise, out):  # type: ignore[no-untyped-def]
    """out (m,): the worth of pairs whose differences have these means and variances."""
    for k in range(len(means)):
        out[k] = worth(rule, means[k], variances[k], noise)
