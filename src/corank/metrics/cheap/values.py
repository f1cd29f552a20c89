"""GradedRuns: documents of several runs and grades of several judges, matched once; values of metrics by judge."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.data.cheap import is_same_scale, map_grades
from corank.data.collection import Dataset
from corank.data.io.trec import Qrels, Run
from corank.errors import InputError
from corank.metrics.cheap.estimate import Floats
from corank.metrics.conventions import Convention
from corank.metrics.evaluation import Evaluation, evaluate

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class GradedRuns:
    """
    Runs and the grades of judges.

    systems: names of the S runs. queries: the N queries that a judge graded and a run answered. documents: query
    (its number) and name of each graded document. grades (J, n_documents): grades by each judge, NaN if there is
    none. system, query, document, docid, score: the rows of all runs; document is -1 if no judge graded it.
    """

    systems: tuple[str, ...]
    queries: tuple[str, ...]
    documents: tuple[Integers, tuple[str, ...]]
    grades: Floats
    system: Integers
    query: Integers
    document: Integers
    docid: NDArray[np.object_]
    score: Floats

    @classmethod
    def of(cls, runs: Mapping[str, Run], judges: Sequence[Qrels | Dataset]) -> GradedRuns:
        """Match runs and judgements by the names of queries and documents."""
        answered = {query for run in runs.values() for query in run.qid.tolist()}
        listed = [(*_names(judged), judged.y.tolist()) for judged in judges]
        numbers: dict[str, int] = {}
        codes: dict[tuple[int, str], int] = {}
        grades: list[dict[int, float]] = [{} for _ in judges]
        for result, (queries, docids, y) in zip(grades, listed, strict=True):
            for query, document, grade in zip(queries, docids, y, strict=True):
                if query in answered and grade == grade:
                    code = codes.setdefault((numbers.setdefault(query, len(numbers)), document), len(codes))
                    if result.setdefault(code, grade) != grade:
                        raise InputError(
                            f"document {document!r} of query {query!r} has two different grades by one judge; "
                            "keep one, or aggregate them."
                        )
        if not codes:
            raise InputError("no query of the runs has a grade; check that the query ids of runs and judgements agree.")
        table = np.full((len(judges), len(codes)), np.nan)
        for i, result in enumerate(grades):
            table[i, list(result)] = list(result.values())
        rows: list[tuple[int, int, int, str, float]] = []
        for i, (name, run) in enumerate(runs.items()):
            seen: set[tuple[str, str]] = set()
            for query, document, score in zip(run.qid.tolist(), run.docids.tolist(), run.scores.tolist(), strict=True):
                number = numbers.get(query)
                if number is None:
                    continue
                if (query, document) in seen:
                    raise InputError(f"{name} contains document {document!r} twice for query {query!r}; keep one.")
                seen.add((query, document))
                rows.append((i, number, codes.get((number, document), -1), document, score))
        names = np.empty(len(rows), dtype=object)
        names[:] = [row[3] for row in rows]
        numbered = np.array([row[:3] for row in rows], dtype=np.int64).reshape(-1, 3)
        documents = np.array([number for number, _ in codes], dtype=np.int64), tuple(name for _, name in codes)
        return cls(
            tuple(runs), tuple(numbers), documents, table, numbered[:, 0], numbered[:, 1], numbered[:, 2], names,
            np.array([row[4] for row in rows], dtype=np.float64),
        )  # fmt: skip

    @cached_property
    def ranks(self) -> Integers:
        """Rank of each row in its list, from 0; rows with equal scores keep their order."""
        order = np.lexsort([-self.score, self.query, self.system])
        system, query = self.system[order], self.query[order]
        starts = np.flatnonzero(np.append(True, (np.diff(system) != 0) | (np.diff(query) != 0)))
        ranks = np.empty(len(order), dtype=np.int64)
        ranks[order] = np.arange(len(order)) - np.repeat(starts, np.diff(np.append(starts, len(order))))
        return ranks

    def coverage(self, grades: Floats, k: int | None) -> float:
        """Return the share of graded documents among the first k of all lists, on queries with a grade of a judge."""
        is_graded = np.append(~np.isnan(grades), False)  # document -1 has no grade
        has_grades = np.zeros(len(self.queries), dtype=bool)
        has_grades[self.documents[0][is_graded[:-1]]] = True
        top = has_grades[self.query] & ((self.ranks < k) if k else True)
        return float(is_graded[self.document[top]].mean()) if top.any() else 1.0

    def values(self, grades: Floats, metrics: Sequence[str], convention: Convention) -> dict[str, Floats]:
        """
        Return the value of each metric for each system and query, shape (S, N), by one judge.

        NaN marks a query without grades, or one that the convention leaves out. A query that a run does not answer
        counts as an empty list.
        """
        matches = self._evaluated(grades, metrics, convention)
        return {name: self._table(matches, result.values) for name, result in matches.items()}

    def holes(self, grades: Floats, metrics: Sequence[str], convention: Convention) -> dict[str, Floats]:
        """Return judged@k, the condensed value, and both bounds of each system, shape (S, 4), means over queries."""
        result = self._evaluated(grades, metrics, convention)
        tables = {}
        for name in result:
            holes = result.holes(name) or ()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)  # the mean of no value
                tables[name] = np.stack([np.nanmean(self._table(result, hole), axis=1) for hole in holes], axis=1)
        return tables

    def _table(self, evaluation: Evaluation, values: Floats) -> Floats:
        S, N = len(self.systems), len(self.queries)
        table = np.full(S * N, np.nan)
        table[evaluation.query_ids.astype(np.int64)] = values
        return table.reshape(S, N)

    def _evaluated(self, grades: Floats, metrics: Sequence[str], convention: Convention) -> Evaluation:
        S, N = len(self.systems), len(self.queries)
        graded = np.flatnonzero(~np.isnan(grades))
        has_grades = np.zeros(N, dtype=bool)
        has_grades[self.documents[0][graded]] = True
        kept = has_grades[self.query]
        retrieved = np.zeros((S, len(grades)), dtype=bool)
        known = self.document >= 0
        retrieved[self.system[known], self.document[known]] = True
        missed_system, i = np.nonzero(~retrieved[:, graded])
        missed = graded[i]
        y = np.where(known, grades[self.document], np.nan)[kept]
        n_missed = len(missed)
        return evaluate(
            np.concatenate([y, grades[missed]]),
            np.concatenate([self.score[kept], np.zeros(n_missed)]),
            np.concatenate([self.system[kept] * N + self.query[kept], missed_system * N + self.documents[0][missed]]),
            metrics,
            convention=convention,
            docids=np.concatenate([self.docid[kept], np.full(n_missed, "", object)])
            if convention.ties == "docid"
            else None,
            retrieved=np.arange(len(y) + n_missed) < len(y),
        )


def _names(judged: Qrels | Dataset) -> tuple[list[str], list[str]]:
    if judged.qid is None or judged.docids is None:
        missing = "queries" if judged.qid is None else "documents"
        raise InputError(f"judgements have no ids of {missing}, so runs cannot be matched; add a column with them.")
    return [str(query) for query in judged.qid.tolist()], [str(document) for document in judged.docids.tolist()]


def map_to_gold(grades: Floats, judges: list[str], notes: list[str]) -> Floats:
    """Return grades (J, n_documents), gold first, with those of cheap judges on the gold scale; add what was mapped."""
    out = grades.copy()
    for i, name in enumerate(judges, 1):
        given = ~np.isnan(grades[i])
        both = ~np.isnan(grades[0]) & given
        if not both.any():
            raise InputError(
                f"{name} graded no document that has a gold grade, so it cannot be corrected; let it grade the gold "
                "queries, too."
            )
        if not is_same_scale(grades[0][~np.isnan(grades[0])], grades[i][given]):
            out[i, given] = map_grades(grades[0, both], grades[i, both], grades[i, given])
            low, high = float(grades[i, given].min()), float(grades[i, given].max())
            notes.append(
                f"{name} has grades from {low:g} to {high:g}, another scale than gold; they were mapped by "
                f"equal percentiles of {int(both.sum())} documents with both grades."
            )
    return out


def as_judges(cheap: Any) -> dict[str, Any]:
    """Return cheap judges by name; judges without names are named by their files or numbered."""
    if cheap is None or (isinstance(cheap, Mapping) and not cheap):
        return {}
    if isinstance(cheap, Mapping) and not all(isinstance(item, Mapping) for item in cheap.values()):
        return dict(cheap)
    if isinstance(cheap, Mapping) and cheap:
        inner = next(iter(next(iter(cheap.values())).values()), None)
        if isinstance(inner, Mapping):  # {judge: {query: {document: grade}}}
            return dict(cheap)
    sources = list(cheap) if isinstance(cheap, list | tuple) else [cheap]
    return {str(item) if isinstance(item, str) or hasattr(item, "__fspath__") else f"cheap {i}": item
            for i, item in enumerate(sources, 1)}  # fmt: skip
