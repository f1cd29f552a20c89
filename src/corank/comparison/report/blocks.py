"""Blocks of a report, each written as HTML and as Markdown; a `ReportTable` is a block too. Report: an experiment."""

from __future__ import annotations

import base64
import json
import math
import mimetypes
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from html import escape
from pathlib import Path
from typing import Literal, Protocol
from urllib.parse import quote

from corank.comparison.report.charts import Chart
from corank.comparison.report.page import page, section
from corank.console import printable
from corank.data.durable.atomic import atomic_file
from corank.tables import Cell, ReportTable, escape_markdown


class PageBlock(Protocol):
    """Anything that a page shows."""

    def html(self) -> str:
        """Return HTML."""

    def markdown(self) -> str:
        """Return Markdown."""


@dataclass(frozen=True)
class Paragraph:
    """A paragraph of plain text."""

    text: str
    kind: Literal["plain", "verdict", "note"] = "plain"  # CSS class; a verdict is bold in Markdown

    def html(self) -> str:
        """Return HTML."""
        return (
            f"<p>{escape(self.text)}</p>" if self.kind == "plain" else f'<p class="{self.kind}">{escape(self.text)}</p>'
        )

    def markdown(self) -> str:
        """Return Markdown."""
        text = escape_markdown(self.text)
        return f"**{text}**" if self.kind == "verdict" else text


@dataclass(frozen=True)
class BulletList:
    """A list of plain texts."""

    items: tuple[str, ...]

    def html(self) -> str:
        """Return HTML."""
        return "<ul>\n" + "\n".join(f"<li>{escape(item)}</li>" for item in self.items) + "\n</ul>"

    def markdown(self) -> str:
        """Return Markdown."""
        return "\n".join(f"- {escape_markdown(item)}" for item in self.items)


@dataclass(frozen=True)
class Facts:
    """Pairs of a name and a value, shown in a grid."""

    pairs: tuple[tuple[str, str], ...]

    def html(self) -> str:
        """Return HTML."""
        inside = "\n".join(f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in self.pairs)
        return f"<dl>\n{inside}\n</dl>"

    def markdown(self) -> str:
        """Return Markdown."""
        return "\n".join(f"- {escape_markdown(name)}: {escape_markdown(value)}" for name, value in self.pairs)


@dataclass(frozen=True)
class Code:
    """Commands to type, one or more lines."""

    text: str

    def html(self) -> str:
        """Return HTML that can be scrolled with the keyboard."""
        return f'<pre tabindex="0"><code>{escape(self.text)}</code></pre>'

    def markdown(self) -> str:
        """Return Markdown."""
        return "\n".join(f"    {printable(line)}" for line in self.text.splitlines())


def plot_file(name: str) -> str:
    """Return the file name of a plot."""
    return f"report-{name}.svg"


@dataclass(frozen=True)
class Plot:
    """A chart with its caption."""

    name: str  # unique on the page; the file of the Markdown report is ``report-NAME.svg``
    title: str
    drawing: str  # an ``svg`` element
    caption: str
    wide: str = ""  # the same for wide windows; "" for a plot that shares a row with others

    @classmethod
    def of(cls, chart: Chart, name: str, title: str, description: str, caption: str, *, is_lone: bool = False) -> Plot:
        """Draw a chart; one that has the window for itself also has a wide drawing."""
        wide = chart.svg(f"{name}-wide", title, description, is_wide=True) if is_lone else ""
        return cls(name, title, chart.svg(name, title, description), caption, wide)

    @property
    def file(self) -> str:
        """Name of the file that the Markdown report links to."""
        return plot_file(self.name)

    def html(self) -> str:
        """Return HTML."""
        caption = f"<strong>{escape(self.title)}.</strong> {escape(self.caption)}"
        if not self.wide:
            return f"<figure>\n{self.drawing}\n<figcaption>{caption}</figcaption>\n</figure>"
        both = f'<div class="slim">\n{self.drawing}\n</div>\n<div class="broad">\n{self.wide}\n</div>'
        return f'<figure class="alone">\n{both}\n<figcaption>{caption}</figcaption>\n</figure>'

    def markdown(self) -> str:
        """Return Markdown."""
        title = escape_markdown(self.title)
        return f"![{title}]({quote(self.file)})\n\n*{title}.* {escape_markdown(self.caption)}"


@dataclass(frozen=True)
class PlotGrid:
    """Plots in columns where the window is wide enough."""

    plots: tuple[Plot, ...]

    def html(self) -> str:
        """Return HTML."""
        return '<div class="plots">\n' + "\n".join(plot.html() for plot in self.plots) + "\n</div>"

    def markdown(self) -> str:
        """Return Markdown."""
        return "\n\n".join(plot.markdown() for plot in self.plots)


@dataclass(frozen=True)
class Picture:
    """An image file."""

    source: str  # its address relative to the Markdown file
    name: str  # alternative text
    file: Path  # the file itself; the HTML page contains a copy

    def html(self) -> str:
        """Return HTML."""
        kind = mimetypes.guess_type(self.file.name)[0] or "image/png"
        content = base64.b64encode(self.file.read_bytes()).decode()
        return f'<img src="data:{kind};base64,{content}" alt="{escape(self.name)}">'

    def markdown(self) -> str:
        """Return Markdown."""
        return f"![{escape_markdown(self.name)}]({quote(self.source)})"


@dataclass(frozen=True)
class Collapsed:
    """A block that is collapsed on screen; paper and Markdown show it."""

    summary: str
    block: PageBlock

    def html(self) -> str:
        """Return HTML."""
        return f"<details>\n<summary>{escape(self.summary)}</summary>\n{self.block.html()}\n</details>"

    def markdown(self) -> str:
        """Return Markdown."""
        return self.block.markdown()


@dataclass(frozen=True)
class Section:
    """A part of a page."""

    anchor: str  # target of links
    name: str  # heading
    blocks: Sequence[PageBlock]

    def html(self) -> str:
        """Return HTML."""
        return section(self.anchor, self.name, *(block.html() for block in self.blocks))

    def markdown(self) -> str:
        """Return Markdown."""
        return "\n\n".join([f"## {escape_markdown(self.name)}", *(block.markdown() for block in self.blocks)])


@dataclass(frozen=True)
class Document:
    """A page of blocks; every report is one, and is written by these methods. Sections without blocks vanish."""

    title: str  # title of the page
    blocks: Sequence[PageBlock]  # blocks and sections

    @property
    def _parts(self) -> list[PageBlock]:
        return [block for block in self.blocks if not isinstance(block, Section) or block.blocks]

    def html(self) -> str:
        """Return one self-contained HTML page, with links to its sections."""
        links = [(part.anchor, part.name) for part in self._parts if isinstance(part, Section)]
        return page(self.title, "\n".join(part.html() for part in self._parts), links)

    def markdown(self) -> str:
        """Return Markdown; links to images are relative to it."""
        return "\n\n".join([f"# {escape_markdown(self.title)}", *(part.markdown() for part in self._parts)]) + "\n"

    def _repr_html_(self) -> str:
        return "\n".join(part.html() for part in self._parts)


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
        return Document(self.title, self.blocks()).markdown()

    def html(self) -> str:
        """Return the report as one HTML page, which contains the images."""
        return Document(self.title, self.blocks()).html()

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
