"""Carry out a comparison: all folds, the choice of a winner, learning curve, refit, further results."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.isotonic import IsotonicRegression
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

from corank._version import __version__
from corank.base import reliability_curve
from corank.comparison.fold import Settings
from corank.comparison.methods import Method, trade_off
from corank.comparison.problem import ComparisonProblem, InputRows, comparable
from corank.comparison.results import FoldTask, keep_model, model_file
from corank.comparison.runner import TaskRunner
from corank.comparison.values import (
    Coefficient,
    CurvePoint,
    DataSummary,
    MethodOutcome,
    PathPoint,
    QueryValue,
    ReliabilityPoint,
    Study,
    TradeOffPoint,
)
from corank.comparison.winner import RANDOM, RULE, WinnerChoice, choose_winner, quality
from corank.data.column_scales import column_factors
from corank.data.queries import Queries
from corank.data.ranking import RankingData
from corank.errors import InputError
from corank.metrics import Evaluation, parse_metric
from corank.metrics.bounds.bound import Bound
from corank.metrics.bounds.kpartite import kpartite_interval

LEVEL = 0.95
"""Level of all intervals."""

# shares of the budget for the methods, and for all fits; the rest is for writing results
_METHODS_UNTIL, _ALL_UNTIL = 0.75, 0.9


@dataclass(frozen=True, eq=False)
class ComparisonPlan:
    """The inputs of a comparison; see `compare`."""

    inputs: InputRows
    problem: ComparisonProblem
    methods: dict[str, Method]
    settings: Settings
    metrics: tuple[str, ...]
    fractions: tuple[float, ...]
    n_repeats: int
    began: float
    budget: float | None
    name: str
    command: str
    notes: tuple[str, ...]

    @property
    def mixes(self) -> dict[float, Method]:
        """CRR at several mixes, if it was requested by name."""
        crr = self.methods.get("crr")
        return {} if crr is None or crr.signature else {mix: trade_off(mix) for mix in MIXES}

    @property
    def all_methods(self) -> dict[str, Method]:
        """The methods and CRR at several mixes, by name."""
        return {**self.methods, **{mix.name: mix for mix in self.mixes.values()}}

    def carry_out(self, runner: TaskRunner, folder: Path | None) -> Study:
        """Run everything and return the study."""
        metric, seed = self.metrics[0], self.settings.seed
        by_cost = sorted(self.methods, key=lambda name: self.methods[name].cost)
        # label-free methods take almost no time and are run whatever the budget
        free = [name for name in by_cost if self.methods[name].is_label_free]
        runner.run([task for name in free for task in runner.tasks_of(name)], "label-free methods", None)
        tasks = [task for name in by_cost for task in runner.tasks_of(name)]
        runner.run(tasks, f"{len(by_cost)} methods", self._until(_METHODS_UNTIL), self._until(_ALL_UNTIL))
        outcomes = [runner.outcome(name) for name in self.methods]
        outcomes.sort(key=lambda entry: (entry.evaluation is None, -quality(entry, metric), entry.complexity))
        choice = choose_winner(outcomes, metric, LEVEL, seed, self.problem.unit)
        curve: tuple[CurvePoint, ...] = ()
        trade: tuple[TradeOffPoint, ...] = ()
        if choice.winner:
            shown = _curve_methods(outcomes, choice)
            until = self._until(_ALL_UNTIL, runner.refit_seconds(choice.winner))
            curve = runner.curve(shown, self.fractions, self.n_repeats, until) if self.fractions else ()
            trade = self._trade(runner, until)
        model, path, notes = self._refit(runner, choice.winner, folder)
        columns = self.inputs.column_names(self.problem.X.shape[1])
        refitted = runner.known.get(FoldTask(choice.winner, None))
        scores = runner.scores(runner.tasks_of(choice.winner)) if choice.winner else None
        return Study(
            data=summarise(self.problem, self.name, columns),
            metric=metric,
            metrics=self.metrics,
            convention=self.settings.convention.name,
            larger_is_better=parse_metric(metric).measure.larger_is_better,
            level=LEVEL,
            outcomes=tuple(outcomes),
            tests=choice.tests,
            curve=curve,
            best=choice.best,
            simplest=choice.simplest,
            winner=choice.winner,
            rule=RULE,
            verdict=choice.sentence,
            notes=(*self.notes, *_cut(outcomes, self.budget), *self._late(runner.left), *notes),
            folds=self.problem.n_folds,
            seed=seed,
            versions=versions(self.methods.values()),
            command=self.command,
            seconds=monotonic() - self.began,
            model=path,
            ranker=model,
            path=() if refitted is None else tuple(PathPoint(*item) for item in refitted.path),
            reliability=() if scores is None else reliability(self.problem, scores),
            coefficients=coefficients(self.problem, model, columns),
            queries=_by_query(runner, outcomes, choice),
            trade_off=trade,
            bounds=()
            if scores is None
            else error_bounds(self.problem, scores, sum(item.is_complete for item in outcomes)),
            rivals=choice.rivals,
        )

    def _until(self, share: float, reserve: float = 0.0) -> float | None:
        return None if self.budget is None else self.began + share * self.budget - reserve

    def _trade(self, runner: TaskRunner, deadline: float | None) -> tuple[TradeOffPoint, ...]:
        """Fit CRR at every mix and return its ranking metric and squared error."""
        tasks = {mix: runner.tasks_of(method.name) for mix, method in self.mixes.items()}
        runner.run([task for of in tasks.values() for task in of], "ranking and regression", deadline)
        scores = {mix: runner.scores(of) for mix, of in tasks.items()}
        metrics = list(dict.fromkeys((self.metrics[0], "MSE")))
        result = {mix: runner.evaluator.evaluate(item, metrics) for mix, item in scores.items() if item is not None}
        return trade_off_points(result, self.metrics[0])

    def _late(self, left: set[FoldTask]) -> list[str]:
        """Return a note about points that the budget left out; `_cut` reports methods."""
        of_mixes = {method.name for method in self.mixes.values()}
        lacks = {
            "the learning curve": any(task.fraction < 1.0 for task in left),
            "the trade-off of ranking and regression": any(task.method in of_mixes for task in left),
        }
        short = " and ".join(name for name, is_short in lacks.items() if is_short)
        return [f"The budget ended before all points of {short} were computed; run again to continue."] if short else []

    def _refit(self, runner: TaskRunner, winner: str, folder: Path | None) -> tuple[Any, Path | None, tuple[str, ...]]:
        """Fit the winner on all rows; return the model, its file, and notes about failures."""
        if not winner:
            return None, None, ()
        task, method = FoldTask(winner, None), self.methods[winner]
        runner.run([task], "the winner", None)
        if task not in runner.known:
            return None, None, (f"The winner could not be fitted on all rows: {runner.error_of(task)}",)
        if runner.known[task].note:
            return None, None, (f"The winner could not be saved: {runner.known[task].note}",)
        source = model_file(runner.results.file(task, method))
        path = None if folder is None else keep_model(source, folder)
        return runner.results.model(task, method), path, ()


def _cut(outcomes: Sequence[MethodOutcome], budget: float | None) -> list[str]:
    cut = [outcome.title for outcome in outcomes if outcome.is_cut]
    if not cut or budget is None:
        return []
    return [
        f"The budget of {budget:g} s ended before these methods were finished: {'; '.join(cut)}. Run again to "
        "continue; a run needs time for at least one fold of a method."
    ]


def _curve_methods(outcomes: Sequence[MethodOutcome], choice: WinnerChoice) -> list[str]:
    """Choose methods for the curve: winner, best, simplest, best learnt, LightGBM and the label-free ones."""
    complete = [outcome for outcome in outcomes if outcome.evaluation is not None]
    learns = next((item.name for item in complete if not item.is_label_free), "")
    wanted = (choice.winner, choice.best, choice.simplest, learns, "lightgbm")
    return [item.name for item in complete if item.name in wanted or (item.is_label_free and item.name != RANDOM)]


def _by_query(runner: TaskRunner, outcomes: Sequence[MethodOutcome], choice: WinnerChoice) -> tuple[QueryValue, ...]:
    """Return the values of each query for the winner and for the simplest or else the best other method."""
    complete = {outcome.name: outcome.evaluation for outcome in outcomes if outcome.evaluation is not None}
    others = [name for name in (choice.simplest, *complete) if name != choice.winner]
    if not choice.winner or not others:
        return ()
    winner, base = complete[choice.winner], complete[others[0]]
    return worst_queries(winner, base, runner.metrics[0], runner.evaluator.sizes)


Floats = NDArray[np.float64]

MIXES = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Values of CRR's mix in the trade-off of ranking and regression."""

# more different scores than this are not grades
# more different scores than this are not grades
_MAX_GRADES = 20

# packages whose versions a study lists
_SHOWN = ("numpy", "scipy", "scikit-learn", "numba")


def summarise(problem: ComparisonProblem, name: str, columns: Sequence[str]) -> DataSummary:
    """Count rows, queries, grades and peculiarities of the data."""
    n = problem.n_own
    X, y, codes = problem.X[:n], problem.y[:n], problem.codes[:n]
    scored = ~np.isnan(y)
    grades, counts = np.unique(y[scored], return_counts=True)
    queries, sizes = np.unique(codes, return_counts=True)
    judged = np.unique(codes[scored])
    constant = _constant(X)
    return DataSummary(
        name=name,
        fingerprint=problem.fingerprint,
        n_rows=n,
        n_features=X.shape[1],
        n_queries=len(queries),
        grades=tuple(zip(grades.tolist(), counts.tolist(), strict=True)) if len(grades) <= _MAX_GRADES else (),
        n_unscored_rows=int(np.count_nonzero(~scored)),
        n_unscored_queries=len(queries) - len(judged),
        n_single_grade_queries=len(judged) - len(comparable(y[scored], codes[scored])),
        n_one_row_queries=int(np.count_nonzero(sizes == 1)),
        n_duplicated_rows=_duplicated(X, codes),
        constant_columns=tuple(name for name, same in zip(columns, constant, strict=True) if same),
        n_pool_rows=len(problem.y) - n,
        n_pool_queries=len(np.unique(problem.codes[n:])),
    )


def versions(methods: Iterable[Method]) -> dict[str, str]:
    """Return the versions of corank and of its main dependencies."""
    names = [*_SHOWN, *sorted({method.module for method in methods if method.module})]
    return {"corank": __version__, "python": platform.python_version(), **{name: version(name) for name in names}}


def _constant(X: Any) -> NDArray[np.bool_]:
    """Return whether each column is constant."""
    if sparse.issparse(X):
        low, high = X.min(axis=0).toarray().ravel(), X.max(axis=0).toarray().ravel()
    else:
        low, high = X.min(axis=0), X.max(axis=0)
    return np.asarray(low == high)


def _duplicated(X: Any, codes: NDArray[np.int64]) -> int:
    """Count the rows that are equal to an earlier row of their query."""
    seen: set[tuple[int, bytes]] = set()
    if sparse.issparse(X):
        ends = X.indptr
        parts = (X.indices[a:b].tobytes() + X.data[a:b].tobytes() for a, b in pairwise(ends))
        return len(codes) - len(seen.union(zip(codes.tolist(), parts, strict=True)))
    # adding 0 turns −0 into 0, whose bytes differ
    return len(codes) - len(
        seen.union((code, (row + 0.0).tobytes()) for code, row in zip(codes.tolist(), X, strict=True))
    )


def reliability(problem: ComparisonProblem, scores: Floats) -> tuple[ReliabilityPoint, ...]:
    """Calibrate out-of-fold scores on the other folds and compare them with the judgements."""
    y, parts = problem.y[problem.judged], problem.parts[problem.judged]
    scored = ~np.isnan(y)
    y, parts, scores = y[scored], parts[scored], scores[scored]
    grades = np.unique(y)
    if not 2 <= len(grades) <= _MAX_GRADES:
        return ()
    relevant = (y > grades[0]).astype(np.float64)
    predicted = np.empty(len(y))
    for fold in np.unique(parts):
        out = parts == fold
        if len(np.unique(relevant[~out])) < 2:
            return ()
        curve = IsotonicRegression(out_of_bounds="clip").fit(scores[~out], relevant[~out])
        predicted[out] = curve.predict(scores[out])
    result = reliability_curve(relevant, np.clip(predicted, 0.0, 1.0))
    bins = zip(result.predicted.tolist(), result.observed.tolist(), result.counts.tolist(), strict=True)
    return tuple(ReliabilityPoint(*bin_) for bin_ in bins)


def error_bounds(problem: ComparisonProblem, scores: Floats, n_models: int) -> tuple[Bound, ...]:
    """
    Bound the expected error of the winner's model of the first fold, using the test rows of that fold.

    One fold only: the models of the others were trained on its rows. The mean over folds would not be narrower, since
    its width is that of the smallest fold (see `corank.metrics.bounds.cv_bound`).
    """
    rows = problem.judged
    out = problem.parts[rows] == 0
    by_query = np.array_equal(problem.units[rows], problem.codes[rows])
    queries = problem.codes[rows][out] if by_query else None
    try:
        result = kpartite_interval(scores[out], problem.y[rows][out], queries, n_models=n_models)
    except InputError:
        return ()
    model = "The bound is for the model of the first fold, trained on the others; the saved model is trained on all."
    stratified = () if by_query else ("Folds were stratified by grade, which is treated as a random assignment.",)
    return (replace(result, name=f"{result.name}, first fold", assumptions=(*result.assumptions, model, *stratified)),)


def coefficients(problem: ComparisonProblem, model: Any, columns: Sequence[str]) -> tuple[Coefficient, ...]:
    """Return the non-zero weights of a linear model, ordered by weight times standard deviation of the column."""
    weights = _weights(model)
    if weights is None or weights.shape != (len(columns),):
        return ()
    queries = Queries.of(problem.codes, len(problem.codes))
    data = RankingData.of_checked(problem.X, np.asarray(problem.y), queries)
    moved = weights / column_factors(data)
    order = np.argsort(-np.abs(moved), kind="stable")
    return tuple(Coefficient(columns[i], float(weights[i]), float(moved[i])) for i in order if weights[i] != 0.0)


def _weights(model: Any) -> Floats | None:
    """Return the weights of the given columns; None if the model is not linear in them."""
    if hasattr(model, "best_estimator_"):
        return _weights(model.best_estimator_)
    if isinstance(model, Pipeline):
        weights = _weights(model[-1])
        for _, step in reversed(model.steps[:-1]):
            factors = _factors(step)
            if weights is None or factors is None:
                return None
            weights = factors * weights
        return weights
    if hasattr(model, "ranker_"):
        return _weights(model.ranker_)
    return np.asarray(model.coef_, dtype=np.float64) if hasattr(model, "coef_") else None


def _factors(step: Any) -> Floats | float | None:
    """Return the factors of an affine preprocessing step; None for other steps."""
    if step in (None, "passthrough"):
        return 1.0
    if type(step) in (StandardScaler, MaxAbsScaler):
        return 1.0 if step.scale_ is None else 1.0 / np.asarray(step.scale_, dtype=np.float64)
    if type(step) is MinMaxScaler and not step.clip:
        return np.asarray(step.scale_, dtype=np.float64)
    return None


def worst_queries(
    winner: Evaluation, base: Evaluation, metric: str, sizes: Mapping[Any, tuple[int, int]]
) -> tuple[QueryValue, ...]:
    """Return the queries in order of the winner's metric, the worst first."""
    sign = 1.0 if parse_metric(metric).measure.larger_is_better else -1.0
    values, others = winner[metric].values, base[metric].values
    order = np.argsort(sign * values, kind="stable")
    ids = winner.query_ids.tolist()
    return tuple(
        QueryValue(str(ids[i]), *sizes[ids[i]], float(values[i]), float(others[i]))
        for i in order
        if not np.isnan(values[i])
    )


def trade_off_points(found: Mapping[float, Evaluation], metric: str) -> tuple[TradeOffPoint, ...]:
    """Return the ranking metric and the squared error for each mix."""
    return tuple(
        TradeOffPoint(mix, evaluation[metric].mean, float(evaluation["MSE"].micro or evaluation["MSE"].mean))
        for mix, evaluation in sorted(found.items())
    )
