"""
SQL: a linear model or trees as one expression in float64, for SQLite, PostgreSQL and DuckDB.

Missing values are NULL (and NaN, where the database has it): they count 0 in a linear model, and follow the side that
LightGBM gives them in trees.

A missing column is an error. SQLite reads an unknown name in double quotes as a text, and ``rowid`` as a column of any
table; so columns are qualified, and those of a common table expression. Columns of other types, such as texts from a
CSV file, are read as numbers. The score is the first column, and rows are
ordered by its position: a column of the table may have its name.
"""

from __future__ import annotations

import math
import sqlite3
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.core.models.trees import MISSING_ZERO, ZERO
from corank.deploy.export.describe import Description
from corank.deploy.export.scorers import LinearScorer, Scorer, SumScorer, TreeScorer, missing_goes_left
from corank.deploy.export.target import Export, ExportOptions, double_bound, refuse, target
from corank.errors import InputError

Floats = NDArray[np.float64]

DIALECTS = ("sqlite", "postgresql", "duckdb")
"""Databases for which an expression can be written."""

TABLE, SCORE = "rows", "corank_score"
"""Names of the table and of the score in the query; users replace the first."""

# the common table expression that columns are read from
_SOURCE = "corank_rows"

# terms of a sum without brackets: databases limit the depth of an expression
_TERMS = 50
_LARGEST = 4611686018427387904  # 2^62


@target("sql", "SQL", "linear models, trees and sums of both")
def write_sql(described: Description, options: ExportOptions) -> Export:
    """Return a query that adds a column of scores to a table."""
    if options.dialect not in DIALECTS:
        raise InputError(f"dialect is {options.dialect!r}; pass {', '.join(DIALECTS)}.")
    scorer, shift = described.scorer, float(options.shift or 0.0)
    _require_columns(described.names, options.dialect)
    expression = _expression(scorer, described.names, options.dialect)
    if shift:
        expression += f"\n  + {literal(shift)}"
    text = (
        f"-- {options.name}: a ranker as one expression, for {options.dialect}; written by corank export.\n"
        f'-- Replace the table "{TABLE}" by your own; its columns are the features. Higher scores are better.\n'
        f'WITH {_SOURCE} AS (SELECT * FROM "{TABLE}")\n'
        f"SELECT (\n  {expression}\n) AS {SCORE}, {_SOURCE}.*\nFROM {_SOURCE}\nORDER BY 1 DESC;\n"
    )
    engine = {"sqlite": "SQLite", "duckdb": "DuckDB", "postgresql": "DuckDB, which reads PostgreSQL's text"}
    return Export(
        target="sql", files={"": text.encode()}, engine=engine[options.dialect], single=False, offset=shift,
        evaluate=lambda rows: run_sql(text, described.names, rows, options.dialect),
        bound=lambda rows: double_bound(scorer, rows),
    )  # fmt: skip


def run_sql(text: str, names: tuple[str, ...], rows: Floats, dialect: str) -> Floats:
    """Score rows in SQLite or DuckDB, by the text of the query."""
    kind = "REAL" if dialect == "sqlite" else "DOUBLE PRECISION"
    columns = ", ".join(f"{_quoted(name)} {kind}" for name in names)
    lines: list[Any] = [
        (number, *(None if math.isnan(value) else value for value in row)) for number, row in enumerate(rows.tolist())
    ]
    marks = ", ".join("?" * (len(names) + 1))
    if dialect == "sqlite":
        base: Any = sqlite3.connect(":memory:")
    else:
        base = _duckdb().connect(":memory:")
    try:
        base.execute(f'CREATE TABLE "{TABLE}" (corank_row INTEGER, {columns})')
        base.executemany(f'INSERT INTO "{TABLE}" VALUES ({marks})', lines)
        result = base.execute(text).fetchall()
    finally:
        base.close()
    scores = np.empty(len(result))
    for score, number, *_ in result:
        scores[number] = np.nan if score is None else score
    return scores


def _duckdb() -> Any:
    try:
        import duckdb
    except ImportError:
        raise InputError(
            "duckdb is not installed, which verifies PostgreSQL's and DuckDB's text; run: pip install duckdb."
        ) from None
    return duckdb


def literal(value: float) -> str:
    """
    Return a number as a literal: a double in SQLite and DuckDB, a decimal in PostgreSQL, which next to a double is one.

    >>> literal(0.1), literal(-2.0), literal(1e-30)
    ('0.1e0', '(-2.0e0)', '1e-30')
    """
    text = repr(float(value))
    text = text if "e" in text else f"{text}e0"
    return f"({text})" if text.startswith("-") else text


def exact_literal(value: float, dialect: str) -> str:
    """Return a literal that the database reads as exactly this number: SQLite's last bit may be wrong."""
    text = literal(value)
    if dialect != "sqlite" or _sqlite_value(text) == value:
        return text
    mantissa, exponent = math.frexp(value)
    whole, exponent = int(mantissa * 2**53), exponent - 53
    text = f"{whole}.0"
    # products with powers of two are exact
    while exponent:
        step = min(abs(exponent), 62)
        text += f" {'*' if exponent > 0 else '/'} {_LARGEST >> (62 - step)}.0"
        exponent -= step if exponent > 0 else -step
    return f"({text})"


def _sqlite_value(text: str) -> float:
    base = sqlite3.connect(":memory:")
    try:
        return float(base.execute(f"SELECT {text}").fetchone()[0])
    finally:
        base.close()


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _column(name: str, dialect: str) -> str:
    """Return a feature as a double: SQLite would compare texts with numbers, and others not read 'NaN' as integer."""
    column = f"{_SOURCE}.{_quoted(name)}"
    return f"CAST(NULLIF({column}, '') AS REAL)" if dialect == "sqlite" else f"CAST({column} AS double precision)"


def _number(name: str, dialect: str) -> str:
    """Return a feature that is NULL if it is missing."""
    return _column(name, dialect) if dialect == "sqlite" else f"NULLIF({_column(name, dialect)}, 'NaN')"


def _require_columns(names: tuple[str, ...], dialect: str) -> None:
    """Raise `InputError` if the database reads two names as one column: of other case, or beyond 63 bytes."""
    seen: dict[str | bytes, str] = {}
    for name in names:
        first = seen.setdefault(name.encode()[:63] if dialect == "postgresql" else name.lower(), name)
        if first is not name:
            raise InputError(f"{dialect} reads {first!r} and {name!r} as the same column; rename one with names=.")


def _expression(scorer: Scorer, names: tuple[str, ...], dialect: str) -> str:
    if isinstance(scorer, LinearScorer):
        terms = [
            f"COALESCE({_number(name, dialect)}, 0.0e0) * {literal(weight)}"
            for name, weight in zip(names, scorer.weights.tolist(), strict=True)
            if weight != 0.0
        ]
        return _sum([*terms, literal(scorer.intercept)] if scorer.intercept or not terms else terms)
    if isinstance(scorer, TreeScorer):
        terms = _trees(scorer, names, dialect)
        return _sum([*terms, literal(scorer.intercept)] if scorer.intercept or not terms else terms)
    if isinstance(scorer, SumScorer) and all(isinstance(part, LinearScorer | TreeScorer) for _, part in scorer.parts):
        parts = [f"({_expression(part, names, dialect)}) * {literal(w)}" for w, part in scorer.parts]
        return _sum([*parts, literal(scorer.intercept)])
    raise refuse("sql", scorer, "export to onnx or json instead")


def _sum(terms: list[str]) -> str:
    """Return a sum in the order of its terms, with brackets that keep the expression shallow."""
    while len(terms) > _TERMS:
        groups = [terms[i : i + _TERMS] for i in range(0, len(terms), _TERMS)]
        terms = ["(" + "\n  + ".join(group) + ")" for group in groups]
    return "\n  + ".join(terms)


def _trees(scorer: TreeScorer, names: tuple[str, ...], dialect: str) -> list[str]:
    trees = scorer.trees
    left = missing_goes_left(trees.flags, trees.thresholds)
    numbers = {value: exact_literal(value, dialect) for value in np.unique(trees.thresholds).tolist()}
    zero = literal(ZERO)

    def condition(k: int) -> str:
        x = _column(names[trees.features[k]], dialect)
        natural = f"{x} <= {numbers[float(trees.thresholds[k])]}"
        zeros = f"ABS({x}) <= {zero}" if trees.flags[k] & MISSING_ZERO else ""
        if left[k]:
            # NaN is above every number in PostgreSQL and DuckDB; SQLite has none
            missing = f"{x} IS NULL" if dialect == "sqlite" else f"{x} IS NULL OR {x} = 'NaN'"
            return " OR ".join(filter(None, (natural, missing, zeros)))
        return f"{natural} AND NOT {zeros}" if zeros else natural

    def leaf(value: float) -> str:
        # PostgreSQL reads 0.1e0 as a decimal, and would add leaves as decimals
        return f"CAST({literal(value)} AS double precision)" if dialect == "postgresql" else literal(value)

    return scorer.forms(lambda k, yes, no: f"CASE WHEN {condition(k)} THEN {yes} ELSE {no} END", leaf)
