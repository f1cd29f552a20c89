"""Task: a problem as the compiled descent sees it, laws to draw from and rows to read, and a sample to judge it by."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from corank.core.coupled import Columns
from corank.core.dice import alias_table
from corank.core.pairs import LISTED, PairIndex
from corank.core.rows import as_core_rows
from corank.core.steps import Examples, RowIndex
from corank.data.ranking import RankingData
from corank.errors import InputError
from corank.losses import Loss
from corank.sampling import PairSampler

Floats = NDArray[np.float64]
Views = list[NDArray[np.int64]]

# pairs by which the first rate and the trace of the objective are measured, and the most numbers they may hold
_SAMPLE = 1000
_SAMPLE_NUMBERS = 2**23


@dataclass(frozen=True)
class Objective:
    """
    Σ_v [mix · mean_D ℓ + (1 − mix) · mean_P ℓ + alpha/2 ‖w_v‖² + l1 ‖w_v‖₁] + coupling · Σ_{v,u} mean_P̂ (m_v − m_u)².

    Attributes
    ----------
    loss : Loss
        ℓ.
    mix, alpha, l1, coupling : float
        As in the formula.
    fit_intercept : bool
        Whether the regression part has a bias.
    sampling : str
        The law of the pairs, see `PairSampler`.
    """

    loss: Loss
    mix: float
    alpha: float
    l1: float
    coupling: float
    fit_intercept: bool
    sampling: str


@dataclass(frozen=True, eq=False)
class Task:
    """
    What a descent draws from and reads; X is neither copied nor read as a whole.

    Attributes
    ----------
    rows : ndarray or CSRRows
        The rows of X.
    examples : Examples
        The laws.
    columns : Columns
        Which views see which columns.
    n_skipped_queries : int
        Queries that hold no pair.
    objective : Objective
        What is minimised; coupling is 0 where there is no unscored pair.
    sample : Sample
        What the objective is estimated on.
    """

    rows: Any
    examples: Examples
    columns: Columns
    n_skipped_queries: int
    objective: Objective
    sample: Sample

    @classmethod
    def of(
        cls,
        data: RankingData,
        objective: Objective,
        views: Views | None,
        weights: Floats | None,
        rng: np.random.Generator,
    ) -> Task:
        """
        Index a problem.

        Parameters
        ----------
        data : RankingData
            The problem.
        objective : Objective
            What is to be minimised.
        views : list of int arrays, optional
            Columns of each view; one view of all columns by default.
        weights : array of shape (n_rows,), optional
            Row weights.
        rng : numpy.random.Generator
            Draws the sample.

        Returns
        -------
        Task
            The indexed problem.
        """
        if data.y is not None:
            scored = data.is_scored
            objective.loss.require_scores(data.y[scored], data.queries.codes[scored], objective.mix > 0.0)
        pairs = None if objective.mix >= 1.0 else PairSampler.of(data, objective.sampling, weights=weights)
        unscored = _unscored(data, weights) if objective.coupling > 0.0 else None
        share = 0.0 if unscored is None else distinct_share(data, weights)
        objective = replace(objective, coupling=objective.coupling * share)
        rows = _row_law(data, weights) if objective.mix > 0.0 else _no_rows()
        examples = Examples(
            np.empty(0) if data.y is None else data.y,
            _nothing() if pairs is None else pairs.index,
            _nothing() if unscored is None else unscored.index,
            rows,
        )
        sample = Sample.of(data, objective, pairs, unscored, rows, rng)
        skipped = 0 if pairs is None else pairs.n_skipped_queries
        return cls(as_core_rows(data.X), examples, _columns(data.X, views), skipped, objective, sample)


@dataclass(frozen=True, eq=False)
class Sample:
    """
    Examples drawn once, by which a model is judged while it learns.

    Attributes
    ----------
    pairs, rows, unscored : matrix of shape (n, n_features)
        Differences of scored pairs, single rows, differences of unscored pairs.
    pair_targets, row_targets : array of shape (n,)
        Targets of the first two.
    """

    pairs: Any
    pair_targets: Floats
    rows: Any
    row_targets: Floats
    unscored: Any

    @classmethod
    def of(
        cls,
        data: RankingData,
        objective: Objective,
        pairs: PairSampler | None,
        unscored: PairSampler | None,
        rows: RowIndex,
        rng: np.random.Generator,
    ) -> Sample:
        """Draw from the laws of a task; see `Task.of`."""
        n = int(np.clip(_SAMPLE_NUMBERS // data.n_features, 1, _SAMPLE))
        drawn = np.empty((0, 2), dtype=np.int64) if pairs is None else pairs.draw(n, rng)
        free = np.empty((0, 2), dtype=np.int64) if unscored is None else unscored.draw(n, rng)
        y = np.empty(0) if data.y is None else data.y
        gaps = np.ones(len(drawn)) if data.y is None else y[drawn[:, 0]] - y[drawn[:, 1]]
        single = _draw_rows(rows, n, rng) if len(rows.rows) else np.empty(0, dtype=np.int64)
        return cls(
            _differences(data.X, drawn), objective.loss.pair_target(gaps), data.X[single], y[single],
            _differences(data.X, free),
        )  # fmt: skip

    def objective(self, objective: Objective, W: Floats, biases: Floats) -> float:
        """
        Estimate the objective.

        Parameters
        ----------
        objective : Objective
            What is minimised.
        W : array of shape (n_views, n_features)
            Weights of each view in the columns of X.
        biases : array of shape (n_views,)
            Bias of each view.

        Returns
        -------
        float
            The estimate.
        """
        total = 0.5 * objective.alpha * float(np.sum(W * W)) + objective.l1 * float(np.abs(W).sum())
        for w, bias in zip(W, biases, strict=True):
            if objective.mix < 1.0:
                costs = objective.loss.value(self.pair_targets, self.pairs @ w)
                total += (1.0 - objective.mix) * float(costs.mean())
            if objective.mix > 0.0:
                total += objective.mix * float(objective.loss.value(self.row_targets, self.rows @ w + bias).mean())
        if objective.coupling > 0.0:
            margins = self.unscored @ W.T
            # Σ_{v,u} (m_v − m_u)² = 2 M Σ_v m_v² − 2 (Σ_v m_v)²
            gaps = 2.0 * len(W) * (margins**2).sum(axis=1) - 2.0 * margins.sum(axis=1) ** 2
            total += objective.coupling * float(gaps.mean())
        return total

    def curvature(self, objective: Objective, n_views: int) -> float:
        """
        Bound how fast a slope of the objective can turn along one sampled example: ℓ'' ‖p‖² + 4 coupling M ‖p̂‖².

        Parameters
        ----------
        objective : Objective
            What is minimised.
        n_views : int
            M.

        Returns
        -------
        float
            The bound, 1 where all examples are zero.
        """
        loss = objective.loss.curvature if np.isfinite(objective.loss.curvature) else 1.0
        single = _largest_square(self.rows) + (1.0 if objective.mix > 0.0 and objective.fit_intercept else 0.0)
        bound = loss * max(_largest_square(self.pairs), single)
        bound += 4.0 * objective.coupling * n_views * _largest_square(self.unscored)
        return bound if bound > 0.0 else 1.0


def distinct_share(data: RankingData, weights: Floats | None) -> float:
    """
    Probability that two unscored rows of one query, drawn independently ∝ their weights, are two different rows.

    A row drawn twice differs from itself by nothing, so the mean over P̂ is this share of the mean over distinct pairs;
    counting it keeps a row of weight 2 worth the row written twice.

    Parameters
    ----------
    data : RankingData
        The problem.
    weights : array of shape (n_rows,), optional
        Row weights.

    Returns
    -------
    float
        1 − Σ w² / Σ_q W_q², W_q the weight of the unscored rows of query q; 0 without unscored rows.
    """
    w = np.where(data.is_scored, 0.0, 1.0 if weights is None else weights)
    of_queries = np.bincount(data.queries.codes, weights=w)
    return 1.0 - float(np.sum(w * w) / np.sum(of_queries**2)) if w.any() else 0.0


def _unscored(data: RankingData, weights: Floats | None) -> PairSampler | None:
    """Law of the unscored pairs; None where no query holds two unscored rows of positive weight."""
    free = ~data.is_scored if weights is None else ~data.is_scored & (weights > 0)
    if not (np.bincount(data.queries.codes[free], minlength=1) > 1).any():
        return None
    return PairSampler.of(data, unscored=True, weights=weights)


def _row_law(data: RankingData, weights: Floats | None) -> RowIndex:
    if data.y is None:
        raise InputError("mix above 0 learns the scores of rows, but preference pairs carry none; set mix=0 or pass y.")
    rows = np.flatnonzero(data.is_scored)
    if not len(rows):
        raise InputError(f"y is NaN for all {data.n_rows} rows; score at least two rows of one query.")
    w = np.ones(len(rows)) if weights is None else weights[rows]
    rows, w = rows[w > 0], w[w > 0]
    if not len(rows):
        raise InputError("sample_weight is 0 for every scored row; give some scored rows a positive weight.")
    return RowIndex(alias_table(w), rows.astype(np.uint32))


def _draw_rows(law: RowIndex, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
    faces = rng.integers(0, len(law.rows), n)
    keeps = rng.integers(0, 2**64, n, dtype=np.uint64) < law.table[faces, 0]
    return law.rows[np.where(keeps, faces, law.table[faces, 1].astype(np.int64))].astype(np.int64)


def _no_rows() -> RowIndex:
    return RowIndex(np.empty((0, 2), dtype=np.uint64), np.empty(0, dtype=np.uint32))


def _nothing() -> PairIndex:
    words = np.empty((0, 2), dtype=np.uint64)
    narrow = np.empty(0, dtype=np.uint32)
    return PairIndex(LISTED, words, np.empty((0, 4), dtype=np.uint32), narrow, narrow, np.empty((0, 3)))


def _columns(X: Any, views: Views | None) -> Columns:
    d = X.shape[1]
    width = d if not sparse.issparse(X) else int(min(d, 2 * np.diff(X.indptr).max(initial=0)))
    if views is None:
        return Columns(np.arange(d + 1, dtype=np.uint64), np.zeros(d, dtype=np.uint64), width)
    columns = np.concatenate(views)
    slots = np.argsort(columns, kind="stable")
    starts = np.searchsorted(columns[slots], np.arange(d + 1))
    view = np.repeat(np.arange(len(views)), [len(v) for v in views])[slots]
    return Columns(starts.astype(np.uint64), view.astype(np.uint64), width)


def _differences(X: Any, pairs: NDArray[np.int64]) -> Any:
    return X[pairs[:, 0]] - X[pairs[:, 1]]


def _largest_square(rows: Any) -> float:
    rows = rows.astype(np.float64)
    squares = rows.multiply(rows) if sparse.issparse(rows) else rows * rows
    return float(np.asarray(squares.sum(axis=1)).max(initial=0.0))
