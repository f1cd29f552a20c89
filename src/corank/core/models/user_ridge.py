"""Ridge regressions of many users with few ratings each: a free level and one small system per user."""

from __future__ import annotations

import numpy as np

from corank.core.jit import jit


@jit
def ridge_users(Z, items, starts, t, alpha, coefs, levels):  # type: ignore[no-untyped-def]
    """
    Minimise Σ_j (t_j − level − Z_j·w)² + alpha ‖w‖² over a user's ratings j, for each of B users.

    A user with k ratings costs O(k² q + k³), or O(k q² + q³) for k > q. Users without ratings are not changed.

    Z (N, q): features of the items.
    items (m,), starts (B + 1,): rated items, grouped by user.
    t (m,): targets.
    coefs (B, q), levels (B,): receive w and the level.
    """
    q = Z.shape[1]
    for u in range(len(levels)):
        start, stop = starts[u], starts[u + 1]
        k = stop - start
        if k == 0:
            continue
        levels[u] = t[start:stop].mean()
        if k == 1 or q == 0:
            continue
        own = np.empty((k, q))
        for j in range(k):
            own[j] = Z[items[start + j]]
        centre = np.zeros(q)
        for j in range(k):
            centre += own[j]
        centre /= k
        own -= centre
        gaps = t[start:stop] - levels[u]
        if k <= q:
            A = np.dot(own, own.T)
            for j in range(k):
                A[j, j] += alpha
            w = np.dot(own.T, np.linalg.solve(A, gaps))
        else:
            A = np.dot(own.T, own)
            for j in range(q):
                A[j, j] += alpha
            w = np.linalg.solve(A, np.dot(own.T, gaps))
        coefs[u] = w
        levels[u] -= np.dot(centre, w)
