"""What verbs say of their results: a sentence for people, or one JSON object for scripts."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from corank._version import __version__

if TYPE_CHECKING:
    from corank.tables import ReportTable

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object for scripts instead.")]
"""The option of every verb that has results to print."""


def emit(as_json: bool, verb: str, fields: Mapping[str, Any], sentence: str) -> None:
    """
    Print what a verb did.

    as_json: whether a script asks.
    verb: as it is typed.
    fields, sentence: the same in numbers, and in words.
    """
    if as_json:
        print_json(verb, fields)
    else:
        typer.echo(sentence)


def print_json(verb: str, fields: Mapping[str, Any]) -> None:
    """
    Print one line of JSON: the verb, the version of corank, and what the verb has to say.

    fields: dataclasses, arrays, paths and numbers among them; a number that is not finite is null.
    """
    typer.echo(json.dumps({"verb": verb, "corank": __version__, **_plain(fields)}, allow_nan=False))


def table_fields(table: ReportTable) -> dict[str, Any]:
    """Return a table as JSON shows it: columns, and rows of cells."""
    return {"title": table.title, "columns": table.columns, "rows": table.rows, "note": table.note}


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        value = asdict(value)
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(name): _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return str(value) if isinstance(value, Path) else value
