"""
Judgements of the same documents by several judges: one grade for each document, and how far the judges agree.

A document is a pair of query id and document id. Krippendorff's α compares the observed disagreement D of grades of the
same document with the disagreement E of any two grades:

    α = 1 - D / E ,   D = 1/n Σ_u 1/(m_u - 1) Σ_{i≠j in u} δ(v_i, v_j) ,   E = 1/(n (n - 1)) Σ_{i≠j} δ(v_i, v_j) ,

over documents u with m_u ≥ 2 grades v, n grades in all. δ is 1 for different grades (nominal), the squared difference
of grades (interval), or of their mean ranks (ordinal). All three sums have a closed form, so α takes O(n log n).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corank.data.inputs import as_scores
from corank.data.queries import Queries, is_missing
from corank.errors import InputError, warn

if TYPE_CHECKING:
    from corank.data.collection import Dataset

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Texts = NDArray[np.object_]
AggregationRule = Literal["median", "mean", "majority"]
AGGREGATION_RULES: tuple[AggregationRule, ...] = ("median", "mean", "majority")
"""Rules that turn the grades of several judges into one."""
AgreementLevel = Literal["nominal", "ordinal", "interval"]
AGREEMENT_LEVELS: tuple[AgreementLevel, ...] = ("nominal", "ordinal", "interval")
"""Levels of measurement of grades, which determine how far two grades are apart."""


@dataclass(frozen=True, eq=False)
class JudgeGrades:
    """
    Grades of documents by one or more judges; the grades are sorted by document, then by value.

    first (n_documents,): the first row of each document; documents are in the order in which they first appear.
    row, document, judge, grade (n_grades,): row, number of the document, number of the judge, and value of each grade.
    judges: names of the judges; empty if they are unknown, and each grade of a document has another judge.
    """

    document_of: Integers  # (n_rows,): number of the document of each row, graded or not
    first: Integers
    row: Integers
    document: Integers
    judge: Integers
    grade: Floats
    judges: tuple[str, ...] = ()
    n_replaced: int = 0  # grades that were replaced by a later one of the same judge

    @classmethod
    def of(cls, y: ArrayLike, qid: ArrayLike | None, docids: ArrayLike, judges: ArrayLike | None = None) -> JudgeGrades:
        """
        Collect the grades of each document.

        y (n_rows,): grades; NaN if the judge gave none.
        """
        n = len(np.atleast_1d(np.asarray(y)))
        columns = [Queries.of(None, n) if qid is None else _ids(qid, n, "qid"), _ids(docids, n, "docids")]
        return cls.of_documents(number_pairs(*(column.codes for column in columns)), as_scores(y, n), judges)

    @classmethod
    def of_documents(cls, document: Integers, grades: Floats, judges: ArrayLike | None = None) -> JudgeGrades:
        """Collect grades; `document` numbers the documents from 0, in the order in which they first appear."""
        n = len(document)
        first = np.full(int(document.max(initial=-1)) + 1, n, dtype=np.int64)
        np.minimum.at(first, document, np.arange(n))
        rows = np.flatnonzero(~np.isnan(grades))
        n_graded = len(rows)
        names: tuple[str, ...] = ()
        judge = np.zeros(n, dtype=np.int64)
        if judges is not None:
            result = _ids(judges, n, "judges")
            nameless = rows[np.asarray(judges, dtype=object)[rows] == ""]
            if len(nameless):
                raise InputError(
                    f"row {nameless[0] + 1} has a grade, but its judge is empty; name the judge, or leave out the "
                    "column of judges."
                )
            names, judge = tuple(map(str, result.ids.tolist())), result.codes
            key = document[rows] * len(names) + judge[rows]
            # of equal keys in a reversed array, numpy.unique finds the last row
            rows = rows[::-1][np.unique(key[::-1], return_index=True)[1]]
        rows = rows[np.lexsort([rows, grades[rows], document[rows]])]
        return cls(document, first, rows, document[rows], judge[rows], grades[rows], names, n_graded - len(rows))

    @property
    def n_documents(self) -> int:
        """Number of documents."""
        return len(self.first)

    @cached_property
    def counts(self) -> Integers:
        """Number of grades of each document."""
        return np.bincount(self.document, minlength=self.n_documents).astype(np.int64)

    @cached_property
    def _starts(self) -> Integers:
        return np.concatenate([[0], np.cumsum(self.counts)]).astype(np.int64)

    @cached_property
    def is_contradictory(self) -> NDArray[np.bool_]:
        """Whether a document has different grades."""
        result = np.zeros(self.n_documents, dtype=bool)
        differs = (self.document[1:] == self.document[:-1]) & (self.grade[1:] != self.grade[:-1])
        result[self.document[1:][differs]] = True
        return result

    def aggregate(self, rule: str) -> Floats:
        """
        Return one grade per document, NaN if it has none.

        rule {"median", "mean", "majority"}: see `corank.metrics.agreement.aggregate_grades`.
        """
        if rule not in AGGREGATION_RULES:
            raise InputError(f"the rule for several judges is {rule!r}; pass one of {', '.join(AGGREGATION_RULES)}.")
        result = np.full(self.n_documents, np.nan)
        graded = np.flatnonzero(self.counts)
        result[graded] = self.grade[self._starts[graded] + (self.counts[graded] - 1) // 2]
        # documents whose grades agree keep their grade, free of rounding
        if rule == "mean":
            sums = np.bincount(self.document, weights=self.grade, minlength=self.n_documents)
            apart = self.is_contradictory
            result[apart] = sums[apart] / self.counts[apart]
        elif rule == "majority":
            changes = (self.document[1:] != self.document[:-1]) | (self.grade[1:] != self.grade[:-1])
            begin = np.flatnonzero(np.concatenate([[True], changes])) if len(self.grade) else np.empty(0, np.int64)
            votes = np.diff(np.append(begin, len(self.grade)))
            # from many votes to few, and from low grades to high: the first of each document wins
            order = np.lexsort([self.grade[begin], -votes, self.document[begin]])
            documents, i = np.unique(self.document[begin][order], return_index=True)
            result[documents] = self.grade[begin][order][i]
        return result

    def alpha(self, level: str) -> float:
        """Return Krippendorff's α (see the head of the module); NaN if it is undefined."""
        pairable = (self.counts > 1)[self.document]
        return krippendorff(self.document[pairable], self.grade[pairable], level)

    def words(self, rule: str, path: object, column: str | None = None) -> str:
        """Return counts, rule and agreement in words; `column` is that of the judges of the file `path`."""
        n_rows, n, repeated = len(self.document_of), self.n_documents, int(np.count_nonzero(self.counts > 1))
        by = f" by {len(self.judges)} judges (column {column!r})" if column else ""
        text = f"{path}: {n_rows} rows are judgements of {n} documents{by}"
        apart = int(np.count_nonzero(self.is_contradictory))
        if apart:
            text += (
                f"; the {rule} grade of each is used. {apart} of {repeated} documents with several grades have "
                f"different ones (Krippendorff's alpha {self.alpha('ordinal'):.2f}, ordinal); corank agreement lists "
                "them"
            )
        else:
            text += "; each is used once" + (f", and all grades of {repeated} documents agree" if repeated else "")
        if self.n_replaced:
            text += f"; {self.n_replaced} grades were replaced by a later one of the same judge"
        return text + ". Choose another rule with judges=; judges='keep' keeps all rows."


@dataclass(frozen=True, eq=False)
class JudgementList:
    """Answers of judges, one per row; made by `corank.data.read_judgements`."""

    y: Floats  # grades; NaN if the judge gave none
    qid: Texts | None  # qid, docids: query and document of each row
    docids: Texts
    judges: Texts | None = None  # judge of each row; None if the file does not name them
    answers: Texts | None = None  # "grade", "unrateable" or "later"; None if all rows are grades or empty
    notes: Texts | None = None  # explanation of each answer, "" for none
    query_texts: Mapping[str, str] = field(default_factory=dict)  # words of queries whose ids are not their words

    def __len__(self) -> int:
        return len(self.y)

    def text_of(self, query: str) -> str:
        """Return the words of a query, or its id if they are unknown."""
        return self.query_texts.get(query) or query

    def count(self, answer: str) -> int:
        """Return the number of answers of a kind."""
        return 0 if self.answers is None else int(np.count_nonzero(self.answers == answer))

    def final(self, rule: str) -> JudgementList:
        """Return one grade per document, without judges, notes and documents without grade."""
        # `JudgeGrades` refuses a grade without a judge
        judges = None if self.judges is None or (self.judges == "").any() else self.judges
        grades = JudgeGrades.of(self.y, self.qid, self.docids, judges)
        y = grades.aggregate(rule)
        first, y = grades.first[~np.isnan(y)], y[~np.isnan(y)]
        return JudgementList(
            y, None if self.qid is None else self.qid[first], self.docids[first], query_texts=self.query_texts
        )

    def grades_of(self, qid: Texts | None, docids: Texts) -> Floats:
        """Look up the grades of documents of queries, which may be named by their words; NaN if there is none."""
        known = dict(zip(_names_of(self.qid, self.docids), self.y.tolist(), strict=True))
        if self.query_texts:
            known |= {(self.text_of(query), document): grade for (query, document), grade in known.items()}
        return np.array([known.get(key, np.nan) for key in _names_of(qid, docids)], dtype=np.float64)


def _names_of(qid: Texts | None, docids: Texts) -> list[tuple[str, str]]:
    queries = ["all"] * len(docids) if qid is None else list(map(str, qid.tolist()))
    return list(zip(queries, docids.tolist(), strict=True))


def krippendorff(document: Integers, grade: Floats, level: str) -> float:
    """Return Krippendorff's α; NaN without two grades of one document, or if all grades are equal."""
    if level not in AGREEMENT_LEVELS:
        raise InputError(f"level is {level!r}; pass one of {', '.join(AGREEMENT_LEVELS)}.")
    n = len(grade)
    values, code, counts = np.unique(grade, return_inverse=True, return_counts=True)
    if len(values) < 2:
        return float("nan")
    m = np.bincount(document)[document]  # number of grades of the same document
    if level == "nominal":
        _, i, same = np.unique(document * len(values) + code, return_index=True, return_counts=True)
        # Σ_{i≠j} δ = m² - Σ_c n_c² for a document of which n_c grades are c; n_c (m - n_c), summed over c
        observed = float((same * (m[i] - same) / (m[i] - 1)).sum())
        expected = float((counts * (n - counts)).sum())
    else:
        scale = values if level == "interval" else np.cumsum(counts) - counts / 2
        v = scale[code]
        # Σ_{i≠j} (v_i - v_j)² = 2 m Σ (v_i - mean)²
        mean = (np.bincount(document, weights=v) / np.maximum(np.bincount(document), 1))[document]
        observed = float((2.0 * m / (m - 1) * (v - mean) ** 2).sum())
        expected = 2.0 * n * float(((v - v.mean()) ** 2).sum())
    return 1.0 - (n - 1) * observed / expected


def _ids(values: ArrayLike, n: int, name: str) -> Queries:
    """Return the distinct ids of a column, and the number of each row's id."""
    ids: Any = values if isinstance(values, list | tuple) else np.asarray(values)
    if len(ids) != n:
        raise InputError(f"{name} has {len(ids)} values for {n} rows; pass one per row.")
    missing = next((row for row, item in enumerate(ids) if is_missing(item)), None)
    if missing is not None:
        raise InputError(f"{name} is missing (None or NaN) at row {missing}; every row needs one.")
    return Queries.of(ids, n)


def number_pairs(first: Integers, second: Integers) -> Integers:
    """Number the distinct pairs of two columns from 0, in the order in which they first appear."""
    key = first * (int(second.max(initial=0)) + 1) + second
    if (np.diff(np.sort(key)) > 0).all():
        return np.arange(len(key))
    _, i, code = np.unique(key, return_index=True, return_inverse=True)
    rank = np.empty(len(i), dtype=np.int64)
    rank[np.argsort(i)] = np.arange(len(i))
    return rank[code]


def _document_codes(docids: NDArray[Any], n: int) -> Integers:
    """Number document ids; each row with an empty id, as in LETOR text where some comments name none, is its own."""
    codes = Queries.of(docids, n).codes
    empty = np.flatnonzero(docids == "")
    if not len(empty):
        return codes
    codes = codes.copy()
    codes[empty] = int(codes.max()) + 1 + np.arange(len(empty))
    return codes


def number_rows(queries: Integers, X: NDArray[Any]) -> Integers:
    """Number the distinct rows of each query from 0, in the order in which they first appear."""
    numbers: dict[tuple[int, bytes], int] = {}
    keys = ((query, (row + 0.0).tobytes()) for query, row in zip(queries.tolist(), X, strict=True))  # -0.0 is 0.0
    return np.fromiter((numbers.setdefault(key, len(numbers)) for key in keys), dtype=np.int64, count=len(queries))


def merge_judges(rows: Dataset, rule: str, path: object) -> Dataset:
    """
    Merge the rows of each document of a query, and aggregate their grades.

    Rows without a document id are the same document if a column names judges and their features are equal. A warning
    gives the counts, the rule and Krippendorff's alpha.

    rule {"median", "mean", "majority"}: see `corank.metrics.agreement.aggregate_grades`.
    """
    if rule not in AGGREGATION_RULES:
        raise InputError(f"judges is {rule!r}; pass one of {', '.join(AGGREGATION_RULES)}, keep.")
    docids, judges = rows.docids, rows.judges
    if docids is None and judges is None:
        return rows
    n = len(judges if docids is None else docids)  # type: ignore[arg-type]
    if docids is not None and len(set(docids.tolist())) == n:
        return rows  # each document has one row
    queries = Queries.of(rows.qid, n).codes
    if docids is not None:
        document = number_pairs(queries, _document_codes(docids, n))
    elif number_pairs(queries, Queries.of(judges, n).codes).max(initial=0) == queries.max(initial=0):
        return rows  # each query has one judge, so rows with equal features are different documents
    else:
        document = number_rows(queries, rows.X)
    if int(document.max(initial=-1)) + 1 == n:
        return rows  # each document has one row
    judged = JudgeGrades.of_documents(document, rows.y, judges)
    if docids is None and judged.n_replaced:
        raise InputError(
            f"{path} has no document ids, and a judge graded several rows of a query with equal features, so it is not "
            "known which rows are the same document; name the column of document ids with docid=, or pass "
            "judges='keep' to keep all rows as different documents."
        )
    if rows.comments is not None and not _name_documents(rows.comments, judged):
        return rows
    conflict = _conflict(rows, judged)
    if conflict is not None:
        if rows.comments is not None and "docid" not in rows.comments[conflict[0]]:
            return rows  # first words of comments in LETOR text, which are not ids of documents
        raise _different_features(rows, *conflict, path)
    warn(judged.words(rule, path, None if rows.roles is None else rows.roles.judge))
    return rows.merged(judged, judged.aggregate(rule))


def _name_documents(comments: NDArray[np.object_], judged: JudgeGrades) -> bool:
    """Return whether comments of LETOR text name documents: by ``docid = X``, or by one comment per document."""
    first = judged.first[judged.document_of]
    repeated = np.flatnonzero(first != np.arange(len(first)))
    return all("docid" in comments[row] or comments[row] == comments[first[row]] for row in repeated)


def _conflict(rows: Dataset, judged: JudgeGrades) -> tuple[int, int, int] | None:
    """Return two rows of a document and a column in which they differ; None if all rows of each document are equal."""
    first = judged.first[judged.document_of]
    repeated = np.flatnonzero(first != np.arange(len(first)))
    i, columns = (rows.X[repeated] != rows.X[first[repeated]]).nonzero()
    if not len(i):
        return None
    row = int(repeated[i[0]])
    return row, int(first[row]), int(columns[0])


def _different_features(rows: Dataset, row: int, other: int, column: int, path: object) -> InputError:
    name = f"column {rows.names[column]!r}" if rows.names else f"feature {column + 1}"
    query = "" if rows.qid is None else f" of query {rows.qid[row]!s}"
    hint = "name the query column with qid=, " if rows.qid is None else ""
    document = rows.docids[row]  # type: ignore[index]
    return InputError(
        f"{path}: document {document!r}{query} has different features in rows {other + 1} and {row + 1} "
        f"({name}: {rows.X[other, column]:g} and {rows.X[row, column]:g}); {hint}correct the rows, leave out columns "
        "that differ between judges with drop=, or pass judges='keep' to keep all rows as different documents."
    )
