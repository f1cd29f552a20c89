"""
Calibrated scores
=================

A ranker's scores order rows, but they are not probabilities of relevance. `Calibrated` learns a monotone function from
scores to probabilities on held-out queries and keeps the order. The plots show how often rows of a predicted
probability are relevant, on test queries.
"""

from __future__ import annotations

import sys

import matplotlib.pyplot as plt
import numpy as np

from corank import SPD, Calibrated, evaluate, make_ranking
from corank.base import reliability_curve

problem = make_ranking(300, 20, random_state=0)
relevant = (problem.y >= 2).astype(float)
train = problem.qid < 150
X, y, qid = problem.X[train], relevant[train], problem.qid[train]
test = ~train

scores = SPD().fit(X, y, qid=qid).predict(problem.X[test])
model = Calibrated(SPD()).fit(X, y, qid=qid)
p = model.predict_proba(problem.X[test])[:, 1]

# %%
# The order is the same up to ties. The first panel shows scores that are merely rescaled to [0, 1].
squeezed = 1.0 / (1.0 + np.exp(-scores))
figure, panels = plt.subplots(1, 2, figsize=(8.4, 3.9), layout="constrained", sharey=True)
for panel, name, values in zip(panels, ("1 / (1 + exp(−score))", "Calibrated"), (squeezed, p), strict=True):
    curve = reliability_curve(relevant[test], values)
    curve.plot(panel)
    panel.set_title(f"{name}: off by {curve.expected_error:.2f} on average")
    found = evaluate(relevant[test], values, problem.qid[test], "AP")["AP"].mean
    print(f"{name:24} expected calibration error {curve.expected_error:.3f}, AP {found:.3f}")
panels[1].set_ylabel("")
if len(sys.argv) > 1:
    figure.savefig(sys.argv[1], dpi=130)
else:
    plt.show()
