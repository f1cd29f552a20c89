"""Further results of a study: data summary, calibration, bounds, coefficients, single queries, trade-off."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.isotonic import IsotonicRegression
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

from corank._version import __version__
from corank.base import reliability_curve
from corank.comparison.methods import Method
from corank.comparison.problem import ComparisonProblem, comparable
from corank.comparison.values import Coefficient, DataSummary, QueryValue, ReliabilityPoint, TradeOffPoint
from corank.data.column_scales import column_factors
from corank.data.queries import Queries
from corank.data.ranking import RankingData
from corank.errors import InputError
from corank.metrics import Evaluation, parse_metric
from corank.metrics.bounds.bound import Bound
from corank.metrics.bounds.kpartite import kpartite_interval

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
    names = [*_SHOWN, *sorted({one.module for one in methods if one.module})]
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
    found = reliability_curve(relevant, np.clip(predicted, 0.0, 1.0))
    bins = zip(found.predicted.tolist(), found.observed.tolist(), found.counts.tolist(), strict=True)
    return tuple(ReliabilityPoint(*one) for one in bins)


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
        found = kpartite_interval(scores[out], problem.y[rows][out], queries, n_models=n_models)
    except InputError:
        return ()
    model = "The bound is for the model of the first fold, trained on the others; the saved model is trained on all."
    stratified = () if by_query else ("Folds were stratified by grade, which is treated as a random assignment.",)
    return (replace(found, name=f"{found.name}, first fold", assumptions=(*found.assumptions, model, *stratified)),)


def coefficients(problem: ComparisonProblem, model: Any, columns: Sequence[str]) -> tuple[Coefficient, ...]:
    """Return the non-zero weights of a linear model, ordered by weight times standard deviation of the column."""
    weights = _weights(model)
    if weights is None or weights.shape != (len(columns),):
        return ()
    queries = Queries.of(problem.codes, len(problem.codes))
    data = RankingData.of_checked(problem.X, np.asarray(problem.y), queries)
    moved = weights / column_factors(data)
    order = np.argsort(-np.abs(moved), kind="stable")
    return tuple(Coefficient(columns[at], float(weights[at]), float(moved[at])) for at in order if weights[at] != 0.0)


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
        QueryValue(str(ids[at]), *sizes[ids[at]], float(values[at]), float(others[at]))
        for at in order
        if not np.isnan(values[at])
    )


def trade_off_points(found: Mapping[float, Evaluation], metric: str) -> tuple[TradeOffPoint, ...]:
    """Return the ranking metric and the squared error for each mix."""
    return tuple(
        TradeOffPoint(mix, evaluation[metric].mean, float(evaluation["MSE"].micro or evaluation["MSE"].mean))
        for mix, evaluation in sorted(found.items())
    )
