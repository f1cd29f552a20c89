"""HeldOut: judgements held out to evaluate a model during training (early stopping)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from corank.data.ranking import RankingData
from corank.data.splits import keep_scores
from corank.errors import InputError
from corank.metrics import disagreement_error

Floats = NDArray[np.float64]

# number of random splits of one query after which a split with pairs on both sides is taken to be impossible
_DRAWS = 100


@dataclass(frozen=True, eq=False)
class HeldOut:
    """A problem split into two parts; rows are not copied."""

    train: RankingData  # the problem without the held-out judgements, whose rows count as unjudged
    test: RankingData  # the problem with only the held-out judgements
    by_squares: bool = False  # whether to evaluate by the squared error instead of the disagreement error

    @property
    def rows(self) -> NDArray[np.int64]:
        """Numbers of the held-out rows, ascending."""
        return self.test.scored_rows

    def error(self, scores: Floats, as_grade: Callable[[Floats], Floats] | None = None) -> float:
        """
        Return the error of predictions; weights are not used.

        as_grade: converts scores to the scale of y; None if they have it.
        """
        scores = scores + self.test.prior_of(self.rows)
        if self.test.pairs is not None:
            winners, losers = np.searchsorted(self.rows, self.test.pairs).T
            margins = scores[winners] - scores[losers]
            query = self.test.queries.codes[self.test.pairs[:, 0]]
            wrong = np.bincount(query, (margins < 0) + 0.5 * (margins == 0))
            return float(np.mean(wrong[np.unique(query)] / np.bincount(query)[np.unique(query)]))
        assert self.test.y is not None
        truth = self.test.y[self.rows]
        if self.by_squares:
            return float(np.mean((truth - (scores if as_grade is None else as_grade(scores))) ** 2))
        return disagreement_error(truth, scores, self.test.queries.codes[self.rows])


def hold_out(data: RankingData, fraction: float, rng: np.random.Generator, *, by_squares: bool = False) -> HeldOut:
    """Hold out whole queries; if only one query has judgements, some of its rows or preferences."""
    if data.y is not None and data.weights is not None:
        data = keep_scores(data, data.weights > 0.0)
    unit, query = judged_units(data)
    judged = np.flatnonzero(np.bincount(query, minlength=len(data.queries)) > 0)
    if not by_squares:
        judged = np.intersect1d(judged, np.flatnonzero(data.pairs_per_query > 0))
    if len(judged) > 1:
        n = min(max(round(fraction * len(judged)), 1), len(judged) - 1)
        return _parts(data, unit[np.isin(query, rng.choice(judged, n, replace=False))], by_squares)
    unit = unit[np.isin(query, judged)]
    # a pair needs two rows
    minimum = 1 if by_squares or data.pairs is not None else 2
    n = min(max(round(fraction * len(unit)), minimum), len(unit) - minimum)
    for _ in range(_DRAWS if n >= minimum else 0):
        parts = _parts(data, rng.permutation(unit)[:n], by_squares)
        if by_squares or (parts.train.n_pairs and parts.test.n_pairs):
            return parts
    raise InputError(
        f"early_stopping holds out {fraction:g} of {len(unit)} judgements of one query, which leaves no pair to learn "
        "from or no pair to evaluate on; judge more rows, or set early_stopping=False."
    )


def judged_units(data: RankingData) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the units to hold out, numbers of preferences or of scored rows, and the query of each."""
    if data.pairs is None:
        return data.scored_rows, data.queries.codes[data.scored_rows]
    pairs = np.flatnonzero(data.pair_weight > 0.0)
    return pairs, data.queries.codes[data.pairs[pairs, 0]]


def _parts(data: RankingData, chosen: NDArray[np.int64], by_squares: bool) -> HeldOut:
    is_out = np.zeros(data.n_rows if data.pairs is None else len(data.pairs), dtype=bool)
    is_out[chosen] = True
    return HeldOut(keep_judgements(data, ~is_out), keep_judgements(data, is_out), by_squares)


def keep_judgements(data: RankingData, kept: NDArray[np.bool_]) -> RankingData:
    """Keep only some scores, or preferences, of a problem."""
    if data.pairs is None:
        return keep_scores(data, kept)
    weights = None if data.pair_weights is None else data.pair_weights[kept]
    return replace(data, pairs=data.pairs[kept], pair_weights=weights)
