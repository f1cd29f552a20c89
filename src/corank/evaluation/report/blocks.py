"""Blocks of a page: each says itself as HTML and as Markdown; a `ReportTable` is one too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal, Protocol

from corank.evaluation.report.page import details, section


class Block(Protocol):
    """Something that stands on a page."""

    def html(self) -> str:
        """Return it as HTML."""

    def markdown(self) -> str:
        """Return it as Markdown."""


@dataclass(frozen=True)
class Text:
    """
    A paragraph.

    text: plain words.
    kind: the word for how it looks: as it is, as what was found, or as a note.
    """

    text: str
    kind: Literal["plain", "verdict", "note"] = "plain"

    def html(self) -> str:
        """Return it as HTML."""
        return (
            f"<p>{escape(self.text)}</p>" if self.kind == "plain" else f'<p class="{self.kind}">{escape(self.text)}</p>'
        )

    def markdown(self) -> str:
        """Return it as Markdown."""
        return f"**{self.text}**" if self.kind == "verdict" else self.text


@dataclass(frozen=True)
class Items:
    """
    A list.

    items: plain words.
    """

    items: tuple[str, ...]

    def html(self) -> str:
        """Return it as HTML."""
        return "<ul>\n" + "\n".join(f"<li>{escape(item)}</li>" for item in self.items) + "\n</ul>"

    def markdown(self) -> str:
        """Return it as Markdown."""
        return "\n".join(f"- {item}" for item in self.items)


@dataclass(frozen=True)
class Facts:
    """
    Names and values, side by side.

    pairs: the name and the value of each.
    """

    pairs: tuple[tuple[str, str], ...]

    def html(self) -> str:
        """Return it as HTML."""
        inside = "\n".join(f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in self.pairs)
        return f"<dl>\n{inside}\n</dl>"

    def markdown(self) -> str:
        """Return it as Markdown."""
        return "\n".join(f"- {name}: {value}" for name, value in self.pairs)


@dataclass(frozen=True)
class Code:
    """
    What is typed.

    text: one line or more.
    """

    text: str

    def html(self) -> str:
        """Return it as HTML; by keyboard it can be scrolled."""
        return f'<pre tabindex="0"><code>{escape(self.text)}</code></pre>'

    def markdown(self) -> str:
        """Return it as Markdown."""
        return "\n".join(f"    {line}" for line in self.text.splitlines())


def plot_file(name: str) -> str:
    """Name the file of a plot."""
    return f"report-{name}.svg"


@dataclass(frozen=True)
class Plot:
    """
    A drawing.

    name: unlike that of any other on the page; its file in the Markdown variant is ``report-NAME.svg``.
    title: what it is.
    drawing: an ``svg`` element.
    caption: what to see in it.
    """

    name: str
    title: str
    drawing: str
    caption: str

    @property
    def file(self) -> str:
        """Name of the file that the Markdown variant shows."""
        return plot_file(self.name)

    def html(self) -> str:
        """Return it as HTML."""
        caption = f"<strong>{escape(self.title)}.</strong> {escape(self.caption)}"
        return f"<figure>\n{self.drawing}\n<figcaption>{caption}</figcaption>\n</figure>"

    def markdown(self) -> str:
        """Return it as Markdown."""
        return f"![{self.title}]({self.file})\n\n*{self.title}.* {self.caption}"


@dataclass(frozen=True)
class Picture:
    """
    A picture that stands in a file of its own.

    source: where, as the page sees it.
    name: what it shows.
    """

    source: str
    name: str

    def html(self) -> str:
        """Return it as HTML."""
        return f'<img src="{escape(self.source)}" alt="{escape(self.name)}">'

    def markdown(self) -> str:
        """Return it as Markdown."""
        return f"![{self.name}]({self.source})"


@dataclass(frozen=True)
class Plots:
    """
    Drawings that stand side by side where there is room.

    plots: in order.
    """

    plots: tuple[Plot, ...]

    def html(self) -> str:
        """Return it as HTML."""
        return '<div class="plots">\n' + "\n".join(plot.html() for plot in self.plots) + "\n</div>"

    def markdown(self) -> str:
        """Return it as Markdown."""
        return "\n\n".join(plot.markdown() for plot in self.plots)


@dataclass(frozen=True)
class Folded:
    """
    Something that is folded away on a screen.

    summary: what it is.
    block: what it holds.
    """

    summary: str
    block: Block

    def html(self) -> str:
        """Return it as HTML."""
        return details(self.summary, self.block.html())

    def markdown(self) -> str:
        """Return it as Markdown, which folds nothing."""
        return self.block.markdown()


@dataclass(frozen=True)
class Section:
    """
    A part of a page.

    anchor: what links lead to.
    name: its heading.
    blocks: what it holds.
    """

    anchor: str
    name: str
    blocks: Sequence[Block]

    def html(self) -> str:
        """Return it as HTML."""
        return section(self.anchor, self.name, *(block.html() for block in self.blocks))

    def markdown(self) -> str:
        """Return it as Markdown."""
        return "\n\n".join([f"## {self.name}", *(block.markdown() for block in self.blocks)])
