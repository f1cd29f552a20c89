"""What a comparison of rankers found, as frozen values: data, methods, tests, the learning curve, the winner."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.evaluation.bounds.bound import Bound
from corank.evaluation.compare.display import leaderboard
from corank.metrics import Evaluation, PairedTest


@dataclass(frozen=True)
class DataSummary:
    """
    What was learnt from and judged by.

    Attributes
    ----------
    name : str
        The file, or "arrays".
    fingerprint : str
        Hash of rows, scores and query ids; results are kept under it.
    n_rows, n_features, n_queries : int
        Rows of the data (those of the pool are not among them), their columns, and their queries.
    grades : tuple of (float, int)
        Each different score and the number of rows that have it, ascending; empty where there are more than 20.
    n_unscored_rows, n_unscored_queries : int
        Rows without a score, and queries that have no other; nothing is judged by these.
    n_single_grade_queries, n_one_row_queries : int
        Queries whose scored rows all have one score (of one row or more), and queries of one row.
    n_duplicated_rows : int
        Rows whose features repeat those of an earlier row of their query.
    constant_columns : tuple of str
        Names, or 1-based numbers, of columns with one value only.
    n_pool_rows, n_pool_queries : int
        Further rows without scores that methods may learn from, and their queries.
    """

    name: str
    fingerprint: str
    n_rows: int
    n_features: int
    n_queries: int
    grades: tuple[tuple[float, int], ...]
    n_unscored_rows: int
    n_unscored_queries: int
    n_single_grade_queries: int
    n_one_row_queries: int
    n_duplicated_rows: int
    constant_columns: tuple[str, ...]
    n_pool_rows: int = 0
    n_pool_queries: int = 0


@dataclass(frozen=True, eq=False)
class Outcome:
    """
    What one method did on the folds that all methods share.

    Attributes
    ----------
    name : str
        As it is typed, such as "rankrls".
    title : str
        In words, such as "RankRLS".
    is_label_free : bool
        Whether it orders rows without any judgement.
    uses_unscored : bool
        Whether unscored rows, and those of the pool, change what it learns.
    complexity : int
        Place in the order from the simplest method (0) to the most involved.
    tuning : str
        How its parameters were chosen, in words; empty where none were.
    chosen : tuple of mapping
        The parameters that were chosen, one mapping for each outer fold that was done.
    evaluation : Evaluation or None
        Of the scores of every row by the model that had not seen its query, over all outer folds; None where a fold is
        missing.
    low, high : float
        Bootstrap interval of the mean of the study's metric over queries; NaN without an evaluation.
    fit_seconds, predict_seconds : float
        Processor time of all outer folds together, the tuning among them, compilation apart.
    peak_bytes : int
        The most memory that one fold's process held beyond what it held before it began to learn.
    n_done : int
        Outer folds that were done.
    error : str
        Why it failed, in a sentence; empty where it did not.
    is_cut : bool
        Whether the budget ended before all its folds were done.
    """

    name: str
    title: str
    is_label_free: bool
    uses_unscored: bool
    complexity: int
    tuning: str
    chosen: tuple[Mapping[str, Any], ...]
    evaluation: Evaluation | None
    low: float
    high: float
    fit_seconds: float
    predict_seconds: float
    peak_bytes: int
    n_done: int
    error: str = ""
    is_cut: bool = False

    @property
    def is_complete(self) -> bool:
        """Whether there is an evaluation of every query."""
        return self.evaluation is not None


@dataclass(frozen=True)
class CurvePoint:
    """
    One method, learnt from a share of the scored queries of the training parts, and judged as all methods are.

    Attributes
    ----------
    method : str
        Name of the outcome.
    fraction : float
        Share of the scored queries that kept their scores.
    n_queries : int
        How many that is, in the mean over folds, rounded.
    mean, low, high : float
        Mean of the metric over queries and its bootstrap interval; each query's value is the mean over the repeats.
    n_repeats : int
        How often the queries were drawn anew.
    """

    method: str
    fraction: float
    n_queries: int
    mean: float
    low: float
    high: float
    n_repeats: int


@dataclass(frozen=True)
class PathPoint:
    """
    One candidate of the refitted winner's tuning.

    Attributes
    ----------
    parameter : str
        Name, such as "alpha".
    value : float
        The candidate.
    mean : float
        Mean of the metric that chose, over held-out queries.
    is_chosen : bool
        Whether it is the one that was kept.
    """

    parameter: str
    value: float
    mean: float
    is_chosen: bool


@dataclass(frozen=True)
class ReliabilityPoint:
    """
    One bin of the winner's out-of-fold scores, calibrated, against what was judged.

    Attributes
    ----------
    predicted : float
        Mean predicted probability that a row is relevant (its grade above the lowest).
    observed : float
        Share that is.
    n_rows : int
        Rows in the bin.
    """

    predicted: float
    observed: float
    n_rows: int


@dataclass(frozen=True)
class Coefficient:
    """
    Weight of one column in the refitted winner.

    Attributes
    ----------
    column : str
        Name, or 1-based number.
    weight : float
        As the column was given.
    scaled : float
        The weight times the column's deviation inside queries: what a usual step in the column moves the score by.
    """

    column: str
    weight: float
    scaled: float


@dataclass(frozen=True)
class QueryValue:
    """
    One query by the winner and by the method it is held against (the simplest, or else the best other one).

    Attributes
    ----------
    query : str
        Its id.
    n_rows, n_scored : int
        Its rows, and those with a score.
    value, base : float
        The study's metric by the winner and by the other.
    """

    query: str
    n_rows: int
    n_scored: int
    value: float
    base: float


@dataclass(frozen=True)
class TradeOffPoint:
    """
    Ranking against regression: out-of-fold figures of CRR at one mix.

    Attributes
    ----------
    mix : float
        Share of regression.
    mean : float
        The study's metric.
    squared_error : float
        Mean squared error of the scores.
    """

    mix: float
    mean: float
    squared_error: float


@dataclass(frozen=True, eq=False, repr=False)
class Study:
    """
    Everything a comparison found.

    Attributes
    ----------
    data : DataSummary
        What was learnt from.
    metric : str
        What methods are chosen and ordered by.
    metrics : tuple of str
        All metrics that were evaluated, that one first.
    convention : str
        How their names are read.
    larger_is_better : bool
        Direction of `metric`.
    level : float
        Level of all intervals.
    outcomes : tuple of Outcome
        The best first; those without an evaluation last.
    tests : tuple of PairedTest
        The best against every other complete outcome, Holm's correction over them; then, with a correction of its own,
        the simplest against every other.
    curve : tuple of CurvePoint
        By method, fraction ascending; empty where none was asked for or the budget had ended.
    best, simplest, winner : str
        Names of the outcome of the best mean, of the simplest complete one, and of the one that was chosen; empty where
        none is complete.
    rule : str
        How the winner is chosen, a sentence.
    verdict : str
        What was found, a sentence.
    notes : tuple of str
        What a reader has to know besides: methods that were left out and why, what the budget ended.
    folds, seed : int
        Outer folds, and the seed of every draw.
    versions : mapping of str to str
        Of corank and of what it stands on.
    command : str
        What repeats the study.
    seconds : float
        Wall-clock time of this run, what earlier runs had done not counted.
    model : Path or None
        The file of the refitted winner, where it was saved.
    ranker : Ranker or None
        The refitted winner itself; None where it could not be saved and loaded.
    path : tuple of PathPoint
        The refitted winner's candidates, where its tuning is a path.
    reliability : tuple of ReliabilityPoint
        Of the winner's out-of-fold scores; empty where a grade of relevance cannot be told.
    coefficients : tuple of Coefficient
        Of a refitted winner that is linear in the columns, the largest scaled ones first.
    queries : tuple of QueryValue
        Every judged query, those first on which the winner does worst.
    trade_off : tuple of TradeOffPoint
        Mix ascending; empty where CRR was not among the methods.
    bounds : tuple of Bound
        What theory promises for the winner, with what is assumed.
    """

    data: DataSummary
    metric: str
    metrics: tuple[str, ...]
    convention: str
    larger_is_better: bool
    level: float
    outcomes: tuple[Outcome, ...]
    tests: tuple[PairedTest, ...]
    curve: tuple[CurvePoint, ...]
    best: str
    simplest: str
    winner: str
    rule: str
    verdict: str
    notes: tuple[str, ...]
    folds: int
    seed: int
    versions: Mapping[str, str]
    command: str
    seconds: float
    model: Path | None = None
    ranker: Any = None
    path: tuple[PathPoint, ...] = ()
    reliability: tuple[ReliabilityPoint, ...] = ()
    coefficients: tuple[Coefficient, ...] = ()
    queries: tuple[QueryValue, ...] = ()
    trade_off: tuple[TradeOffPoint, ...] = ()
    bounds: tuple[Bound, ...] = ()

    def __repr__(self) -> str:
        methods = ", ".join(one.name for one in self.outcomes)
        return f"<Study of {self.data.name} by {self.metric}: {methods}; winner {self.winner or 'none'}>"

    def outcome(self, name: str) -> Outcome:
        """
        Look up one method.

        Parameters
        ----------
        name : str
            As in `outcomes`.

        Returns
        -------
        Outcome
            What it did.
        """
        return next(one for one in self.outcomes if one.name == name)

    def values(self, name: str) -> NDArray[np.float64]:
        """
        Return the values of the study's metric per query of one complete outcome.

        Parameters
        ----------
        name : str
            As in `outcomes`.

        Returns
        -------
        array of shape (n_queries,)
            In the order of its evaluation's `query_ids`; NaN where the query is left out.
        """
        evaluation = self.outcome(name).evaluation
        if evaluation is None:
            raise KeyError(f"{name} has no evaluation")
        return evaluation[self.metric].values

    def to_frame(self) -> Any:
        """
        Return the methods, the best first, as a pandas DataFrame.

        Returns
        -------
        DataFrame
            Means, intervals, tests, times and memory, a row a method.
        """
        return leaderboard(self).to_frame()

    def to_latex(self) -> str:
        """
        Return the methods, the best first, as a LaTeX table; the rules are those of the package ``booktabs``.

        Returns
        -------
        str
            A ``table`` environment.
        """
        return leaderboard(self).to_latex()

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        return f"<p>{escape(self.verdict)}</p>\n{leaderboard(self).html()}"
