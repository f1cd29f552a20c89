"""A metric as a scorer for scikit-learn's model selection, with the query ids routed to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corank.metrics.conventions import Convention, find_convention
from corank.metrics.evaluate import evaluate
from corank.metrics.names import parse_metric


@dataclass(frozen=True)
class _Mean:
    """A picklable function of (y, scores, qid): the mean of one metric."""

    metric: str
    convention: Convention

    def __call__(self, y: ArrayLike, scores: NDArray[np.float64], qid: ArrayLike | None = None) -> float:
        return evaluate(y, scores, qid, self.metric, convention=self.convention)[self.metric].mean


def scorer(metric: str, *, convention: str | Convention = "corank") -> Any:
    """
    Make a scorer for `GridSearchCV`, `cross_validate` and the like that asks for `qid`.

    Larger is better for the scorer: errors such as ``disagreement`` come out negated, as scikit-learn does it.
    Metadata routing must be on where `qid` is passed: ``sklearn.set_config(enable_metadata_routing=True)``.

    Parameters
    ----------
    metric : str
        A metric's name, such as ``nDCG@10``.
    convention : str or Convention
        How the name is read.

    Returns
    -------
    scorer
        A callable ``scorer(estimator, X, y, qid=qid)``.

    Examples
    --------
    >>> import sklearn
    >>> from sklearn.linear_model import Ridge
    >>> X, y, qid = [[1.0], [2.0], [1.0], [0.0]], [0, 1, 1, 0], [1, 1, 2, 2]
    >>> with sklearn.config_context(enable_metadata_routing=True):
    ...     scorer("nDCG@10")(Ridge().fit(X, y), X, y, qid=qid)
    1.0
    """
    # imported here, since most users of metrics never need it and it is slow to import
    import sklearn
    from sklearn.metrics import make_scorer

    wanted = parse_metric(metric)
    made = make_scorer(
        _Mean(str(wanted), find_convention(convention)), greater_is_better=wanted.measure.larger_is_better
    )
    # a request can be set only while routing is on; the scorer may be made before it is switched on
    with sklearn.config_context(enable_metadata_routing=True):
        return made.set_score_request(qid=True)
