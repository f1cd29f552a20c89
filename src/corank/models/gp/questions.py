"""
Active learning from preferences: choose the pairs whose answers are expected to be most informative.

All pairs are valued from the posterior, O(1) per pair. A batch is chosen greedily: after each pair, the covariance is
replaced by its expectation after the answer, which avoids redundant pairs. Pairs that were asked are not asked again.
The "much more expensive alternative" of Chu and Ghahramani, the expected entropy of the orders of all pairs, was no
better on four sets (`docs/experiments/gaussian-processes.md`) and is not built.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corank.base.docs import fill_choices
from corank.data.inputs import as_pairs
from corank.errors import InputError, suggest_names
from corank.models.gp.process import Posterior
from corank.models.gp.sites import IntervalProbability
from corank.parameters import PAIR_STRATEGIES, check_values, integer, number, rng_of, seed

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# largest number of pairs that are valued; if there are more, this many are drawn at random
MAX_PAIRS = 2_000_000
# Houlsby et al., 2011: the entropy of Φ(x) is nearly exp(−x²/(π ln 2)) bits
_WIDTH = 0.5 * np.pi * np.log(2.0)


def suggest_pairs(
    model: Any,
    X: Any = None,
    n: int = 1,
    strategy: str = "entropy",
    *,
    candidates: ArrayLike | None = None,
    asked: ArrayLike | None = None,
    tol: float = 0.0,
    prior: ArrayLike | None = None,
    random_state: Any = None,
) -> Integers:
    """
    Choose the pairs of rows to ask about next, the most valuable first; fewer than `n` if their gains are below `tol`
    nats.

    Values of `strategy` (eq. 10 of Chu and Ghahramani, 2005; Houlsby et al., 2011):
    {choices}

    X: the rows to ask about; those of ``fit`` by default, without the pairs that the model learnt from.
    candidates: pairs to choose from; all pairs by default.
    asked: pairs to exclude, in either order; an empty list excludes none.
    """
    values = {"n": n, "tol": tol, "random_state": random_state}
    check_values(values, {"n": integer(0), "tol": number(0), "random_state": seed})
    if strategy not in PAIR_STRATEGIES:
        raise InputError(f"strategy is {strategy!r}; {suggest_names(str(strategy), list(PAIR_STRATEGIES))}.")
    if not hasattr(model, "posterior") or not hasattr(model, "answered"):
        raise InputError(f"model is a {type(model).__name__}; pass a fitted PreferenceGP, not a pipeline.")
    posterior, rng = model.posterior(X, prior=prior), rng_of(random_state)
    if asked is None:
        asked = model.answered() if X is None else []
    excluded = np.empty((0, 2), np.int64)
    if np.size(asked):
        excluded = as_pairs(asked, np.zeros(len(posterior), dtype=np.int64))
    pairs = _candidates(len(posterior), candidates, excluded, rng)
    if strategy == "random":
        return pairs[rng.permutation(len(pairs))[:n]]
    return _chosen(posterior, pairs, n, strategy, tol, 2.0 * model.sigma_**2)


fill_choices(suggest_pairs, PAIR_STRATEGIES)


def gains(posterior: Posterior, noise: float, strategy: str = "entropy", pairs: ArrayLike | None = None) -> Floats:
    """
    Compute the value of asking about pairs of items, all by default, in the order of ``numpy.triu_indices(n, 1)``.

    noise: variance of the noise of a comparison, 2 sigma².
    """
    if pairs is None:
        pairs = np.column_stack(np.triu_indices(len(posterior), 1))
    return pair_values(*posterior.differences(pairs), noise, strategy)


def pair_values(mean: Floats, var: Floats, noise: float, strategy: str) -> Floats:
    """Value the questions for the signs of g + noise, g ~ N(mean, var)."""
    out, is_open = np.zeros(len(mean)), var + noise > 0.0
    mean, var = mean[is_open], var[is_open]
    both = [IntervalProbability(noise=noise)(sign * mean, var) for sign in (1.0, -1.0)]
    if strategy == "entropy":
        # an answer divides the variance by 1 − var κ
        out[is_open] = -0.5 * sum(np.exp(answer.log_z) * np.log1p(-var * answer.curvature) for answer in both)
        return out
    known = 0.0
    if noise > 0.0:
        wide = _WIDTH + var / noise
        known = np.log(2.0) * np.sqrt(_WIDTH / wide) * np.exp(-0.5 * mean**2 / noise / wide)
    out[is_open] = np.maximum(-sum(np.exp(answer.log_z) * answer.log_z for answer in both) - known, 0.0)
    return out


def _chosen(posterior: Posterior, pairs: Integers, n: int, strategy: str, tol: float, noise: float) -> Integers:
    """Choose pairs greedily, each with the expected posterior after the answers to the earlier ones."""
    left, chosen = np.ones(len(pairs), dtype=bool), []
    for _ in range(min(n, len(pairs))):
        values = np.where(left, gains(posterior, noise, strategy, pairs), -np.inf)
        best = int(values.argmax())
        if not values[best] >= tol:
            break
        chosen.append(pairs[best])
        left[best] = False
        posterior = _expected(posterior, pairs[best], noise)
    return np.array(chosen, dtype=np.int64).reshape(-1, 2)


def _expected(posterior: Posterior, pair: Integers, noise: float) -> Posterior:
    """The posterior with the expected covariance after an answer; its expected mean does not change."""
    (mean,), (var,) = posterior.differences(pair[None])
    prefers = IntervalProbability(noise=noise)
    both = prefers(np.array([mean, -mean]), var)
    fall = float(np.exp(both.log_z) @ both.curvature)
    s = posterior.covariance[:, pair[0]] - posterior.covariance[:, pair[1]]
    return Posterior(posterior.mean, posterior.covariance - fall * np.outer(s, s))


def _candidates(n: int, candidates: ArrayLike | None, asked: Integers, rng: np.random.Generator) -> Integers:
    """The pairs to choose from."""
    if candidates is not None:
        pairs = as_pairs(candidates, np.zeros(n, dtype=np.int64))
    elif n * (n - 1) // 2 <= MAX_PAIRS:
        pairs = np.column_stack(np.triu_indices(n, 1)).astype(np.int64)
    else:
        first = rng.integers(0, n, MAX_PAIRS)
        pairs = np.column_stack([first, (first + rng.integers(1, n, MAX_PAIRS)) % n])
    if not len(asked):
        return pairs
    numbers = _number(pairs, n)
    return pairs[~np.isin(numbers, _number(asked, n))]


def _number(pairs: Integers, n: int) -> Integers:
    return np.asarray(pairs.min(axis=1) * n + pairs.max(axis=1))
