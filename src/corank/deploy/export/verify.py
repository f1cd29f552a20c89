"""Verification: score rows with an engine's own arithmetic, and compare them with the model's scores."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corank.data.queries import Queries
from corank.deploy.export.describe import Description
from corank.deploy.export.rounding import to_single
from corank.deploy.export.target import Export
from corank.errors import InputError

Floats = NDArray[np.float64]

# rows that are compared with all others at once
_BLOCK = 1024


@dataclass(frozen=True)
class Verification:
    """
    Comparison of an engine's scores with those of the model.

    target, engine: The target, and what computed its scores.
    n_rows, n_queries: Number of rows and queries.
    offset: Constant by which the engine's scores differ: a shift, or an intercept that was left out.
    largest_difference: Largest difference of engine and model, after the offset.
    largest_score: Largest absolute score of the model.
    n_pairs: Number of pairs of rows of a query that the model orders.
    changed_orders: Pairs that the engine orders the other way round.
    tied_orders: Pairs to which the engine gives equal scores.
    rounded_inputs: Changed or tied pairs for which rounding of the features to float32 is the reason.
    unexplained_orders: Changed or tied pairs that the precision of the engine does not explain; 0 for a correct export.
    unexplained_rows: Rows whose scores differ by more than the precision of the engine explains; 0 for a correct
        export.
    """

    target: str
    engine: str
    n_rows: int
    n_queries: int
    offset: float
    largest_difference: float
    largest_score: float
    n_pairs: int
    changed_orders: int
    tied_orders: int
    rounded_inputs: int
    unexplained_orders: int
    unexplained_rows: int

    @property
    def is_exact(self) -> bool:
        """Whether the precision of the engine explains all differences."""
        return self.unexplained_orders == 0 and self.unexplained_rows == 0

    def fields(self) -> dict[str, Any]:
        """Return the comparison as a dictionary."""
        return asdict(self)


def verify(export: Export, described: Description, scores: ArrayLike, rows: Any, qid: Any = None) -> Verification:
    """Score rows as the engine does, and compare."""
    X = np.asarray(rows.toarray() if hasattr(rows, "toarray") else rows, dtype=np.float64)
    if X.ndim != 2 or X.shape[1] != described.n_features or not len(X):
        raise InputError(
            f"the rows to verify have shape {X.shape}; pass at least one row of {described.n_features} features."
        )
    return compare_scores(export, described, np.asarray(scores, dtype=np.float64), X, Queries.of(qid, len(X)))


def compare_scores(export: Export, described: Description, scores: Floats, X: Floats, queries: Queries) -> Verification:
    """Compare the engine's scores with the model's, see `verify`."""
    seen = to_single(X).astype(np.float64) if export.single else X
    # scores of the rows as the engine reads them, and how far its arithmetic may be from them
    exact, allowed = described.scorer.score(seen), export.bound(seen)
    result = np.asarray(export.evaluate(X), dtype=np.float64) - export.offset
    allowed = allowed + 2.0**-50 * (abs(export.offset) + np.abs(result))
    with np.errstate(invalid="ignore"):
        differences = np.abs(result - scores)
        wrong = ~(np.abs(result - exact) <= allowed)
    counts = np.zeros(5, dtype=np.int64)
    for q in range(len(queries)):
        own = queries.order[queries.starts[q] : queries.starts[q + 1]]
        counts += _pairs(scores[own], exact[own], result[own], allowed[own])
    n_pairs, changed, tied, rounded, unexplained = map(int, counts)
    return Verification(
        target=export.target, engine=export.engine, n_rows=len(X), n_queries=len(queries), offset=float(export.offset),
        largest_difference=float(np.where(np.isnan(differences), np.inf, differences).max(initial=0.0)),
        largest_score=float(np.abs(scores).max(initial=0.0)), n_pairs=n_pairs, changed_orders=changed, tied_orders=tied,
        rounded_inputs=rounded, unexplained_orders=unexplained, unexplained_rows=int(wrong.sum()),
    )  # fmt: skip


def _pairs(scores: Floats, exact: Floats, found: Floats, allowed: Floats) -> NDArray[np.int64]:
    """Count ordered, changed, tied, input-rounded and unexplained pairs of one query."""
    counts = np.zeros(5, dtype=np.int64)
    for begin in range(0, len(scores), _BLOCK):
        own = slice(begin, begin + _BLOCK)

        def gap(values: Floats, own: slice = own) -> Floats:
            return np.asarray(values[own, None] - values[None, :])

        with np.errstate(invalid="ignore"):
            ordered = gap(scores) > 0.0
            changed, tied = ordered & (gap(found) < 0.0), ordered & (gap(found) == 0.0)
            affected = changed | tied
            rounded = affected & ~(gap(exact) > 0.0)
            summed = gap(exact) <= allowed[own, None] + allowed[None, :]
        counts += [ordered.sum(), changed.sum(), tied.sum(), rounded.sum(), (affected & ~rounded & ~summed).sum()]
    return counts
