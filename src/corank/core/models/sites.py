"""
Sites of expectation propagation: moments of truncated Gaussians, updates of sites, evidence, and values of questions.

A site observes that g + noise lies in (lo, hi), where g = f_left − f_right (f_left if `right` is −1). It is stored as
exp(−½ τ g² + ν g), to the power of `weight`.
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
def cavity(mean, c, tau, nu):  # type: ignore[no-untyped-def]
    """Return mean and variance of the cavity, g without one site, and the share of the precision that it keeps."""
    rest = max(1.0 - tau * c, _LEAST)
    return (mean - c * nu) / rest, c / rest, rest


@inline
def matched(mean, c, tau, nu, lo, hi, noise, weight):  # type: ignore[no-untyped-def]
    """Match moments of one site (eq. 8)."""
    m, v, _ = cavity(mean, c, tau, nu)
    total = noise + v
    s = math.sqrt(total)
    _, shift, shrink, left = between((lo - m) / s, (hi - m) / s, (hi - lo) / s)
    # 1/v' − 1/v = shrink/(noise + v·left), where v' = v (noise + v·left)/(noise + v)
    scale = total / (noise + v * left)
    more_tau = scale * shrink / total - tau
    more_nu = scale * (shift / s + m * shrink / total) - nu
    change = weight * max(abs(more_tau) * c, abs(more_nu - more_tau * mean) * math.sqrt(c))
    return tau + more_tau, nu + more_nu, change


@jit
def match_parallel(means, variances, lo, hi, noise, weight, tau, nu, new_tau, new_nu):  # type: ignore[no-untyped-def]
    """Update all sites in parallel, to `new_tau` and `new_nu`; return the largest change and the norm of all."""
    largest, squares = 0.0, 0.0
    for k in range(len(tau)):
        new_tau[k], new_nu[k], change = matched(
            means[k], variances[k], tau[k], nu[k], lo[k], hi[k], noise[k], weight[k]
        )
        largest = max(largest, change)
        squares += change * change
    return largest, math.sqrt(squares)


@jit
def match_sequential(R, left, right, lo, hi, noise, weight, tau, nu, step, cov, mu):  # type: ignore[no-untyped-def]
    """
    Update sites in sequence, each with a rank-one update of the posterior of w, f = R w; return as `match_parallel`.

    tau, nu (m,), cov (r, r), mu (r,): changed in place.
    step: damping factor.
    """
    r = R.shape[1]
    a, s = np.empty(r), np.empty(r)
    largest, squares = 0.0, 0.0
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
        t, h, change = matched(mean, c, tau[k], nu[k], lo[k], hi[k], noise[k], weight[k])
        more_tau, more_nu = step * (t - tau[k]), step * (h - nu[k])
        largest = max(largest, change)
        squares += change * change
        tau[k] += more_tau
        nu[k] += more_nu
        factor = 1.0 / (1.0 + weight[k] * more_tau * c)
        change = factor * weight[k] * (more_nu - more_tau * mean)
        for i in range(r):
            mu[i] += change * s[i]
            for j in range(r):
                cov[i, j] -= factor * weight[k] * more_tau * s[i] * s[j]
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
def site_evidence(means, variances, lo, hi, noise, weight, tau, nu, gradient):  # type: ignore[no-untyped-def]
    """
    Return Σ weight · (log Z of a site − log of the same integral of its Gaussian approximation).

    gradient (m, 3): receives weight times the derivatives of log Z by noise, lo and hi.
    """
    total = 0.0
    for k in range(len(tau)):
        mean, c = means[k], variances[k]
        m, v, rest = cavity(mean, c, tau[k], nu[k])
        s = math.sqrt(noise[k] + v)
        a, b = (lo[k] - m) / s, (hi[k] - m) / s
        log_z, shift, shrink, _ = between(a, b, (hi[k] - lo[k]) / s)
        of_site = 0.5 * (tau[k] * mean * mean - 2.0 * nu[k] * mean + c * nu[k] * nu[k]) / rest - 0.5 * math.log(rest)
        total += weight[k] * (log_z + of_site)
        gradient[k, 0] = weight[k] * 0.5 * (shift * shift - shrink) / (s * s)
        gradient[k, 1] = 0.0 if a == -math.inf else -weight[k] * math.exp(-0.5 * a * a - _LOG_ROOT_TWO_PI - log_z) / s
        gradient[k, 2] = 0.0 if b == math.inf else weight[k] * math.exp(-0.5 * b * b - _LOG_ROOT_TWO_PI - log_z) / s
    return total


ENTROPY, BALD, UNCERTAINTY, ORDER = 0, 1, 2, 3

# Houlsby et al., 2011: the entropy of Φ(x) is nearly exp(−x²/(π ln 2)) bits
_WIDTH = 0.5 * math.pi * math.log(2.0)


@inline
def pair_value(rule, mean, var, noise):  # type: ignore[no-untyped-def]
    """
    Return the value of asking for the sign of g + noise, g ~ N(mean, var).

    ENTROPY: Σ over answers P ½ log(var/var after it) (eq. 10), in nats. BALD: mutual information of the answer and g,
    in nats. UNCERTAINTY: −|mean|/√var.
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
def value_all_pairs(rule, mean, cov, noise, out):  # type: ignore[no-untyped-def]
    """out (n (n − 1)/2,): values of the pairs (0, 1), (0, 2), ..., (n − 2, n − 1)."""
    n, index = len(mean), 0
    for i in range(n):
        for j in range(i + 1, n):
            var = max(cov[i, i] + cov[j, j] - 2.0 * cov[i, j], 0.0)
            out[index] = pair_value(rule, mean[i] - mean[j], var, noise)
            index += 1


@jit
def value_pairs(rule, means, variances, noise, out):  # type: ignore[no-untyped-def]
    """out (m,): values of pairs whose differences have these means and variances."""
    for k in range(len(means)):
        out[k] = pair_value(rule, means[k], variances[k], noise)


@inline
def order_entropy(mean, var):  # type: ignore[no-untyped-def]
    """Return the entropy of the order of two items whose difference is N(mean, var), in nats."""
    if var <= 0.0:
        return 0.0 if mean != 0.0 else math.log(2.0)
    # the larger probability is 1 − p: without cancellation for p near 0
    p = 0.5 * math.erfc(abs(mean) / math.sqrt(var) * _ROOT_HALF)
    return -p * math.log(p) - (1.0 - p) * math.log1p(-p) if p > 0.0 else 0.0


@jit
def value_orders(mean, cov, noise, left, right, pool_left, pool_right, out):  # type: ignore[no-untyped-def]
    """
    out (m,): expected decrease of the mean entropy of the orders of a pool of pairs by an answer to each candidate.

    An answer o about g = f_left − f_right moves the mean by γ_o s and lowers the covariance by κ_o s sᵀ, where
    s = cov (e_left − e_right): γ_o and κ_o are the gradient and minus the second derivative of log P(o) in the mean of
    g. So a pair with the difference s_p of s gets the mean m_p + γ_o s_p and the variance v_p − κ_o s_p².

    left, right (m,): candidates. pool_left, pool_right (k,): the pool.
    """
    k = len(pool_left)
    means, variances, before = np.empty(k), np.empty(k), 0.0
    for p in range(k):
        i, j = pool_left[p], pool_right[p]
        means[p] = mean[i] - mean[j]
        variances[p] = cov[i, i] + cov[j, j] - 2.0 * cov[i, j]
        before += order_entropy(means[p], variances[p])
    for c in range(len(left)):
        a, b = left[c], right[c]
        total = max(cov[a, a] + cov[b, b] - 2.0 * cov[a, b], 0.0) + noise
        after = 0.0
        if total > 0.0:
            root = math.sqrt(total)
            z = (mean[a] - mean[b]) / root
            for answer in range(2):
                sign = 1.0 - 2.0 * answer
                log_p, shift, shrink, _ = above(-sign * z)
                weight, gamma, kappa = math.exp(log_p), sign * shift / root, shrink / total
                entropy = 0.0
                for p in range(k):
                    i, j = pool_left[p], pool_right[p]
                    s = cov[i, a] - cov[i, b] - cov[j, a] + cov[j, b]
                    entropy += order_entropy(means[p] + gamma * s, variances[p] - kappa * s * s)
                after += weight * entropy
            out[c] = (before - after) / k
        else:
            out[c] = 0.0
