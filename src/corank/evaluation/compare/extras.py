"""What a report shows besides: calibration, coefficients, bounds, single queries, ranking against regression."""

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
from corank.data.problem.column_scales import column_factors
from corank.data.problem.queries import Queries
from corank.data.problem.ranking import RankingData
from corank.errors import InputError
from corank.estimator import reliability_curve
from corank.evaluation.bounds.bound import Bound
from corank.evaluation.bounds.kpartite import kpartite_interval
from corank.evaluation.compare.methods import Method
from corank.evaluation.compare.problem import Problem, comparable
from corank.evaluation.compare.values import Coefficient, DataSummary, QueryValue, ReliabilityPoint, TradeOffPoint
from corank.metrics import Evaluation, parse_metric

# more different scores than this are no grades
_SHOWN = ("numpy", "scipy", "scikit-learn", "numba")


def summarise(problem: Problem, name: str, columns: Sequence[str]) -> DataSummary:
    """
    Count what a reader wants to know of the data.

    problem: the rows.
    name: of the data.
    columns: names of the features.
    """
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
        grades=tuple(zip(grades.tolist(), counts.tolist(), strict=True)) if len(grades) <= _MOST_GRADES else (),
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
    """Return versions of corank and of what it stands on."""
    names = [*_SHOWN, *sorted({one.module for one in methods if one.module})]
    return {"corank": __version__, "python": platform.python_version(), **{name: version(name) for name in names}}


def _constant(X: Any) -> NDArray[np.bool_]:
    """Whether each column has one value only."""
    if sparse.issparse(X):
        low, high = X.min(axis=0).toarray().ravel(), X.max(axis=0).toarray().ravel()
    else:
        low, high = X.min(axis=0), X.max(axis=0)
    return np.asarray(low == high)


def _duplicated(X: Any, codes: NDArray[np.int64]) -> int:
    """Rows that repeat an earlier one of their query, told by their bytes."""
    seen: set[tuple[int, bytes]] = set()
    if sparse.issparse(X):
        ends = X.indptr
        parts = (X.indices[a:b].tobytes() + X.data[a:b].tobytes() for a, b in pairwise(ends))
        return len(codes) - len(seen.union(zip(codes.tolist(), parts, strict=True)))
    # −0 and 0 are one number and two patterns of bytes
    return len(codes) - len(
        seen.union((code, (row + 0.0).tobytes()) for code, row in zip(codes.tolist(), X, strict=True))
    )


Floats = NDArray[np.float64]

MIXES = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Shares of regression that are tried for the trade-off."""

# more different scores than this are no grades of relevance
_MOST_GRADES = 20


def reliability(problem: Problem, scores: Floats) -> tuple[ReliabilityPoint, ...]:
    """
    Calibrate out-of-fold scores by those of the other folds, and hold them against what was judged.

    scores: of ``problem.judged``.
    Returns: bins; empty where there are no grades, or a fold has too little to be calibrated by.
    """
    y, parts = problem.y[problem.judged], problem.parts[problem.judged]
    scored = ~np.isnan(y)
    y, parts, scores = y[scored], parts[scored], scores[scored]
    grades = np.unique(y)
    if not 2 <= len(grades) <= _MOST_GRADES:
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


def promised(problem: Problem, scores: Floats, n_models: int) -> tuple[Bound, ...]:
    """
    Bound the expected error of the winner, as it was learnt for the first fold, by the rows of that fold.

    One fold, since what the others say depends on it: they learnt from its rows. The mean over folds would not be
    narrower, for its width is that of the smallest fold (see `corank.evaluation.bounds.cv_bound`).

    scores: of ``problem.judged``.
    n_models: methods that these rows chose among.
    Returns: one bound; none where the fold holds no two rows of different score.
    """
    rows = problem.judged
    out = problem.parts[rows] == 0
    by_query = np.array_equal(problem.units[rows], problem.codes[rows])
    queries = problem.codes[rows][out] if by_query else None
    try:
        found = kpartite_interval(scores[out], problem.y[rows][out], queries, n_models=n_models)
    except InputError:
        return ()
    said_of = "It is said of the model of the first fold, which learnt from the others; the saved one learnt from all."
    dealt = () if by_query else ("Rows were dealt to folds by their grades, which is taken for chance.",)
    return (replace(found, name=f"{found.name}, first fold", assumptions=(*found.assumptions, said_of, *dealt)),)


def coefficients(problem: Problem, model: Any, columns: Sequence[str]) -> tuple[Coefficient, ...]:
    """
    Weigh the columns of a model that is linear in them.

    model: what was refitted; None where it could not be kept.
    columns: names of the columns.
    Returns: the largest first, by what a usual step in the column moves the score by; columns of weight 0 left out;
        empty where a step before the last makes of a column more than a multiple of it and a constant.
    """
    weights = _weights(model)
    if weights is None or weights.shape != (len(columns),):
        return ()
    queries = Queries.of(problem.codes, len(problem.codes))
    data = RankingData.of_checked(problem.X, np.asarray(problem.y), queries)
    moved = weights / column_factors(data)
    order = np.argsort(-np.abs(moved), kind="stable")
    return tuple(Coefficient(columns[at], float(weights[at]), float(moved[at])) for at in order if weights[at] != 0.0)


def _weights(model: Any) -> Floats | None:
    """Weights of the columns as they were given; None where the model is not known to be linear in them."""
    if hasattr(model, "best_estimator_"):
        return _weights(model.best_estimator_)
    if isinstance(model, Pipeline):
        weights = _weights(model[-1])
        for _, step in reversed(model.steps[:-1]):
            slopes = _slopes(step)
            if weights is None or slopes is None:
                return None
            weights = slopes * weights
        return weights
    if hasattr(model, "ranker_"):
        return _weights(model.ranker_)
    return np.asarray(model.coef_, dtype=np.float64) if hasattr(model, "coef_") else None


def _slopes(step: Any) -> Floats | float | None:
    """What a step multiplies each column by, beside a constant that it adds; None where it does something else."""
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
    """
    List queries by what the winner makes of them, the worst first.

    base: of another method, on the same rows.
    sizes: query to its rows and its scored rows.
    """
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
    """
    Lay ranking beside regression.

    found: mix to the evaluation of out-of-fold scores, MSE among its metrics.
    """
    return tuple(
        TradeOffPoint(mix, evaluation[metric].mean, float(evaluation["MSE"].micro or evaluation["MSE"].mean))
        for mix, evaluation in sorted(found.items())
    )
