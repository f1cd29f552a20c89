"""Report: tables with what they say, written as Markdown, HTML and JSON."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, field
from html import escape
from pathlib import Path

from corank.data.durable.atomic import atomic_file
from corank.evaluation.report.blocks import Block, Items, Picture, Text
from corank.evaluation.report.page import page
from corank.tables import Cell, ReportTable


@dataclass(frozen=True)
class Report:
    """
    What an experiment found.

    Parameters
    ----------
    title : str
        Name of the experiment in words.
    about : str
        Data, protocol and source of the paper's figures, a paragraph.
    tables : tuple of ReportTable
        What was measured.
    findings : tuple of str
        What the tables say, one sentence each.
    plots : tuple of Path
        Pictures, already written.
    """

    title: str
    about: str
    tables: tuple[ReportTable, ...]
    findings: tuple[str, ...] = ()
    plots: tuple[Path, ...] = field(default=())

    def blocks(self, folder: str = "") -> list[Block]:
        """
        Return what stands below the title: what was found, then how it shows.

        Parameters
        ----------
        folder : str
            Where the pictures stand, as the page sees it, such as ``"lcra/"``.

        Returns
        -------
        list of blocks
            A paragraph, findings, tables and pictures.
        """
        found = [Items(self.findings)] if self.findings else []
        pictures = [Picture(folder + plot.name, plot.stem) for plot in self.plots]
        return [Text(self.about), *found, *self.tables, *pictures]

    def markdown(self) -> str:
        """
        Return the whole report as Markdown; pictures are named relative to the report.

        Returns
        -------
        str
            Title, paragraph, findings, tables and pictures.
        """
        return "\n\n".join([f"# {self.title}", *(block.markdown() for block in self.blocks())]) + "\n"

    def html(self) -> str:
        """
        Return the whole report as one page of HTML; pictures are named relative to it.

        Returns
        -------
        str
            The page.
        """
        return page(self.title, "\n".join(block.html() for block in self.blocks()))

    def _repr_html_(self) -> str:
        """Return what a notebook shows, the pictures apart, which stand in a folder of their own."""
        return f"<h3>{escape(self.title)}</h3>\n" + "\n".join(table.html() for table in self.tables)

    def write(self, folder: Path) -> tuple[Path, ...]:
        """
        Write ``report.md``, ``report.html`` and ``report.json``, in the place of those of an earlier run.

        Parameters
        ----------
        folder : Path
            An existing folder.

        Returns
        -------
        tuple of Path
            The three files.
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
