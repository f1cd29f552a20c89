"""Tables and text on a screen: nothing is cut. Where there is no screen, lines are as long as what stands in them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

    from corank.tables import ReportTable

ENDLESS = 1_000_000
# a column of text may be folded down to this
NARROW = 8


def screen() -> Console:
    """Return what standard output is printed to: a terminal as wide as it is, else lines that never end."""
    from rich.console import Console

    console = Console(markup=False, highlight=False)
    return console if console.is_terminal else Console(markup=False, highlight=False, width=ENDLESS)


def show(table: ReportTable, console: Console) -> None:
    """
    Print a table: text is folded where it must be and numbers stay whole; one record a row where that is too wide.

    table: what to print.
    console: where.
    """
    from rich import box
    from rich.table import Table

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
    for at, name in enumerate(table.columns):
        if table.is_number(at):
            drawn.add_column(name, justify="right", overflow="fold", width=widths[at])
        else:
            drawn.add_column(name, overflow="fold", min_width=widths[at])
    for row in texts:
        drawn.add_row(*row)
    console.print(drawn)


def _layout(table: ReportTable, texts: list[list[str]], console: Console) -> tuple[bool, list[int]] | None:
    """Choose whether a table has a frame, and the least width of each column; None where there is no room for it."""
    columns = list(zip(table.columns, *texts, strict=True))
    names = [len(column[0]) for column in columns]
    words = [max(len(word) for cell in column for word in cell.split()) for column in columns]
    folded = [min(word, NARROW) for word in words]
    numbers = [max(map(len, column[1:]), default=1) * table.is_number(at) for at, column in enumerate(columns)]
    # the name of a column stands on one line; or text is cut between words only; or inside them too, as there is room
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
    """Return names and values of a row, all but the first moved in; cells without a value are left out."""
    (name, text), *others = zip(table.columns, row, strict=True)
    return [(name, text), *((f"  {other}", value) for other, value in others if value)]
