"""
A ranking from pairwise answers, with uncertainty
=================================================

A judge compares pairs of items and is sometimes wrong. `PreferenceGP` returns a score and a standard deviation for
every item, and the probability that one is preferred to another. With few answers the deviations are wide and the order
is partly wrong; more answers improve both.
"""

from __future__ import annotations

import sys

import matplotlib.pyplot as plt
import numpy as np

from corank import PreferenceGP

rng = np.random.default_rng(3)
X = rng.uniform(-1.0, 1.0, (20, 2))
worth = X[:, 0] - X[:, 1] ** 2
worth -= worth.mean()
pairs = rng.permuted(np.tile(np.arange(20), (120, 1)), axis=1)[:, :2]
# the better one first, most of the time
noisy = worth + 0.1 * rng.normal(size=(120, 20))
first = np.take_along_axis(noisy, pairs, axis=1)
pairs = np.where((first[:, :1] > first[:, 1:]), pairs, pairs[:, ::-1])

# %%
# Items from best to worst by their true worth; dots show the scores of the model:
figure, panels = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained", sharey=True)
order = np.argsort(-worth)
for panel, n in zip(panels, (25, 120), strict=True):
    model = PreferenceGP().fit(X, pairs=pairs[:n])
    posterior = model.posterior(X)
    mean = posterior.mean
    # answers do not determine a constant: means and deviations are those of f minus its mean
    centre = np.eye(20) - 1 / 20
    centred, std = centre @ mean, np.sqrt(np.diag(centre @ posterior.covariance @ centre))
    panel.errorbar(np.arange(1, 21), centred[order], std[order], fmt="o", markersize=4, capsize=2, linewidth=1)
    panel.plot(np.arange(1, 21), worth[order] * centred.std() / worth.std(), color="0.6", label="true worth, scaled")
    every = np.column_stack(np.triu_indices(20, 1))
    wrong = np.mean((mean[every[:, 0]] > mean[every[:, 1]]) != (worth[every[:, 0]] > worth[every[:, 1]]))
    panel.set(
        title=f"{n} answers: {wrong:.0%} of all pairs in the wrong order", xlabel="true rank", xticks=(1, 5, 10, 15, 20)
    )
    p = model.predict_pair(X, [(order[4], order[5])])[0]
    print(f"{n:3} answers: the fifth is preferred to the sixth with probability {p:.2f}")
panels[0].set_ylabel("score minus its mean")
panels[1].legend(frameon=False)
if len(sys.argv) > 1:
    figure.savefig(sys.argv[1], dpi=130)
else:
    plt.show()
