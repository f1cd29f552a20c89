"""A metric as a scorer for scikit-learn's model selection, with the query ids routed to it and to `predict`."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike

from corank.data.problem.routing import how_to_pass_qid, predict_with_qid
from corank.metrics.conventions import Convention, find_convention
from corank.metrics.judgements import Judgements
from corank.metrics.measure import Metric
from corank.metrics.names import parse_metric


@dataclass(frozen=True, repr=False)
class Scorer:
    """
    What `scorer` makes: a picklable function of an estimator and the rows to judge it by.

    metric: what is computed.
    convention: how it is read.
    """

    metric: Metric
    convention: Convention

    def __call__(
        self, estimator: Any, X: Any, y: ArrayLike, *, qid: ArrayLike | None = None, prior: ArrayLike | None = None
    ) -> float:
        """
        Judge an estimator.

        estimator: A fitted ranker, regressor, pipeline of them, or search over them.
        qid (n_rows,): one query id per row; without it all rows are one query.
        prior (n_rows,): scores known before learning.
        Returns: the mean over queries, negated where smaller is better.
        """
        import sklearn

        # with routing on, a qid that was given would have come
        if qid is None and not sklearn.get_config()["enable_metadata_routing"]:
            warnings.warn(
                f"{self.metric} took all rows as one query, as no qid came; {how_to_pass_qid()}.", stacklevel=2
            )
        judged = Judgements.of(y, predict_with_qid(estimator, X, qid, prior), qid, self.convention)
        mean = self.metric.result(judged).mean
        return mean if self.metric.measure.larger_is_better else -mean

    @property
    def __name__(self) -> str:
        return str(self.metric)

    def __repr__(self) -> str:
        return f"scorer({str(self.metric)!r}, convention={self.convention.name!r})"

    def get_metadata_routing(self) -> Any:
        """Tell scikit-learn that the scorer asks for `qid` and `prior`."""
        from sklearn.utils.metadata_routing import MetadataRequest

        request = MetadataRequest(owner=self)
        for name in ("qid", "prior"):
            request.score.add_request(param=name, alias=True)
        return request

    def _accept_sample_weight(self) -> bool:
        # scikit-learn asks this of every scorer where routing is off
        return False


def scorer(metric: str, *, convention: str | Convention = "corank") -> Scorer:
    """
    Make a scorer for `GridSearchCV`, `cross_validate` and the like that asks for `qid`.

    The query ids go to the metric, and to those steps of a pipeline that ask for them, such as `QueryScaler`. Larger
    is better for the scorer: errors such as ``disagreement`` come out negated, as scikit-learn does it. Metadata
    routing must be on where `qid` is passed to a search: ``sklearn.set_config(enable_metadata_routing=True)``.

    Parameters
    ----------
    metric : str
        A metric's name, such as ``nDCG@10``.
    convention : str or Convention
        How the name is read.

    Returns
    -------
    Scorer
        A callable ``scorer(estimator, X, y, qid=qid)``.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> X, y, qid = [[1.0], [2.0], [1.0], [0.0]], [0, 1, 1, 0], [1, 1, 2, 2]
    >>> scorer("nDCG@10")(Ridge().fit(X, y), X, y, qid=qid)
    1.0
    """
    return Scorer(parse_metric(metric), find_convention(convention))
