"""
Fusions in Elasticsearch, OpenSearch, Solr, Vespa, Qdrant, Milvus and LanceDB.

Engines have two forms of a fusion. rrf: Σ_j w_j / (k + rank); minmax: Σ_j w_j φ(score) with min-max scores φ. All w_j
are at least 0 and have the sum 1, which does not change the order. Every engine computes minima, maxima and ranks from
the lists that it retrieves itself. A file contains one place for the query of each retriever, which the user fills in.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from corank.deploy.export.target import as_json
from corank.errors import InputError
from corank.models.fusion import EngineForm, FusionDefinition


@dataclass(frozen=True, kw_only=True)
class FusionOptions:
    """Options of an export: the name in the engine, the number of documents per retriever, and the dialect of SQL."""

    name: str = "corank"
    size: int = 100
    dialect: str = "sqlite"

    def __post_init__(self) -> None:
        if not 1 <= self.size <= 10_000:
            raise InputError(f"size is {self.size}; take 1 to 10,000 documents from each retriever.")


def form_of(definition: FusionDefinition) -> EngineForm | None:
    """
    Return the form of a fusion with one kind of term, no weight below 0 and one term per retriever, else None.

    >>> form_of(FusionDefinition.rrf(("bm25", "vectors"))).weights
    (0.5, 0.5)
    """
    terms = [term for term in definition.terms if term.weight]
    kinds = {(term.transform, term.k) for term in terms}
    names = [term.retriever for term in terms]
    if len(kinds) != 1 or len(set(names)) < len(names) or min(term.weight for term in terms) < 0:
        return None
    ((transform, k),) = kinds
    if transform == "presence":
        return None
    total = sum(term.weight for term in terms)
    weights = {term.retriever: term.weight / total for term in terms}
    spread = tuple(weights.get(name, 0.0) for name in definition.retrievers)
    return EngineForm("rrf" if transform == "reciprocal_rank" else "minmax", k, spread, 0.0)


def used(definition: FusionDefinition) -> tuple[str, ...]:
    """Return the retrievers that have a weight."""
    weighted = {term.retriever for term in definition.terms if term.weight}
    return tuple(name for name in definition.retrievers if name in weighted)


def is_rrf(definition: FusionDefinition) -> bool:
    """Whether it is RRF with an integer k from 1 to 10,000, over two or more retrievers."""
    form = form_of(definition)
    is_whole = form is not None and form.k is not None and float(form.k).is_integer() and 1 <= form.k <= 10_000
    return is_whole and len(used(definition)) > 1


def is_plain_rrf(definition: FusionDefinition) -> bool:
    """Whether it is RRF with equal weights."""
    form = form_of(definition)
    return form is not None and is_rrf(definition) and max(form.weights) - min(filter(None, form.weights)) < 1e-9


def is_rrf_or_minmax(definition: FusionDefinition) -> bool:
    """Whether it is RRF, or a weighted sum of min-max scores of two or more retrievers."""
    form = form_of(definition)
    return is_rrf(definition) or (form is not None and form.form == "minmax" and len(used(definition)) > 1)


def has_vespa_terms(definition: FusionDefinition) -> bool:
    """Whether all terms are min-max scores or reciprocal ranks."""
    return all(term.transform != "presence" for term in definition.terms)


def is_two_rrf(definition: FusionDefinition) -> bool:
    """Whether it is RRF with equal weights of two retrievers."""
    return is_plain_rrf(definition) and len(used(definition)) == 2


def weights_of(definition: FusionDefinition) -> tuple[dict[str, float], str, int]:
    """Return weights by retriever with sum 1, the form, and k (0 for scores)."""
    form = form_of(definition)
    assert form is not None
    pairs = zip(definition.retrievers, form.weights, strict=True)
    return {name: weight for name, weight in pairs if weight}, form.form, int(form.k or 0)


def write_elasticsearch(definition: FusionDefinition, options: FusionOptions) -> dict[str, bytes]:
    """Return the body of `_search` with a `linear` or `rrf` retriever."""
    weights, kind, k = weights_of(definition)
    parts: list[dict[str, Any]] = [
        {"retriever": {"standard": {"_name": name, "query": {"match": {"FIELD": "QUERY"}}}}} for name in weights
    ]
    window = {"rank_window_size": options.size}
    if kind == "rrf":
        if not is_plain_rrf(definition):  # weights need version 9.2
            parts = [part | {"weight": weight} for part, weight in zip(parts, weights.values(), strict=True)]
        return {"": as_json({"retriever": {"rrf": {"retrievers": parts, "rank_constant": k} | window}})}
    parts = [
        part | {"weight": weight, "normalizer": "minmax"} for part, weight in zip(parts, weights.values(), strict=True)
    ]
    return {"": as_json({"retriever": {"linear": {"retrievers": parts} | window}})}


def write_opensearch(definition: FusionDefinition, options: FusionOptions) -> dict[str, bytes]:
    """Return the body of `PUT _search/pipeline/NAME`, and that of a search with a hybrid query."""
    weights, kind, k = weights_of(definition)
    combination: dict[str, Any] = {"parameters": {"weights": list(weights.values())}}
    if kind == "rrf":
        if is_plain_rrf(definition):  # weights need version 3
            combination = {}
        processor: dict[str, Any] = {
            "score-ranker-processor": {"combination": {"technique": "rrf", "rank_constant": k} | combination}
        }
    else:
        mean = {"technique": "arithmetic_mean"} | combination
        processor = {"normalization-processor": {"normalization": {"technique": "min_max"}, "combination": mean}}
    pipeline = {"description": definition.rule, "phase_results_processors": [processor]}
    clauses = [{"match": {"FIELD": {"query": "QUERY", "_name": name}}} for name in weights]
    search = {"size": options.size, "query": {"hybrid": {"queries": clauses, "pagination_depth": options.size}}}
    return {"": as_json(pipeline), ".query.json": as_json(search)}


def write_solr(definition: FusionDefinition, options: FusionOptions) -> dict[str, bytes]:
    """Return a JSON request of a combined query."""
    weights, _, k = weights_of(definition)
    queries = {f"query{number}": {"lucene": {"query": f"QUERY of {name}"}} for number, name in enumerate(weights, 1)}
    parameters = {
        "combiner": True, "combiner.query": list(queries), "combiner.algorithm": "rrf", "combiner.rrf.k": str(k),
    }  # fmt: skip
    return {"": as_json({"queries": queries, "limit": options.size, "params": parameters})}


def write_vespa(definition: FusionDefinition, options: FusionOptions) -> dict[str, bytes]:
    """Return a rank profile whose global phase is the weighted sum."""
    functions = {name: f"retriever_{number}" for number, name in enumerate(used(definition), 1)}
    terms = []
    for term in definition.terms:
        if term.weight:
            argument = functions[term.retriever]
            call = f"normalize_linear({argument})"
            if term.transform == "reciprocal_rank":
                call = f"reciprocal_rank({argument}, {term.k:.17g})"
            terms.append(f"{term.weight:.17g} * {call}")
    lines = [f"rank-profile {re.sub('[^A-Za-z0-9_]', '_', options.name)} {{"]
    for name, function in functions.items():
        text = " ".join(name.split())
        lines += [f"    # replace EXPRESSION by the score of {text}, such as bm25(title) or closeness(field, vector)"]
        lines += [f"    function {function}() {{", "        expression: EXPRESSION", "    }"]
    lines += ["    first-phase {", f"        expression: {' + '.join(functions.values())}", "    }"]
    lines += ["    global-phase {", f"        rerank-count: {options.size}", f"        expression: {' + '.join(terms)}"]
    return {"": ("\n".join([*lines, "    }", "}"]) + "\n").encode()}


def write_qdrant(definition: FusionDefinition, options: FusionOptions) -> dict[str, bytes]:
    """Return the body of `POST collections/NAME/points/query`; Qdrant counts ranks from 0, so its k is one more."""
    weights, _, k = weights_of(definition)
    prefetch = [{"query": f"VECTOR of {name}", "using": name, "limit": options.size} for name in weights]
    return {"": as_json({"prefetch": prefetch, "query": {"rrf": {"k": k + 1}}, "limit": options.size})}


def write_milvus(definition: FusionDefinition, options: FusionOptions) -> dict[str, bytes]:
    """Return Python for `hybrid_search` of pymilvus."""
    weights, _, k = weights_of(definition)
    requests = "\n".join(
        f"    AnnSearchRequest(data=[VECTORS[{name!r}]], anns_field={name!r}, param={{}}, limit={options.size}),"
        for name in weights
    )
    text = (
        "from pymilvus import AnnSearchRequest, MilvusClient, RRFRanker\n\n"
        "VECTORS = {}  # one query vector, or one text of a full-text field, per retriever\n"
        f"requests = [\n{requests}\n]\n"
        f"hits = MilvusClient(ADDRESS).hybrid_search(COLLECTION, requests, RRFRanker({k}), limit={options.size})\n"
    )
    return {"": text.encode()}


def write_lancedb(definition: FusionDefinition, options: FusionOptions) -> dict[str, bytes]:
    """Return Python for a hybrid search of LanceDB."""
    _, _, k = weights_of(definition)
    names = json.dumps(used(definition))
    text = (
        "from lancedb.rerankers import RRFReranker\n\n\n"
        "def search(table, text, vector):\n"
        f"    # {names}: full text and vectors, in either order, with equal weights\n"
        f'    query = table.search(query_type="hybrid").vector(vector).text(text).limit({options.size})\n'
        f"    return query.rerank(RRFReranker(K={k}))\n"
    )
    return {"": text.encode()}
