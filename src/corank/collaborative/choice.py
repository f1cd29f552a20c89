"""The penalty and the power of the kernel, chosen on users who were held out: leave-one-out in blocks of ratings."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.collaborative.means import item_means, residuals
from corank.collaborative.spectrum import Spectrum

Floats = NDArray[np.float64]

ALPHAS = tuple(2.0**power for power in range(-2, 6))
POWERS = (1.0, 1.5, 2.0)
ALPHA, POWER = 2.0, 1.5
"""Where there are too few users to choose on; the choice on MovieLens is near."""
BLOCK = 10
"""A user's ratings are predicted from few others, as a new user's will be."""
_FEWEST_USERS = 20
_MOST_HELD_OUT = 300
_AT_ONCE = 1000


def choose(
    ratings: Any, shrink: float, n_basis: int, alphas: tuple[float, ...], powers: tuple[float, ...],
    rng: np.random.Generator,
) -> tuple[float, float, str]:  # fmt: skip
    """
    Choose by the squared error of ratings that a model did not see.

    A fifth of the users is held out, 300 at most; means and kernel come from the others. The ratings of a held
    out user are dealt into blocks of ten, and each rating is predicted from the others of its block.

    ratings: CSR matrix of users × items.
    alphas, powers: candidates.
    Returns: alpha, power, and what they were chosen from.
    """
    n_users = ratings.shape[0]
    if len(alphas) == len(powers) == 1:
        return alphas[0], powers[0], "given"
    default = (alphas[0] if len(alphas) == 1 else ALPHA), (powers[0] if len(powers) == 1 else POWER), "default"
    if n_users < _FEWEST_USERS:
        return default
    order = rng.permutation(n_users)
    held, rest = np.split(order, [min(n_users // 5, _MOST_HELD_OUT)])
    m = item_means(ratings[np.sort(rest)], shrink)
    spectrum = Spectrum.of(residuals(ratings[np.sort(rest)], m), n_basis)
    blocks = _blocks(ratings[held], m, rng)
    if not blocks or not len(spectrum.values):
        return default
    errors = np.array([_errors(spectrum.features(power), blocks, alphas) for power in powers])
    best = np.unravel_index(np.argmin(errors), errors.shape)
    return alphas[best[1]], powers[best[0]], "held-out users"


def leave_one_out(K: Floats, t: Floats, alpha: float) -> Floats:
    """
    Predict each target from the others, with a free level, by one inverse a problem.

    K (B, k, k): kernels of B problems.
    t (B, k): targets, two or more.
    Returns: targets minus predictions, (B, k).
    """
    G = np.linalg.inv(K + alpha * np.eye(K.shape[1]))
    g = G.sum(axis=2)
    s = g.sum(axis=1, keepdims=True)
    a = np.einsum("bij,bj->bi", G, t) - g * ((g * t).sum(axis=1, keepdims=True) / s)
    return np.asarray(a / (np.diagonal(G, axis1=1, axis2=2) - g**2 / s))


def _blocks(ratings: Any, m: Floats, rng: np.random.Generator) -> list[tuple[NDArray[np.int64], Floats]]:
    """Items (B, k) and what their means leave (B, k), B blocks of one size k at a time."""
    found: dict[int, list[tuple[Any, Any]]] = {}
    for start, stop in zip(ratings.indptr[:-1], ratings.indptr[1:], strict=True):
        dealt = rng.permutation(np.arange(start, stop))
        for first in range(0, len(dealt) - 1, BLOCK):
            own = dealt[first : first + BLOCK]
            if len(own) > 1:
                items = ratings.indices[own]
                found.setdefault(len(own), []).append((items, ratings.data[own] - m[items]))
    return [
        (np.array([items for items, _ in part]), np.array([t for _, t in part]))
        for k in sorted(found)
        for part in (found[k][first : first + _AT_ONCE] for first in range(0, len(found[k]), _AT_ONCE))
    ]


def _errors(Z: Floats, blocks: list[tuple[NDArray[np.int64], Floats]], alphas: tuple[float, ...]) -> list[float]:
    grams = [Z[items] @ Z[items].transpose(0, 2, 1) for items, _ in blocks]
    return [
        sum(float((leave_one_out(K, t, alpha) ** 2).sum()) for K, (_, t) in zip(grams, blocks, strict=True))
        for alpha in alphas
    ]
