"""Task: a problem as the compiled descent sees it, laws to draw from and rows to read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from corank.core.pairs import steps as sgd_parts
from corank.core.pairs.coupled_descent import Columns
from corank.core.pairs.steps import Examples, RowIndex
from corank.core.random import alias_table
from corank.core.rows.access import as_core_rows
from corank.core.rows.scaled import plain
from corank.data.problem.ranking import RankingData
from corank.errors import InputError
from corank.linear.objective import Objective, Sample
from corank.pairwise.sampling import NO_PAIRS, PairSampler

RATES = {
    "pegasos": sgd_parts.PEGASOS,
    "constant": sgd_parts.CONSTANT,
    "sqrt": sgd_parts.SQRT,
    "adagrad": sgd_parts.ADAGRAD,
}

# examples by which the first rate and the trace of the objective are measured, and the most numbers they may hold
_SAMPLE = 1000
_SAMPLE_NUMBERS = 2**23


@dataclass(frozen=True, eq=False)
class Task:
    """
    What a descent draws from and reads; X is neither copied nor read as a whole.

    objective: what is minimised.
    rows: the rows of X.
    columns: which views see which columns.
    sample: what the objective is estimated on.
    """

    objective: Objective
    rows: Any
    examples: Examples
    columns: Columns
    sample: Sample

    @classmethod
    def of(cls, data: RankingData, objective: Objective, columns: Columns, rng: np.random.Generator) -> Task:
        """
        Index a problem.

        objective: what is to be minimised.
        columns: which views see which columns.
        rng: draws the sample.
        Returns: the indexed problem.
        """
        n = int(np.clip(_SAMPLE_NUMBERS // data.n_features, 1, _SAMPLE))
        y = np.empty(0) if data.y is None else data.y
        pairs = free = NO_PAIRS
        drawn = unscored = np.empty((0, 2), dtype=np.int64)
        rows = single = np.empty(0, dtype=np.int64)
        if objective.mix < 1.0:
            law = PairSampler.of(data, objective.query_weight, objective.draw)
            pairs, drawn = law.index, law.draw(n, rng)
        if objective.coupling > 0.0:
            law = PairSampler.of(data, objective.query_weight, unscored=True)
            free, unscored = law.index, law.draw(n, rng)
        if objective.mix > 0.0:
            rows = data.scored_rows
            w = data.weight_of(rows)
            single = rng.choice(rows, n, p=w / w.sum())
        table = alias_table(data.weight_of(rows)) if len(rows) else np.empty((0, 2), dtype=np.uint64)
        gaps = y[drawn[:, 0]] - y[drawn[:, 1]] if len(y) else np.ones(len(drawn))
        sample = Sample(
            _differences(data.X, drawn), objective.loss.pair_target(gaps), data.prior_gap(drawn),
            data.X[single], y[single], data.prior_of(single), _differences(data.X, unscored),
        )  # fmt: skip
        examples = Examples(y, data.prior, pairs, free, RowIndex(table, rows.astype(np.uint32)))
        return cls(objective, as_core_rows(data.X), examples, columns, sample)

    def first_rate(self, rate: str, eta0: float | None) -> float:
        """
        Choose the first rate.

        rate: one of `RATES`.
        eta0: what the user asked for; None leaves the choice to this function (see `corank.SPD`).
        """
        alpha, chosen = self.objective.alpha, eta0
        if chosen is None:
            curvature = self.sample.curvature(self.objective, len(self.columns.of_views))
            # AdaGrad divides by the size of the pulls, so its rate has the unit of a weight
            chosen = curvature**-0.5 if rate == "adagrad" else 1.0 / curvature
        if rate == "pegasos" and alpha > 0.0:
            return min(float(chosen), 1.0 / alpha)
        if rate != "adagrad" and chosen * alpha >= 1.0:
            if eta0 is None:
                return 0.5 / alpha
            raise InputError(
                f"eta0 · alpha is {eta0 * alpha:g}, so a step would wipe out the weights; keep the product below 1."
            )
        return float(chosen)


def columns_of_views(X: Any, views: list[NDArray[np.int64]]) -> Columns:
    """
    Lay out which views see which columns.

    views: columns of each view.
    """
    rows, d = plain(X), X.shape[1]
    width = int(min(d, 2 * np.diff(rows.indptr).max(initial=0))) if sparse.issparse(rows) else d
    columns = np.concatenate(views)
    slots = np.argsort(columns, kind="stable")
    starts = np.searchsorted(columns[slots], np.arange(d + 1))
    view = np.repeat(np.arange(len(views)), [len(v) for v in views])[slots]
    return Columns(starts.astype(np.uint64), view.astype(np.uint64), width)


def _differences(X: Any, pairs: NDArray[np.int64]) -> Any:
    return X[pairs[:, 0]] - X[pairs[:, 1]]
