"""Report: tables with what they say, written as Markdown, HTML and JSON."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, field
from html import escape
from pathlib import Path

from corank.data.atomic import atomic_file
from corank.metrics import wilcoxon as wilcoxon

Cell = str | int | float | None

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #222; }
table { border-collapse: collapse; margin: 2rem 0 .5rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; font-weight: bold; padding-bottom: .4rem; }
th, td { text-align: left; padding: .2rem .7rem; border-bottom: 1px solid #ddd; }
th { border-bottom-color: #222; }
.number { text-align: right; }
tbody tr:hover { background: #f3f6fa; }
img { max-width: 100%; }
"""


@dataclass(frozen=True)
class ReportTable:
    """
    One table.

    title: what it shows.
    rows: cells; floats are shown with `digits` decimals, None as an empty cell.
    digits: decimals of floats.
    note: what a reader has to know, below the table.

    >>> print(ReportTable("Two runs", ("method", "MAP"), (("SPD", 0.47912), ("LCRA", None)), digits=3).markdown())
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

        Returns: how tables print it.
        """
        if cell is None or (isinstance(cell, float) and math.isnan(cell)):
            return ""
        return f"{cell:.{self.digits}f}" if isinstance(cell, float) else str(cell)

    def markdown(self) -> str:
        """
        Return the table as Markdown.

        Returns: title, table and note.
        """
        rule = "".join("---:|" if self.is_number(column) else "---|" for column in range(len(self.columns)))
        lines = [f"**{self.title}**", "", "| " + " | ".join(self.columns) + " |", "|" + rule]
        lines += ["| " + " | ".join(map(self.text, row)) + " |" for row in self.rows]
        return "\n".join([*lines, "", self.note] if self.note else lines)

    def html(self) -> str:
        """
        Return the table as HTML.

        Returns: A ``table`` with its title as caption, and the note as a paragraph.
        """

        def line(tag: str, cells: tuple[Cell, ...]) -> str:
            marks = [' class="number"' if self.is_number(at) else "" for at in range(len(cells))]
            texts = [f"<{tag}{mark}>{escape(self.text(cell))}</{tag}>" for mark, cell in zip(marks, cells, strict=True)]
            return f"<tr>{''.join(texts)}</tr>"

        lines = [f"<table>\n<caption>{escape(self.title)}</caption>", f"<thead>{line('th', self.columns)}</thead>"]
        lines += ["<tbody>", *(line("td", row) for row in self.rows), "</tbody>\n</table>"]
        return "\n".join([*lines, f"<p>{escape(self.note)}</p>"] if self.note else lines)

    def is_number(self, column: int) -> bool:
        """Say whether a column holds no text."""
        return all(not isinstance(row[column], str) for row in self.rows)


@dataclass(frozen=True)
class Report:
    """
    What an experiment found.

    title: name of the experiment in words.
    about: data, protocol and source of the paper's figures, a paragraph.
    findings: what the tables say, one sentence each.
    plots: pictures, already written.
    """

    title: str
    about: str
    tables: tuple[ReportTable, ...]
    findings: tuple[str, ...] = ()
    plots: tuple[Path, ...] = field(default=())

    def markdown(self) -> str:
        """Return the whole report as Markdown; pictures are named relative to the report."""
        blocks = [f"# {self.title}", self.about, *(table.markdown() for table in self.tables)]
        if self.findings:
            blocks.append("\n".join(f"- {finding}" for finding in self.findings))
        blocks += [f"![{plot.stem}]({plot.name})" for plot in self.plots]
        return "\n\n".join(blocks) + "\n"

    def html(self) -> str:
        """Return the whole report as one page of HTML; pictures are named relative to it."""
        blocks = [f"<h1>{escape(self.title)}</h1>", f"<p>{escape(self.about)}</p>"]
        blocks += [table.html() for table in self.tables]
        if self.findings:
            blocks.append("\n".join(["<ul>", *(f"<li>{escape(finding)}</li>" for finding in self.findings), "</ul>"]))
        blocks += [f'<img src="{escape(plot.name)}" alt="{escape(plot.stem)}">' for plot in self.plots]
        head = f'<meta charset="utf-8">\n<title>{escape(self.title)}</title>\n<style>{STYLE}</style>'
        return "\n".join(["<!doctype html>", '<html lang="en">', head, *blocks, "</html>"]) + "\n"

    def write(self, folder: Path) -> tuple[Path, ...]:
        """
        Write ``report.md``, ``report.html`` and ``report.json``.

        folder: an existing folder.
        Returns: the three files.
        """
        record = {
            **asdict(self),
            "tables": [{**asdict(table), "rows": _without_nan(table.rows)} for table in self.tables],
            "plots": [plot.name for plot in self.plots],
        }
        texts = {
            "report.md": self.markdown(),
            "report.html": self.html(),
            "report.json": json.dumps(record, indent=1, allow_nan=False) + "\n",
        }
        for name, text in texts.items():
            with atomic_file(folder / name, overwrite=True) as scratch:
                scratch.write_text(text, encoding="utf-8")
        return tuple(folder / name for name in texts)


def _without_nan(rows: tuple[tuple[Cell, ...], ...]) -> list[list[Cell]]:
    """JSON has no NaN: a cell without a value is null."""
    return [[None if isinstance(cell, float) and math.isnan(cell) else cell for cell in row] for row in rows]
