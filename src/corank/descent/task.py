"""Task: a problem as the compiled descent sees it, laws to draw from and rows to read."""

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
from corank.core.sgd_parts import Examples, RowIndex
from corank.data.ranking import RankingData
from corank.descent.objective import Objective, Sample
from corank.errors import InputError
from corank.sampling import PairSampler

Floats = NDArray[np.float64]
Views = list[NDArray[np.int64]]


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
