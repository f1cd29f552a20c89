"""
Cumulative loss of an online label ranker
=========================================

Algorithm 1 (`OnlineLabelRanker`) on synthetic top lists of eight labels. Each example is predicted, then learnt; the
curves show the cumulative loss of the predictions. A stream that is separable with a margin has finite loss: its curve
flattens, sooner for wider margins. With noise the loss keeps growing.
"""

from __future__ import annotations

import sys

import matplotlib.pyplot as plt
import numpy as np

from corank import OnlineLabelRanker

N, N_LABELS, N_FEATURES, PIECE = 20_000, 8, 10, 200


def stream(margin: float, noise: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Rows of length 1 whose labels and zero point are at least `margin` apart, and their top lists."""
    W = rng.normal(size=(N_LABELS, N_FEATURES))
    rows: list[np.ndarray] = []
    while len(rows) < N:
        X = rng.normal(size=(4 * N, N_FEATURES))
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        levels = np.sort(np.hstack([X @ W.T, np.zeros((len(X), 1))]), axis=1)
        rows += list(X[np.diff(levels, axis=1).min(axis=1) >= margin])
    X = np.array(rows[:N])
    U = X @ W.T + noise * rng.normal(size=(N, N_LABELS))
    return X, np.where(U > 0, np.argsort(np.argsort(-U, axis=1), axis=1) + 1, 0)


figure = plt.figure(figsize=(6, 3.8), layout="constrained")
panel = figure.subplots()
for margin, noise in ((0.04, 0.0), (0.02, 0.0), (0.0, 0.0), (0.0, 0.1)):
    X, top = stream(margin, noise, np.random.default_rng(0))
    model, costs = OnlineLabelRanker("kendall", targets="top", fit_intercept=False), [0.0]
    for start in range(0, N, PIECE):
        model.partial_fit(X[start : start + PIECE], top[start : start + PIECE])
        costs.append(model.cumulative_loss_)
    label = f"margin {margin:g}" if not noise else f"noise {noise:g}"
    panel.plot(np.arange(0, N + 1, PIECE), costs, label=label)
    print(f"{label:12} after {N // 10}: {costs[len(costs) // 10]:.1f}  after {N}: {costs[-1]:.1f}")
panel.set_xlabel("examples seen")
panel.set_ylabel("cumulative Kendall distance")
panel.legend()
if len(sys.argv) > 1:
    figure.savefig(sys.argv[1], dpi=130)
else:
    plt.show()
