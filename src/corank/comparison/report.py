"""
Documents: blocks, each as HTML and as Markdown, on one page for phones, paper, dark mode and the keyboard.

A block is a `Block`, made by a function of this module, or a `ReportTable`.
"""

from __future__ import annotations

import base64
import json
import mimetypes
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Literal, NamedTuple
from urllib.parse import quote

from corank._version import __version__
from corank.console import printable
from corank.data.durable.atomic import atomic_file
from corank.tables import ReportTable, escape_markdown, json_values

_FOLDER = Path(__file__).parent
STYLE = (_FOLDER / "charts.css").read_text(encoding="utf-8")
"""Colours and charts, for other pages that show them."""

CONTENT_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
"""Content-Security-Policy of every page: no scripts, no requests; images are part of the page."""

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{title}</title>
<link rel="icon" href="data:,">
<style>{style}</style>
</head>
<body>
<a class="skip" href="#main">Skip to the content</a>
<header>
<h1>{title}</h1>
{links}</header>
<main id="main" tabindex="-1">
{body}
</main>
<footer>Made by corank {version}.</footer>
</body>
</html>
"""  # without the icon, browsers request /favicon.ico


def page(title: str, body: str, sections: Sequence[tuple[str, str]] = ()) -> str:
    """Return a whole HTML page, which makes no request."""
    items = "".join(f'<li><a href="#{anchor}">{escape(name)}</a></li>' for anchor, name in sections)
    return _PAGE.format(
        policy=CONTENT_POLICY, title=escape(title), body=body, version=escape(__version__),
        style=STYLE + (_FOLDER / "page.css").read_text(encoding="utf-8"),
        links=f'<nav aria-label="Sections"><ul>{items}</ul></nav>\n' if items else "",
    )  # fmt: skip


def section(anchor: str, name: str, *blocks: str) -> str:
    """Return a section of HTML blocks without the empty ones; "" if none is left."""
    content = "\n".join(filter(None, blocks))
    if not content:
        return ""
    heading = f'<h2 id="{anchor}-heading">{escape(name)}</h2>'
    return f'<section id="{anchor}" aria-labelledby="{anchor}-heading">\n{heading}\n{content}\n</section>'


class Block(NamedTuple):
    """A part of a document; a section has an anchor, which links lead to, and a name."""

    html: str
    markdown: str
    anchor: str = ""
    name: str = ""


PageBlock = Block | ReportTable


def _block(item: PageBlock) -> Block:
    return Block(item.html(), item.markdown()) if isinstance(item, ReportTable) else item


def paragraph(text: str, kind: Literal["", "verdict", "note"] = "") -> Block:
    """Return a paragraph; a verdict is bold in Markdown."""
    style, shown = f' class="{kind}"' if kind else "", escape_markdown(text)
    return Block(f"<p{style}>{escape(text)}</p>", f"**{shown}**" if kind == "verdict" else shown)


def bullets(items: Sequence[str]) -> Block:
    """Return a list of plain texts."""
    html = "\n".join(f"<li>{escape(item)}</li>" for item in items)
    return Block(f"<ul>\n{html}\n</ul>", "\n".join(f"- {escape_markdown(item)}" for item in items))


def facts(pairs: Sequence[tuple[str, str]]) -> Block:
    """Return pairs of a name and a value, shown in a grid."""
    html = "\n".join(f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in pairs)
    return Block(f"<dl>\n{html}\n</dl>", bullets([f"{name}: {value}" for name, value in pairs]).markdown)


def code(text: str) -> Block:
    """Return commands to type, which can be scrolled with the keyboard."""
    lines = [f"    {printable(line)}" for line in text.splitlines()]
    return Block(f'<pre tabindex="0"><code>{escape(text)}</code></pre>', "\n".join(lines))


def picture(source: str, name: str, file: Path) -> Block:
    """Return an image: its address in the Markdown, alternative text, and the file, which the page contains."""
    kind = mimetypes.guess_type(file.name)[0] or "image/png"
    content = base64.b64encode(file.read_bytes()).decode()
    html = f'<img src="data:{kind};base64,{content}" alt="{escape(name)}">'
    return Block(html, f"![{escape_markdown(name)}]({quote(source)})")


def collapsed(summary: str, item: PageBlock) -> Block:
    """Return a block that is collapsed on screen; paper and Markdown show it."""
    inner = _block(item)
    return inner._replace(html=f"<details>\n<summary>{escape(summary)}</summary>\n{inner.html}\n</details>")


def part(anchor: str, name: str, items: Sequence[PageBlock]) -> Block:
    """Return a section of blocks."""
    blocks = [_block(item) for item in items]
    markdown = "\n\n".join([f"## {escape_markdown(name)}", *(block.markdown for block in blocks)])
    return Block(section(anchor, name, *(block.html for block in blocks)), markdown, anchor, name)


class Document:
    """A page of blocks and sections; sections without blocks are left out."""

    def __init__(self, title: str, items: Sequence[PageBlock]) -> None:
        self.title = title
        self.blocks = [block for block in map(_block, items) if block.html]

    def html(self) -> str:
        """Return one self-contained HTML page, with links to its sections."""
        links = [(block.anchor, block.name) for block in self.blocks if block.anchor]
        return page(self.title, self._repr_html_(), links)

    def markdown(self) -> str:
        """Return Markdown; links to images are relative to it."""
        return "\n\n".join([f"# {escape_markdown(self.title)}", *(block.markdown for block in self.blocks)]) + "\n"

    def _repr_html_(self) -> str:
        return "\n".join(block.html for block in self.blocks)


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
        findings = [bullets(self.findings)] if self.findings else []
        pictures = [picture(folder + plot.name, plot.stem, plot) for plot in self.plots]
        return [paragraph(self.about), *findings, *self.tables, *pictures]

    def markdown(self) -> str:
        """Return the report as Markdown; links to images are relative to it."""
        return Document(self.title, self.blocks()).markdown()

    def html(self) -> str:
        """Return the report as one HTML page, which contains the images."""
        return Document(self.title, self.blocks()).html()

    def write(self, folder: Path) -> tuple[Path, ...]:
        """Write ``report.md``, ``report.html`` and ``report.json``, replacing those of an earlier run."""
        record = {**json_values(self), "plots": [plot.name for plot in self.plots]}
        texts = {
            "report.md": self.markdown(),
            "report.html": self.html(),
            "report.json": json.dumps(record, indent=1, allow_nan=False) + "\n",
        }
        for name, text in texts.items():
            with atomic_file(folder / name, overwrite=True) as scratch:
                scratch.write_text(text, encoding="utf-8")
        return tuple(folder / name for name in texts)
