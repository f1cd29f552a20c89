"""
Pages about a model: model cards, with the importance of features inside queries, and leaderboards from votes.

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
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from corank._version import __version__
from corank.base.calibration import reliability_curve
from corank.base.priors import ColumnMean
from corank.comparison.charts import IntervalRow, interval_chart, plot
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

if TYPE_CHECKING:
    from corank.models import Leaderboard

MIN_QUERIES = 30
"""Number of evaluated queries below which the card warns of wide intervals."""
MAX_FEATURES = 20
"""Rows of the table of features."""
MAX_INTERVALS, MAX_COLUMNS, N_NEXT = 40, 12, 5
"""Items of the chart and of the matrix of wins of a leaderboard, and number of next votes."""

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
    rng = np.random.default_rng(random_state)
    scores = predict_with_qid(model, X, ids)
    plain = as_rows(encode_like(X, getattr(model, "feature_names_in_", None)), missing=True)
    if has_missing(plain):
        plain = MissingValues.of(plain).fill(plain)[:, : plain.shape[1]]  # without indicators
    mean = ColumnMean(list(range(plain.shape[1]))).fit(plain, qid=ids)
    rankings = {
        "this model": scores,
        "mean of all columns, without learning": predict_with_qid(mean, plain, ids),
        "random order": rng.random(len(scores)),
    }
    results = {
        name: evaluate(grades, item, queries.codes, list(metrics), convention=convention)
        for name, item in rankings.items()
    }
    importance = query_importance(
        model, X, grades, ids, metric=metrics[0], convention=convention, n_repeats=3, random_state=random_state
    )
    result = results["this model"]
    sections = (
        part("model", "The model", [*([paragraph(about)] if about else []), _model(model, path)]),
        part("data", "The rows it was evaluated on", [_data(grades, result, data)]),
        part("performance", "Performance", _performance(results, result, rng)),
        part("features", "Features", _features(importance, metrics[0])),
        part("calibration", "Calibration", _calibration(model, X, grades)),
        part("limits", "Limits", [bullets(_limits(result, model))]),
        part("repeat", "How to repeat", [code(command)] if command else []),
    )
    name = title or (Path(path).stem if path else type(model).__name__)
    return Document(f"Model card: {name}", sections)


def _model(model: Any, path: str | os.PathLike[str] | None) -> PageBlock:
    defaults = {name: item.default for name, item in signature(type(model).__init__).parameters.items()}
    changed = {
        name: value for name, value in model.get_params(deep=False).items() if repr(defaults.get(name)) != repr(value)
    }
    pairs = [
        ("class", type(model).__name__),
        ("changed parameters", ", ".join(f"{name}={value!r}" for name, value in changed.items()) or "none"),
        ("features", str(getattr(model, "n_features_in_", "unknown"))),
    ]
    if isinstance(getattr(model, "alpha_", None), float):
        pairs.append(("alpha_", f"{model.alpha_:.4g}"))
    if path is not None:
        pairs.append(("SHA-256 of the file", hashlib.sha256(Path(path).read_bytes()).hexdigest()))
    return facts([*pairs, ("corank", __version__)])


def _data(grades: Floats, result: Evaluation, data: str) -> PageBlock:
    values, counts = np.unique(grades[~np.isnan(grades)], return_counts=True)
    shares = ", ".join(f"{value:g}: {count:,}" for value, count in zip(values.tolist(), counts.tolist(), strict=True))
    pairs = [
        ("rows", f"{result.n_rows:,}, of which {result.n_rows - result.n_unjudged_rows:,} are judged"),
        ("queries", f"{result.n_queries:,}, of which {result.n_unjudged_queries:,} are unjudged"),
        ("queries of a single grade", f"{result.n_single_grade:,}"),
        ("rows of each grade", shares if len(values) <= 20 else f"{len(values):,} different scores"),
    ]
    return facts([*([("files", data)] if data else []), *pairs])


def _performance(results: dict[str, Evaluation], result: Evaluation, rng: np.random.Generator) -> list[PageBlock]:
    rows: list[tuple[Cell, ...]] = []
    for metric in result:
        for name, evaluation in results.items():
            values = evaluation[metric].values
            used = values[~np.isnan(values)]
            low, high, _ = sign_flip(used, rng)
            rows.append((metric, name, evaluation[metric].mean, low, high, len(used)))
    columns = ("metric", "ranking", "mean", "low", "high", "queries")
    note = "low and high are the 95 % interval of the mean over queries."
    note += few_note(min(item.n_used for item in result.values())) + " " + result.convention.describe()
    return [ReportTable("", columns, tuple(rows)), paragraph(note, "note")]


def _features(importance: ReportTable, metric: str) -> list[PageBlock]:
    more = len(importance.rows) - MAX_FEATURES
    note = (
        f"Mean loss of {metric} when the values of a feature are permuted inside each query, with a 95 % interval over "
        "queries. Features that repeat each other share their importance."
    )
    note += f" {more} features with smaller losses are left out." if more > 0 else ""
    return [ReportTable("", importance.columns, importance.rows[:MAX_FEATURES]), paragraph(note, "note")]


def _calibration(model: Any, X: Any, grades: Floats) -> list[PageBlock]:
    if not hasattr(model, "predict_proba") or set(np.unique(grades[~np.isnan(grades)]).tolist()) - {0.0, 1.0}:
        return []
    curve = reliability_curve(grades, model.predict_proba(X)[:, 1], strategy="quantile")
    rows = zip(curve.predicted.tolist(), curve.observed.tolist(), curve.counts.tolist(), strict=True)
    table = ReportTable("", ("predicted", "observed", "rows"), tuple(rows))
    return [table, paragraph(f"Expected calibration error {curve.expected_error:.3f} in bins of equal counts.", "note")]


def _limits(result: Evaluation, model: Any) -> list[str]:
    used = min(item.n_used for item in result.values())
    share = result.n_unjudged_rows / result.n_rows
    limits = {
        "The figures are valid only if none of these rows was used for learning or for choosing the model.": True,
        f"{used} queries are few: read the intervals, not the means.": used < MIN_QUERIES,
        f"{share:.0%} of the rows are unjudged; they were treated as the convention says.": share > 0,
        "Scores compare rows of one query. Scores of different queries are not comparable unless calibrated.": True,
        "Scores are not probabilities; corank.Calibrated makes them so.": not hasattr(model, "predict_proba"),
        "Rows from another source, language or time may be ranked worse than these.": True,
    }
    return [text for text, holds in limits.items() if holds]


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
    sign = 1.0 if parse_metric(metric).measure.larger_is_better else -1.0
    given = getattr(model, "feature_names_in_", None)
    X = encode_like(X, given)
    names = [column_name(k, getattr(X, "columns", None)) for k in range(np.shape(X)[1])] if given is None else given
    rows = as_rows(X, missing=True)  # a model without missing values refuses them in its first prediction
    rows = rows.toarray() if sparse.issparse(rows) else np.array(rows)  # columns are replaced one by one
    queries = Queries.of(qid, len(rows))
    grades = as_scores(y, len(rows))

    def values(X: Any) -> Floats:
        scores = predict_with_qid(model, X, queries.ids[queries.codes])
        return evaluate(grades, scores, queries.codes, metric, convention=convention)[metric].values

    base = values(X)  # also checks the names of the columns
    has_value = ~np.isnan(base)
    if not has_value.any():
        raise InputError(f"no query has a value of {metric}; pass queries with judged rows of different grades.")
    result = []
    for column in range(rows.shape[1]):
        before = rows[:, column].copy()
        loss = np.zeros(int(has_value.sum()))
        for _ in range(n_repeats):
            # sort rows by query and a random key: a permutation inside every query
            shuffled = np.lexsort((rng.random(len(rows)), queries.codes))
            rows[queries.order, column] = before[shuffled]
            loss += sign * (base - values(rows))[has_value] / n_repeats
        rows[:, column] = before
        result.append((str(names[column]), float(loss.mean()), *sign_flip(loss, rng, n_resamples=2000)[:2]))
    result.sort(key=lambda item: -item[1])
    return ReportTable("", ("feature", f"loss of {metric}", "low", "high"), tuple(result))


def leaderboard_page(board: Leaderboard, title: str, command: str = "") -> str:
    """Return one self-contained HTML page of a leaderboard from votes."""
    from corank.models.votes import board_table, judge_table, sentences

    first, *rest = sentences(board)
    votes = board.votes_
    counts = (
        ("votes", f"{len(votes):,}"), ("items", str(len(board.items_))), ("ties", f"{votes.n_ties:,}"),
        ("both bad", f"{votes.n_both_bad:,}"), ("judges", str(len(votes.judges) or "unknown")),
        ("groups", str(len(votes.groups) or "none")),
    )  # fmt: skip
    following = tuple((a, b, who or "anybody") for a, b, who in board.next_votes(N_NEXT))
    groups = bullets([", ".join(group) for group in board.groups_])
    opening = [paragraph(first, "verdict"), facts(counts), _intervals(board), board_table(board)]
    sections = [
        part("result", "Leaderboard", opening),
        part("wins", "Win probabilities", [_matrix(board)]),
        part("groups", "Items that cannot be told apart", [groups]),
        part("judges", "Judges", [judge_table(board)] if board.judges_ else []),
        part("next", "Next votes",
             [ReportTable("Votes that say most about the best item", ("item", "against", "judge"), following)]),
        part("notes", "Notes", [bullets(rest)] if rest else []),
        part("repeat", "How to repeat", [code(command)] if command else []),
    ]  # fmt: skip
    return Document(title, sections).html()


def _intervals(board: Leaderboard) -> PageBlock:
    rows = [
        IntervalRow(name, float(board.scores_[i]), float(board.lower_[i]), float(board.upper_[i]), is_strong=i == 0)
        for i, name in enumerate(board.items_[:MAX_INTERVALS])
    ]
    described = "; ".join(f"{row.name} {row.mean:.2f}, {row.low:.2f} to {row.high:.2f}" for row in rows)
    chart = interval_chart(rows, "score, difference to the mean item")
    return plot(chart, "scores", "Scores", described, f"Score of each item with its {board.level:.0%} interval.")


def _matrix(board: Leaderboard) -> PageBlock:
    items = board.items_[:MAX_COLUMNS]
    wins = board.win_matrix()
    rows = tuple(
        (name, *(None if a == b else float(wins[a, b]) for b in range(len(items)))) for a, name in enumerate(items)
    )
    note = "Expected share of votes of the row against the column, ties half."
    note += f" The first {len(items)} of {len(board.items_)} items." if len(items) < len(board.items_) else ""
    return ReportTable("Wins", ("item", *items), rows, digits=2, note=note)
