"""
Agreement of judges who graded the same documents, one grade for each document, and a judge against gold grades.

Figures against gold grades are functions of the confusion matrix M (gold grade, judge's grade). Their intervals are
percentiles of 999 resamples of queries, whose documents are not independent: the matrices of drawn queries are added.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corank.data.inputs import as_numbers
from corank.data.io.judgements import read_judgements
from corank.data.judges import AGREEMENT_LEVELS, JudgeGrades, JudgementList
from corank.data.queries import Queries
from corank.errors import InputError, reason
from corank.parameters import check_values, none, one_of
from corank.tables import Cell, ReportTable

__all__ = [
    "JudgeAgreement", "JudgePair", "JudgementList", "aggregate_grades", "agreement_with_gold", "cohen_kappa",
    "judge_agreement", "krippendorff_alpha", "read_judgements",
]  # fmt: skip

Floats = NDArray[np.float64]
MAX_COMPARED_JUDGES = 10
"""Largest number of judges whose pairs are compared."""


def aggregate_grades(
    y: ArrayLike,
    qid: ArrayLike | None,
    docids: ArrayLike,
    judges: ArrayLike | None = None,
    *,
    rule: str = "median",
) -> tuple[NDArray[np.int64], Floats]:
    """
    Aggregate the grades of several judges to one grade for each pair of query and document.

    >>> y, qid, docids = [2, 0, 0, 1, 2], [7, 7, 7, 7, 7], ["a", "b", "a", "b", "a"]
    >>> rows, grades = aggregate_grades(y, qid, docids)
    >>> rows.tolist(), grades.tolist()
    ([0, 1], [2.0, 0.0])
    """
    result = JudgeGrades.of(y, qid, docids, judges)
    return result.first, result.aggregate(rule)


class JudgePair(NamedTuple):
    """
    Agreement of two judges.

    first, second: The judges.
    n_common: Number of documents that both graded.
    n_equal: Number of documents that got the same grade.
    kappa: Cohen's kappa; NaN if it is undefined.
    """

    first: str
    second: str
    n_common: int
    n_equal: int
    kappa: float


@dataclass(frozen=True, eq=False)
class JudgeAgreement:
    """
    Agreement of judges; the result of `judge_agreement`.

    judges: Names of the judges; empty if they are unknown.
    n_documents: Number of documents, i.e. pairs of query and document.
    n_grades: Number of grades.
    n_repeated: Number of documents with two grades or more.
    n_contradictory: Number of documents with different grades.
    alpha: Krippendorff's alpha for each level of measurement, see `krippendorff_alpha`.
    pairs: Pairs of judges who graded the same documents; empty for unknown judges, and for more than ten.
    contradictions: Documents with different grades: query, document, the grade of each judge (all grades in one column
        if judges are unknown or more than ten), and the aggregated grade. The grades that are furthest apart come
        first.
    """

    judges: tuple[str, ...]
    n_documents: int
    n_grades: int
    n_repeated: int
    n_contradictory: int
    alpha: Mapping[str, float]
    pairs: tuple[JudgePair, ...]
    contradictions: ReportTable

    def __repr__(self) -> str:
        judges = f"{len(self.judges)} judges" if self.judges else "unknown judges"
        alpha = ", ".join(f"{level} {value:.3f}" for level, value in self.alpha.items())
        return (
            f"{self.n_grades} grades of {self.n_documents} documents by {judges}; {self.n_repeated} documents have two "
            f"grades or more, {self.n_contradictory} different ones\nKrippendorff's alpha: {alpha}"
        )


def judge_agreement(
    y: ArrayLike,
    qid: ArrayLike | None,
    docids: ArrayLike,
    judges: ArrayLike | None = None,
    *,
    rule: str = "median",
) -> JudgeAgreement:
    """
    Measure how far judges agree, and list the documents on which they do not.

    >>> y, judges = [2, 2, 0, 1, 1, 1], ["ann", "bob"] * 3
    >>> agreement = judge_agreement(y, [1] * 6, ["a", "a", "b", "b", "c", "c"], judges)
    >>> agreement
    6 grades of 3 documents by 2 judges; 3 documents have two grades or more, 1 different ones
    Krippendorff's alpha: nominal 0.545, ordinal 0.778, interval 0.706
    >>> agreement.contradictions.rows
    ((1, 'b', 0.0, 1.0, 0.0),)
    """
    result = JudgeGrades.of(y, qid, docids, judges)
    return JudgeAgreement(
        result.judges,
        result.n_documents,
        len(result.grade),
        int(np.count_nonzero(result.counts > 1)),
        int(np.count_nonzero(result.is_contradictory)),
        {level: result.alpha(level) for level in AGREEMENT_LEVELS},
        _pairs(result),
        _contradictions(result, qid, docids, rule),
    )


def _table(graded: JudgeGrades, documents: NDArray[np.int64]) -> Floats:
    """Return the grades of some documents, shape (n_documents, n_judges), NaN where there is none."""
    table = np.full((len(documents), len(graded.judges)), np.nan)
    place = np.full(graded.n_documents, -1, dtype=np.int64)
    place[documents] = np.arange(len(documents))
    kept = place[graded.document] >= 0
    table[place[graded.document[kept]], graded.judge[kept]] = graded.grade[kept]
    return table


def _pairs(graded: JudgeGrades) -> tuple[JudgePair, ...]:
    if not 2 <= len(graded.judges) <= MAX_COMPARED_JUDGES:
        return ()
    table = _table(graded, np.flatnonzero(graded.counts > 1))
    pairs = []
    for (item, first), (other, second) in combinations(enumerate(graded.judges), 2):
        a, b = table[:, item], table[:, other]
        both = ~(np.isnan(a) | np.isnan(b))
        if both.any():
            equal = int(np.count_nonzero(a[both] == b[both]))
            pairs.append(JudgePair(first, second, int(both.sum()), equal, cohen_kappa(a, b)))
    return tuple(pairs)


def _contradictions(graded: JudgeGrades, qid: ArrayLike | None, docids: ArrayLike, rule: str) -> ReportTable:
    documents = np.flatnonzero(graded.is_contradictory)
    grades, ends = graded.grade, np.cumsum(graded.counts)
    spread = grades[ends[documents] - 1] - grades[ends[documents] - graded.counts[documents]]
    documents = documents[np.argsort(-spread, kind="stable")]
    rows = graded.first[documents]
    queries: list[Any] = [None] * len(rows) if qid is None else [_plain(qid, row) for row in rows.tolist()]
    names = [_plain(docids, row) for row in rows.tolist()]
    result = graded.aggregate(rule)[documents].tolist()
    if 1 <= len(graded.judges) <= MAX_COMPARED_JUDGES:
        columns: tuple[str, ...] = graded.judges
        table = [[None if value != value else value for value in row] for row in _table(graded, documents).tolist()]
    else:
        columns = ("grades",)
        table = [[" ".join(f"{item:g}" for item in grades[ends[i] - graded.counts[i] : ends[i]])] for i in documents]
    cells = tuple((q, d, *row, grade) for q, d, row, grade in zip(queries, names, table, result, strict=True))
    return ReportTable(
        "", ("query", "document", *columns, "aggregated"), cells, formats=("", "", *("g",) * (len(columns) + 1))
    )


def _plain(values: ArrayLike, row: int) -> Any:
    value = values[row] if isinstance(values, list | tuple) else np.asarray(values)[row]
    return value.item() if hasattr(value, "item") else value


def krippendorff_alpha(grades: ArrayLike, level: str = "ordinal") -> float:
    """
    Compute Krippendorff's alpha, the agreement of two or more judges, some of whose grades may be missing.

    1 is perfect agreement, 0 that of grades given at random, and below 0 the judges disagree systematically.
    Krippendorff asks for 0.8, and for 0.667 where tentative conclusions suffice. Documents with one grade are ignored.

    Krippendorff, Content Analysis, 2004, chapter 11.

    >>> nan = float("nan")
    >>> grades = [[0, 1, 2, 2, nan, 1], [0, 1, 2, 1, 0, 1], [0, 0, 2, 2, 0, nan]]
    >>> round(krippendorff_alpha(grades), 3), round(krippendorff_alpha(grades, "nominal"), 3)
    (0.829, 0.647)
    """
    try:
        table = np.asarray(grades, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"grades cannot be read as numbers ({reason(error)}); pass a row per judge.") from error
    if table.ndim != 2:
        raise InputError(
            f"grades has shape {table.shape}; pass a table, one row per judge and one column per document."
        )
    if np.isinf(table).any():
        raise InputError("grades contains infinity; pass finite grades, or NaN where a judge gave none.")
    document = np.tile(np.arange(table.shape[1]), len(table))
    return JudgeGrades.of_documents(document, table.ravel()).alpha(level)


def cohen_kappa(first: ArrayLike, second: ArrayLike, weights: str | None = None) -> float:
    """
    Compute Cohen's kappa, the agreement of two judges beyond that of independent judges with the same frequencies.

    Cohen, A coefficient of agreement for nominal scales, 1960; Weighted kappa, 1968.

    >>> round(cohen_kappa([0, 0, 1, 1, 2], [0, 1, 1, 1, 2]), 3)
    0.688
    """
    check_values({"weights": weights}, {"weights": one_of("linear", "quadratic") | none})
    a, b = as_numbers(first, "first", "grade"), as_numbers(second, "second", "grade")
    if len(a) != len(b):
        raise InputError(f"second has {len(b)} grades for {len(a)} of the first judge; pass one per document.")
    both = ~(np.isnan(a) | np.isnan(b))
    a, b = a[both], b[both]
    if np.isinf(a).any() or np.isinf(b).any():
        raise InputError("a grade is infinite; pass finite grades, or NaN where a judge gave none.")
    observed, expected = _disagreements(a, b, weights)
    return 1.0 - observed / expected if expected > 0.0 else float("nan")


def _disagreements(a: Floats, b: Floats, weights: str | None) -> tuple[float, float]:
    """Return the mean weight of the pairs of grades, and of all combinations of grades of the two judges."""
    if not len(a):
        return 0.0, 0.0
    values, codes = np.unique(np.concatenate([a, b]), return_inverse=True)
    share_a, share_b = (np.bincount(part, minlength=len(values)) / len(a) for part in np.split(codes, 2))
    if weights is None:
        return float(np.mean(a != b)), 1.0 - float(share_a @ share_b)
    if weights == "quadratic":
        return float(np.mean((a - b) ** 2)), float(a.var() + b.var() + (a.mean() - b.mean()) ** 2)
    below_a, below_b = (np.cumsum(share)[:-1] for share in (share_a, share_b))
    # E|a - b| is the integral of the probability that a threshold separates a and b
    apart = below_a * (1.0 - below_b) + below_b * (1.0 - below_a)
    return float(np.mean(np.abs(a - b))), float(apart @ np.diff(values))


N_RESAMPLES = 999


class Figure(NamedTuple):
    """A value with its 95 % interval."""

    value: float
    low: float
    high: float


class GoldAgreement(NamedTuple):
    """
    Agreement of a judge with gold grades.

    n_documents, n_queries: documents with both grades, and their queries. kappa: Cohen's kappa; weighted: with
    quadratic weights;
    alpha: Krippendorff's ordinal alpha. saved: share of the variance of gold grades that the judge's explain, r²:
    what it saves in human grades of single documents. confusion: counts, with the share of each grade for both
    (base rates).
    """

    n_documents: int
    n_queries: int
    gold_mean: Figure
    judge_mean: Figure
    kappa: Figure
    weighted: Figure
    alpha: Figure
    saved: Figure
    confusion: ReportTable


def agreement_with_gold(gold: ArrayLike, judge: ArrayLike, qid: ArrayLike, *, seed: int = 0) -> GoldAgreement:
    """
    Compare the grades of a judge with gold grades of the same documents; NaN marks a missing grade.

    >>> agreement = agreement_with_gold([0, 1, 2, 2, 0, 1], [0, 1, 2, 1, 0, 2], [1, 1, 1, 2, 2, 2])
    >>> agreement.n_documents, round(agreement.kappa.value, 3), agreement.confusion.rows[0]
    (6, 0.5, ('0', 2, 0, 0, 0.3333333333333333, 0.3333333333333333))
    """
    a, b = as_numbers(gold, "gold", "grade"), as_numbers(judge, "judge", "grade")
    if len(a) != len(b):
        raise InputError(f"judge has {len(b)} grades and gold {len(a)}; pass one of each per document.")
    both = ~(np.isnan(a) | np.isnan(b))
    if not both.any():
        raise InputError("no document has a gold grade and one of the judge; check that their ids agree.")
    query = Queries.of(qid, len(a)).codes[both]
    a, b = a[both], b[both]
    values, codes = np.unique(np.concatenate([a, b]), return_inverse=True)
    if len(values) > 50:
        raise InputError(f"there are {len(values)} different grades; map scores to a few grades first.")
    K, first, second = len(values), codes[: len(a)], codes[len(a) :]
    numbers = np.unique(query, return_inverse=True)[1]
    Q = int(numbers.max()) + 1
    tables = np.bincount(numbers * K * K + first * K + second, minlength=Q * K * K).reshape(Q, K, K).astype(float)
    draws = np.random.default_rng(seed).multinomial(Q, np.full(Q, 1.0 / Q), size=N_RESAMPLES).astype(float)
    resampled = np.tensordot(draws, tables, axes=1)
    M = tables.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        whole, parts = _figures(M[None], values), _figures(resampled, values)
    figures = []
    for value, column in zip(whole[0].tolist(), parts.T, strict=True):
        known = column[np.isfinite(column)]
        low, high = np.quantile(known, [0.025, 0.975]).tolist() if len(known) else (float("nan"),) * 2
        figures.append(Figure(value, low, high))
    n = float(M.sum())
    rows: list[tuple[Cell, ...]] = [
        (f"{value:g}", *map(int, M[i]), float(M[i].sum() / n), float(M[:, i].sum() / n))
        for i, value in enumerate(values)
    ]
    columns = ("gold \\ judge", *(f"{value:g}" for value in values), "share, gold", "share, judge")
    gold_mean, judge_mean, kappa, weighted, alpha, saved = figures
    table = ReportTable("Confusion", columns, tuple(rows), digits=3)
    return GoldAgreement(int(n), Q, gold_mean, judge_mean, kappa, weighted, alpha, saved, table)


def _figures(M: Floats, values: Floats) -> Floats:
    """Return both means, kappa, weighted kappa, ordinal alpha and r² of matrices (m, K, K), shape (m, 6)."""
    n = M.sum(axis=(1, 2))
    p, q = M.sum(axis=2) / n[:, None], M.sum(axis=1) / n[:, None]
    mean_p, mean_q = p @ values, q @ values
    observed, expected = np.trace(M, axis1=1, axis2=2) / n, (p * q).sum(axis=1)
    kappa = (observed - expected) / (1.0 - expected)
    D = (values[:, None] - values) ** 2
    far = np.einsum("mij,ij->m", M, D) / n
    weighted = 1.0 - far / np.einsum("mi,mj,ij->m", p, q, D)
    counts = M.sum(axis=2) + M.sum(axis=1)
    v = np.cumsum(counts, axis=1) - counts / 2.0  # mid-ranks: the ordinal distance of Krippendorff
    V = (v[:, :, None] - v[:, None]) ** 2
    seen = 2.0 * np.einsum("mij,mij->m", M, V)
    alpha = 1.0 - (2.0 * n - 1.0) * seen / np.einsum("mi,mj,mij->m", counts, counts, V)
    var_p, var_q = p @ values**2 - mean_p**2, q @ values**2 - mean_q**2
    cov = np.einsum("mij,i,j->m", M, values, values) / n - mean_p * mean_q
    saved = np.where(
        var_q > 1e-12 * (q @ values**2), cov**2 / (var_p * var_q), 0.0
    )  # a constant judge explains nothing
    saved[var_p <= 1e-12 * (p @ values**2)] = np.nan
    return np.stack([mean_p, mean_q, kappa, weighted, alpha, saved], axis=1)
