"""Hostile texts in reports: no page runs or requests anything, and all pages have the same policy."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

import corank
from corank.cli import app
from corank.comparison.outcomes import study_html, write
from corank.comparison.report import CONTENT_POLICY, Report, page
from corank.tables import ReportTable
from experiments.index_page import ExperimentRun, write_index
from helpers.files import files
from helpers.page_reader import Page
from helpers.study import HOSTILE, full_study, hostile_study, unfinished_study

TABLE = ReportTable(HOSTILE, (HOSTILE, "b"), ((HOSTILE, 1.0),), note=HOSTILE)
REPORT = Report(HOSTILE, HOSTILE, (TABLE,), (HOSTILE,))


def index(folder: Path) -> str:
    runs = [ExperimentRun("bounds", HOSTILE, "bounds", REPORT), ExperimentRun("lcra", "b", "lcra", None, HOSTILE)]
    return write_index(runs, folder, "index")[0].read_text(encoding="utf-8")


def screening(folder: Path) -> str:
    pytest.importorskip("matplotlib")
    source = files(folder) / "<script>.csv"
    (folder / "records.csv").rename(source)
    done = CliRunner().invoke(app, ["screen", "replay", str(source), "--starts", "1", "-o", str(folder / "out")])
    assert done.exit_code == 0, done.output
    return (folder / "out" / "report.html").read_text(encoding="utf-8")


PAGES = {
    "empty": lambda _: page("t", ""),
    "report": lambda _: REPORT.html(),
    "study": lambda _: study_html(full_study(20)),
    "unfinished study": lambda _: study_html(unfinished_study()),
    "hostile study": lambda _: study_html(hostile_study()),
    "index of experiments": index,
    "screening": screening,
}


@pytest.mark.parametrize("name", PAGES)
def test_every_page_has_the_policy_and_runs_nothing(name, tmp_path):
    text = PAGES[name](tmp_path)
    found = Page(text)
    metas = [tag for tag, _ in found.tags].index("meta")
    policies = [meta for meta in found.all("meta") if meta.get("http-equiv") == "Content-Security-Policy"]
    assert [one["content"] for one in policies] == [CONTENT_POLICY]
    assert found.tags[metas + 2][1] == policies[0]  # before anything that it governs
    assert not found.all("script")
    for tag, attributes in found.tags:
        assert not any(attribute.startswith("on") for attribute in attributes), tag
        for address in (attributes.get(name) for name in ("src", "href", "xlink:href", "action")):
            assert address is None or address.startswith(("#", "data:image/png;base64,")) or address == "data:,"


def test_pages_are_made_in_one_place():
    """A document with another head would lack the policy."""
    sources = [path for root in ("corank", "experiments") for path in _root(root).rglob("*.py")]
    assert len(sources) > 100
    making = [
        path.name
        for path in sources
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and re.search("<!doctype|<html", node.value)
    ]
    assert set(making) == {"report.py"}


def _root(name: str) -> Path:
    source = Path(corank.__file__).parent
    return source if name == "corank" else Path(__file__).parents[3] / name


def test_markdown_of_a_hostile_study_has_no_html_link_or_image(tmp_path):
    parser = pytest.importorskip("markdown_it").MarkdownIt("commonmark", {"html": True}).enable("table")
    _, markdown = write(hostile_study(), tmp_path)
    for text in (markdown.read_text(encoding="utf-8"), REPORT.markdown()):
        tokens = [one for token in parser.parse(text) for one in (token, *(token.children or ()))]
        kinds = {token.type for token in tokens}
        assert not kinds & {"html_inline", "html_block", "link_open", "code_inline", "image"}
        assert "\u202e" not in text
