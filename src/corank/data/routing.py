"""Metadata routing: pass query ids through pipelines, searches and scorers of scikit-learn."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


def how_to_pass_qid() -> str:
    """Return the end of an error message that explains how to pass query ids, without a full stop."""
    import sklearn

    if sklearn.get_config()["enable_metadata_routing"]:
        return "pass qid, one query id per row"
    return (
        "pass qid, one query id per row; pipelines, searches and cross-validation pass it on only after "
        "sklearn.set_config(enable_metadata_routing=True), corank.QuerySearchCV always, and a DataFrame whose index is "
        "named 'qid' carries it through all of them"
    )


def fit_with_qid(estimator: Any, X: Any, y: ArrayLike, qid: ArrayLike | None) -> Any:
    """Fit a clone of a ranker, regressor, pipeline or search, and pass `qid` to the steps that request it."""
    from sklearn import clone, config_context
    from sklearn.utils.metadata_routing import get_routing_for_object

    with config_context(enable_metadata_routing=True):
        uses_qid = qid is not None and get_routing_for_object(estimator).consumes("fit", ["qid"])
        return clone(estimator).fit(X, y, **({"qid": qid} if uses_qid else {}))


def transform_with_qid(steps: Any, X: Any, qid: ArrayLike | None) -> Any:
    """Transform rows with a fitted transformer or pipeline, and pass `qid` to the steps that request it."""
    from sklearn import config_context
    from sklearn.utils.metadata_routing import get_routing_for_object

    with config_context(enable_metadata_routing=True):
        uses_qid = qid is not None and get_routing_for_object(steps).consumes("transform", ["qid"])
        return steps.transform(X, **({"qid": qid} if uses_qid else {}))


def predict_with_qid(
    estimator: Any, X: Any, qid: ArrayLike | None, prior: ArrayLike | None = None
) -> NDArray[np.float64]:
    """
    Predict, and pass `qid` and `prior` to the steps that request them.

    Most rankers do not need query ids to predict; a pipeline with a `QueryScaler` does. Metadata routing is enabled
    during the call.
    """
    with columns_were_checked():
        return _predict(estimator, X, qid, prior)


@contextmanager
def columns_were_checked() -> Iterator[None]:
    """Do not warn of arrays without names: the reader of a file compared the names of its columns with the model."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        yield


def _predict(estimator: Any, X: Any, qid: ArrayLike | None, prior: ArrayLike | None) -> NDArray[np.float64]:
    metadata = {name: value for name, value in (("qid", qid), ("prior", prior)) if value is not None}
    if not metadata:
        return np.asarray(estimator.predict(X))
    # slow to import, and rarely needed by users of metrics
    import sklearn

    with sklearn.config_context(enable_metadata_routing=True):
        model, names = _requested(estimator, metadata)
        scores = model.predict(X, **{name: metadata[name] for name in names})
    return np.asarray(scores)


def predicts_by_qid(estimator: Any) -> bool:
    """Return whether ``predict`` uses query ids; otherwise rows can be scored one by one."""
    if getattr(estimator, "scores_rows_alone", False):
        return False
    if not hasattr(estimator, "get_metadata_routing"):  # a scorer of rows, or an estimator that cannot request anything
        return False
    import sklearn

    with sklearn.config_context(enable_metadata_routing=True):
        return "qid" in _requested(estimator, ["qid"])[1]


def _requested(estimator: Any, names: Iterable[str]) -> tuple[Any, set[str]]:
    """Return the estimator that predicts, and which of the names its ``predict`` requests."""
    from sklearn.utils.metadata_routing import get_routing_for_object

    # searches of scikit-learn predict with their best estimator, but do not take qid
    while hasattr(estimator, "best_estimator_"):
        estimator = estimator.best_estimator_
    return estimator, set(get_routing_for_object(estimator).consumes("predict", names))
