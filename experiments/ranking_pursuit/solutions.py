"""
Several sparse solutions of one user's ranking: disjoint ones, and ones from resampled ratings.

Disjoint solutions are those of `RankingPursuit(n_solutions=M)`: each chooses among the items that no earlier one chose.
Resampled solutions are pursuits over all items, each from a bootstrap sample of the ratings.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from corank.core.jit import jit

Floats = NDArray[np.float64]

N_DISJOINT = 5
LENGTHS = (1, 2, 4, 8, 16)
"""Numbers of terms of each disjoint solution."""
N_BAGS = 10
BAG_LENGTHS = (1, 2, 4, 8, 16, 32)
"""Numbers of terms of each resampled solution."""
COUNTED = (4, 16)
"""Number of terms of each resampled solution in which an item is counted."""
KEPT = (2, 4, 8, 16, 32)
"""Numbers of most frequent items that are kept."""
STEPS_PER_ITEM = (1, 4)
"""Steps of the last pursuit for each item that is kept."""

_TOL = 1e-10
# shares of a squared norm below this one are rounding errors, as in `many`
_MIN = (64.0 * float(np.finfo(np.float64).eps)) ** 2


@jit
def pursue(G, c, gain, usable, lengths, coefs):  # type: ignore[no-untyped-def]
    """
    Run one pursuit with basic fitting, whose earlier coefficients do not change.

    G (n, n): products of the centred dictionary columns.
    c (n,): their products with the centred ratings; overwritten by those with the residual.
    gain: a step that lowers the squared error by less is not taken.
    usable (n,): 1 for a column that may be chosen.
    lengths (C,): ascending numbers of terms.
    coefs (C, n): receives the coefficients of the first lengths[c] terms.
    """
    a, p = np.zeros(len(c)), 0
    for index in range(len(lengths)):
        while p < lengths[index]:
            best, top = -1, gain
            for j in range(len(c)):
                if usable[j] > 0 and c[j] * c[j] > top * G[j, j]:
                    best, top = j, c[j] * c[j] / G[j, j]
            if best < 0:
                break
            step = c[best] / G[best, best]
            a[best] += step
            for j in range(len(c)):
                c[j] -= step * G[best, j]
            p += 1
        coefs[index] = a


def disjoint(K: Floats, y: Floats) -> tuple[Floats, Floats]:
    """
    Learn `N_DISJOINT` disjoint solutions of each length.

    K (n, n): Gram matrix of the items.
    y (n,): their ratings.
    Returns: coefficients (n, len(LENGTHS) * N_DISJOINT), solutions of one length together, zero where no item was left;
        and the share of the items that each uses.
    """
    G, c, gain, fit = _products(K, y)
    coefs = np.zeros((len(LENGTHS), N_DISJOINT, len(y)))
    for index, length in enumerate(LENGTHS):
        usable = fit.copy()
        for m in range(N_DISJOINT):
            pursue(G, c.copy(), gain, usable, np.array([length]), coefs[index, m : m + 1])
            usable[coefs[index, m] != 0.0] = 0
    flat = coefs.reshape(-1, len(y))
    return flat.T, (flat != 0.0).mean(axis=1)


def resampled(K: Floats, y: Floats) -> tuple[Floats, Floats]:
    """
    Learn `N_BAGS` solutions of each length, each from a bootstrap sample of the ratings.

    K, y: as in `disjoint`.
    Returns: coefficients (n, len(BAG_LENGTHS) * N_BAGS), solutions of one length together; and the share of the items
        that all solutions of a length use, repeated for each of them.
    """
    coefs = _bags(K, y, BAG_LENGTHS)
    union = (coefs != 0.0).any(axis=1).mean(axis=1)
    return coefs.reshape(-1, len(y)).T, np.repeat(union, N_BAGS)


def frequent(K: Floats, y: Floats) -> tuple[Floats, Floats]:
    """
    Keep the items that most resampled solutions chose, and run a pursuit over these only, from all ratings.

    K, y: as in `disjoint`.
    Returns: coefficients (n, C) for each number in `COUNTED`, `KEPT` and `STEPS_PER_ITEM`, and the share of the items
        that each uses.
    """
    G, c, gain, fit = _products(K, y)
    counts = (_bags(K, y, COUNTED) != 0.0).sum(axis=1)
    coefs = np.zeros((len(COUNTED), len(KEPT), len(STEPS_PER_ITEM), len(y)))
    for i, counted in enumerate(counts):
        order = np.argsort(-counted, kind="stable")
        for j, k in enumerate(KEPT):
            usable = np.zeros_like(fit)
            usable[order[:k]] = fit[order[:k]]
            pursue(G, c.copy(), gain, usable, k * np.array(STEPS_PER_ITEM), coefs[i, j])
    flat = coefs.reshape(-1, len(y))
    return flat.T, (flat != 0.0).mean(axis=1)


def _bags(K: Floats, y: Floats, lengths: tuple[int, ...]) -> Floats:
    """Coefficients (len(lengths), N_BAGS, n) of pursuits from bootstrap samples."""
    rng = np.random.default_rng(len(y))
    coefs = np.zeros((N_BAGS, len(lengths), len(y)))
    for bag in coefs:
        rows = rng.integers(len(y), size=len(y))
        G, c, gain, fit = _products(K[rows], y[rows])
        pursue(G, c, gain, fit, np.array(lengths), bag)
    return coefs.transpose(1, 0, 2)


def _products(K: Floats, y: Floats) -> tuple[Floats, Floats, float, NDArray[np.int64]]:
    """G, c, least gain and usable columns of `pursue`; centring the rows is the Laplacian of all pairs, up to 1/n."""
    centred, missing = K - K.mean(axis=0), y - y.mean()
    G = centred.T @ centred
    fit = np.diag(G) > np.maximum(_MIN * np.einsum("ij,ij->j", K, K), np.finfo(np.float64).tiny / 1e-16)
    return G, centred.T @ missing, _TOL * float(missing @ missing), fit.astype(np.int64)
