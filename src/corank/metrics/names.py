"""Names of metrics such as `nDCG@10`, `AP(rel=2)` and `kpartite(alpha=1)`: all measures, the parser, and scorers."""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike

from corank.data.queries import qid_of_index
from corank.data.routing import how_to_pass_qid, predict_with_qid
from corank.errors import InputError, closest, suggest_names
from corank.metrics import measures
from corank.metrics.conventions import Convention, find_convention
from corank.metrics.judgements import BoundMetric, Judgements, Metric

METRICS: dict[str, Metric] = {
    measure.name: measure for measure in vars(measures).values() if isinstance(measure, Metric)
}
# canonical names last, so that they take precedence over spellings that differ in case only
_BY_FOLDED_SPELLING = {
    spelling.casefold(): measure for measure in METRICS.values() for spelling in reversed(measure.spellings)
}
# names in other software, for suggestions
_ALSO_CALLED = {
    "Success": ("hit", "hits", "hit_rate", "hitrate", "hr"),
    "R": ("rec",),
    "P": ("prec",),
    "AP": ("avgprec", "avg_precision"),
    "BEP": ("r-precision", "r_precision"),
    "kendall": ("tau",),
    "WTA": ("top", "winner"),
    "disagreement": ("accuracy", "acc", "pairwise", "pairwise_accuracy", "concordance", "inversions", "swapped_pairs"),
}
_DEPTH = re.compile(r"(.*?)(?:@|[_-]|[_-](?:cut|at)[_-])?(\d*)", re.DOTALL)
_GRAMMAR = re.compile(r"(?P<name>[A-Za-z_-][A-Za-z0-9_-]*)(\((?P<params>[^()]*)\))?(@(?P<cut>\d+))?")


def parse_metric(text: str) -> BoundMetric:
    """Parse the name of a metric, in any case: ``Name``, ``Name@k``, ``Name(param=value)``, ``Name(param=value)@k``."""
    match = _GRAMMAR.fullmatch(str(text).strip())
    measure = _BY_FOLDED_SPELLING.get(match["name"].casefold()) if match else None
    if match is None or measure is None:
        raise InputError(
            f"{text!r} is not a known metric; {suggest_names(str(text), _syntax(), _suggestion(str(text)))}."
        )
    inside = (match["params"] or "").strip()
    params = dict(_parse_param(text, item) for item in inside.split(",")) if inside else {}
    return measure.metric(int(match["cut"]) if match["cut"] else None, params, text)


def _parse_param(text: str, item: str) -> tuple[str, float]:
    key, _, value = (part.strip() for part in item.partition("="))
    try:
        return key, float(value)
    except ValueError:
        raise InputError(f"{text!r} has {key}={value!r}; pass a finite number, such as {key}=2.") from None


def _suggestion(text: str) -> str | None:
    """Suggest a metric for an unknown name, such as ``ndcg_cut_10`` of trec_eval, ``hits@3`` or ``recal10``."""
    name, depth = _DEPTH.fullmatch(text.partition("(")[0]).groups()  # type: ignore[union-attr]
    also = {other: METRICS[ours] for ours, others in _ALSO_CALLED.items() for other in others}
    near = ({**also, **_BY_FOLDED_SPELLING}).get(name.casefold())
    near = near or _BY_FOLDED_SPELLING.get(closest(name, _BY_FOLDED_SPELLING) or "")
    if near is None:
        return None
    without_depth = near.cut == "none" or (near.cut == "optional" and not depth)
    return near.name if without_depth else f"{near.name}@{depth or 10}"


def _syntax() -> dict[str, str]:
    """Return every spelling with the syntax of its metric."""
    depths = {"none": "", "optional": "[@k]", "needed": "@k"}
    shown = {}
    for measure in METRICS.values():
        inside = ",".join(f"{key}=" for key, _ in measure.params)
        typed = measure.name + (f"[({inside})]" if inside else "") + depths[measure.cut]
        shown.update(dict.fromkeys(reversed(measure.spellings), typed))
    return shown


@dataclass(frozen=True, repr=False)
class MetricScorer:
    """A picklable scorer; see `scorer`."""

    metric: BoundMetric
    convention: Convention

    def __call__(
        self, estimator: Any, X: Any, y: ArrayLike, *, qid: ArrayLike | None = None, prior: ArrayLike | None = None
    ) -> float:
        """Return the mean over queries, negated if smaller is better."""
        import sklearn

        qid = qid_of_index(X, qid)
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
