"""Parse HTML pages: tables with captions and cells, sections, links, well-formedness."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

ALONE = {"meta", "link", "img", "br", "hr", "input"}
# SVG inside HTML may close its elements at once
DRAWN = {"line", "circle", "rect", "polyline", "polygon", "path", "use"}


@dataclass
class PageTable:
    caption: str = ""
    head: list[str] = field(default_factory=list)
    rows: list[list[str]] = field(default_factory=list)


class Page(HTMLParser):
    """What a page holds; raises where tags do not match."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.tables: list[PageTable] = []
        self.texts: list[tuple[str, str]] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag in ALONE:
            return
        self.open.append(tag)
        if tag == "table":
            self.tables.append(PageTable())
        elif tag == "tr" and "tbody" in self.open:
            self.tables[-1].rows.append([])
        elif tag in ("th", "td"):
            table = self.tables[-1]
            (table.rows[-1] if "tbody" in self.open else table.head).append("")

    def handle_startendtag(self, tag, attrs):
        assert tag in DRAWN, f"{tag} cannot close itself in HTML"
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if not self.open or not data.strip():
            return
        self.texts.append((self.open[-1], data.strip()))
        if self.open[-1] == "caption":
            self.tables[-1].caption += data
        elif self.open[-1] in ("th", "td"):
            table = self.tables[-1]
            (table.rows[-1] if "tbody" in self.open else table.head)[-1] += data

    def table(self, start: str) -> PageTable:
        """The one table whose caption begins so."""
        (found,) = [table for table in self.tables if table.caption.startswith(start)]
        return found

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]

    def text_of(self, tag: str) -> list[str]:
        return [text for name, text in self.texts if name == tag]
