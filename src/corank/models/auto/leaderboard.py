"""CandidateTable: what `AutoRanker` tried, with the value on left-out queries and the weight of each candidate."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from corank.fitted import PARTS, Part
from corank.metrics import parse_metric
from corank.metrics.significance import few_note, sign_flip
from corank.tables import ReportTable

Floats = NDArray[np.float64]

# metrics that may exceed 1; of others, kendall begins at −1, the rest at 0
_UNBOUNDED = ("DCG", "MSE", "MAE")


@dataclass(frozen=True, eq=False, repr=False)
class CandidateTable(Part):
    """
    Candidates of an `AutoRanker`, best first.

    means, lows, highs: Mean of the metric over left-out queries, and its 95 % interval; NaN if no query could be left
        out.
    """

    _may_be_infinite: ClassVar[frozenset[str]] = frozenset(["means", "lows", "highs"])

    names: tuple[str, ...]  # names of the candidates
    means: Floats
    lows: Floats
    highs: Floats
    weights: Floats  # weights in the average; 0 for candidates that are not used
    seconds: Floats  # wall-clock time of all fits of each candidate
    metric: str  # the metric
    n_lists: int  # number of lists that were left out; 0 if there were too few judgements
    lists: str  # what the lists are: queries, queries that share rows with others, or parts of the one judged query

    def sorted(self) -> CandidateTable:
        """Return the candidates by falling mean."""
        order = np.argsort(-self.means, kind="stable")
        parts = {name: getattr(self, name)[order] for name in ("means", "lows", "highs", "weights", "seconds")}
        return replace(self, names=tuple(self.names[i] for i in order), **parts)

    @property
    def _table(self) -> ReportTable:
        rows = zip(self.names, self.means, self.lows, self.highs, self.weights, self.seconds, strict=True)
        return ReportTable(
            f"{self.metric} on {self.n_lists} left-out {self.lists}",
            ("candidate", "mean", "low", "high", "weight", "seconds"),
            tuple((name, *map(float, numbers)) for name, *numbers in rows),
            note=few_note(self.n_lists, unit=self.lists).strip() if self.n_lists else "",
        )

    def __repr__(self) -> str:
        return self._table.markdown()

    def _repr_html_(self) -> str:
        return self._table.html()

    def to_frame(self) -> Any:
        """Return the table as a pandas DataFrame."""
        return self._table.to_frame()


def interval(values: Floats, metric: str | None = None) -> tuple[float, float, float]:
    """Return the mean of values and its 95 % interval, inside the range of a metric, ignoring NaN."""
    kept = values[~np.isnan(values)]
    low, high, _ = sign_flip(kept)
    if metric is not None and len(kept) and (name := parse_metric(metric).measure.name) not in _UNBOUNDED:
        low, high = max(low, -1.0 if name == "kendall" else 0.0), min(high, 1.0)
    return float(kept.mean()) if len(kept) else low, low, high


PARTS["Leaderboard"] = CandidateTable  # the name in models that versions up to 0.3 saved
