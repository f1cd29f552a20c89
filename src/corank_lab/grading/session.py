"""
A grading session of several judges: who grades what next, and what the grades amount to.

Each document is graded by `overlap` judges if it belongs to the shared part, else by one. The shared part is a share of
the documents, chosen by a hash of their keys, so that it stays the same. A judge who puts a document aside gets it
again when no other document is left.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from corank.base import suggest
from corank.data import JudgeGrades, krippendorff
from corank.errors import InputError
from corank_lab.grading.task import GradingEntry, GradingScale, GradingTask, Judgement

ORDERS = {
    "query": "One query after another", "depth": "First documents of all queries first",
    "model": "Most informative documents first (model)",
}  # fmt: skip
"""Orders of documents."""
N_AHEAD = 200  # number of documents that the model chooses ahead
MAX_LIST = 50  # largest number of documents of a result list on a page


class Open(NamedTuple):
    """A document that a judge may get next."""

    number: int  # of the document
    slots: int  # number of judges who may still grade it


class GradingSession:
    """
    The grades of all judges.

    task: Queries and documents.
    scale: The grades.
    order: Which document comes next: one query after another, the first documents of all queries first, or by
        `corank.suggest`.
    depth: Number of first documents of each query that are graded; 0 means all.
    overlap: Number of judges who grade a document of the shared part.
    shared: Share of documents that `overlap` judges grade.
    list_size: Largest number of documents of a query that a judge gets together; the others are in further lists.

    judges: Last answer of each judge about each document.
    settled: Grades that were fixed.

    >>> from corank_lab.grading import GradingDocument, GradingQuery, GradingTask
    >>> from corank_lab.grading.task import GradingEntry
    >>> task = GradingTask([GradingQuery("q1", "tea")], [GradingDocument(0, "a"), GradingDocument(0, "b")])
    >>> session = GradingSession(task)
    >>> [task.documents[item.number].id for (item,) in session.open_lists("ann")]
    ['a', 'b']
    >>> session.add("ann", GradingEntry("grade", "q1", "a", "2"))
    >>> [task.documents[item.number].id for (item,) in session.open_lists("bob")], session.final().tolist()
    (['b'], [2.0, nan])
    """

    def __init__(
        self,
        task: GradingTask,
        scale: GradingScale | None = None,
        *,
        order: str = "query",
        depth: int = 0,
        overlap: int = 1,
        shared: float = 1.0,
        list_size: int = 1,
    ) -> None:
        if order not in ORDERS:
            raise InputError(f"order is {order!r}; pass one of {', '.join(ORDERS)}.")
        self.task, self.scale, self.order = task, scale or task.scale or GradingScale(), order
        n = len(task.documents)
        query = np.array([document.query for document in task.documents])
        position = np.array([document.position for document in task.documents])
        rank = np.empty(n, dtype=np.int64)
        by_query = np.lexsort([np.arange(n), position, query])
        rank[by_query] = np.arange(n) - np.searchsorted(query[by_query], query[by_query])
        wanted = (rank < depth) if depth else np.ones(n, dtype=bool)
        hashes = np.array([_hash(key) for key in task.keys])
        self._needed = np.where(wanted, np.where(hashes < shared, max(overlap, 1), 1), 0)
        self._static = np.lexsort([rank, query]) if order == "query" else np.lexsort([query, rank])
        # lists are numbered in the order in which judges get them
        block = rank // list_size
        self._rank = rank
        self._list = query * (1 + block.max()) + block if order == "query" else block * len(task.queries) + query
        self._ahead: NDArray[np.int64] = np.empty(0, dtype=np.int64)
        self._done = np.zeros(n, dtype=np.int64)
        self.judges: dict[str, dict[int, Judgement]] = {}
        self.settled: dict[int, int] = {}
        self._log: dict[str, list[tuple[int, Judgement | None, Judgement]]] = {}

    def add(self, judge: str, entry: GradingEntry) -> None:
        mine, log = self.judges.setdefault(judge, {}), self._log.setdefault(judge, [])
        if entry.action == "undo":
            if log:
                number, before, _ = log.pop()
                self._set(mine, number, before)
            return
        number = self.number(entry)
        if entry.action == "settle":
            self.settled[number] = self.grade_of(entry)
            return
        new = Judgement(entry.action, self.grade_of(entry) if entry.action == "grade" else None, entry.text)
        log.append((number, mine.get(number), new))
        self._set(mine, number, new)

    def number(self, entry: GradingEntry) -> int:
        result = self.task.number.get(json.dumps([entry.query, entry.document]))
        if result is None:
            raise entry.unknown(f"{entry.query}/{entry.document}", f"{len(self.task.documents)} documents")
        return result

    @property
    def n_answers(self) -> int:
        """Number of answers that were not withdrawn, with changed ones and settled conflicts."""
        counted = (new.action != "later" for log in self._log.values() for _, _, new in log)
        return sum(counted) + len(self.settled)

    def last(self, judge: str) -> int | None:
        log = self._log.get(judge)
        return log[-1][0] if log else None

    def recent(self, judge: str) -> list[tuple[int, Judgement]]:
        """Return the last answers of a judge about each document, the newest first."""
        order = dict.fromkeys(number for number, _, _ in reversed(self._log.get(judge, [])))
        mine = self.judges.get(judge, {})
        return [(number, mine[number]) for number in order if number in mine]

    def open_lists(self, judge: str, most: int = 60) -> list[list[Open]]:
        """Return the lists of documents that a judge may get next, the best first, and at last what was put aside."""
        mine = self.judges.get(judge, {})
        slots = self._needed - self._done
        is_mine = np.zeros(len(slots), dtype=bool)
        is_mine[list(mine)] = True
        order = np.concatenate([self._ahead, self._static])
        free = order[(slots[order] > 0) & ~is_mine[order]]
        later = [number for number, item in mine.items() if item.action == "later" and slots[number] > 0]
        lists = self._list[free]
        first = dict.fromkeys(lists.tolist() if len(self._ahead) else np.unique(lists).tolist())
        chosen = list(first | dict.fromkeys(self._list[later].tolist()))[:most]
        numbers = np.union1d(free, np.array(later, dtype=np.int64)).astype(np.int64)
        numbers = numbers[np.isin(self._list[numbers], chosen)]
        result: dict[int, list[Open]] = {item: [] for item in chosen}
        for number in numbers[np.argsort(self._rank[numbers], kind="stable")].tolist():
            result[int(self._list[number])].append(Open(number, int(slots[number])))
        return list(result.values())

    def list_of(self, number: int) -> list[int]:
        wanted = self._needed > 0
        wanted[number] = True
        result = np.flatnonzero((self._list == self._list[number]) & wanted)
        return [int(item) for item in result[np.argsort(self._rank[result], kind="stable")]]

    def list_after(self, judge: str, number: int) -> list[Open]:
        """Return the result list that a judge gets after that of a document."""
        lists = {int(self._list[entry[0].number]): entry for entry in self.open_lists(judge, most=len(self._list))}
        here = int(self._list[number])
        lists.pop(here, None)
        if self.order != "model":  # the next one of the file, then the first again
            lists = dict(sorted(lists.items(), key=lambda item: (item[0] < here, item[0])))
        return next(iter(lists.values()), [])

    def suggest(self, y: NDArray[np.float64]) -> NDArray[np.int64]:
        """Choose the documents to grade next with a model of the grades so far; may take seconds."""
        from corank.models import RankRLS

        X = self._rows()
        qid = np.array([document.query for document in self.task.documents])
        wanted = np.flatnonzero(self._needed > 0)
        model: Any = None
        judged = wanted[~np.isnan(y[wanted])]
        has_pairs = any(len(set(y[judged[qid[judged] == item]])) > 1 for item in set(qid[judged]))
        if has_pairs:
            model = RankRLS().fit(X[judged], y[judged], qid=qid[judged])
        strategy = "uncertain" if has_pairs else "representative"
        return np.asarray(wanted[suggest(model, X[wanted], y[wanted], qid[wanted], N_AHEAD, strategy, random_state=0)])

    def install(self, ahead: NDArray[np.int64]) -> None:
        self._ahead = ahead

    def final(self, rule: str = "median") -> NDArray[np.float64]:
        """Return one grade per document: the settled one, else that of all judges together."""
        n = len(self.task.documents)
        rows = [(i, item.grade) for mine in self.judges.values() for i, item in mine.items() if item.grade is not None]
        result = np.full(n, np.nan)
        if rows:
            # every document once, so that numbers stay as they are
            numbers = np.concatenate([np.arange(n), [i for i, _ in rows]]).astype(np.int64)
            grades = np.concatenate([np.full(n, np.nan), [float(grade) for _, grade in rows]])
            result = JudgeGrades.of_documents(numbers, grades).aggregate(rule)
        for number, grade in self.settled.items():
            result[number] = grade
        return result

    def grades(self) -> list[dict[str, int]]:
        table: list[dict[str, int]] = [{} for _ in self.task.documents]
        for judge, mine in self.judges.items():
            for number, item in mine.items():
                if item.grade is not None:
                    table[number][judge] = item.grade
        return table

    def conflicts(self) -> list[int]:
        """Return the documents with different grades that were not settled, the largest difference first."""
        spread = {
            number: max(result.values()) - min(result.values())
            for number, result in enumerate(self.grades())
            if len(set(result.values())) > 1 and number not in self.settled
        }
        return sorted(spread, key=lambda number: (-spread[number], number))

    @property
    def counts(self) -> Mapping[str, int]:
        """Number of documents to grade, of finished ones, and of grades that are still needed."""
        missing = np.maximum(self._needed - self._done, 0)
        return {
            "wanted": int((self._needed > 0).sum()),
            "finished": int(((self._needed > 0) & (missing == 0)).sum()),
            "missing": int(missing.sum()),
        }

    def _set(self, mine: dict[int, Judgement], number: int, new: Judgement | None) -> None:
        before = mine.pop(number, None)
        self._done[number] += _counts(new) - _counts(before)
        if new is not None:
            mine[number] = new

    def grade_of(self, entry: GradingEntry) -> int:
        """Return the grade of an entry; raise if the scale lacks it."""
        if entry.grade not in map(str, self.scale.grades):
            raise InputError(
                f"{entry.place + ': ' if entry.place else ''}the grade is {entry.grade!r}; choose one of "
                f"{', '.join(map(str, self.scale.grades))}."
            )
        return int(entry.grade)

    def _rows(self) -> Any:
        if self.task.X.shape[1]:
            X, deviation = self.task.X, self.task.X.std(axis=0)
            varies = deviation > 1e-12 * np.abs(X).max(axis=0, initial=0.0)  # not only by rounding
            return np.where(varies, X - X.mean(axis=0), 0.0) / np.where(varies, deviation, 1.0)
        from sklearn.feature_extraction.text import TfidfVectorizer

        texts = [
            f"{self.task.queries[document.query].text} {' '.join(document.fields.values())} {document.id}"
            for document in self.task.documents
        ]
        return TfidfVectorizer(sublinear_tf=True, token_pattern=r"\w+", max_features=50_000).fit_transform(texts)


def _hash(key: str) -> float:
    """Return a number in [0, 1) that depends on a key only."""
    return int.from_bytes(hashlib.sha256(key.encode()).digest()[:6], "big") / 2**48


def _counts(judgement: Judgement | None) -> int:
    """Whether an answer fills one of the places of a document."""
    return int(judgement is not None and judgement.action in ("grade", "unrateable"))


RESAMPLES = 1000
MIN_DOCUMENTS = 10  # number of documents below which resampling says nothing about the error


class AlphaInterval(NamedTuple):
    """Agreement of judges."""

    alpha: float  # Krippendorff's alpha; NaN if it is undefined
    low: float  # low, high: 95 % bootstrap interval over the documents; NaN with fewer than ten documents
    high: float
    n_documents: int  # number of documents with two grades or more


def alpha_interval(
    grades: Sequence[Sequence[float]], level: str = "ordinal", *, resamples: int = RESAMPLES, random_state: int = 0
) -> AlphaInterval:
    """
    Compute Krippendorff's alpha with a bootstrap interval.

    Documents are drawn with replacement. A sample in which all grades are equal has no alpha and is left out.

    >>> result = alpha_interval([[0, 0], [1, 1], [2, 2], [2, 1], [0, 0], [1, 1]] * 2)
    >>> round(result.alpha, 2), result.low < result.alpha <= result.high, result.n_documents
    (0.88, True, 12)
    """
    shared = [np.asarray(grade, dtype=np.float64) for grade in grades if len(grade) > 1]
    n = len(shared)
    nan = float("nan")
    if not n:
        return AlphaInterval(nan, nan, nan, 0)
    sizes = np.array([len(item) for item in shared])
    values, starts = np.concatenate(shared), np.cumsum(sizes) - sizes
    alpha = krippendorff(np.repeat(np.arange(n), sizes), values, level)
    rng = np.random.default_rng(random_state)
    result = []
    for _ in range(resamples if n >= MIN_DOCUMENTS else 0):
        drawn = rng.integers(n, size=n)
        # rows of the drawn documents, one after another
        ends = np.cumsum(sizes[drawn])
        rows = np.arange(ends[-1]) + np.repeat(starts[drawn] - (ends - sizes[drawn]), sizes[drawn])
        result.append(krippendorff(np.repeat(np.arange(n), sizes[drawn]), values[rows], level))
    defined = np.array([item for item in result if item == item])
    if not len(defined):
        return AlphaInterval(alpha, nan, nan, n)
    low, high = np.quantile(defined, [0.025, 0.975])
    return AlphaInterval(alpha, float(low), float(high), n)
