"""scorer: a metric as a scorer for scikit-learn's model selection, with query ids routed to it."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike

from corank.data.routing import how_to_pass_qid, predict_with_qid
from corank.metrics.conventions import Convention, find_convention
from corank.metrics.judgements import Judgements
from corank.metrics.measure import Metric
from corank.metrics.names import parse_metric


@dataclass(frozen=True, repr=False)
class MetricScorer:
    """A picklable scorer; see `scorer`."""

    metric: Metric
    convention: Convention

    def __call__(
        self, estimator: Any, X: Any, y: ArrayLike, *, qid: ArrayLike | None = None, prior: ArrayLike | None = None
    ) -> float:
        """Return the mean over queries, negated if smaller is better."""
        import sklearn

        # with routing on, None means that the caller has no qid
        if qid is None and not sklearn.get_config()["enable_metadata_routing"]:
            warnings.warn(
                f"qid was not given, so {self.metric} treats all rows as one query; {how_to_pass_qid()}.", stacklevel=2
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
        """Request `qid` and `prior` from scikit-learn."""
        from sklearn.utils.metadata_routing import MetadataRequest

        request = MetadataRequest(owner=self)
        for name in ("qid", "prior"):
            request.score.add_request(param=name, alias=True)
        return request

    def _accept_sample_weight(self) -> bool:
        # scikit-learn calls this if routing is off
        return False


def scorer(metric: str, *, convention: str | Convention = "corank") -> MetricScorer:
    """
    Return a scorer for `GridSearchCV`, `cross_validate` and similar functions that requests `qid`.

    The query ids are routed to the metric and to pipeline steps that request them, such as `QueryScaler`. Errors such
    as ``disagreement`` are negated, as usual in scikit-learn. Metadata routing must be on to pass `qid` to a search:
    ``sklearn.set_config(enable_metadata_routing=True)``.
    """
    return MetricScorer(parse_metric(metric), find_convention(convention))
