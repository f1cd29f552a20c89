"""
What to ask next: pairs whose answers are expected to tell most about f.

Every two rows are valued from the posterior at once, O(1) a pair. A batch is chosen one by one: after each pair the
posterior's covariance is what it is expected to be once that pair is answered, so that no pair repeats what another
will tell. A pair that was asked is not asked again, and nothing is asked whose expected gain is below `tol`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corank.core.models import questions as kernels
from corank.core.models.questions import BALD, ENTROPY, UNCERTAINTY
from corank.data.problem.inputs import as_pairs
from corank.errors import InputError, suggest_names
from corank.gp.ep.likelihoods import IntervalProbit
from corank.gp.ep.posterior import Posterior
from corank.gp.preference.preference_gp import PreferenceGP
from corank.parameters import check_values, number, rng_of, seed, whole

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

BY = {"entropy": ENTROPY, "bald": BALD, "uncertainty": UNCERTAINTY, "random": -1}
# most pairs that are valued; of more rows than give so many, as many random pairs are
MOST = 2_000_000


def suggest_pairs(
    model: PreferenceGP,
    X: Any = None,
    n: int = 1,
    by: str = "entropy",
    *,
    candidates: ArrayLike | None = None,
    asked: ArrayLike | None = None,
    tol: float = 0.0,
    prior: ArrayLike | None = None,
    random_state: Any = None,
) -> Integers:
    """
    Choose the pairs of rows to ask about next.

    Parameters
    ----------
    model : PreferenceGP
        A fitted model.
    X : array-like, CSR matrix, DataFrame or sequence of objects, optional
        The rows to ask about; those of ``fit`` by default.
    n : int
        Number of pairs; fewer come where fewer are left, or gain enough.
    by : {"entropy", "bald", "uncertainty", "random"}
        What a pair is valued by: the expected fall of the entropy of f (eq. 10 of Chu and Ghahramani, 2005); the
        information that the answer has about f, where noise in answers tells nothing (Houlsby et al., 2011); how unsure
        the order is, −|mean|/deviation of the difference; or chance.
    candidates : array-like of int, shape (m, 2), optional
        Pairs to choose from; all pairs by default.
    asked : array-like of int, shape (k, 2), optional
        Pairs that are not to be asked (again), in either order. By default those that the model learnt from, where X is
        that of ``fit``; an empty list allows all.
    tol : float
        Expected gain, in nats, below which a pair is not worth asking ("entropy" and "bald"): the rule to stop by.
    prior : array-like of shape (n_rows,), optional
        Scores of the rows known before learning; wanted where ``fit`` had a prior, and only there.
    random_state : int, RandomState or None
        Seed, for chance and ties.

    Returns
    -------
    array of int64, shape (at most n, 2)
        Row numbers, the pair to be asked first coming first; empty where nothing is worth asking.

    Examples
    --------
    >>> from corank import PreferenceGP
    >>> X = [[0.0], [0.1], [2.0], [3.0]]
    >>> model = PreferenceGP(sigma=0.1, learn=False, scale=False).fit(X, pairs=[[3, 0]])
    >>> suggest_pairs(model).tolist(), suggest_pairs(model, tol=2.0).tolist()
    ([[0, 2]], [])
    """
    given = {"n": n, "tol": tol, "random_state": random_state}
    check_values(given, {"n": whole(0), "tol": number(0), "random_state": seed})
    if by not in BY:
        raise InputError(f"by is {by!r}; {suggest_names(str(by), list(BY))}.")
    if not hasattr(model, "posterior") or not hasattr(model, "answered"):
        raise InputError(f"model is a {type(model).__name__}; pass a fitted PreferenceGP, of a pipeline its last step.")
    posterior, rng = model.posterior(X, prior=prior), rng_of(random_state)
    if asked is None:
        asked = model.answered() if X is None else []
    done = as_pairs(asked, np.zeros(len(posterior), dtype=np.int64)) if np.size(asked) else np.empty((0, 2), np.int64)
    pairs = _candidates(len(posterior), candidates, done, rng)
    if by == "random":
        return pairs[rng.permutation(len(pairs))[:n]]
    return _chosen(posterior, pairs, n, by, tol, 2.0 * model.sigma_**2)


def gains(posterior: Posterior, noise: float, by: str = "entropy", pairs: ArrayLike | None = None) -> Floats:
    """
    Value pairs of items.

    Parameters
    ----------
    posterior : Posterior
        What is known of the items.
    noise : float
        Variance of the noise of a comparison, 2 sigma².
    by : {"entropy", "bald", "uncertainty"}
        See `suggest_pairs`.
    pairs : array-like of int, shape (m, 2), optional
        Which; by default all, in the order of ``numpy.triu_indices(n, 1)``.

    Returns
    -------
    array of shape (m,)
        The highest is worth most.
    """
    if pairs is None:
        n = len(posterior)
        out = np.empty(n * (n - 1) // 2)
        kernels.worth_of_all(BY[by], posterior.mean, posterior.covariance, noise, out)
        return out
    means, variances = posterior.differences(pairs)
    out = np.empty(len(means))
    kernels.worth_of_some(BY[by], means, variances, noise, out)
    return out


def _chosen(posterior: Posterior, pairs: Integers, n: int, by: str, tol: float, noise: float) -> Integers:
    """The best pair, and the best after it as if it were answered, and so on."""
    left, found = np.ones(len(pairs), dtype=bool), []
    for _ in range(min(n, len(pairs))):
        values = np.where(left, gains(posterior, noise, by, pairs), -np.inf)
        best = int(values.argmax())
        if by != "uncertainty" and not values[best] >= tol:
            break
        found.append(pairs[best])
        left[best] = False
        posterior = _expected(posterior, pairs[best], noise)
    return np.array(found, dtype=np.int64).reshape(-1, 2)


def _expected(posterior: Posterior, pair: Integers, noise: float) -> Posterior:
    """The posterior with the covariance that is expected after an answer; its mean is expected to stay."""
    (mean,), (var,) = posterior.differences(pair[None])
    prefers = IntervalProbit(noise=noise)
    both = prefers(np.array([mean, -mean]), var)
    fall = float(np.exp(both.log_z) @ both.curvature)
    s = posterior.covariance[:, pair[0]] - posterior.covariance[:, pair[1]]
    return Posterior(posterior.mean, posterior.covariance - fall * np.outer(s, s))


def _candidates(n: int, candidates: ArrayLike | None, asked: Integers, rng: np.random.Generator) -> Integers:
    """Pairs that may be asked."""
    if candidates is not None:
        pairs = as_pairs(candidates, np.zeros(n, dtype=np.int64))
    elif n * (n - 1) // 2 <= MOST:
        pairs = np.column_stack(np.triu_indices(n, 1)).astype(np.int64)
    else:
        first = rng.integers(0, n, MOST)
        pairs = np.column_stack([first, (first + rng.integers(1, n, MOST)) % n])
    if not len(asked):
        return pairs
    numbers = _number(pairs, n)
    return pairs[~np.isin(numbers, _number(asked, n))]


def _number(pairs: Integers, n: int) -> Integers:
    return np.asarray(pairs.min(axis=1) * n + pairs.max(axis=1))
