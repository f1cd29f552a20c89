"""
Choose the next pair to compare
===============================

A simulated user has preferences over 60 items and answers with some noise. Left: the share of wrongly ordered pairs
against the number of answers, for questions that maximise the expected reduction of the posterior's entropy and for
random questions; mean and standard deviation over users. Right: a reliability plot of the predicted probabilities over
the same users, after 40 random answers.

Needs matplotlib.
"""

from __future__ import annotations

import sys

import matplotlib.pyplot as plt
import numpy as np

from corank import PreferenceGP
from corank.base.kernels import GaussianKernel
from corank.models import suggest_pairs

KERNEL, SIGMA, N, QUESTIONS, USERS = GaussianKernel(0.5), 0.2, 60, 40, 8
every = np.column_stack(np.triu_indices(N, 1))
errors = {"entropy": np.empty((USERS, QUESTIONS)), "random": np.empty((USERS, QUESTIONS))}
predicted, observed = [], []


def answer(pairs: np.ndarray, taste: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    gap = taste[pairs[:, 0]] - taste[pairs[:, 1]] + np.sqrt(2.0) * SIGMA * rng.normal(size=len(pairs))
    return np.where(gap[:, None] > 0, pairs, pairs[:, ::-1])


for user in range(USERS):
    rng = np.random.default_rng(user)
    X = rng.uniform(-2.0, 2.0, (N, 2))
    taste = np.linalg.cholesky(KERNEL(X) + 1e-9 * np.eye(N)) @ rng.normal(size=N)
    for strategy, curve in errors.items():
        model = PreferenceGP(KERNEL, SIGMA, learn=False, scale=False).fit(
            X, pairs=answer(np.array([[0, 1]]), taste, rng)
        )
        for n in range(QUESTIONS):
            scores = model.predict(X)
            wrong = (scores[every[:, 0]] > scores[every[:, 1]]) != (taste[every[:, 0]] > taste[every[:, 1]])
            curve[user, n] = wrong.mean()
            model.partial_fit(pairs=answer(suggest_pairs(model, strategy=strategy, random_state=n), taste, rng))
    new = every[rng.permutation(len(every))[:400]]
    p = model.predict_pair(X, new)
    predicted.append(np.concatenate([p, 1.0 - p]))
    won = (answer(new, taste, rng) == new).all(axis=1)
    observed.append(np.concatenate([won, ~won]))

figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 4), layout="constrained")
for strategy, curve in errors.items():
    n, mean, spread = np.arange(1, QUESTIONS + 1), curve.mean(axis=0), curve.std(axis=0)
    left.fill_between(n, mean - spread, mean + spread, alpha=0.2, linewidth=0)
    left.plot(n, mean, label=strategy)
left.set(xlabel="answers", ylabel="pairs ordered wrongly", title="learning curve")
left.legend()
p, won = np.concatenate(predicted), np.concatenate(observed)
edges = np.linspace(0.0, 1.0, 11)
at = np.clip(np.digitize(p, edges) - 1, 0, 9)
right.plot([0, 1], [0, 1], color="0.7", linewidth=1)
right.plot([p[at == b].mean() for b in range(10)], [won[at == b].mean() for b in range(10)], "o-")
right.set(xlabel="predicted probability", ylabel="observed share", title="reliability of predict_pair")
if len(sys.argv) > 1:
    figure.savefig(sys.argv[1], dpi=130)
else:
    plt.show()
