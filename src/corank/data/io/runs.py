"""
Runs of several retrievers, joined: one row for each document that a retriever returned, one column per retriever.

The documents of a list are ordered by score, and equal scores by document id, descending as strings, as in trec_eval.
The rows of a query have that order of ids, so that a stable sort of a column gives the ranks. Joining takes O(n log n).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.data.collection import as_texts
from corank.data.durable.compressed import SUFFIXES
from corank.data.durable.text import TextFile, is_number, open_text
from corank.data.inputs import MAX_VALUE
from corank.data.io.judgements import read_judgements
from corank.data.io.read import detect_format
from corank.data.io.search_responses import as_run, read_responses
from corank.data.io.tables import JSON, suffix_of
from corank.data.io.trec import (
    EVERY_ROW,
    FIRST_ROW,
    RANKED_COLUMNS,
    RUN_COLUMNS,
    Qrels,
    first_repeated,
    is_run,
    merge_qrels,
    read_columns,
)  # fmt: skip
from corank.data.queries import Queries
from corank.errors import InputError

Texts = NDArray[np.object_]
Floats = NDArray[np.float64]
_ENDINGS = (".run", ".trec", ".txt", ".res", ".tsv", ".csv", ".parquet", *JSON)
_MAX_SHOWN = 3


@dataclass(frozen=True, eq=False)
class Runs:
    """
    The lists of several retrievers.

    names: The retrievers, by file name or column.
    tags: The tag of each run file, another name by which it is found; "" if it has none.
    qid, docids (n_rows,): Query and document of each row; queries by first appearance, documents by falling id.
    X (n_rows, n_retrievers): Scores; NaN where a retriever did not return the document.
    notes: What was noticed, one sentence each.
    qrels: Grades of a table that has them.
    """

    names: tuple[str, ...]
    tags: tuple[str, ...]
    qid: Texts
    docids: Texts
    X: Floats
    notes: tuple[str, ...] = ()
    qrels: Qrels | None = None

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return len(Queries.of(self.qid, len(self.qid)))

    def matched(self, retrievers: Sequence[str]) -> Runs:
        """Order the columns as the retrievers of a fusion: by file name or tag, else by position."""
        if len(retrievers) != len(self.names):
            absent = [name for name in retrievers if name not in (*self.names, *self.tags)]
            extra = [name for name, tag in zip(self.names, self.tags, strict=True) if not {name, tag} & {*retrievers}]
            detail = "".join(
                f", {what} {', '.join(map(repr, names))}"
                for what, names in (("without", absent), ("and also", extra))
                if names and len(names) < max(len(retrievers), len(self.names))
            )
            raise InputError(
                f"found {len(self.names)} runs for a fusion of {len(retrievers)} retrievers "
                f"({', '.join(retrievers)}){detail}; pass one run for each retriever."
            )
        for names, what in ((self.names, "file name"), (self.tags, "tag")):
            if set(names) == set(retrievers):
                order = [names.index(name) for name in retrievers]
                note = (
                    (f"runs were matched to retrievers by {what}",) if order != sorted(order) or what == "tag" else ()
                )
                return self._reordered(order, retrievers, note)
        known = [name for name in retrievers if name in (*self.names, *self.tags)]
        if known:
            other = next(name for name in retrievers if name not in known)
            raise InputError(
                f"no run is named {other!r}, but {', '.join(map(repr, known))} were recognised; found the runs "
                f"{', '.join(map(repr, self.names))}. Rename the files, or use the tags of the retrievers."
            )
        pairs = ", ".join(f"{name} = {other}" for name, other in zip(retrievers, self.names, strict=True))
        note = (f"no run has the name of a retriever, so they were matched by order: {pairs}",)
        return self._reordered(range(len(retrievers)), retrievers, note)

    def _reordered(self, order: Sequence[int], names: Sequence[str], notes: tuple[str, ...]) -> Runs:
        tags = tuple(self.tags[i] for i in order)
        return replace(self, names=tuple(names), tags=tags, X=self.X[:, list(order)], notes=(*self.notes, *notes))

    def join(self, qrels: Qrels) -> tuple[Floats, Qrels]:
        """Return the grade of each row, NaN if it is unjudged; and the judged documents that no retriever returned."""
        grades = dict(zip(zip(qrels.qid, qrels.docids, strict=True), qrels.y.tolist(), strict=True))
        queries = set(self.qid.tolist())
        if not queries & set(qrels.qid.tolist()):
            raise InputError(
                f"no query of the runs is judged (found query {self.qid[0]!r} in the runs, {qrels.qid[0]!r} in the "
                "judgements); check that both use the same ids."
            )
        keys = list(zip(self.qid.tolist(), self.docids.tolist(), strict=True))
        y = np.array([grades.pop(key, np.nan) for key in keys], dtype=np.float64)
        missed = [(query, name, grade) for (query, name), grade in grades.items() if query in queries]
        qid, names, values = (list(part) for part in zip(*missed, strict=True)) if missed else ([], [], [])
        return y, Qrels(as_texts(qid), as_texts(names), np.array(values, dtype=np.float64))


@dataclass(frozen=True, eq=False)
class _List:
    """What one retriever returned: a column of `Runs`."""

    name: str
    tag: str
    qid: Texts
    docids: Texts
    scores: Floats
    notes: tuple[str, ...] = ()


def read_runs(
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]], *, queries: Sequence[str] | None = None
) -> Runs:
    """
    Read the lists of retrievers: TREC runs, saved answers of search engines, tables with a column of scores for each.

    `queries` names the queries of saved answers that do not, in their order.
    """
    given = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    lists: list[_List] = []
    qrels = None
    for path in given:
        if suffix_of(path) in JSON:
            lists.append(_of_responses(path, queries))
        elif suffix_of(path) == ".parquet" or (
            detect_format(path) == "csv" and not is_run(open_text(path).first_line().split())
        ):
            of_table, qrels = _of_table(path, qrels)
            lists += of_table
        else:
            lists.append(_of_run(path))
    return _joined(_with_different_names(lists), qrels)


def read_grades(path: str | os.PathLike[str], rule: str = "median") -> tuple[Qrels, tuple[str, ...]]:
    """Read judgements of any known format, one grade per document; and what was noticed, one sentence each."""
    retrieved = read_judgements(path)
    if retrieved.qid is None:
        raise InputError(f"{path} has no query ids, so that grades cannot be matched to runs; add a column query.")
    judged = ~np.isnan(retrieved.y)
    if not judged.any():
        raise InputError(f"{path} has no grade; grade some documents first.")
    notes = []
    negative = int(np.count_nonzero(retrieved.y[judged] < 0))
    if negative:
        notes.append(f"{negative} grades below 0, as of spam pages, count as irrelevant in metrics")
    if rule == "keep":
        raise InputError("a document of a fusion has one grade; choose the rule median, mean or majority.")
    if retrieved.judges is not None and not (retrieved.judges == "").any():
        final = retrieved.final(rule)
        n_judges = len(set(retrieved.judges.tolist()))
        if len(final) < int(judged.sum()):
            notes.append(f"{n_judges} judges: the {rule} grade of each of {len(final)} documents is used")
        return Qrels(final.qid, final.docids, final.y), tuple(notes)  # type: ignore[arg-type]
    qrels = Qrels(retrieved.qid[judged], retrieved.docids[judged], retrieved.y[judged])
    return merge_qrels(qrels, rule, path), tuple(notes)


def describe_grades(qrels: Qrels) -> str:
    """Return what kind of judgements they are, as one sentence: queries, scale, and queries without a relevant one."""
    queries = Queries.of(qrels.qid, len(qrels.y))
    relevant = np.bincount(queries.codes, weights=qrels.y > 0, minlength=len(queries))
    levels = np.unique(qrels.y)
    scale = "only relevant documents are listed" if levels.min() > 0 else (
        "binary" if len(levels) == 2 else f"{len(levels)} grades" if len(levels) > 1 else "no relevant document"
    )  # fmt: skip
    text = f"{len(qrels.y):,} judgements of {len(queries)} queries ({scale})"
    if (relevant == 1).all():
        text += "; every query has one relevant document"
    if empty := int(np.count_nonzero(relevant == 0)):
        text += f"; queries without a relevant document are left out of means: {empty}"
    return text


def _of_run(path: str | os.PathLike[str]) -> _List:
    text = open_text(path)
    words = text.first_line().split()
    every = {"query": EVERY_ROW, "document": EVERY_ROW}
    if len(words) == len(RANKED_COLUMNS) and is_number(words[2]):
        ranks, qid, docids = read_columns(text, RANKED_COLUMNS, every, "rank")
        retrieved = _List(_name_of(path), "", qid, docids, -ranks, (f"{text} has ranks only, no scores",))
    elif len(words) == len(RUN_COLUMNS):
        kept = {**every, "rank": EVERY_ROW, "tag": FIRST_ROW}
        scores, qid, docids, shown, tags = read_columns(text, RUN_COLUMNS, kept, "score")
        retrieved = _List(_name_of(path), str(tags[0]), qid, docids, scores)
        retrieved = _with_ranks(retrieved, _numbers(shown), text)
    else:
        raise InputError(
            f"{text} begins with {len(words)} words; expected a TREC run ({' '.join(RUN_COLUMNS)}), a run without "
            f"scores ({' '.join(RANKED_COLUMNS)}), saved answers of an engine (.json) or a table with a header."
        )
    _require_once(retrieved, lambda row: f"{text}, line {_line_of(text, row)}")
    return retrieved


def _with_ranks(retrieved: _List, ranks: Floats | None, text: TextFile) -> _List:
    """Compare scores with ranks, which count if all scores are equal; else a contradiction is reported."""
    if ranks is None:
        return replace(retrieved, notes=(f"the ranks of {text} are not numbers, and are ignored",))
    codes = Queries.of(retrieved.qid, len(retrieved.qid)).codes
    order = np.lexsort((ranks, codes))
    same = codes[order][1:] == codes[order][:-1]
    steps = np.diff(retrieved.scores[order])[same]
    if not steps.any() and len(steps) and np.diff(ranks[order])[same].any():
        return replace(retrieved, scores=-ranks, notes=(f"all scores of {text} are equal, so its ranks are used",))
    wrong = np.unique(codes[order][1:][same][steps > 0])
    if not len(wrong):
        return retrieved
    note = f"the ranks of {text} contradict its scores in {len(wrong)} of {codes.max() + 1} queries; scores count"
    return replace(retrieved, notes=(note,))


def _of_responses(path: str | os.PathLike[str], queries: Sequence[str] | None) -> _List:
    answers = read_responses(path, queries=queries)
    has_scores = all(item.scores is not None for item in answers if item.documents)
    run = as_run(answers, str(path), by_score=has_scores)
    bad = np.flatnonzero(~np.isfinite(run.scores))
    if len(bad):
        raise InputError(
            f"{path}: the score of document {run.docids[bad[0]]!r} of query {run.qid[bad[0]]!r} is "
            f"{run.scores[bad[0]]}; expected a finite number."
        )
    notes = [] if has_scores else [f"{path} has answers without scores, so the order shown is used"]
    rises = (np.diff(run.scores) > 0) & (run.qid[1:] == run.qid[:-1])
    if rises.any():
        n_queries = len(set(run.qid[1:][rises].tolist()))
        notes.append(f"{path} shows the documents of {n_queries} queries in another order than by score; scores count")
    retrieved = _List(_name_of(path), "", run.qid, run.docids, run.scores, tuple(notes))
    _require_once(retrieved, lambda row: str(path))
    return retrieved


def _of_table(path: str | os.PathLike[str], qrels: Qrels | None) -> tuple[list[_List], Qrels | None]:
    """Read a table of queries, documents and a column of scores per retriever; an empty cell means not returned."""
    from corank.data.io.frames import read_csv, read_parquet

    rows = (read_parquet if suffix_of(path) == ".parquet" else read_csv)(path, y=False)
    if rows.qid is None or rows.docids is None:
        missing = "queries" if rows.qid is None else "documents"
        raise InputError(f"{path} has no column of {missing}; name the columns query and docid, the others are scores.")
    names, X = list(rows.names or ()), np.asarray(rows.X, dtype=np.float64)
    ranks = [i for i, name in enumerate(names) if name.casefold() in ("rank", "position")]
    if ranks and len(names) > 1:
        X, names = np.delete(X, ranks, axis=1), [name for i, name in enumerate(names) if i not in ranks]
    if len(names) == 1 and names[0].casefold() in ("score", "rank", "position"):
        X, names = (X if names[0].casefold() == "score" else -X), [_name_of(path)]
    qid = as_texts(list(map(str, rows.qid.tolist())))
    lists = []
    for column, name in enumerate(names):
        kept = ~np.isnan(X[:, column])
        if not kept.any():
            raise InputError(f"{path}: the column {name!r} has no score; leave it out, or fill it.")
        retrieved = _List(name, "", qid[kept], rows.docids[kept], X[kept, column])
        _require_once(retrieved, lambda row, kept=kept: f"{path}, row {np.flatnonzero(kept)[row] + 1}")
        lists.append(retrieved)
    if not np.isnan(rows.y).all():
        judged = ~np.isnan(rows.y)
        if qrels is not None:
            raise InputError(f"{path} is the second table with grades; leave the grades of one out.")
        qrels = merge_qrels(Qrels(qid[judged], rows.docids[judged], rows.y[judged]), "median", path)
    return lists, qrels


def _joined(lists: Sequence[_List], qrels: Qrels | None) -> Runs:
    per_list = [set(item.qid.tolist()) for item in lists]
    n_lists: dict[str, int] = {}
    for query in (query for queries in per_list for query in queries):
        n_lists[query] = n_lists.get(query, 0) + 1
    notes = [note for item in lists for note in item.notes]
    if len(lists) > 1:
        if max(n_lists.values()) == 1:
            first, second = lists[:2]
            raise InputError(
                f"{first.name} and {second.name} have no query in common (found {first.qid[0]!r} and "
                f"{second.qid[0]!r}); check that their query ids agree."
            )
        alone = sorted(query for query, count in n_lists.items() if count == 1)
        if alone:
            notes.append(f"queries in one run only are kept: {len(alone)}, such as {', '.join(alone[:_MAX_SHOWN])}")
        partly = sum(1 < count < len(lists) for count in n_lists.values())
        if partly:
            notes.append(f"queries in some runs only are kept: {partly}")
    qid = np.concatenate([item.qid for item in lists])
    docids = np.concatenate([item.docids for item in lists])
    queries = Queries.of(qid, len(qid))
    falling = {name: i for i, name in enumerate(sorted(set(docids.tolist()), reverse=True))}
    documents = np.array([falling[name] for name in docids.tolist()], dtype=np.int64)
    _, first, row = np.unique(queries.codes * len(falling) + documents, return_index=True, return_inverse=True)
    X = np.full((len(first), len(lists)), np.nan)
    begin = 0
    for column, item in enumerate(lists):
        worst = int(np.abs(item.scores).argmax())
        if abs(item.scores[worst]) > MAX_VALUE:
            raise InputError(
                f"{item.name}: the score of document {item.docids[worst]!r} of query {item.qid[worst]!r} is "
                f"{item.scores[worst]:.3g}; expected scores from -1e15 to 1e15."
            )
        X[row[begin : begin + len(item.scores)], column] = item.scores
        begin += len(item.scores)
    notes += _tie_notes(lists)
    names, tags = tuple(item.name for item in lists), tuple(item.tag for item in lists)
    return Runs(names, tags, qid[first], docids[first], X, tuple(notes), qrels)


def _tie_notes(lists: Sequence[_List]) -> list[str]:
    """Return a sentence on lists with equal scores."""
    tied = []
    for item in lists:
        codes = Queries.of(item.qid, len(item.qid)).codes
        order = np.lexsort((item.scores, codes))
        equal = (np.diff(codes[order]) == 0) & (np.diff(item.scores[order]) == 0)
        if equal.any():
            tied.append(f"{item.name} ({int(equal.sum())})")
    return [f"equal scores are ordered by document id, as in trec_eval: {', '.join(tied)}"] if tied else []


def _with_different_names(lists: list[_List]) -> list[_List]:
    names = [item.name for item in lists]
    tags = [item.tag for item in lists]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is None:
        return lists
    if len(set(tags)) == len(tags) and all(tags):
        return [replace(item, name=item.tag, tag=item.name) for item in lists]
    raise InputError(f"two runs are named {twice!r}; rename one of the files or columns.")


def _require_once(retrieved: _List, place: Any) -> None:
    """Refuse a document that is twice in a list."""
    keys = list(zip(retrieved.qid.tolist(), retrieved.docids.tolist(), strict=True))
    if (row := first_repeated(keys)) is not None:
        query, document = keys[row]
        where = place(row)
        raise InputError(f"{where}: document {document!r} appears twice for query {query!r}; remove one of the lines.")


def _line_of(text: TextFile, row: int) -> int:
    """Return the line of a row; blank lines are no rows."""
    lines = [i for i, line in enumerate(text.read().tobytes().split(b"\n"), 1) if line.strip()]
    return lines[row]


def _numbers(words: Texts) -> Floats | None:
    try:
        numbers = words.astype(np.float64)
    except ValueError:
        return None
    return numbers if np.isfinite(numbers).all() else None


def _name_of(path: str | os.PathLike[str]) -> str:
    """
    Return the name of a retriever: that of its file without endings.

    >>> _name_of("runs/p_bm25.run.gz"), _name_of("v1.2.txt")
    ('p_bm25', 'v1.2')
    """
    name = Path(path).name
    for endings in (SUFFIXES, _ENDINGS):
        ending = next((item for item in endings if name.endswith(item) and name != item), "")
        name = name.removesuffix(ending)
    return name
