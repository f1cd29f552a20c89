"""aggregate_grades: one grade for each document; judge_agreement: how far judges agree, and where not; alpha, kappa."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corank.data.inputs import as_numbers
from corank.data.judges import AGREEMENT_LEVELS, JudgeGrades
from corank.errors import InputError, reason
from corank.parameters import check_values, none, one_of
from corank.tables import ReportTable

MAX_COMPARED_JUDGES = 10
"""Largest number of judges whose pairs are compared."""


def aggregate_grades(
    y: ArrayLike,
    qid: ArrayLike | None,
    docids: ArrayLike,
    judges: ArrayLike | None = None,
    *,
    rule: str = "median",
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
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
    >>> found = judge_agreement(y, [1] * 6, ["a", "a", "b", "b", "c", "c"], judges)
    >>> found
    6 grades of 3 documents by 2 judges; 3 documents have two grades or more, 1 different ones
    Krippendorff's alpha: nominal 0.545, ordinal 0.778, interval 0.706
    >>> found.contradictions.rows
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


def _table(found: JudgeGrades, documents: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the grades of some documents, shape (n_documents, n_judges), NaN where there is none."""
    table = np.full((len(documents), len(found.judges)), np.nan)
    place = np.full(found.n_documents, -1, dtype=np.int64)
    place[documents] = np.arange(len(documents))
    kept = place[found.document] >= 0
    table[place[found.document[kept]], found.judge[kept]] = found.grade[kept]
    return table


def _pairs(found: JudgeGrades) -> tuple[JudgePair, ...]:
    if not 2 <= len(found.judges) <= MAX_COMPARED_JUDGES:
        return ()
    table = _table(found, np.flatnonzero(found.counts > 1))
    pairs = []
    for (item, first), (other, second) in combinations(enumerate(found.judges), 2):
        a, b = table[:, item], table[:, other]
        both = ~(np.isnan(a) | np.isnan(b))
        if both.any():
            equal = int(np.count_nonzero(a[both] == b[both]))
            pairs.append(JudgePair(first, second, int(both.sum()), equal, cohen_kappa(a, b)))
    return tuple(pairs)


def _contradictions(found: JudgeGrades, qid: ArrayLike | None, docids: ArrayLike, rule: str) -> ReportTable:
    documents = np.flatnonzero(found.is_contradictory)
    grades, ends = found.grade, np.cumsum(found.counts)
    spread = grades[ends[documents] - 1] - grades[ends[documents] - found.counts[documents]]
    documents = documents[np.argsort(-spread, kind="stable")]
    rows = found.first[documents]
    queries: list[Any] = [None] * len(rows) if qid is None else [_plain(qid, row) for row in rows.tolist()]
    names = [_plain(docids, row) for row in rows.tolist()]
    result = found.aggregate(rule)[documents].tolist()
    if 1 <= len(found.judges) <= MAX_COMPARED_JUDGES:
        columns: tuple[str, ...] = found.judges
        table = [[None if value != value else value for value in row] for row in _table(found, documents).tolist()]
    else:
        columns = ("grades",)
        table = [[" ".join(f"{item:g}" for item in grades[ends[i] - found.counts[i] : ends[i]])] for i in documents]
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


def _disagreements(a: NDArray[np.float64], b: NDArray[np.float64], weights: str | None) -> tuple[float, float]:
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
