"""Report: the tables and findings of an experiment, written as Markdown, HTML and JSON."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, field
from html import escape
from pathlib import Path

from corank.comparison.report.blocks import BulletList, PageBlock, Paragraph, Picture
from corank.comparison.report.page import page
from corank.data.durable.atomic import atomic_file
from corank.tables import Cell, ReportTable, escape_markdown


@dataclass(frozen=True)
class Report:
    """Result of an experiment."""

    title: str  # title of the experiment
    about: str  # a paragraph about the data, the protocol and the source of the paper's figures
    tables: tuple[ReportTable, ...]  # measurements
    findings: tuple[str, ...] = ()  # one sentence per finding
    plots: tuple[Path, ...] = field(default=())  # image files that exist

    def blocks(self, folder: str = "") -> list[PageBlock]:
        """Return the blocks below the title."""
        findings = [BulletList(self.findings)] if self.findings else []
        pictures = [Picture(folder + plot.name, plot.stem, plot) for plot in self.plots]
        return [Paragraph(self.about), *findings, *self.tables, *pictures]

    def markdown(self) -> str:
        """Return the report as Markdown; links to images are relative to it."""
        return "\n\n".join([f"# {escape_markdown(self.title)}", *(block.markdown() for block in self.blocks())]) + "\n"

    def html(self) -> str:
        """Return the report as one HTML page, which contains the images."""
        return page(self.title, "\n".join(block.html() for block in self.blocks()))

    def _repr_html_(self) -> str:
        """Return the title and tables for a notebook; the images are files in another folder."""
        return f"<h3>{escape(self.title)}</h3>\n" + "\n".join(table.html() for table in self.tables)

    def write(self, folder: Path) -> tuple[Path, ...]:
        """Write ``report.md``, ``report.html`` and ``report.json``, replacing those of an earlier run."""
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
    """Replace NaN by None, since JSON has no NaN."""
    return [[None if isinstance(cell, float) and math.isnan(cell) else cell for cell in row] for row in rows]
