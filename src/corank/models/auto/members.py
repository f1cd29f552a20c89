"""Members of the average of `AutoRanker`: added up where they are alike, and importances of columns for their sum."""

from __future__ import annotations

from copy import copy
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from corank.base.base import Ranker
from corank.base.priors import ColumnMean
from corank.data.queries import Queries
from corank.data.ranking import RankingData
from corank.data.rows import with_names
from corank.models.auto.candidates import n_columns, ranks_inside
from corank.models.auto.left_out import inside_deviation
from corank.models.rls import RankRLS

Floats = NDArray[np.float64]

# rows on which importances of columns are measured
_IMPORTANCE_ROWS = 100


class Member(NamedTuple):
    """A fitted ranker, its weight, the number that its scores are divided by, and whether it sees ranks of columns."""

    ranker: Ranker
    weight: float
    scale: float
    by_ranks: bool

    @property
    def factor(self) -> float:
        """Factor of the scores of the ranker."""
        return self.weight / self.scale


def add_up_alike(members: list[Member]) -> list[Member]:
    """Add up members that are linear, or have the same kernel and basis rows: the same scores in less time."""
    groups: list[list[Member]] = []
    for member in members:
        home = next((group for group in groups if _is_like(group[0], member)), None)
        if home is None:
            groups.append([member])
        else:
            home.append(member)
    return [member for group in groups for member in _added_up(group)]


def _added_up(group: list[Member]) -> list[Member]:
    # coefficients of ColumnMean cannot be set
    first = next((member.ranker for member in group if not isinstance(member.ranker, ColumnMean)), None)
    if len(group) == 1 or first is None:
        return group
    total, name = sum(member.weight for member in group), "coef_" if hasattr(first, "coef_") else "dual_coef_"
    item = copy(first)
    setattr(item, name, sum(member.factor / total * getattr(member.ranker, name) for member in group))
    if hasattr(item, "intercept_"):
        item.intercept_ = 0.0
    return [Member(item, total, 1.0, group[0].by_ranks)]


def _is_like(first: Member, second: Member) -> bool:
    a, b = first.ranker, second.ranker
    if first.by_ranks is not second.by_ranks:
        return False
    if hasattr(a, "coef_") or hasattr(b, "coef_"):
        return hasattr(a, "coef_") and hasattr(b, "coef_")
    if not (isinstance(a, RankRLS) and isinstance(b, RankRLS)) or a.basis_ is None or b.basis_ is None:
        return False
    factors = (getattr(model, "column_scale_", None) for model in (a, b))
    return a.basis_.is_like(b.basis_) and np.array_equal(*factors)  # type: ignore[arg-type]


def column_importances(members: list[Member], data: RankingData) -> Floats | None:
    """
    Return the deviation inside queries of the change of scores if a column is replaced by its mean, with sum 1.

    It is |weight| · deviation of linear members. Measured on whole queries up to about `_IMPORTANCE_ROWS` rows.
    """
    if sparse.issparse(data.X) or not members:
        return None
    judged = data.queries.codes[data.scored_rows] if data.pairs is None else data.queries.codes[data.pairs[:, 0]]
    sizes = np.diff(data.queries.starts)
    queries = np.unique(judged)
    queries = queries[: max(1, int(np.searchsorted(np.cumsum(sizes[queries]), _IMPORTANCE_ROWS, "right")))]
    rows = np.flatnonzero(np.isin(data.queries.codes, queries))[: 10 * _IMPORTANCE_ROWS]
    X, lists = np.array(data.X[rows], dtype=np.float64), np.unique(data.queries.codes[rows], return_inverse=True)[1]

    def score() -> Floats:
        named = with_names(X, data.names)
        ranks = ranks_inside(X, Queries.of(lists, len(X))) if any(member.by_ranks for member in members) else None
        parts = (member.factor * member.ranker._score_rows(ranks if member.by_ranks else named) for member in members)
        return np.asarray(sum(parts))

    before, result = score(), np.zeros(n_columns(data))
    for j in range(len(result)):
        kept = X[:, j].copy()
        if np.ptp(kept) > 0.0:
            X[:, j] = kept.mean()
            result[j] = inside_deviation(before - score(), lists)
            X[:, j] = kept
    return np.asarray(result / (result.sum() or 1.0))
