from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from corank.experiments.report import Report, Table

TABLE = Table(
    "Runs", ("method", "MAP", "n"), (("SPD", 0.12345, 3), ("none", float("nan"), None)), digits=2, note="A note."
)


def test_markdown_shows_every_cell_once():
    lines = TABLE.markdown().splitlines()
    assert lines[2:6] == ["| method | MAP | n |", "|---|---:|---:|", "| SPD | 0.12 | 3 |", "| none |  |  |"]
    assert lines[-1] == "A note."


def test_rich_prints_the_same_cells():
    console = Console(width=100, record=True, file=io.StringIO())
    console.print(TABLE.rich())
    text = console.export_text()
    assert "SPD" in text
    assert "0.12" in text
    assert "A note." in text


def test_a_ragged_row_is_refused():
    with pytest.raises(ValueError, match="row of 1 cells"):
        Table("t", ("a", "b"), (("x",),))


def test_write_makes_valid_json_and_markdown(tmp_path):
    report = Report("Title", "About.", (TABLE,), ("A finding.",), (Path("folder/gains.png"),))
    markdown, data = report.write(tmp_path)
    record = json.loads(data.read_text(), parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    assert record["tables"][0]["rows"] == [["SPD", 0.12345, 3], ["none", None, None]]
    assert record["plots"] == ["gains.png"]
    text = markdown.read_text()
    assert text.startswith("# Title\n\nAbout.\n\n**Runs**")
    assert "- A finding." in text
    assert "![gains](gains.png)" in text
