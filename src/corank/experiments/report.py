"""Report: tables that print on a terminal, and are written as Markdown and JSON."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from corank.data.atomic import atomic_file

Cell = str | int | float | None


@dataclass(frozen=True)
class Table:
    """
    One table.

    Attributes
    ----------
    title : str
        What it shows.
    columns : tuple of str
        Headings.
    rows : tuple of tuples
        Cells; floats are shown with `digits` decimals, None as an empty cell.
    digits : int
        Decimals of floats.
    note : str
        What a reader has to know, below the table.

    Examples
    --------
    >>> print(Table("Two runs", ("method", "MAP"), (("SPD", 0.47912), ("LCRA", None)), digits=3).markdown())
    **Two runs**
    <BLANKLINE>
    | method | MAP |
    |---|---:|
    | SPD | 0.479 |
    | LCRA |  |
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    digits: int = 4
    note: str = ""

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"a row of {len(row)} cells in a table of {len(self.columns)} columns: {row}")

    def text(self, cell: Cell) -> str:
        """
        Show one cell.

        Parameters
        ----------
        cell : str, int, float or None
            Its value.

        Returns
        -------
        str
            How tables print it.
        """
        if cell is None or (isinstance(cell, float) and math.isnan(cell)):
            return ""
        return f"{cell:.{self.digits}f}" if isinstance(cell, float) else str(cell)

    def markdown(self) -> str:
        """
        Return the table as Markdown.

        Returns
        -------
        str
            Title, table and note.
        """
        rule = "".join("---:|" if self._is_number(column) else "---|" for column in range(len(self.columns)))
        lines = [f"**{self.title}**", "", "| " + " | ".join(self.columns) + " |", "|" + rule]
        lines += ["| " + " | ".join(map(self.text, row)) + " |" for row in self.rows]
        return "\n".join([*lines, "", self.note] if self.note else lines)

    def rich(self) -> Any:
        """
        Return the table as rich prints it.

        Returns
        -------
        rich.table.Table
            The table.
        """
        from rich.table import Table as RichTable

        table = RichTable(title=self.title, title_justify="left", caption=self.note or None, caption_justify="left")
        for at, column in enumerate(self.columns):
            table.add_column(column, justify="right" if self._is_number(at) else "left")
        for row in self.rows:
            table.add_row(*map(self.text, row))
        return table

    def _is_number(self, column: int) -> bool:
        return all(not isinstance(row[column], str) for row in self.rows)


@dataclass(frozen=True)
class Report:
    """
    What an experiment found.

    Attributes
    ----------
    title : str
        Name of the experiment in words.
    about : str
        Data, protocol and source of the paper's figures, a paragraph.
    tables : tuple of Table
        The results.
    findings : tuple of str
        What the tables say, one sentence each.
    plots : tuple of Path
        Pictures, already written.
    """

    title: str
    about: str
    tables: tuple[Table, ...]
    findings: tuple[str, ...] = ()
    plots: tuple[Path, ...] = field(default=())

    def markdown(self) -> str:
        """
        Return the whole report as Markdown; pictures are named relative to the report.

        Returns
        -------
        str
            The report.
        """
        blocks = [f"# {self.title}", self.about, *(table.markdown() for table in self.tables)]
        if self.findings:
            blocks.append("\n".join(f"- {finding}" for finding in self.findings))
        blocks += [f"![{plot.stem}]({plot.name})" for plot in self.plots]
        return "\n\n".join(blocks) + "\n"

    def write(self, folder: Path) -> tuple[Path, Path]:
        """
        Write ``report.md`` and ``report.json``.

        Parameters
        ----------
        folder : Path
            An existing folder.

        Returns
        -------
        tuple of two Paths
            The Markdown and the JSON file.
        """
        record = {
            **asdict(self),
            "tables": [{**asdict(table), "rows": _without_nan(table.rows)} for table in self.tables],
            "plots": [plot.name for plot in self.plots],
        }
        texts = {"report.md": self.markdown(), "report.json": json.dumps(record, indent=1, allow_nan=False) + "\n"}
        for name, text in texts.items():
            with atomic_file(folder / name) as scratch:
                scratch.write_text(text, encoding="utf-8")
        return folder / "report.md", folder / "report.json"


def _without_nan(rows: tuple[tuple[Cell, ...], ...]) -> list[list[Cell]]:
    """JSON has no NaN: a cell without a value is null."""
    return [[None if isinstance(cell, float) and math.isnan(cell) else cell for cell in row] for row in rows]
