"""What an answer about two items is expected to tell, for every two of them or for chosen ones."""

from __future__ import annotations

import math

from corank.core.jit import inline, jit
from corank.core.models.sites import above

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
