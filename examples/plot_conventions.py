"""
One ranking, six values of nDCG@10
==================================

The same scores and grades under the conventions of six tools. They differ in gain, discount, ties, short lists and
queries without a relevant row. Here a third of the queries has no relevant row, and half of the lists are shorter than
ten, as in LETOR's MQ2008; there are few grades.
"""

from __future__ import annotations

import sys

import matplotlib.pyplot as plt
import numpy as np

from corank import evaluate, make_ranking
from corank.metrics import CONVENTIONS

problem = make_ranking(300, (5, 15), n_grades=3, random_state=0)
rng = np.random.default_rng(0)
empty = rng.permutation(300)[:100]
y = np.where(np.isin(problem.qid, empty), 0.0, problem.y)
# rounded scores tie
scores = np.round(problem.X @ problem.best + rng.normal(size=len(y)), 1)

# trec_eval orders ties by document id
docids = [f"D{number:05}" for number in rng.permutation(len(y))]
values = {
    name: evaluate(y, scores, problem.qid, "nDCG@10", convention=name, docids=docids)["nDCG@10"].mean
    for name in CONVENTIONS
}
figure, panel = plt.subplots(figsize=(6.4, 2.8), layout="constrained")
names = sorted(values, key=values.__getitem__)
bars = panel.barh(names, [values[name] for name in names], color="C0")
panel.bar_label(bars, fmt="%.3f", padding=3)
panel.set(xlim=(0, 1), xlabel="nDCG@10 of one and the same ranking")
panel.spines[["top", "right"]].set_visible(False)
if len(sys.argv) > 1:
    figure.savefig(sys.argv[1], dpi=130)
else:
    plt.show()
