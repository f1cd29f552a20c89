from __future__ import annotations

import json

import pytest

from corank.comparison.report import Report
from corank.tables import ReportTable
from helpers.page_reader import Page

TABLE = ReportTable(
    "Runs", ("method", "MAP", "n"), (("SPD", 0.12345, 3), ("none", float("nan"), None)), digits=2, note="A note."
)


def test_html_shows_the_same_cells_and_escapes_them(tmp_path):
    table = ReportTable("a < b", ("method", "MAP"), (("x & y", 0.5), ("none", None)), digits=2)
    (tmp_path / "gains.png").write_bytes(b"\x89PNG")
    page = Page(Report("Title", "About.", (table,), ("p < 0.05.",), (tmp_path / "gains.png",)).html())
    (found,) = page.tables
    assert found.caption == "a < b"
    assert found.head == ["method", "MAP"]
    assert found.rows == [["x & y", "0.50"], ["none", ""]]
    assert page.text_of("li") == ["p < 0.05."]
    assert page.text_of("h1") == page.text_of("title") == ["Title"]
    assert page.all("img") == [{"src": "data:image/png;base64,iVBORw==", "alt": "gains"}]


def test_write_makes_valid_json_markdown_and_html(tmp_path):
    (tmp_path / "gains.png").write_bytes(b"\x89PNG")
    report = Report("Title", "About.", (TABLE,), ("A finding.",), (tmp_path / "gains.png",))
    markdown, html, data = report.write(tmp_path)
    assert html.read_text() == report.html()
    record = json.loads(data.read_text(), parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert record["tables"][0]["rows"] == [["SPD", 0.12345, 3], ["none", None, None]]
    assert record["plots"] == ["gains.png"]
    text = markdown.read_text()
    assert text.startswith("# Title\n\nAbout.\n\n- A finding.\n\n**Runs**")
    assert "![gains](gains.png)" in text
