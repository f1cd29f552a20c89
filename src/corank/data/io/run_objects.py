"""
Runs and judgements as the objects of other libraries.

| library | objects |
|---|---|
| pytrec_eval, ranx, ir_measures | ``{query: {document: value}}``; ranx's `Run` and `Qrels` have ``to_dict`` |
| ir_measures | tables with ``query_id``, ``doc_id``, ``score`` or ``relevance`` |
| PyTerrier | tables with ``qid``, ``docno``, ``score`` or ``label`` |
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

import numpy as np

from corank.data.collection import as_texts
from corank.data.io.trec import Qrels, Run
from corank.errors import InputError, import_extra

FrameStyle = Literal["ir_measures", "pyterrier"]
_COLUMNS = {
    "ir_measures": ("query_id", "doc_id", {"run": "score", "qrels": "relevance"}),
    "pyterrier": ("qid", "docno", {"run": "score", "qrels": "label"}),
}
_QUERIES, _DOCUMENTS = ("qid", "query_id", "q_id"), ("docno", "doc_id", "docid")
_VALUES = {"run": ("score",), "qrels": ("relevance", "label", "rel", "grade")}


def run_of(source: Any, tag: str = "run") -> Run:
    """Make a run of an object of another library."""
    queries, documents, values = _rows(source, "run")
    return Run(as_texts(queries), as_texts(documents), np.array(values, dtype=np.float64), tag)


def qrels_of(source: Any) -> Qrels:
    """Make judgements of an object of another library."""
    queries, documents, values = _rows(source, "qrels")
    return Qrels(as_texts(queries), as_texts(documents), np.array(values, dtype=np.float64))


def as_dict(source: Run | Qrels) -> dict[str, dict[str, Any]]:
    """Return a run or judgements as ``{query: {document: value}}``, for pytrec_eval, ranx and ir_measures."""
    result: dict[str, dict[str, Any]] = {}
    values = source.scores if isinstance(source, Run) else source.y
    for query, document, value in zip(source.qid, source.docids, values.tolist(), strict=True):
        if value == value:
            is_grade = isinstance(source, Qrels) and value.is_integer()
            result.setdefault(query, {})[document] = int(value) if is_grade else value
    return result


def as_frame(source: Run | Qrels, style: FrameStyle = "ir_measures") -> Any:
    """Return a run or judgements as a pandas DataFrame."""
    if style not in _COLUMNS:
        raise InputError(f"style is {style!r}; pass one of {', '.join(_COLUMNS)}.")
    pandas = import_extra("pandas", "frames")
    query, document, value = _COLUMNS[style]
    rows = [(q, d, v) for q, documents in as_dict(source).items() for d, v in documents.items()]
    return pandas.DataFrame(rows, columns=[query, document, value["run" if isinstance(source, Run) else "qrels"]])


def _rows(source: Any, kind: str) -> tuple[list[str], list[str], list[float]]:
    columns = getattr(source, "columns", None)
    if columns is not None:
        names = [_column(columns, usual, what) for usual, what in (
            (_QUERIES, "queries"), (_DOCUMENTS, "documents"), (_VALUES[kind], "scores" if kind == "run" else "grades"),
        )]  # fmt: skip
        queries, documents, values = (list(source[name]) for name in names)
        rows: Iterable[tuple[Any, Any, Any]] = zip(queries, documents, values, strict=True)
    else:
        given = source.to_dict() if hasattr(source, "to_dict") else source
        if not isinstance(given, Mapping) or not all(isinstance(item, Mapping) for item in given.values()):
            raise InputError(
                f"found a {type(source).__name__}; pass {{query: {{document: value}}}}, a DataFrame or a ranx object."
            )
        rows = [(q, d, v) for q, result in given.items() for d, v in result.items()]
    kept = [(str(query), str(document), float(value)) for query, document, value in rows]
    if not kept:
        raise InputError(f"the {kind} {'has' if kind == 'run' else 'have'} no rows; pass at least one document.")
    first, second, third = zip(*kept, strict=True)
    return list(first), list(second), list(third)


def _column(columns: Any, usual: tuple[str, ...], what: str) -> str:
    result = next((name for name in usual if name in list(columns)), None)
    if result is None:
        raise InputError(
            f"the table has no column of {what} ({', '.join(usual)}); found {', '.join(map(str, columns))}."
        )
    return result
