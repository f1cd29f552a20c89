"""
Saved answers of search engines: the documents in order, and the features that the engine logged.

| engine | documents | features |
|---|---|---|
| Elasticsearch, OpenSearch (`_search`, `_msearch`) | ``hits.hits[]._id`` | ``fields._ltrlog`` of the LTR plugin |
| Solr | ``response.docs[].id`` | ``[features]``, such as ``bm25=7.5,age=3`` |
| Vespa | ``root.children[]``: ``id`` after ``::`` | ``matchfeatures``, ``summaryfeatures``, ``rankfeatures`` |

An answer does not name its query. The name is taken from an object around it, ``{"qid": ..., "response": {...}}``; from
``qid`` or ``q`` in the parameters that Solr returns; from `queries`; or, if a file has one answer, from its name.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from corank.data.collection import Dataset, as_names, as_texts
from corank.data.io.tables import at_path, json_values, plain_text, read_utf8, shortened
from corank.data.io.trec import Run
from corank.errors import InputError

WRAPPED_IDS = ("qid", "query_id", "id", "query")
VESPA_FEATURES = ("matchfeatures", "summaryfeatures", "rankfeatures")
# id:<namespace>:<document type>::<id>, whose last part may hold colons too
_VESPA_START = re.compile(r"^id:[^:]*:[^:]*::(?=.)")


@dataclass(frozen=True)
class SearchResponse:
    """
    Saved answer of a search engine to one query.

    query: Id of the query; None if it is unknown.
    documents: Ids in the order shown.
    features: Values by name for each document, NaN if the engine logged a name without a value; None if the answer has
        no features.
    scores: ``_score``, ``score`` or ``relevance`` of each document; None if a document has none, as in sorted answers.
    """

    query: str | None
    documents: tuple[str, ...]
    features: tuple[Mapping[str, float], ...] | None
    scores: tuple[float, ...] | None = None


def read_responses(
    path: str | os.PathLike[str], *more_paths: str | os.PathLike[str], queries: Sequence[str] | None = None
) -> list[SearchResponse]:
    """Read saved answers of search engines."""
    result: list[SearchResponse] = []
    for item in (path, *more_paths):
        answers = list(_answers(item))
        if len(answers) == 1 and answers[0].query is None and queries is None:
            answers = [replace(answers[0], query=Path(item).name.split(".")[0])]
        result += answers
    if queries is not None:
        if len(queries) != len(result):
            raise InputError(f"found {len(queries)} query ids for {len(result)} answers; pass one id for each answer.")
        result = [replace(item, query=query) for item, query in zip(result, queries, strict=True)]
    names = [item.query for item in result]
    if None in names:
        raise InputError(
            f"{path} holds {len(result)} answers that do not name their queries; wrap each as "
            '{"qid": ..., "response": ...}, or pass their ids in order with queries=.'
        )
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"two answers belong to the query {twice!r}; keep one of them, or name the queries.")
    return result


def as_run(responses: Sequence[SearchResponse], tag: str, *, by_score: bool = False) -> Run:
    """Return the documents as a run: with the scores of the engine, or with scores that fall in the order shown."""
    rows = [
        (str(response.query), document, response.scores[place] if by_score and response.scores else -1.0 - place)
        for response in responses
        for place, document in enumerate(response.documents)
    ]
    if not rows:
        raise InputError(f"{tag} has {len(responses)} answers without any document; search again.")
    qid, documents, scores = zip(*rows, strict=True)
    return Run(as_texts(list(qid)), as_texts(list(documents)), np.array(scores, dtype=np.float64), tag)


def as_collection(responses: Sequence[SearchResponse], path: object) -> Dataset:
    """
    Return the logged features as unjudged rows; columns are in order of first appearance.

    A feature that is absent or has no value is NaN.
    """
    bare = next((response.query for response in responses if response.features is None), None)
    if bare is not None:
        raise InputError(
            f"{path}: the answer for {bare!r} has no logged features; expected fields._ltrlog (Elasticsearch, "
            "OpenSearch), [features] (Solr) or matchfeatures (Vespa)."
        )
    rows = [
        (str(response.query), document, values)
        for response in responses
        for document, values in zip(response.documents, response.features or (), strict=True)
    ]
    if not rows:
        raise InputError(f"{path} has no documents; search again.")
    names = list(dict.fromkeys(name for _, _, values in rows for name in values))
    X = np.array([[values.get(name, np.nan) for name in names] for _, _, values in rows], dtype=np.float64)
    X = X.reshape(len(rows), len(names))
    qid, documents = (list(column) for column in list(zip(*rows, strict=True))[:2])
    return Dataset(
        X, np.full(len(rows), np.nan), names, _qid=lambda: as_names(qid), _docids=lambda: as_texts(documents)
    )


def is_response(value: Any) -> bool:
    """Return whether a JSON value is an answer of an engine, or several, wrapped or not."""
    if isinstance(value, list):
        return bool(value) and all(map(is_response, value))
    inner = at_path(value, "response")
    if isinstance(inner, dict) and "docs" not in inner:
        return is_response(inner)
    return (
        any(
            isinstance(at_path(value, *names), list)
            for names in (("hits", "hits"), ("response", "docs"), ("root", "children"), ("responses",))
        )
        or at_path(value, "root", "fields", "totalCount") is not None
    )


def _answers(path: str | os.PathLike[str]) -> Iterator[SearchResponse]:
    n_found = 0
    for where, value in json_values(read_utf8(path), str(path)):
        for item in _each(value, None, where):
            n_found += 1
            yield item
    if not n_found:
        raise InputError(f"{path} is empty; expected a saved answer of a search engine.")


def _each(value: Any, query: str | None, where: str) -> Iterator[SearchResponse]:
    """Yield the answers in a JSON value."""
    several = value if isinstance(value, list) else at_path(value, "responses")
    if isinstance(several, list):
        for item in several:
            yield from _each(item, None, where)
        return
    inner = at_path(value, "response")
    if isinstance(inner, dict) and "docs" not in inner:
        name = next((value[key] for key in WRAPPED_IDS if isinstance(value.get(key), str | int)), None)
        yield from _each(inner, None if name is None else plain_text(name), where)
    elif isinstance(hits := at_path(value, "hits", "hits"), list):
        yield _answer(query, [(_id(hit, "_id", where), _logged(hit, where)) for hit in hits], hits, "_score", where)
    elif isinstance(docs := at_path(value, "response", "docs"), list):
        params = at_path(value, "responseHeader", "params")
        given = at_path(params, "qid") or at_path(params, "q")
        name = query or (plain_text(given) if isinstance(given, str | int) else None)
        yield _answer(name, [(_id(doc, "id", where), _solr_features(doc, where)) for doc in docs], docs, "score", where)
    elif isinstance(children := at_path(value, "root", "children") or [], list) and at_path(value, "root") is not None:
        rows = [(_VESPA_START.sub("", _id(item, "id", where)), _vespa_features(item, where)) for item in children]
        yield _answer(query, rows, children, "relevance", where)
    elif at_path(value, "error") is not None:
        raise InputError(f"{where}: the engine answered with an error, {shortened(value['error'])}; search again.")
    else:
        raise InputError(
            f"{where}: found {shortened(value)}; expected an answer of Elasticsearch or OpenSearch (hits.hits), Solr "
            "(response.docs) or Vespa (root.children)."
        )


def _answer(
    query: str | None,
    rows: Sequence[tuple[str, dict[str, float] | None]],
    documents: Sequence[Any],
    key: str,
    where: str,
) -> SearchResponse:
    features = [values for _, values in rows if values is not None]
    values = [at_path(item, key) for item in documents]
    has_scores = all(value is not None for value in values)
    return SearchResponse(
        query, tuple(document for document, _ in rows), tuple(features) if len(features) == len(rows) else None,
        tuple(_number(value, key, where) for value in values) if rows and has_scores else None,
    )  # fmt: skip


def _id(document: Any, key: str, where: str) -> str:
    result = at_path(document, key)
    if not isinstance(result, str | int):
        raise InputError(f"{where}: a document has no {key}: {shortened(document)}; request the field.")
    return plain_text(result)


def _logged(hit: Any, where: str) -> dict[str, float] | None:
    """Return the features of one hit: all entries of `fields._ltrlog`, each a list of names and values."""
    log = at_path(hit, "fields", "_ltrlog")
    if not isinstance(log, list):
        return None
    result: dict[str, float] = {}
    for entries in (entries for part in log if isinstance(part, dict) for entries in part.values()):
        for item in entries if isinstance(entries, list) else ():
            if not isinstance(item, dict) or not isinstance(item.get("name"), str):
                raise InputError(f"{where}: _ltrlog has the entry {shortened(item)}; expected a name and a value.")
            result[item["name"]] = _number(item.get("value"), item["name"], where)
    return result


def _solr_features(document: Any, where: str) -> dict[str, float] | None:
    text = at_path(document, "[features]")
    if not isinstance(text, str):
        return None
    result: dict[str, float] = {}
    for part in filter(None, text.split(",")):
        name, mark, value = part.rpartition("=")
        if not mark:
            raise InputError(f"{where}: [features] has {part!r}; expected name=value, separated by commas.")
        result[name] = _number(value, name, where)
    return result


def _vespa_features(document: Any, where: str) -> dict[str, float] | None:
    result: dict[str, float] = {}
    lists = [at_path(document, "fields", name) for name in VESPA_FEATURES]
    for values in lists:
        for name, value in values.items() if isinstance(values, dict) else ():
            if not name.startswith("vespa."):  # statistics of the engine
                result[name] = _number(value, name, where)
    return result if any(isinstance(item, dict) for item in lists) else None


def _number(value: Any, name: str, where: str) -> float:
    if value is None:
        return float("nan")
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{where}: the feature {name!r} is {shortened(value)}; expected a number.") from None
