"""Test collections in the format of SMART: Cranfield, CISI, MED and CACM, with their queries and judgements."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from corank.data.durable.text import open_text
from corank.errors import InputError, suggest_names
from experiments.datasets.catalog import dataset

_ENTRY = re.compile(r"^\.I[ \t]+(\d+)[ \t]*$", re.MULTILINE)
_FIELD = re.compile(r"^\.([A-Z])[ \t]*$", re.MULTILINE)


class _Files(NamedTuple):
    documents: str
    queries: str
    judgements: str
    column: int  # of the document in a line of judgements


_FILES = {
    "cran": _Files("cran/cran.all.1400", "cran/cran.qry", "cran/cranqrel", 1),
    "cisi": _Files("cisi/CISI.ALL", "cisi/CISI.QRY", "cisi/CISI.REL", 1),
    "med": _Files("med/MED.ALL", "med/MED.QRY", "med/MED.REL", 2),
    "cacm": _Files("cacm/cacm.all", "cacm/query.text", "cacm/qrels.text", 1),
}
COLLECTIONS = tuple(_FILES)
"""Names of the collections."""

# what the middle column of `.X` holds where it is a citation: CACM's kinds are shared references (4), citations (5) and
# shared citations (6); CISI's numbers say how many works cite both
_CITED: dict[str, int | None] = {"cacm": 5, "cisi": None}


@dataclass(frozen=True, eq=False)
class Topics:
    """
    A collection.

    texts: title and abstract of each document, of title alone where there is no more.
    queries: those that have a relevant document.
    relevant (n_queries, n_documents): which documents are.
    query_ids, document_ids: their numbers as texts.
    """

    texts: list[str]
    queries: list[str]
    relevant: NDArray[np.bool_]
    query_ids: Sequence[str] = ()
    document_ids: Sequence[str] = ()


@cache
def read_topics(name: str) -> Topics:
    """
    Read a collection.

    name: one of `COLLECTIONS`.
    Returns: documents, queries and judgements. Everything that is judged is relevant, Cranfield's code −1 (225 rows
        whose meaning is not known) excepted.
    """
    if name not in _FILES:
        raise InputError(f"there is no collection {name!r}; {suggest_names(name, COLLECTIONS)}.")
    files = _FILES[name]
    documents, queries, judged = (_text(file) for file in files[:3])
    texts = entries(documents)
    asked = entries(queries)
    # Cranfield's judgements count its queries, whose numbers have gaps
    number = {(index + 1 if name == "cran" else no): index for index, no in enumerate(asked)}
    place = {no: index for index, no in enumerate(texts)}
    relevant = np.zeros((len(asked), len(texts)), dtype=bool)
    for line in judged.splitlines():
        fields = line.split()
        if fields and not (name == "cran" and fields[2] == "-1"):
            relevant[number[int(fields[0])], place[int(fields[files.column])]] = True
    kept = np.flatnonzero(relevant.any(axis=1))
    words = list(asked.values())
    names = [str(no) for no in number]
    return Topics(
        list(texts.values()),
        [words[index] for index in kept],
        relevant[kept],
        [names[index] for index in kept],
        [*map(str, texts)],
    )


@cache
def read_citations(name: str) -> list[tuple[int, int]]:
    """
    Read which documents of a collection are linked by citations, as `corank.text.Links.of` takes it.

    name: "cacm", where one cites the other, or "cisi", where others cite both.
    Returns: pairs of documents, as numbers from 0 in the order of `read_topics`; the same pair may come more than once.
    """
    if name not in _CITED:
        raise InputError(f"the collection {name!r} has no citations; {suggest_names(name, tuple(_CITED))}.")
    text = _text(_FILES[name].documents)
    place = {no: index for index, no in enumerate(entries(text))}
    return [(place[a], place[b]) for a, b in citations(text, _CITED[name]) if a in place and b in place]


def citations(text: str, kind: int | None) -> list[tuple[int, int]]:
    """
    Parse the fields `.X` of a SMART file, whose lines are another entry, a kind or count of the link, and the entry.

    kind: of the links that are taken; None takes all.
    Returns: numbers of two different entries, link by link.

    >>> citations(".I 1\\n.T\\nOn tin\\n.X\\n1\\t5\\t1\\n7\\t5\\t1\\n7\\t4\\t1\\n.I 7\\n.W\\nLead\\n", 5)
    [(1, 7)]
    """
    results = []
    for number, fields in _fields(text):
        for line in (line for field, words in fields if field == "X" for line in words.splitlines() if line.strip()):
            other, code, _ = map(int, line.split())
            if other != number and kind in (None, code):
                results.append((number, other))
    return results


def entries(text: str) -> dict[int, str]:
    """
    Parse entries of a SMART file.

    text: entries that begin with `.I number`, fields with `.T` (title), `.W` (words) and others, which are ignored.
    Returns: number to title and words.

    >>> entries(".I 1\\n.T\\nOn tin\\n.A\\nSmith\\n.W\\nTin is soft.\\n.I 7\\n.W\\nWhat is lead?\\n")
    {1: 'On tin Tin is soft.', 7: 'What is lead?'}
    """
    return {
        number: " ".join(" ".join(words for field, words in fields if field in "TW").split())
        for number, fields in _fields(text)
    }


def _fields(text: str) -> Iterator[tuple[int, list[tuple[str, str]]]]:
    """Yield the number of each entry, and its fields by their letters."""
    _, *parts = _ENTRY.split(text)
    for number, body in zip(parts[::2], parts[1::2], strict=True):
        _, *fields = _FIELD.split(body)
        yield int(number), list(zip(fields[::2], fields[1::2], strict=True))


def _text(file: str) -> str:
    return open_text(dataset("ir").path(file)).read().tobytes().decode("latin-1")
