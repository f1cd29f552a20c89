"""
Few judgements on top of a prior score
======================================

Most rows have a score before any judgement: BM25, a mean rating, last year's model. Passed as `prior`, it is an offset,
and the ranker learns the rest. Here the prior is one of 41 columns, informative but noisy. The plot compares the prior
alone, a ranker on all columns, and the same ranker on top of the prior, against the number of judged queries;
`ResidualRanker` finds the scale of the prior.

The guide about few judgements has measurements on real data.
"""

from __future__ import annotations

import sys

import matplotlib.pyplot as plt
import numpy as np

from corank import ColumnMean, RankRLS, evaluate, make_ranking
from corank.base import ResidualRanker

rng = np.random.default_rng(0)
problem = make_ranking(400, 20, n_views=1, features_per_view=40, n_latent=20, random_state=0)
known = problem.utility + 1.2 * rng.normal(size=len(problem.y))
X = np.column_stack([problem.X, known])
test = problem.qid >= 200


def ndcg(scores: np.ndarray) -> float:
    return evaluate(problem.y[test], scores, problem.qid[test], "nDCG@10")["nDCG@10"].mean


# %%
# Five draws of the judged queries for each number of them:
numbers, draws = np.array([2, 4, 8, 16, 32, 64, 128]), 5
alone, on_top = np.empty((2, draws, len(numbers)))
for draw in range(draws):
    order = rng.permutation(200)
    for at, n in enumerate(numbers):
        rows = np.isin(problem.qid, order[:n])
        judged = X[rows], problem.y[rows]
        alone[draw, at] = ndcg(RankRLS().fit(*judged, qid=problem.qid[rows]).predict(X[test]))
        model = ResidualRanker(ColumnMean([40]), RankRLS()).fit(*judged, qid=problem.qid[rows])
        on_top[draw, at] = ndcg(model.predict(X[test], qid=problem.qid[test]))

# %%
# The prior needs no judgements, and a ranker from two judged queries alone does not beat it. On top of the prior it
# does. From about eight queries on the prior gains nothing more and costs a little.
figure, panel = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
panel.axhline(ndcg(known[test]), color="0.4", linestyle="--", linewidth=1, label="prior alone")
for values, label in ((alone, "RankRLS, all columns alike"), (on_top, "RankRLS on top of it")):
    mean, spread = values.mean(axis=0), values.std(axis=0, ddof=1)
    panel.fill_between(numbers, mean - spread, mean + spread, alpha=0.2, linewidth=0)
    panel.plot(numbers, mean, marker="o", markersize=4, label=label)
    print(f"{label:28}", "  ".join(f"{n}: {value:.3f}" for n, value in zip(numbers, mean, strict=True)))
panel.set_xscale("log", base=2)
panel.xaxis.set_major_formatter("{x:g}")
panel.set(xlabel="judged queries", ylabel="nDCG@10 on 200 other queries")
panel.legend(frameon=False, loc="lower right")
if len(sys.argv) > 1:
    figure.savefig(sys.argv[1], dpi=130)
else:
    plt.show()
