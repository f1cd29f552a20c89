"""A model as judging sees it: the rows its last step sees, scores and deviations."""

from __future__ import annotations

import inspect
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import normalize

from corank.data.problem.routing import predict_with_qid, transform_with_qid
from corank.data.problem.rows import as_rows

Floats = NDArray[np.float64]


class Seen(NamedTuple):
    """Rows of norm 1 in the space of a model's last step, what it predicts for them, and how surely."""

    X: Any
    scores: Floats | None
    std: Floats | None


def see(model: Any, X: Any, qid: ArrayLike | None) -> Seen:
    """Transform rows once, and predict from what came out; without a model, only look at the rows."""
    if model is None:
        return Seen(_comparable(X), None, None)
    while hasattr(model, "best_estimator_"):
        model = model.best_estimator_
    if isinstance(model, Pipeline) and len(model) > 1:
        X, model = transform_with_qid(model[:-1], X, qid), model[-1]
    if "return_std" in inspect.signature(model.predict).parameters:
        scores, std = model.predict(X, return_std=True)
        return Seen(_comparable(X), np.asarray(scores, dtype=np.float64), np.asarray(std, dtype=np.float64))
    return Seen(_comparable(X), predict_with_qid(model, X, qid).astype(np.float64), None)


def _comparable(X: Any) -> Any:
    """Rows of norm 1, whose products are their similarities; columns of a table of numbers are brought to one size."""
    rows = as_rows(X)
    if not sparse.issparse(rows):
        deviation = rows.std(axis=0)
        rows = (rows - rows.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)
    return normalize(rows)
