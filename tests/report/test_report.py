from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path

import pytest

from corank.report import Report, ReportTable

TABLE = ReportTable(
    "Runs", ("method", "MAP", "n"), (("SPD", 0.12345, 3), ("none", float("nan"), None)), digits=2, note="A note."
)


def test_markdown_shows_every_cell_once():
    lines = TABLE.markdown().splitlines()
    assert lines[2:6] == ["| method | MAP | n |", "|---|---:|---:|", "| SPD | 0.12 | 3 |", "| none |  |  |"]
    assert lines[-1] == "A note."


def test_a_ragged_row_is_refused():
    with pytest.raises(ValueError, match="row of 1 cells"):
        ReportTable("t", ("a", "b"), (("x",),))


class Cells(HTMLParser):
    """Text of every cell, caption and finding of a page, with the tag it stands in."""

    def __init__(self):
        super().__init__()
        self.seen, self.open = [], []

    def handle_starttag(self, tag, attributes):
        if tag not in ("meta", "img"):
            self.open.append(tag)
        else:
            self.seen.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if data.strip():
            self.seen.append((self.open[-1], data))


def test_html_shows_the_same_cells_and_escapes_them():
    table = ReportTable("a < b", ("method", "MAP"), (("x & y", 0.5), ("none", None)), digits=2)
    page = Cells()
    page.feed(Report("Title", "About.", (table,), ("p < 0.05.",), (Path("folder/gains.png"),)).html())
    page.close()
    assert page.open == []
    cells = [(tag, text) for tag, text in page.seen if tag in ("caption", "th", "td", "li")]
    assert cells == [
        ("caption", "a < b"), ("th", "method"), ("th", "MAP"), ("td", "x & y"), ("td", "0.50"), ("td", "none"),
        ("li", "p < 0.05."),
    ]  # fmt: skip
    assert ("img", {"src": "gains.png", "alt": "gains"}) in page.seen


def test_write_makes_valid_json_markdown_and_html(tmp_path):
    report = Report("Title", "About.", (TABLE,), ("A finding.",), (Path("folder/gains.png"),))
    markdown, html, data = report.write(tmp_path)
    assert html.read_text() == report.html()
    record = json.loads(data.read_text(), parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    assert record["tables"][0]["rows"] == [["SPD", 0.12345, 3], ["none", None, None]]
    assert record["plots"] == ["gains.png"]
    text = markdown.read_text()
    assert text.startswith("# Title\n\nAbout.\n\n**Runs**")
    assert "- A finding." in text
    assert "![gains](gains.png)" in text
