"""Hoeffding's inequality for means of independent numbers in [0, 1], as he first states it, by relative entropy."""

from __future__ import annotations

from math import inf, log

# halvings after which doubles do not change
_HALVINGS = 64


def hoeffding_end(mean: float, n: int, logs: float, towards: float) -> float:
    """
    Find how far the expectation can lie from an observed mean: n kl(mean, p) ≤ logs (Hoeffding, 1963, Theorem 1).

    kl(a, p) = a ln(a/p) + (1 − a) ln((1 − a)/(1 − p)) ≥ 2(a − p)², which gives the better known width √(logs/(2n));
    near 0 and 1 this one is much narrower. On either side it misses with a probability of exp(−logs) at most.

    mean: of n independent numbers in [0, 1].
    towards: 0 for the lower end, 1 for the upper.

    >>> round(hoeffding_end(0.0, 10, 3.0, 1.0), 6)  # 1 − exp(−3/10)
    0.259182
    """
    inside, outside = mean, towards
    for _ in range(_HALVINGS):
        middle = 0.5 * (inside + outside)
        if n * _entropy(mean, middle) <= logs:
            inside = middle
        else:
            outside = middle
    return outside


def _entropy(a: float, p: float) -> float:
    return _share(a, p) + _share(1.0 - a, 1.0 - p)


def _share(a: float, p: float) -> float:
    return 0.0 if a == 0.0 else inf if p == 0.0 else a * log(a / p)
