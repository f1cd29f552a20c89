"""A ranker as a step of a PyTerrier pipeline: it learns from judged queries, and reranks results by their features."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.data.routing import predict_with_qid
from corank.errors import InputError, import_extra


def pyterrier_ranker(ranker: Any, *, prior: bool = False) -> Any:
    """
    Make a PyTerrier estimator of a ranker, for the end of a pipeline such as ``bm25 >> (f1 ** f2) >> ...``.

    ``fit(topics_and_results, qrels)`` learns from the documents that are judged; the others are unjudged rows, which
    semi-supervised rankers use. ``transform`` replaces score and rank.
    """
    pt = import_extra("pyterrier", "pyterrier")
    return type("RankerStep", (_RankerStep, pt.Estimator), {"__doc__": _RankerStep.__doc__})(ranker, prior)


class _RankerStep:
    """Step of a pipeline that reranks results; combined with PyTerrier's class, which may not be installed."""

    def __init__(self, ranker: Any, prior: bool) -> None:
        super().__init__()
        self.ranker = ranker
        self.prior = prior

    def fit(self, results: Any, qrels: Any, valid_results: Any = None, valid_qrels: Any = None) -> Any:
        """Learn from results with features, and judgements with qid, docno and label; validation is refused."""
        if valid_results is not None or valid_qrels is not None:
            raise InputError("validation results are not used; pass training results and qrels only.")
        rows = zip(qrels["qid"], qrels["docno"], qrels["label"], strict=True)
        known = {(str(query), str(document)): float(label) for query, document, label in rows}
        keys = zip(results["qid"].astype(str), results["docno"].astype(str), strict=True)
        y = np.array([known.get(key, np.nan) for key in keys])
        if np.isnan(y).all():
            raise InputError("no document of the results is judged; check that qid and docno agree with the qrels.")
        given = {"prior": _scores(results)} if self.prior else {}
        self.ranker.fit(_features(results), y, qid=results["qid"].to_numpy(), **given)
        return self

    def transform(self, results: Any) -> Any:
        """Return the results with new scores and ranks."""
        if not len(results):
            return results
        given = _scores(results) if self.prior else None
        scores = predict_with_qid(self.ranker, _features(results), results["qid"].to_numpy(), given)
        result = results.assign(score=scores).sort_values(["qid", "score"], ascending=[True, False], kind="stable")
        return result.assign(rank=result.groupby("qid", sort=False).cumcount())


def _features(results: Any) -> NDArray[np.float64]:
    if "features" not in results.columns:
        raise InputError(
            "the results have no column features; put steps that compute them first, such as bm25 >> (a ** b)."
        )
    return np.vstack([np.asarray(result, dtype=np.float64) for result in results["features"]])


def _scores(results: Any) -> NDArray[np.float64]:
    return np.asarray(results["score"], dtype=np.float64)
