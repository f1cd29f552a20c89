"""
Ranking and regression in one model
===================================

Combined ranking and regression pursuit (CRRP) on Jester: the disagreement error and the mean squared error of the same
model against `mix`, the share of regression. Width and number of terms are chosen by the disagreement error. With
``query_weight="pairs"``, the paper's form, pairs outweigh rows by a user's number of ratings, so the level of the
ratings is learnt late. With ``"rows"`` both have equal weight; with ``fit_intercept`` the mean of a user's ratings is
subtracted first.

Without CORANK_DATA the example uses synthetic ratings.
"""

from __future__ import annotations

import os
import sys

import matplotlib.pyplot as plt
import numpy as np

from experiments.datasets.jester import read_ratings
from experiments.ranking_pursuit.grams import Grams
from experiments.ranking_pursuit.many import fit_many
from experiments.ranking_pursuit.methods import errors_of
from experiments.ranking_pursuit.users import draw_users

MIXES = (0.0, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1.0)
WIDTHS = (32.0, 64.0, 128.0, 256.0, 512.0)
N_TERMS = 40


def synthetic_ratings(rng: np.random.Generator) -> np.ndarray:
    table = 2.0 * rng.normal(size=(2000, 4)) @ rng.normal(size=(4, 100)) + 2.0 * rng.normal(size=(2000, 100)) + 1.0
    rated = rng.uniform(30, 100, 2000)[:, None] > rng.uniform(0, 100, (2000, 100))
    return np.where(rated, np.clip(table, -10, 10), np.nan).astype(np.float32)


def chosen_errors(drawn, mix: float, query_weight: str, fit_intercept: bool) -> tuple[float, float]:
    """Both errors on the tested users, with width and number of terms chosen by the disagreement error on others."""
    held_out, tested = [], []
    for width in WIDTHS:
        K = Grams(drawn, width).whole
        for users, out in ((drawn.held_out, held_out), (drawn.tested, tested)):
            models = fit_many(
                K, users.train, users.y, users.train_user, kernel="precomputed", n_basis=N_TERMS, mix=mix,
                query_weight=query_weight, fit_intercept=fit_intercept,
            )  # fmt: skip
            scores = models.predict_path(users.test, users.test_user)[:, 1:]
            out.append([np.nanmean(errors, axis=0) for errors in errors_of(scores, users)])
    best = int(np.argmin(np.concatenate([part[0] for part in held_out])))
    order, squares = (np.concatenate([part[k] for part in tested]) for k in (0, 1))
    return float(order[best]), float(squares[best])


rng = np.random.default_rng(0)
has_data = bool(os.environ.get("CORANK_DATA"))
ratings = read_ratings() if has_data else synthetic_ratings(rng)
drawn = draw_users(ratings, (60, 80), 150, 300, 1.0, rng)
figure = plt.figure(figsize=(9, 3.6), layout="constrained")
left, right = figure.subplots(1, 2)
for query_weight, fit_intercept in (("pairs", False), ("rows", False), ("rows", True)):
    label = f'"{query_weight}"' + (", fit_intercept" if fit_intercept else "")
    found = np.array([chosen_errors(drawn, mix, query_weight, fit_intercept) for mix in MIXES])
    for panel, values in zip((left, right), found.T, strict=True):
        panel.plot(MIXES, values, marker="o", markersize=3, label=label)
    for mix, (order, squares) in zip(MIXES, found, strict=True):
        print(f"{label:22}  mix {mix:<5} disagreement {order:.4f}  squared error {squares:.2f}")
left.set_ylabel("disagreement error")
right.set_ylabel("mean squared error")
right.set_yscale("log")
for panel in (left, right):
    panel.set_xlabel("mix, the share of regression")
right.legend()
figure.suptitle("Jester, reference users with 60 to 80 ratings" if has_data else "Synthetic ratings")
if len(sys.argv) > 1:
    figure.savefig(sys.argv[1], dpi=130)
else:
    plt.show()
