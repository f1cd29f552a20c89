"""
Importance of features by permutation inside queries.

Column j of X is permuted inside every query, so that it says nothing about the order of the rows of a query while its
distribution in each query stays the same. The importance of j is the mean loss of the metric,

    I_j = 1/(Q R) Σ_r Σ_q [ metric_q(f(X)) − metric_q(f(X^(j, r))) ] ,

over R permutations r and Q queries q. A permutation over all rows, as scikit-learn does it, also moves values between
queries, which changes no order that is evaluated but lets a model see rows that no query has.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from corank.data.column_roles import column_name
from corank.data.inputs import as_scores
from corank.data.queries import Queries
from corank.data.routing import predict_with_qid
from corank.data.rows import as_rows
from corank.errors import InputError
from corank.metrics import evaluate, parse_metric
from corank.metrics.significance import sign_flip
from corank.parameters import check_values, integer, rng_of, seed
from corank.tables import ReportTable

Floats = NDArray[np.float64]


def query_importance(
    model: Any,
    X: Any,
    y: ArrayLike,
    qid: ArrayLike | None = None,
    *,
    metric: str = "nDCG@10",
    convention: str = "corank",
    n_repeats: int = 5,
    random_state: int | np.random.Generator | None = None,
) -> ReportTable:
    """Measure how much a metric falls when a feature is permuted inside queries."""
    check_values(
        {"n_repeats": n_repeats, "random_state": random_state}, {"n_repeats": integer(1), "random_state": seed}
    )
    rng = rng_of(random_state)
    larger_is_better = parse_metric(metric).measure.larger_is_better
    names = _names(model, X)
    rows = as_rows(X, missing=True)  # a model without missing values refuses them in its first prediction
    if sparse.issparse(rows):
        rows = rows.toarray()
    rows = np.array(rows)  # columns are replaced one by one
    n, n_features = map(int, rows.shape)
    queries = Queries.of(qid, n)
    grades = as_scores(y, n)

    def values(X: Any) -> Floats:
        scores = predict_with_qid(model, X, queries.ids[queries.codes])
        return evaluate(grades, scores, queries.codes, metric, convention=convention)[metric].values

    base = values(X)  # also checks the names of the columns
    kept = ~np.isnan(base)
    if not kept.any():
        raise InputError(f"no query has a value of {metric}; pass queries with judged rows of different grades.")
    found = []
    for column in range(n_features):
        before = rows[:, column].copy()
        loss = np.zeros(int(kept.sum()))
        for _ in range(n_repeats):
            # sort rows by query and a random key: a permutation inside every query
            key = rng.random((n,))
            shuffled = np.lexsort((key, queries.codes))
            rows[queries.order, column] = before[shuffled]
            loss += (base - values(rows))[kept] / n_repeats
        rows[:, column] = before
        loss = loss if larger_is_better else -loss
        found.append((names[column], float(loss.mean()), *sign_flip(loss, rng, n_resamples=2000)[:2]))
    found.sort(key=lambda one: -one[1])
    return ReportTable("", ("feature", f"loss of {metric}", "low", "high"), tuple(found))


def _names(model: Any, X: Any) -> list[str]:
    given = getattr(model, "feature_names_in_", None)
    if given is not None:
        return list(map(str, given))
    columns = getattr(X, "columns", None)
    return [column_name(k, columns) for k in range(np.shape(X)[1])]
