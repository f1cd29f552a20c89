"""
Model cards: what a model is, its metrics with intervals, its features, calibration and limits, how to repeat it.

Importance of features by permutation inside queries.

Column j of X is permuted inside every query, so that it says nothing about the order of the rows of a query while its
distribution in each query stays the same. The importance of j is the mean loss of the metric,

    I_j = 1/(Q R) Σ_r Σ_q [ metric_q(f(X)) − metric_q(f(X^(j, r))) ] ,

over R permutations r and Q queries q. A permutation over all rows, as scikit-learn does it, also moves values between
queries, which changes no order that is evaluated but lets a model see rows that no query has.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from corank._version import __version__
from corank.base.calibration import reliability_curve
from corank.base.priors import ColumnMean
from corank.comparison.report import Document, PageBlock, bullets, code, facts, paragraph, part
from corank.data.column_roles import column_name
from corank.data.columns import MissingValues
from corank.data.inputs import as_scores
from corank.data.queries import Queries
from corank.data.routing import predict_with_qid
from corank.data.rows import as_rows, encode_like, has_missing
from corank.errors import InputError
from corank.metrics import Evaluation, evaluate, parse_metric
from corank.metrics.significance import few_note, sign_flip
from corank.parameters import check_values, integer, rng_of, seed
from corank.tables import Cell, ReportTable

FEW_QUERIES = 30
"""Number of evaluated queries below which the card warns of wide intervals."""
MAX_FEATURES = 20
"""Rows of the table of features."""

Floats = NDArray[np.float64]


def model_card(
    model: Any,
    X: Any,
    y: ArrayLike,
    qid: ArrayLike | None = None,
    *,
    metrics: Sequence[str] = ("nDCG@10", "AP"),
    convention: str = "corank",
    title: str | None = None,
    about: str = "",
    path: str | os.PathLike[str] | None = None,
    data: str = "",
    command: str = "",
    random_state: int = 0,
) -> Document:
    """Describe a fitted ranker by its performance on rows that it has not seen."""
    queries = Queries.of(qid, len(np.asarray(y)))
    grades = as_scores(y, len(queries.codes))
    ids = queries.ids[queries.codes]
    scores = predict_with_qid(model, X, ids)
    rng = np.random.default_rng(random_state)
    result = evaluate(grades, scores, queries.codes, list(metrics), convention=convention)
    plain = as_rows(encode_like(X, getattr(model, "feature_names_in_", None)), missing=True)
    if has_missing(plain):
        plain = MissingValues.of(plain).fill(plain)[:, : plain.shape[1]]  # without indicators
    mean = ColumnMean(list(range(plain.shape[1]))).fit(plain, qid=ids)
    others = {
        "mean of all columns, without learning": predict_with_qid(mean, plain, ids),
        "random order": rng.random(len(scores)),
    }
    rows = [("this model", result)]
    rows += [
        (name, evaluate(grades, item, queries.codes, list(metrics), convention=convention))
        for name, item in others.items()
    ]
    importance = query_importance(
        model, X, grades, ids, metric=metrics[0], convention=convention, n_repeats=3, random_state=random_state
    )
    sections = (
        part("model", "The model", _model(model, path, about)),
        part("data", "The rows it was evaluated on", _data(grades, result, X, data)),
        part("performance", "Performance", _performance(rows, result, rng)),
        part("features", "Features", _features(importance, metrics[0])),
        part("calibration", "Calibration", _calibration(model, X, grades)),
        part("limits", "Limits", [bullets(_limits(result, model))]),
        part("repeat", "How to repeat", [code(command)] if command else []),
    )
    name = title or (Path(path).stem if path else type(model).__name__)
    return Document(f"Model card: {name}", sections)


def _model(model: Any, path: str | os.PathLike[str] | None, about: str) -> list[PageBlock]:
    defaults = {name: item.default for name, item in signature(type(model).__init__).parameters.items()}
    parameters = model.get_params(deep=False)
    changed = {name: value for name, value in parameters.items() if repr(defaults.get(name)) != repr(value)}
    pairs = [
        ("class", type(model).__name__),
        ("changed parameters", ", ".join(f"{k}={v!r}" for k, v in changed.items()) or "none"),
        ("features", str(getattr(model, "n_features_in_", "unknown"))),
    ]
    if isinstance(getattr(model, "alpha_", None), float):
        pairs.append(("alpha_", f"{model.alpha_:.4g}"))
    if path is not None:
        pairs.append(("SHA-256 of the file", hashlib.sha256(Path(path).read_bytes()).hexdigest()))
    return [*([paragraph(about)] if about else []), facts([*pairs, ("corank", __version__)])]


def _data(grades: Floats, found: Evaluation, X: Any, data: str) -> list[PageBlock]:
    judged = grades[~np.isnan(grades)]
    values, counts = np.unique(judged, return_counts=True)
    shares = ", ".join(f"{value:g}: {count:,}" for value, count in zip(values.tolist(), counts.tolist(), strict=True))
    pairs = [
        ("rows", f"{found.n_rows:,}, of which {found.n_rows - found.n_unjudged_rows:,} are judged"),
        ("queries", f"{found.n_queries:,}, of which {found.n_unjudged_queries:,} are unjudged"),
        ("queries of a single grade", f"{found.n_single_grade:,}"),
        ("rows of each grade", shares if len(values) <= 20 else f"{len(values):,} different scores"),
    ]
    return [facts([*([("files", data)] if data else []), *pairs])]


def _performance(
    rows: Sequence[tuple[str, Evaluation]], found: Evaluation, rng: np.random.Generator
) -> list[PageBlock]:
    table: list[tuple[Cell, ...]] = []
    for name, evaluation in rows:
        for metric, result in evaluation.items():
            used = result.values[~np.isnan(result.values)]
            low, high, _ = sign_flip(used, rng)
            table.append((metric, name, result.mean, low, high, len(used)))
    table.sort(key=lambda item: [*found].index(str(item[0])))
    columns = ("metric", "ranking", "mean", "low", "high", "queries")
    note = "low and high are the 95 % interval of the mean over queries."
    note += few_note(min(result.n_used for result in found.values())) + " " + found.convention.describe()
    return [ReportTable("", columns, tuple(table)), paragraph(note, "note")]


def _features(importance: ReportTable, metric: str) -> list[PageBlock]:
    kept = ReportTable("", importance.columns, importance.rows[:MAX_FEATURES])
    more = len(importance.rows) - len(kept.rows)
    note = (
        f"Mean loss of {metric} when the values of a feature are permuted inside each query, with a 95 % interval over "
        "queries. Features that repeat each other share their importance."
    )
    return [kept, paragraph(note + (f" {more} features with smaller losses are left out." if more else ""), "note")]


def _calibration(model: Any, X: Any, grades: Floats) -> list[PageBlock]:
    if not hasattr(model, "predict_proba") or set(np.unique(grades[~np.isnan(grades)]).tolist()) - {0.0, 1.0}:
        return []
    p = model.predict_proba(X)[:, 1]
    curve = reliability_curve(grades, p, strategy="quantile")
    rows = zip(curve.predicted.tolist(), curve.observed.tolist(), curve.counts.tolist(), strict=True)
    table = ReportTable("", ("predicted", "observed", "rows"), tuple(rows))
    return [table, paragraph(f"Expected calibration error {curve.expected_error:.3f} in bins of equal counts.", "note")]


def _limits(found: Evaluation, model: Any) -> list[str]:
    used = min(result.n_used for result in found.values())
    limits = ["The figures are valid only if none of these rows was used for learning or for choosing the model."]
    if used < FEW_QUERIES:
        limits.append(f"{used} queries are few: read the intervals, not the means.")
    if found.n_unjudged_rows:
        share = found.n_unjudged_rows / found.n_rows
        limits.append(f"{share:.0%} of the rows are unjudged; they were treated as the convention says.")
    limits.append("Scores compare rows of one query. Scores of different queries are not comparable unless calibrated.")
    if not hasattr(model, "predict_proba"):
        limits.append("Scores are not probabilities; corank.Calibrated makes them so.")
    limits.append("Rows from another source, language or time may be ranked worse than these.")
    return limits


def query_importance(
    model: Any,
    X: Any,
    y: ArrayLike,
    qid: ArrayLike | None = None,
    *,
    metric: str = "nDCG@10",
    convention: str = "corank",
    n_repeats: int = 5,
    random_state: int | np.random.Generator | None = None,
) -> ReportTable:
    """Measure how much a metric falls when a feature is permuted inside queries."""
    check_values(
        {"n_repeats": n_repeats, "random_state": random_state}, {"n_repeats": integer(1), "random_state": seed}
    )
    rng = rng_of(random_state)
    larger_is_better = parse_metric(metric).measure.larger_is_better
    given = getattr(model, "feature_names_in_", None)
    X = encode_like(X, given)
    names = [column_name(k, getattr(X, "columns", None)) for k in range(np.shape(X)[1])] if given is None else given
    rows = as_rows(X, missing=True)  # a model without missing values refuses them in its first prediction
    if sparse.issparse(rows):
        rows = rows.toarray()
    rows = np.array(rows)  # columns are replaced one by one
    n, n_features = map(int, rows.shape)
    queries = Queries.of(qid, n)
    grades = as_scores(y, n)

    def values(X: Any) -> Floats:
        scores = predict_with_qid(model, X, queries.ids[queries.codes])
        return evaluate(grades, scores, queries.codes, metric, convention=convention)[metric].values

    base = values(X)  # also checks the names of the columns
    kept = ~np.isnan(base)
    if not kept.any():
        raise InputError(f"no query has a value of {metric}; pass queries with judged rows of different grades.")
    result = []
    for column in range(n_features):
        before = rows[:, column].copy()
        loss = np.zeros(int(kept.sum()))
        for _ in range(n_repeats):
            # sort rows by query and a random key: a permutation inside every query
            key = rng.random((n,))
            shuffled = np.lexsort((key, queries.codes))
            rows[queries.order, column] = before[shuffled]
            loss += (base - values(rows))[kept] / n_repeats
        rows[:, column] = before
        loss = loss if larger_is_better else -loss
        result.append((str(names[column]), float(loss.mean()), *sign_flip(loss, rng, n_resamples=2000)[:2]))
    result.sort(key=lambda item: -item[1])
    return ReportTable("", ("feature", f"loss of {metric}", "low", "high"), tuple(result))
