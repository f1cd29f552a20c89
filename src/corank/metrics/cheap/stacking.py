"""
Combine several cheap judges into one, by what they are worth on the gold queries.

With d_sq the deviation of a system's value from the mean over systems, the weights w ≥ 0, Σ w_j = 1, minimise
Σ_{s,q} (d^h_sq − Σ_j w_j d^j_sq)² + κ Σ_j (w_j − 1/J)²: both the noise and the bias of a judge count against it. κ
is the mean eigenvalue of one average query, so that few gold queries give nearly equal weights. The values of a
gold query are combined with weights learnt from the other gold queries (cross-fitting), those of all other queries
with the weights of all.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from corank.metrics.cheap.estimate import Floats


def stack(gold: Floats, cheap: Floats, queries: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """
    Return the values of the combined judge, shape (S, N), and the weights of the judges.

    gold (S, n): values by gold grades. cheap (J, S, N): values by each judge. queries (n,): the gold queries among
    the N.
    """
    J = len(cheap)
    if J == 1:
        return cheap[0], np.ones(1)
    d = cheap[:, :, queries] - cheap[:, :, queries].mean(axis=1, keepdims=True)
    h = gold - gold.mean(axis=0)
    A, b = np.einsum("jsq,ksq->qjk", d, d), np.einsum("jsq,sq->qj", d, h)
    total, target = A.sum(axis=0), b.sum(axis=0)
    kappa = float(np.trace(total)) / J / len(A)
    weights = simplex_weights(total, target, kappa)
    combined = np.einsum("j,jsq->sq", weights, cheap)
    for at, query in enumerate(queries.tolist()):
        left_out = simplex_weights(total - A[at], target - b[at], kappa)
        combined[:, query] = np.einsum("j,js->s", left_out, cheap[:, :, query])
    return combined, weights


def simplex_weights(A: Floats, b: Floats, kappa: float) -> Floats:
    """Minimise wᵀAw − 2 bᵀw + κ |w − 1/J|² over w ≥ 0, Σ w = 1, leaving out negative weights in turn."""
    J = len(b)
    H, g = A + kappa * np.eye(J), b + kappa / J
    free = np.ones(J, dtype=bool)
    while True:
        k = int(free.sum())
        # stationarity with the multiplier of Σ w = 1
        system = np.zeros((k + 1, k + 1))
        system[:k, :k], system[k, :k], system[:k, k] = H[np.ix_(free, free)], 1.0, 1.0
        w = np.zeros(J)
        w[free] = np.linalg.lstsq(system, np.append(g[free], 1.0), rcond=None)[0][:k]
        if (w >= -1e-12).all():
            w = np.maximum(w, 0.0)
            return np.asarray(w / w.sum())
        free[int(np.argmin(w))] = False
