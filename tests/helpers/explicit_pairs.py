"""Reference for solvers: every compared pair of a small problem, one at a time."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
from scipy import sparse

from corank.core.rows.access import ScaledRows, plain
from corank.data.ranking import RankingData

QUERY_WEIGHTS = ("pairs", "equal", "rows")
KINDS = ("scores", "csr", "scaled", "scaled csr", "preferences")
FACTORS = np.array([1.0, 0.05, 10.0, 0.3])


def problem(kind, seed=0, n=40):
    """Return a small problem with weights, ties and unjudged rows, of one kind."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)) * [1.0, 20.0, 0.1, 3.0] + 5
    y = np.clip(np.round(X @ rng.normal(size=4) * 0.2 + rng.normal(size=n)), 0, 3) / 3
    y[rng.random(n) < 0.2] = np.nan
    qid, w = rng.integers(0, 6, n), rng.integers(0, 3, n) + rng.random(n) * (rng.random(n) < 0.5)
    data = RankingData.of(sparse.csr_array(X) if "csr" in kind else X, y, qid, w)
    if kind == "preferences":
        pairs = [(i, j) for i, j in itertools.permutations(range(n), 2) if qid[i] == qid[j]]
        chosen = np.array(pairs)[rng.choice(len(pairs), 25)]
        data = RankingData.of_pairs(X, chosen, qid, w, rng.random(25))
    return replace(data, X=ScaledRows(data.X, FACTORS)) if "scaled" in kind else data


def rows_of(data):
    """Return the rows as the learner sees them, dense."""
    X = plain(data.X)
    X = X.toarray() if sparse.issparse(X) else np.asarray(X)
    return X * data.X.factors if isinstance(data.X, ScaledRows) else X


def pairs_of(data, query_weight, unscored=False):
    """Return pairs (better first), differences of their scores, and weights that sum to 1."""
    w, codes = data.weight_of(np.arange(data.n_rows)), data.queries.codes
    if data.pairs is not None:
        pairs, gaps, weights = data.pairs, np.ones(len(data.pairs)), data.pair_weight
    else:
        rows = np.flatnonzero(np.isnan(data.y) == unscored)
        pairs = [(i, j) for i, j in itertools.permutations(rows, 2) if codes[i] == codes[j]]
        pairs = np.array([(i, j) for i, j in pairs if (i > j if unscored else data.y[i] > data.y[j])])
        gaps, weights = data.y[pairs[:, 0]] - data.y[pairs[:, 1]], w[pairs].prod(axis=1)
    query = codes[pairs[:, 0]]
    total = weights.copy()
    for q in set(query):
        mine = query == q
        if data.pairs is None:
            named = np.flatnonzero((codes == q) & (np.isnan(data.y) == unscored))
        else:
            named = np.unique(pairs[mine & (weights > 0)])
        share = {"pairs": 1.0, "equal": weights[mine].sum(), "rows": w[named].sum()}[query_weight]
        total[mine] *= 1.0 / share if weights[mine].any() else 0.0
    return pairs, gaps, total / total.sum()
