"""
A regularisation path, and the effect of unjudged rows
======================================================

Left: RankRLS with a Gaussian kernel on a part of LETOR MQ2008. One decomposition gives every alpha, and the
leave-query-out nDCG of each of them without refitting.

Right: CoRankRLS with two views of 20 basis rows each, 50 scored rows, and an increasing number of unjudged rows on
which the views have to agree (figure 1 of the Co-RankRLS paper): change of the error against the same views without
coupling. Mean and standard error over draws.

Without CORANK_DATA the example uses synthetic queries.
"""

from __future__ import annotations

import os
import sys
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np

from corank import CoRankRLS, RankRLS, View, evaluate, make_ranking
from corank.base.kernels import GaussianKernel
from experiments.datasets.mq2008 import read_parts

rng = np.random.default_rng(0)
has_data = bool(os.environ.get("CORANK_DATA"))
if has_data:
    train, test = read_parts((1,)), read_parts((5,))
else:
    made = make_ranking(200, 20, n_grades=3, random_state=0)
    train, test = (
        SimpleNamespace(X=made.X[rows], y=made.y[rows], qid=made.qid[rows])
        for rows in (made.qid < 100, made.qid >= 100)
    )
kernel = GaussianKernel().fit(train.X, rng)

# features of MQ2008 are in [0, 1] in every query and need no scaling
alphas = np.logspace(-6, 2, 33)
path = RankRLS(kernel=kernel, alphas=alphas, metric="nDCG@10", scale=False).fit(train.X, train.y, qid=train.qid)
on_test = [
    evaluate(test.y, column, test.qid, "nDCG@10")["nDCG@10"].mean for column in path.predict_path(test.X).T
]  # fmt: skip


def error(coupling: float, y: np.ndarray, rows: np.ndarray) -> float:
    """Disagreement error on the test part of two views trained on some rows."""
    # scored rows come first, so that the bases stay the same while unjudged rows are added
    views = [View(None, kernel, np.arange(20)), View(None, kernel, np.arange(20, 40))]
    model = CoRankRLS(views, coupling=coupling, alpha=0.1, scale=False)
    model.fit(train.X[rows], y[rows], qid=train.qid[rows])
    return 1.0 - model.score(test.X, test.y, qid=test.qid)


sizes = [250, 500, 1000, 2000]
couplings = (0.1, 1.0, 10.0)
change = np.zeros((20, len(couplings), len(sizes)))
# positive grades are rare: take the scored rows from queries with pairs
mixed = [q for q in np.unique(train.qid) if len(np.unique(train.y[train.qid == q])) > 1]
for draw in range(20):
    order = np.random.default_rng(draw).permutation(len(train.y))
    scored = order[np.isin(train.qid[order], mixed[:10])][:50]
    y = np.full(len(order), np.nan)
    y[scored] = train.y[scored]
    others = order[~np.isin(order, scored)]
    alone = error(0.0, y, scored)
    for c, coupling in enumerate(couplings):
        for at, size in enumerate(sizes):
            change[draw, c, at] = error(coupling, y, np.concatenate([scored, others[:size]])) - alone

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
left.semilogx(alphas, path.loo_scores_, label="leave-query-out")
left.semilogx(alphas, on_test, label="test queries")
left.axvline(path.alpha_, color="0.7", linewidth=1)
left.set(xlabel="alpha", ylabel="nDCG@10", title="RankRLS, Gaussian kernel")
left.legend()
right.axhline(0.0, color="0.7", linewidth=1)
for c, coupling in enumerate(couplings):
    means, spread = change[:, c].mean(axis=0), change[:, c].std(axis=0, ddof=1) / np.sqrt(len(change))
    right.errorbar(sizes, means, spread, label=f"coupling {coupling:g}", capsize=3)
right.set(xlabel="unjudged rows", ylabel="change of the disagreement error", title="CoRankRLS, 50 scored rows")
right.legend()
figure.suptitle("MQ2008" if has_data else "Synthetic queries")
if len(sys.argv) > 1:
    figure.savefig(sys.argv[1], dpi=130)
else:
    plt.show()
