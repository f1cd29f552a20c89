"""
Documents: blocks, each as HTML and as Markdown, on one page for phones, paper, dark mode and the keyboard.

A block is a `Block`, made by a function of this module, or a `ReportTable`.
"""

from __future__ import annotations

import base64
import json
import math
import mimetypes
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from html import escape
from pathlib import Path
from typing import Literal, NamedTuple
from urllib.parse import quote

from corank._version import __version__
from corank.console import printable
from corank.data.durable.atomic import atomic_file
from corank.tables import Cell, ReportTable, escape_markdown

LIGHT = {
    "paper": "#f6f6f3", "card": "#ffffff", "ink": "#1c2329", "soft": "#56616b", "line": "#d9dcd8", "accent": "#23587c",
    "accent-ink": "#ffffff", "accent-soft": "#e4eef5", "good": "#1d6b45", "good-soft": "#e2f2e9", "bad": "#9a2f24",
    "bad-soft": "#fbe9e6", "focus": "#b4560a", "shadow": "#1c232966",
    "s1": "#014c9c", "s2": "#e16817", "s3": "#461556", "s4": "#018863", "s5": "#c41040", "s6": "#20461f",
}  # fmt: skip
"""Colours of all pages, those of the lab too; the six series also differ in lightness, for grey prints."""

DARK = {
    "paper": "#14181b", "card": "#1d2327", "ink": "#e7eaec", "soft": "#a5b0b8", "line": "#353e44", "accent": "#8cc3e8",
    "accent-ink": "#0d1a23", "accent-soft": "#203544", "good": "#8fd6b0", "good-soft": "#1b3427", "bad": "#f2a79d",
    "bad-soft": "#3d211d", "focus": "#f0a862", "shadow": "#000000b3",
    "s1": "#67b6fe", "s2": "#ffc96e", "s3": "#c25eb8", "s4": "#89fed0", "s5": "#fd6862", "s6": "#f0f7fd",
}  # fmt: skip

DASHES: tuple[tuple[float, ...], ...] = ((), (7, 3), (2, 3), (9, 3, 2, 3), (4, 2), (12, 4))
"""Dash patterns of the six series: colour is never the only difference."""


def _variables(colours: dict[str, str]) -> str:
    return " ".join(f"--{name}: {colour};" for name, colour in colours.items())


COLOURS = f"""
:root {{ color-scheme: light dark; {_variables(LIGHT)} }}
@media screen and (prefers-color-scheme: dark) {{ :root {{ {_variables(DARK)} }} }}
"""

PLOT = """
.chart { font: 11.5px system-ui, sans-serif; overflow: visible; stroke-linejoin: round; display: block; width: 100%;
  height: auto; }
/* an outline in the background colour keeps text readable over grid lines */
.chart text { fill: var(--ink); font-variant-numeric: tabular-nums; paint-order: stroke; stroke: var(--card);
  stroke-width: 3px; }
.chart .tick { fill: var(--soft); } .chart .strong { font-weight: bold; }
.chart path { fill: none; }
.chart .grid { stroke: var(--line); stroke-width: .7; } .chart .edge { stroke: var(--soft); }
.chart .dashed { stroke-dasharray: 4 3; } .chart .line { stroke: var(--series); stroke-width: 2; }
.chart .band { fill: var(--series); opacity: .12; } .chart .dot, .chart .fill { fill: var(--series); }
.broad { display: none; }
@media (min-width: 44rem) { .slim { display: none; } .broad { display: block; } }
""" + " ".join(f".s{number} {{ --series: var(--s{number}); }}" for number in range(1, len(DASHES) + 1))

PAGE = """
* { box-sizing: border-box; }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--card); margin: 0 auto;
  max-width: 100rem; padding: 1.5rem 1rem 3rem; overflow-wrap: break-word; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: .3rem 0 .8rem; }
h2 { font-size: 1.3rem; margin: 2.4rem 0 .6rem; }
h3 { font-size: 1.05rem; margin: 1.6rem 0 .4rem; }
p, ul, ol { max-width: 46rem; }
a { color: var(--accent); }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
.skip { position: absolute; left: -100vw; background: var(--card); padding: .5rem 1rem; }
.skip:focus { left: 1rem; top: .5rem; z-index: 1; }
nav ul { display: flex; flex-wrap: wrap; gap: .2rem 1.2rem; list-style: none; padding: 0; margin: 0; max-width: none; }
nav a { display: inline-block; padding: .25rem 0; }
.verdict { font-size: 1.1rem; border-left: 4px solid var(--accent); background: var(--paper); padding: .8rem 1rem; }
.note, figcaption, footer { color: var(--soft); font-size: .9rem; }
/* the shade at the right edge shows that a table continues; it is covered at the end of the table */
.wide { overflow-x: auto; max-width: 100%; width: fit-content; margin: 1.4rem 0 .4rem; background:
  linear-gradient(to left, var(--card) 40%, transparent) right / 3rem 100% no-repeat local,
  linear-gradient(to left, color-mix(in srgb, var(--ink) 30%, transparent), transparent)
  right / .9rem 100% no-repeat scroll; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
caption { text-align: left; font-weight: 600; padding-bottom: .4rem; }
th, td { text-align: left; padding: .25rem .7rem; border-bottom: 1px solid var(--line); vertical-align: top;
  overflow-wrap: normal; }
tbody th { font-weight: normal; min-width: 7rem; }
td:not(.number) { min-width: 9rem; }
thead th { border-bottom-color: var(--ink); vertical-align: bottom; }
th:first-child { padding-left: 0; }
.number { text-align: right; }
tbody .number { white-space: nowrap; }
tbody th, thead th:first-child { position: sticky; left: 0; background: var(--card); }
tbody tr:hover > * { background: var(--paper); }
.plots { display: grid; gap: 1.5rem 2.5rem; grid-template-columns: repeat(auto-fit, minmax(min(100%, 20rem), 1fr)); }
figure { margin: 0; max-width: 34rem; break-inside: avoid; }
figure.alone { max-width: 72rem; }
figcaption { margin-top: .3rem; }
img { max-width: 100%; height: auto; background: #fff; }
details { margin: 1rem 0; }
summary { cursor: pointer; color: var(--accent); padding: .25rem 0; width: fit-content; }
pre { background: var(--paper); padding: .7rem 1rem; overflow-x: auto; }
code { font: .9em ui-monospace, monospace; }
dl { display: grid; grid-template-columns: repeat(auto-fit, minmax(7.5rem, 1fr)); gap: .8rem 1.2rem; margin: 1rem 0;
  max-width: 66rem; }
dl div { display: flex; flex-direction: column; justify-content: end; }
dt { color: var(--soft); font-size: .9rem; }
dd { margin: 0; font-size: 1.15rem; font-variant-numeric: tabular-nums; }
footer { border-top: 1px solid var(--line); margin-top: 3rem; padding-top: .8rem; }
@media (max-width: 30rem) {
  tbody th { min-width: 0; max-width: 7.5rem; overflow-wrap: break-word; }
  th, td { padding: .25rem .5rem; }
}
@media print {
  body { font-size: 10.5pt; max-width: none; padding: 0; }
  nav, .skip { display: none; }
  h2, h3, caption { break-after: avoid; }
  tr, figure, dl { break-inside: avoid; }
  .wide { overflow: visible; background: none; }
  pre { white-space: pre-wrap; }
  summary { list-style: none; color: inherit; }
  details::details-content { content-visibility: visible; block-size: auto; }
  .plots { grid-template-columns: 1fr 1fr; }
}
"""

STYLE = COLOURS + PLOT
"""Colours and charts, for other pages that show them."""

CONTENT_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
"""Content-Security-Policy of every page: no scripts, no requests; images are part of the page."""


def page(title: str, body: str, sections: Sequence[tuple[str, str]] = ()) -> str:
    """Return a whole HTML page, which makes no request."""
    links = "".join(f'<li><a href="#{anchor}">{escape(name)}</a></li>' for anchor, name in sections)
    head = [
        '<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f'<meta http-equiv="Content-Security-Policy" content="{CONTENT_POLICY}">',
        f"<title>{escape(title)}</title>",
        '<link rel="icon" href="data:,">',  # otherwise browsers request /favicon.ico
        f"<style>{STYLE}{PAGE}</style>",
    ]
    lines = [
        "<!doctype html>",
        '<html lang="en">',
        "<head>",
        *head,
        "</head>",
        "<body>",
        '<a class="skip" href="#main">Skip to the content</a>',
        f"<header>\n<h1>{escape(title)}</h1>",
        *([f'<nav aria-label="Sections"><ul>{links}</ul></nav>'] if links else []),
        "</header>",
        f'<main id="main" tabindex="-1">\n{body}\n</main>',
        f"<footer>Made by corank {escape(__version__)}.</footer>",
        "</body>",
        "</html>",
    ]
    return "\n".join(lines) + "\n"


def section(anchor: str, name: str, *blocks: str) -> str:
    """Return a section of HTML blocks without the empty ones; "" if none is left."""
    kept = [block for block in blocks if block]
    if not kept:
        return ""
    heading = f'<h2 id="{anchor}-heading">{escape(name)}</h2>'
    return "\n".join([f'<section id="{anchor}" aria-labelledby="{anchor}-heading">', heading, *kept, "</section>"])


class Block(NamedTuple):
    """A part of a document."""

    html: str
    markdown: str
    anchor: str = ""  # of a section, target of links
    name: str = ""  # heading of a section
    files: tuple[tuple[str, str], ...] = ()  # name and content of the files that the Markdown links to


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
    lines = [f"- {escape_markdown(name)}: {escape_markdown(value)}" for name, value in pairs]
    return Block(f"<dl>\n{html}\n</dl>", "\n".join(lines))


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
    files = tuple(file for block in blocks for file in block.files)
    return Block(section(anchor, name, *(block.html for block in blocks)), markdown, anchor, name, files)


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

    @property
    def files(self) -> dict[str, str]:
        """Name and content of the files that the Markdown links to."""
        return {name: content for block in self.blocks for name, content in block.files}

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
