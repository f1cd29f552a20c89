"""Output of commands: a sentence or a table for people, or one JSON object for scripts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from corank._version import __version__
from corank.console import printable, printable_console

if TYPE_CHECKING:
    from rich.console import Console

    from corank.tables import ReportTable

ENDLESS = 1_000_000
# least width to which a column of text is folded
NARROW = 8


def emit(as_json: bool, verb: str, fields: Mapping[str, Any], *parts: ReportTable | str) -> None:
    """Print the result of a command: `fields` as JSON, or sentences and tables."""
    if as_json:
        print_json(verb, fields)
        return
    for part in parts:
        if isinstance(part, str):
            typer.echo(printable(part))
        else:
            show(part)


def print_json(verb: str, fields: Mapping[str, Any]) -> None:
    """Print one line of JSON: the command, the version of corank, and `fields`; NaN and infinity become null."""
    from corank.tables import json_values

    typer.echo(json.dumps({"verb": verb, "corank": __version__, **json_values(fields)}, allow_nan=False))


def emit_rows(
    verb: str, rows: Sequence[Sequence[object]], output: Path | None, *, as_json: bool, force: bool,
    keep_formulas: bool, sentence: str, **fields: Any,
) -> None:  # fmt: skip
    """Write a table as CSV, its header first, to a file or the screen, or print it as JSON; say what was written."""
    from corank.data.durable.compressed import is_stream
    from corank.data.io.tables import write_rows

    if as_json and output is None:
        print_json(verb, {"columns": rows[0], "rows": rows[1:], **fields})
        return
    write_rows(output, rows, overwrite=force, keep_formulas=keep_formulas)
    if output is not None and not is_stream(output):
        emit(as_json, verb, {"output": output, "n": len(rows) - 1, **fields}, sentence)


def note(sentence: str) -> None:
    """Print a remark on standard error."""
    typer.echo(printable(f"corank: {sentence}"), err=True)


def table_fields(table: ReportTable) -> dict[str, Any]:
    """Return a table as JSON fields."""
    return {"title": table.title, "columns": table.columns, "rows": table.rows, "note": table.note}


def make_console() -> Console:
    """Return a console on standard output; lines are not wrapped unless it is a terminal."""
    console = printable_console(markup=False, highlight=False)
    if not console.is_terminal:
        console.width = ENDLESS
    return console


def show(table: ReportTable, console: Console | None = None) -> None:
    """Print a table: fold text but not numbers; if it is still too wide, print each row as lines of name and value."""
    from rich import box
    from rich.table import Table

    console = console or make_console()
    texts = [table.texts(row) for row in table.rows]
    layout = _layout(table, texts, console)
    if layout is None:
        _show_records(table, texts, console)
        return
    framed, widths = layout
    drawn = Table(
        title=table.title or None, title_justify="left", caption=table.note or None, caption_justify="left",
        box=box.HEAVY_HEAD if framed else None, padding=(0, 1) if framed else (0, 1, 0, 0),
    )  # fmt: skip
    for column, name in enumerate(table.columns):
        if table.is_number(column):
            drawn.add_column(name, justify="right", overflow="fold", width=widths[column])
        else:
            drawn.add_column(name, overflow="fold", min_width=widths[column])
    for row in texts:
        drawn.add_row(*row)
    console.print(drawn)


def _layout(table: ReportTable, texts: list[list[str]], console: Console) -> tuple[bool, list[int]] | None:
    """Return whether there is a frame, and the minimum width of each column; None if the console is too narrow."""
    columns = list(zip(table.columns, *texts, strict=True))
    names = [len(column[0]) for column in columns]
    words = [max(len(word) for cell in column for word in cell.split()) for column in columns]
    folded = [min(word, NARROW) for word in words]
    numbers = [max(map(len, column[1:]), default=1) * table.is_number(number) for number, column in enumerate(columns)]
    # in order of preference: headers on one line, text folded between words, text folded inside words
    for text in ([max(pair) for pair in zip(names, words, strict=True)], words, folded):
        widths = [max(pair) for pair in zip(text, numbers, strict=True)]
        for framed in (True, False) if console.is_terminal else (False,):
            if sum(widths) + (3 * len(widths) + 1 if framed else len(widths)) <= console.width:
                return framed, widths
    return None


def _show_records(table: ReportTable, texts: list[list[str]], console: Console) -> None:
    """Print each row as lines of name and value."""
    lines = [table.title, *(f"{name}: {text}" for row in texts for name, text in _named(table, row)), table.note]
    for line in filter(None, lines):
        console.print(line, overflow="fold")


def _named(table: ReportTable, row: list[str]) -> list[tuple[str, str]]:
    """Return names and values of a row, indented after the first; empty cells are omitted."""
    (name, text), *others = zip(table.columns, row, strict=True)
    return [(name, text), *((f"  {other}", value) for other, value in others if value)]
