"""Fusions as SQL, Python and JSON, which express every fusion."""

from __future__ import annotations

from corank.deploy.export.fusion.engines import FusionOptions, used
from corank.errors import InputError
from corank.models.fusion import FusionDefinition

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


def write_python(definition: FusionDefinition, options: FusionOptions) -> dict[str, bytes]:
    """Return a module with a function `fuse`, without dependencies."""
    terms = "\n".join(
        f"    ({term.retriever!r}, {term.transform!r}, {term.weight!r}, {float(term.k or 0.0)!r}),"
        for term in definition.terms
        if term.weight
    )
    rule = _comment(definition.rule).replace("\\", "").replace('"', "'")
    return {"": PYTHON.format(rule=rule, terms=terms).encode()}


def write_json(definition: FusionDefinition, options: FusionOptions) -> dict[str, bytes]:
    """Return the definition itself, whose terms any program can compute."""
    return {"": definition.to_json().encode()}
