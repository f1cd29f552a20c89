"""
Reliability of predicted probabilities
======================================

Simulated users have preferences over 150 items. They compare pairs, or grade single items from 1 to 4, with some noise.
Left: reliability of the pair probabilities of `PreferenceGP`. Right: reliability of the grade probabilities of
`OrdinalGP` for items without a grade. Points on the diagonal are calibrated. Widths, noise and thresholds are learnt
from each user's answers. Bars are two standard errors, as if the answers of a user were independent; titles give the
expected calibration error.

Needs matplotlib.
"""

from __future__ import annotations

import sys

import matplotlib.pyplot as plt
import numpy as np

from corank import OrdinalGP, PreferenceGP
from corank.base.kernels import GaussianKernel

KERNEL, SIGMA, N, USERS = GaussianKernel(0.5), 0.2, 150, 12
every = np.column_stack(np.triu_indices(N, 1))
predicted: dict[str, list[np.ndarray]] = {"pairs": [], "grades": []}
observed: dict[str, list[np.ndarray]] = {"pairs": [], "grades": []}

for user in range(USERS):
    rng = np.random.default_rng(user)
    X = rng.uniform(-2.0, 2.0, (N, 2))
    taste = np.linalg.cholesky(KERNEL(X) + 1e-9 * np.eye(N)) @ rng.normal(size=N)

    # the first of a pair wins where this is above 0
    gap = taste[every[:, 0]] - taste[every[:, 1]] + np.sqrt(2.0) * SIGMA * rng.normal(size=len(every))
    order = rng.permutation(len(every))
    asked, new = order[:80], order[80:]
    answers = np.where(gap[asked, None] > 0, every[asked], every[asked][:, ::-1])
    p = PreferenceGP(scale=False, random_state=0).fit(X, pairs=answers).predict_pair(X, every[new])
    # either of the two may come first
    predicted["pairs"].append(np.concatenate([p, 1.0 - p]))
    observed["pairs"].append(np.concatenate([gap[new] > 0, gap[new] <= 0]))

    grade = 1 + np.digitize(taste + SIGMA * rng.normal(size=N), [-0.7, 0.0, 0.7])
    model = OrdinalGP(scale=False, random_state=0).fit(X[:40], grade[:40])
    predicted["grades"].append(model.predict_proba(X[40:]).ravel())
    observed["grades"].append((grade[40:, None] == model.levels_).ravel())

figure, axes = plt.subplots(1, 2, figsize=(9.5, 4.6), layout="constrained", sharex=True, sharey=True)
for axis, what, name in zip(axes, predicted, ("predict_pair", "predict_proba"), strict=True):
    p, true = np.concatenate(predicted[what]), np.concatenate(observed[what])
    edges = np.linspace(0.0, 1.0, 11)
    at = np.clip(np.digitize(p, edges) - 1, 0, 9)
    count = np.bincount(at, minlength=10)
    mean_predicted, share = (np.bincount(at, values, 10) / np.maximum(count, 1) for values in (p, true))
    bar = 2.0 * np.sqrt(share * (1.0 - share) / np.maximum(count, 1))
    error = np.average(np.abs(mean_predicted - share), weights=count)
    axis.plot([0, 1], [0, 1], color="0.7", linewidth=1)
    some = count > 0
    axis.errorbar(mean_predicted[some], share[some], bar[some], fmt="o-", capsize=2)
    axis.set(xlabel="predicted probability", title=f"{name}: {error:.3f} from the diagonal", aspect="equal")
axes[0].set_ylabel("observed share")
if len(sys.argv) > 1:
    figure.savefig(sys.argv[1], dpi=130)
else:
    plt.show()
