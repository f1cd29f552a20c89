"""How query ids travel through scikit-learn's tools, and what to say where they did not arrive."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


def how_to_pass_qid() -> str:
    """
    Say how query ids reach the steps of a pipeline, a splitter or a scorer.

    Returns: the last part of a message, without a full stop.
    """
    import sklearn

    if sklearn.get_config()["enable_metadata_routing"]:
        return "pass qid, one query id per row"
    return (
        "pass qid, one query id per row; pipelines, searches and cross-validation hand it on only after "
        "sklearn.set_config(enable_metadata_routing=True), and corank.QuerySearchCV always"
    )


def fit_with_qid(estimator: Any, X: Any, y: ArrayLike, qid: ArrayLike | None) -> Any:
    """
    Fit a clone of an estimator, handing query ids to whatever inside it asks for them.

    estimator: A ranker, regressor, pipeline of them, or search over them.
    Returns: the fitted clone.
    """
    from sklearn import clone, config_context
    from sklearn.utils.metadata_routing import get_routing_for_object

    with config_context(enable_metadata_routing=True):
        asks = qid is not None and get_routing_for_object(estimator).consumes("fit", ["qid"])
        return clone(estimator).fit(X, y, **({"qid": qid} if asks else {}))


def transform_with_qid(steps: Any, X: Any, qid: ArrayLike | None) -> Any:
    """
    Transform rows, handing query ids to whatever among the steps asks for them.

    steps: A fitted transformer, or pipeline of them.
    """
    from sklearn import config_context
    from sklearn.utils.metadata_routing import get_routing_for_object

    with config_context(enable_metadata_routing=True):
        asks = qid is not None and get_routing_for_object(steps).consumes("transform", ["qid"])
        return steps.transform(X, **({"qid": qid} if asks else {}))


def predict_with_qid(
    estimator: Any, X: Any, qid: ArrayLike | None, prior: ArrayLike | None = None
) -> NDArray[np.float64]:
    """
    Predict, handing query ids, and a prior, to whatever inside an estimator asks for them.

    Most rankers' ``predict`` takes no query ids; a pipeline with a `QueryScaler` needs query ids. Metadata routing is
    switched on for the time of the call.

    estimator: A fitted ranker, regressor, pipeline of them, or search over them.
    qid (n_rows,): one query id per row.
    prior (n_rows,): scores known before learning.
    """
    given = {name: value for name, value in (("qid", qid), ("prior", prior)) if value is not None}
    if not given:
        return np.asarray(estimator.predict(X))
    # slow to import, and most users of metrics never need it
    import sklearn

    with sklearn.config_context(enable_metadata_routing=True):
        model, asks = _asks(estimator, given)
        found = model.predict(X, **{name: given[name] for name in asks})
    return np.asarray(found)


def predicts_by_qid(estimator: Any) -> bool:
    """
    Say whether the scores of rows depend on the other rows of their queries.

    estimator: as in `predict_with_qid`.
    Returns: false where rows may be scored one by one.
    """
    import sklearn

    with sklearn.config_context(enable_metadata_routing=True):
        return "qid" in _asks(estimator, ["qid"])[1]


def _asks(estimator: Any, given: Iterable[str]) -> tuple[Any, set[str]]:
    """What predicts, and which of the given it asks for."""
    from sklearn.utils.metadata_routing import get_routing_for_object

    # scikit-learn's searches predict by their best estimator, but take no qid
    while hasattr(estimator, "best_estimator_"):
        estimator = estimator.best_estimator_
    return estimator, set(get_routing_for_object(estimator).consumes("predict", given))
