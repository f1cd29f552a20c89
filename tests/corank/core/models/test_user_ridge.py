"""Ridge regressions of many users against one dense solve each, with the level as an unpenalised unknown."""

from __future__ import annotations

import numpy as np
import pytest

from corank.core.models.user_ridge import ridge_users


@pytest.mark.parametrize("q", [0, 3, 8])
def test_it_solves_the_normal_equations_with_a_level(q):
    rng = np.random.default_rng(q)
    Z = rng.normal(size=(30, q))
    sizes = [0, 1, 2, 3, 8, 9, 20]
    starts = np.append(0, np.cumsum(sizes)).astype(np.int64)
    items = np.concatenate([rng.permutation(30)[:k] for k in sizes]).astype(np.int64)
    t, alpha = rng.normal(size=len(items)), 0.7
    coefs, levels = np.zeros((len(sizes), q)), np.full(len(sizes), 5.0)
    ridge_users(Z, items, starts, t, alpha, coefs, levels)
    for u in range(len(sizes)):
        own = slice(starts[u], starts[u + 1])
        if not sizes[u]:
            assert levels[u] == 5.0
            assert not coefs[u].any()
            continue
        A = np.column_stack([Z[items[own]], np.ones(sizes[u])])
        penalty = np.diag([alpha] * q + [0.0])
        expected = np.linalg.solve(A.T @ A + penalty, A.T @ t[own])
        np.testing.assert_allclose(np.append(coefs[u], levels[u]), expected, rtol=1e-9, atol=1e-12)
