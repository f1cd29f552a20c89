"""
Active learning from preferences: choose the pairs whose answers are expected to be most informative.

All pairs are valued from the posterior, O(1) per pair. A batch is chosen greedily: after each pair, the covariance is
replaced by its expectation after the answer, which avoids redundant pairs. Pairs that were asked are not asked again.

"order" is the "much more expensive alternative" of Chu and Ghahramani: the expected entropy of the orders of all pairs
after the answer. An answer changes the mean along one direction s and the covariance by a multiple of s sᵀ, so that
every order after it costs O(1) (`corank.core.models.sites.value_orders`). It is computed for the candidates with the
largest mutual information, over a regular selection of the pairs if there are many.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corank.core.models import sites as kernels
from corank.core.models.sites import BALD, ENTROPY, ORDER, UNCERTAINTY
from corank.data.inputs import as_pairs
from corank.errors import InputError, suggest_names
from corank.models.gp.ep.likelihoods import IntervalProbit
from corank.models.gp.ep.process import Posterior
from corank.parameters import check_values, integer, number, rng_of, seed

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class PairStrategy:
    """How pairs are valued; the pair with the highest value is asked first."""

    code: int | None  # the number by which the kernels choose the formula; None draws pairs at random
    has_gain: bool = False  # whether values are expected gains in nats, which `tol` applies to


PAIR_STRATEGIES = {
    "entropy": PairStrategy(ENTROPY, has_gain=True), "bald": PairStrategy(BALD, has_gain=True),
    "uncertainty": PairStrategy(UNCERTAINTY), "order": PairStrategy(ORDER), "random": PairStrategy(None),
}  # fmt: skip
"""Strategies by name; `corank.parameters.PAIR_STRATEGIES` describes them."""

# largest number of pairs that are valued; if there are more, this many are drawn at random
MAX_PAIRS = 2_000_000
# "order": number of candidates that are valued, and of pairs whose orders count
_SHORTLIST, _POOL = 100, 1000


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

    The value of a pair is, by `strategy`: "entropy", the expected decrease of the entropy of f (eq. 10 of Chu and
    Ghahramani, 2005); "bald", the mutual information of the answer and f, which excludes the noise of the answer
    (Houlsby et al., 2011); "uncertainty", −|mean|/deviation of the difference; "order", the expected decrease of the
    mean entropy of the orders of all pairs, for the 100 candidates with the largest mutual information; or "random".

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
    if PAIR_STRATEGIES[strategy].code is None:
        return pairs[rng.permutation(len(pairs))[:n]]
    return _chosen(posterior, pairs, n, strategy, tol, 2.0 * model.sigma_**2)


def gains(posterior: Posterior, noise: float, strategy: str = "entropy", pairs: ArrayLike | None = None) -> Floats:
    """
    Compute the value of asking about pairs of items, all by default, in the order of ``numpy.triu_indices(n, 1)``.

    noise: variance of the noise of a comparison, 2 sigma².
    strategy: see `suggest_pairs`; here "order" values every pair, which takes 1,000 times as long.
    """
    if PAIR_STRATEGIES[strategy].code == ORDER:
        return _order_gains(posterior, noise, pairs)
    if pairs is None:
        n = len(posterior)
        out = np.empty(n * (n - 1) // 2)
        kernels.value_all_pairs(PAIR_STRATEGIES[strategy].code, posterior.mean, posterior.covariance, noise, out)
        return out
    means, variances = posterior.differences(pairs)
    out = np.empty(len(means))
    kernels.value_pairs(PAIR_STRATEGIES[strategy].code, means, variances, noise, out)
    return out


def _order_gains(posterior: Posterior, noise: float, pairs: ArrayLike | None) -> Floats:
    """Expected decrease of the mean entropy of the orders of all pairs, or of a regular selection of them."""
    pool = np.column_stack(np.triu_indices(len(posterior), 1)).astype(np.int64)
    left, right = (pool if pairs is None else np.asarray(pairs, dtype=np.int64).reshape(-1, 2)).T.copy()
    pool_left, pool_right = pool[:: max(len(pool) // _POOL, 1)].T.copy()
    out = np.empty(len(left))
    kernels.value_orders(posterior.mean, posterior.covariance, noise, left, right, pool_left, pool_right, out)
    return out


def _chosen(posterior: Posterior, pairs: Integers, n: int, strategy: str, tol: float, noise: float) -> Integers:
    """Choose pairs greedily, each with the expected posterior after the answers to the earlier ones."""
    left, chosen = np.ones(len(pairs), dtype=bool), []
    for _ in range(min(n, len(pairs))):
        values = np.where(left, gains(posterior, noise, _first_rule(strategy), pairs), -np.inf)
        best = int(values.argmax())
        if strategy == "order":
            likely = np.argsort(-values, kind="stable")[: min(_SHORTLIST, int(left.sum()))]
            best = int(likely[gains(posterior, noise, strategy, pairs[likely]).argmax()])
        if PAIR_STRATEGIES[strategy].has_gain and not values[best] >= tol:
            break
        chosen.append(pairs[best])
        left[best] = False
        posterior = _expected(posterior, pairs[best], noise)
    return np.array(chosen, dtype=np.int64).reshape(-1, 2)


def _first_rule(strategy: str) -> str:
    """The strategy that values all pairs."""
    return "bald" if strategy == "order" else strategy


def _expected(posterior: Posterior, pair: Integers, noise: float) -> Posterior:
    """The posterior with the expected covariance after an answer; its expected mean does not change."""
    (mean,), (var,) = posterior.differences(pair[None])
    prefers = IntervalProbit(noise=noise)
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
