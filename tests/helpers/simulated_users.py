"""Simulated users: utilities drawn from a Gaussian process, noisy answers."""

from __future__ import annotations

import numpy as np


def users(n=40, m=150, d=3, sigma=0.2, seed=0):
    """Rows, what a simulated user thinks of them, and noisy answers."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    K = np.exp(-0.2 * ((X[:, None] - X[None]) ** 2).sum(-1))
    f = np.linalg.cholesky(K + 1e-9 * np.eye(n)) @ rng.normal(size=n)
    return X, f, answers(f, m, sigma, rng)


def answers(f, m, sigma, rng):
    pairs = rng.integers(0, len(f), (m, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    gap = f[pairs[:, 0]] - f[pairs[:, 1]] + np.sqrt(2) * sigma * rng.normal(size=len(pairs))
    return np.where(gap[:, None] > 0, pairs, pairs[:, ::-1])
