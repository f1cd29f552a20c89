"""
Online learning from clicks
===========================

Two rankers serve the same simulated users and learn from their clicks, from zero: PDGD, and pairs with ε-greedy
lists. Left: quality of the ranker itself. Right: quality of the lists that users saw in the meantime, as
a share of the best possible, which includes the cost of exploration. Bands are two standard errors over ten runs.
"""

from __future__ import annotations

import sys

import matplotlib.pyplot as plt
import numpy as np

from corank import PDGD, RankingData, make_ranking
from corank.clicks import CascadeClicks, PairwiseEpsilonGreedy, simulate_clicks

AT = [0, 10, 30, 100, 300, 1000, 3000]

made = make_ranking(300, 20, random_state=0)
is_test = made.qid >= 200
# columns of equal scale, as the learning rates assume
X = made.X / np.abs(made.X).max(axis=0)
data, test = (RankingData.of(X[rows], made.y[rows], made.qid[rows]) for rows in (~is_test, is_test))

figure, (offline, online) = plt.subplots(1, 2, figsize=(8.5, 3.8), layout="constrained")
rankers = {"PDGD": PDGD(), "pairs, ε = 0.8": PairwiseEpsilonGreedy(0.8)}
user = CascadeClicks("navigational", 5)
for name, ranker in rankers.items():
    how = {"evaluate_at": AT, "discount": 1.0, "n_runs": 10, "random_state": 0}
    curve = simulate_clicks(ranker, data, user, AT[-1], test=test, **how)
    mean, band = curve.mean(), 2 * curve.error()
    (line,) = offline.plot(AT, mean, marker="o", markersize=3, label=name)
    offline.fill_between(AT, mean - band, mean + band, alpha=0.2, linewidth=0)
    served = np.diff(curve.online, axis=1) / np.diff(AT)
    online.plot(AT[1:], served.mean(axis=0), marker="o", markersize=3, color=line.get_color())
    print(f"{name:18} nDCG@10 after 100: {mean[3]:.3f}  after 3000: {mean[-1]:.3f}  lists: {served[:, -1].mean():.3f}")
for panel, title in ((offline, "the ranker, on test queries"), (online, "the lists shown since the previous point")):
    panel.set_xscale("symlog", linthresh=10)
    panel.set_xlabel("lists shown")
    panel.set_title(title, fontsize=10)
offline.set_ylabel("nDCG@10")
offline.legend(fontsize=8)
online.sharey(offline)
if len(sys.argv) > 1:
    figure.savefig(sys.argv[1], dpi=130)
else:
    plt.show()
