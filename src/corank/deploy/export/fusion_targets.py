"""
Targets of fusions: Elasticsearch, OpenSearch, Solr, Vespa, Qdrant, Milvus and LanceDB; SQL, Python and JSON.

Engines have two forms of a fusion. rrf: Σ_j w_j / (k + rank); minmax: Σ_j w_j φ(score) with min-max scores φ. All w_j
are at least 0 and have the sum 1, which does not change the order. Every engine computes minima, maxima and ranks from
the lists that it retrieves itself. A file contains one place for the query of each retriever, which the user fills in.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from corank.deploy.export.target import as_json
from corank.errors import InputError
from corank.models.fusion import EngineForm, FusionDefinition

TRANSFORMS = ("minmax", "reciprocal_rank", "presence")


@dataclass(frozen=True, kw_only=True)
class FusionOptions:
    """Options of an export: the name in the engine, the number of documents per retriever, and the dialect of SQL."""

    name: str = "corank"
    size: int = 100
    dialect: str = "sqlite"

    def __post_init__(self) -> None:
        if not 1 <= self.size <= 10_000:
            raise InputError(f"size is {self.size}; take 1 to 10,000 documents from each retriever.")


Writer = Callable[[FusionDefinition, FusionOptions], dict[str, bytes]]
"""Returns contents by suffix of the file, "" for the main one."""


@dataclass(frozen=True, kw_only=True)
class FusionTarget:
    """One engine, and the fusions that it expresses exactly: any sum of some terms, or one of the two forms."""

    name: str
    label: str  # the engine and its oldest version, for messages and the guide
    takes: str  # what it can express, in words
    write: Writer
    sums_of: tuple[str, ...] = ()  # transforms of which it computes any weighted sum
    takes_minmax: bool = False  # whether it computes weighted sums of min-max scores
    weighted_rrf: str = ""  # the oldest version with weights of RRF; "" if there is none
    max_retrievers: int = 1000

    def can_express(self, definition: FusionDefinition) -> bool:
        """Return whether it can express a fusion exactly."""
        if self.sums_of:
            return all(term.transform in self.sums_of for term in definition.terms)
        form = form_of(definition)
        if form is None or not 2 <= len(used(definition)) <= self.max_retrievers:
            return False
        if form.k is None:
            return self.takes_minmax
        return float(form.k).is_integer() and 1 <= form.k <= 10_000 and (is_even(form) or self.weighted_rrf != "")


FUSION_TARGETS: dict[str, FusionTarget] = {}
"""All targets by name."""


def fusion_target(name: str, label: str, takes: str, **more: Any) -> Callable[[Writer], Writer]:
    """Register the writer of a target."""

    def register(write: Writer) -> Writer:
        FUSION_TARGETS[name] = FusionTarget(name=name, label=label, takes=takes, write=write, **more)
        return write

    return register


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


def is_even(form: EngineForm) -> bool:
    """Return whether all weights above 0 are equal."""
    return max(form.weights) - min(filter(None, form.weights)) < 1e-9


def weights_of(definition: FusionDefinition) -> tuple[dict[str, float], int, bool]:
    """Return weights by retriever with sum 1, k (0 for min-max scores), and whether all weights are equal."""
    form = form_of(definition)
    assert form is not None
    pairs = zip(definition.retrievers, form.weights, strict=True)
    return {name: weight for name, weight in pairs if weight}, int(form.k or 0), is_even(form)


_BOTH, _RRF = "RRF, and weighted sums of min-max scores", "RRF with equal weights of several retrievers"


@fusion_target("elasticsearch", "Elasticsearch 8.18", _BOTH, takes_minmax=True, weighted_rrf="Elasticsearch 9.2")
def write_elasticsearch(definition: FusionDefinition, options: FusionOptions) -> dict[str, bytes]:
    """Return the body of `_search` with a `linear` or `rrf` retriever."""
    weights, k, is_equal = weights_of(definition)
    parts: list[dict[str, Any]] = [
        {"retriever": {"standard": {"_name": name, "query": {"match": {"FIELD": "QUERY"}}}}} for name in weights
    ]
    window = {"rank_window_size": options.size}
    if k:
        if not is_equal:  # weights need version 9.2
            parts = [part | {"weight": weight} for part, weight in zip(parts, weights.values(), strict=True)]
        return {"": as_json({"retriever": {"rrf": {"retrievers": parts, "rank_constant": k} | window}})}
    parts = [
        part | {"weight": weight, "normalizer": "minmax"} for part, weight in zip(parts, weights.values(), strict=True)
    ]
    return {"": as_json({"retriever": {"linear": {"retrievers": parts} | window}})}


@fusion_target("opensearch", "OpenSearch 2.19", _BOTH, takes_minmax=True, weighted_rrf="OpenSearch 3.0")
def write_opensearch(definition: FusionDefinition, options: FusionOptions) -> dict[str, bytes]:
    """Return the body of `PUT _search/pipeline/NAME`, and that of a search with a hybrid query."""
    weights, k, is_equal = weights_of(definition)
    combination: dict[str, Any] = {"parameters": {"weights": list(weights.values())}}
    if k:
        if is_equal:  # weights need version 3
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


@fusion_target("solr", "Solr 10", _RRF)
def write_solr(definition: FusionDefinition, options: FusionOptions) -> dict[str, bytes]:
    """Return a JSON request of a combined query."""
    weights, k, _ = weights_of(definition)
    queries = {f"query{number}": {"lucene": {"query": f"QUERY of {name}"}} for number, name in enumerate(weights, 1)}
    parameters = {
        "combiner": True, "combiner.query": list(queries), "combiner.algorithm": "rrf", "combiner.rrf.k": str(k),
    }  # fmt: skip
    return {"": as_json({"queries": queries, "limit": options.size, "params": parameters})}


@fusion_target(
    "vespa", "Vespa 8", "weighted sums of min-max scores and reciprocal ranks", sums_of=("minmax", "reciprocal_rank")
)
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


@fusion_target("qdrant", "Qdrant 1.16", _RRF)
def write_qdrant(definition: FusionDefinition, options: FusionOptions) -> dict[str, bytes]:
    """Return the body of `POST collections/NAME/points/query`; Qdrant counts ranks from 0, so its k is one more."""
    weights, k, _ = weights_of(definition)
    prefetch = [{"query": f"VECTOR of {name}", "using": name, "limit": options.size} for name in weights]
    return {"": as_json({"prefetch": prefetch, "query": {"rrf": {"k": k + 1}}, "limit": options.size})}


@fusion_target("milvus", "Milvus 2.4", _RRF)
def write_milvus(definition: FusionDefinition, options: FusionOptions) -> dict[str, bytes]:
    """Return Python for `hybrid_search` of pymilvus."""
    weights, k, _ = weights_of(definition)
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


@fusion_target("lancedb", "LanceDB 0.40", "RRF with equal weights of full text and one vector search", max_retrievers=2)
def write_lancedb(definition: FusionDefinition, options: FusionOptions) -> dict[str, bytes]:
    """Return Python for a hybrid search of LanceDB."""
    _, k, _ = weights_of(definition)
    names = json.dumps(used(definition))
    text = (
        "from lancedb.rerankers import RRFReranker\n\n\n"
        "def search(table, text, vector):\n"
        f"    # {names}: full text and vectors, in either order, with equal weights\n"
        f'    query = table.search(query_type="hybrid").vector(vector).text(text).limit({options.size})\n'
        f"    return query.rerank(RRFReranker(K={k}))\n"
    )
    return {"": text.encode()}


RETRIEVERS = {
    "postgresql": (
        "SELECT id, ts_rank_cd(words, websearch_to_tsquery('english', :query)) AS score FROM documents\n"
        "    WHERE words @@ websearch_to_tsquery('english', :query) ORDER BY 2 DESC, 1 LIMIT {size}",
        "SELECT id, 1 - (embedding <=> :vector) AS score FROM documents ORDER BY embedding <=> :vector, 1 LIMIT {size}",
    ),
    "sqlite": (
        "SELECT rowid AS id, -rank AS score FROM documents_text WHERE documents_text MATCH :query\n"
        "    ORDER BY rank, 1 LIMIT {size}",
        "SELECT rowid AS id, -distance AS score FROM documents_vectors WHERE embedding MATCH :vector AND k = {size}",
    ),
}
"""For each dialect a full-text query and a vector query, which users replace by their own."""

FORMULAS = {
    "minmax": "CASE WHEN high > low THEN (score - low) / (high - low) ELSE 1.0 END",
    "reciprocal_rank": "1.0 / ({k} + place)",
    "presence": "1.0",
}
"""φ by transform."""


@fusion_target("sql", "PostgreSQL and SQLite", "every fusion", sums_of=TRANSFORMS)
def write_sql(definition: FusionDefinition, options: FusionOptions) -> dict[str, bytes]:
    """Return one query: a common table expression per retriever, and the weighted sum."""
    if options.dialect not in RETRIEVERS:
        raise InputError(f"dialect is {options.dialect!r}; fusions are written for {' and '.join(RETRIEVERS)}.")
    names = used(definition)
    words, vectors = RETRIEVERS[options.dialect]
    lists, cases = [], []
    for number, name in enumerate(names, 1):
        # the first query is full text, the others are vectors; a name does not say what a retriever is
        query = (words if number == 1 else vectors).format(size=options.size)
        lists.append(f"list_{number} AS (  -- {_comment(name)}: replace by its query\n    {query}\n)")
        parts = [
            f"{term.weight!r} * ({FORMULAS[term.transform].format(k=repr(float(term.k or 0.0)))})"
            for term in definition.terms
            if term.retriever == name and term.weight
        ]
        cases.append(f"WHEN {number} THEN {' + '.join(parts)}")
    union = " UNION ALL\n    ".join(
        f"SELECT {number} AS list, id, CAST(score AS {_DOUBLE[options.dialect]}) AS score FROM list_{number}"
        for number in range(1, len(names) + 1)
    )
    text = f"""-- {_comment(options.name)}: {_comment(definition.rule)}
-- Written by corank export for {options.dialect}; parameters :query and :vector. Higher scores are better.
WITH {(", ".join(lists))},
lists AS (
    {union}
),
ranges AS (
    SELECT list, MIN(score) AS low, MAX(score) AS high FROM lists GROUP BY list
),
places AS (
    SELECT list, id, score, ROW_NUMBER() OVER (PARTITION BY list ORDER BY score DESC, id) AS place FROM lists
)
SELECT id, SUM(CASE list {" ".join(cases)} END) AS score
FROM places JOIN ranges USING (list)
GROUP BY id ORDER BY 2 DESC, 1 LIMIT {options.size};
"""
    return {"": text.encode()}


_DOUBLE = {"postgresql": "double precision", "sqlite": "REAL"}


def _comment(text: str) -> str:
    """Return a text on one line."""
    return " ".join(text.split())


PYTHON = '''"""A fusion of retrievers, written by corank export: {rule}"""

TERMS = [  # retriever, transform, weight, k
{terms}
]


def values(scores, transform, k):
    """Return the values of the documents of a list, best first; absent documents have the value 0."""
    low, high = min(scores), max(scores)
    if transform == "minmax":
        return [(s - low) / (high - low) if high > low else 1.0 for s in scores]
    if transform == "reciprocal_rank":
        return [1.0 / (k + rank) for rank in range(1, len(scores) + 1)]
    return [1.0] * len(scores)  # presence


def fuse(lists):
    """Return (document, score), best first, from {{retriever: [(document, score), ...]}} of one query."""
    total = {{document: 0.0 for pairs in lists.values() for document, _ in pairs}}
    for retriever, transform, weight, k in TERMS:
        pairs = sorted(lists.get(retriever, []), key=lambda pair: -pair[1])
        if pairs:
            for (document, _), value in zip(pairs, values([score for _, score in pairs], transform, k)):
                total[document] += weight * value
    return sorted(total.items(), key=lambda pair: -pair[1])
'''
"""The file of the target python."""


@fusion_target("python", "Python", "every fusion", sums_of=TRANSFORMS)
def write_python(definition: FusionDefinition, options: FusionOptions) -> dict[str, bytes]:
    """Return a module with a function `fuse`, without dependencies."""
    terms = "\n".join(
        f"    ({term.retriever!r}, {term.transform!r}, {term.weight!r}, {float(term.k or 0.0)!r}),"
        for term in definition.terms
        if term.weight
    )
    rule = _comment(definition.rule).replace("\\", "").replace('"', "'")
    return {"": PYTHON.format(rule=rule, terms=terms).encode()}


@fusion_target("json", "JSON", "every fusion", sums_of=TRANSFORMS)
def write_json(definition: FusionDefinition, options: FusionOptions) -> dict[str, bytes]:
    """Return the definition itself, whose terms any program can compute."""
    return {"": definition.to_json().encode()}
