"""Pages and README show the stored results; marks that lead nowhere are refused."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from corank.comparison.report import Report
from corank.errors import InputError
from corank.tables import ReportTable
from experiments import EXPERIMENTS
from experiments.pages import BLOCK, Filler, like, pages
from experiments.stored import FOLDER, ROOT, StoredResults

PAGES = {path.relative_to(ROOT).as_posix(): path for path in pages()}


@pytest.fixture
def stored(tmp_path):
    """Write a small report, and return its folder."""
    table = ReportTable("Errors, by method", ("method", "set", "AP", "p"),
                        (("A, linear", "one", 0.4729, "1.9e-06"), ("A", "two", 0.25, "-0.02 (p=0.4)")))  # fmt: skip
    other = ReportTable("Errors", ("n", "AP"), ((100, -0.0004),))
    report = Report("T", "about it", (table, other), ("B minus A: -3.5%, p = 0.03.", "C is best."))
    StoredResults("tiny", "python -m experiments tiny", "abc", "2026-01-02", 3, None, {"numpy": "2.0"}, "x86-64", 61.0,
                  report).write(tmp_path)  # fmt: skip
    return tmp_path


@pytest.mark.parametrize("name", PAGES)
def test_a_page_shows_the_stored_results(name):
    text = PAGES[name].read_text(encoding="utf-8")
    assert Filler().fill(text) == text, "run: python -m experiments.pages"


def test_every_stored_experiment_is_on_a_page_with_its_command():
    text = "".join(path.read_text(encoding="utf-8") for name, path in PAGES.items() if name.startswith("docs/exp"))
    shown = {block["name"] for block in BLOCK.finditer(text)}
    assert {path.stem for path in FOLDER.glob("*.json")} <= shown <= set(EXPERIMENTS)
    for path in FOLDER.glob("*.json"):
        assert StoredResults.read(path.stem).provenance in text, path.stem


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.json")), ids=lambda path: path.stem)
def test_stored_results_say_where_they_come_from(path):
    results = StoredResults.read(path.stem)
    assert results.name == path.stem
    assert results.commit
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", results.date)
    assert results.command.startswith(f"python -m experiments {path.stem}")
    # figures of older code are marked as such on the page
    assert (results.versions and results.machine and results.seconds) or "Not measured again" in results.note
    assert path.stat().st_size < 300_000


def test_blocks_and_figures_are_filled(stored):
    text = (
        "AP .1<!--= tiny > Errors, by > A, linear > AP -->, p = 2e-01<!--= tiny > Errors, by > A, linear > p -->, "
        "0.11<!--= tiny > Errors, by > A, two > p\n> p= -->, −1 %<!--= tiny > findings > B minus > A: -->, "
        "+.111<!--= tiny > Errors > 100 > AP; minus tiny > Errors, by > A, two > AP -->, "
        ".1<!--= tiny > Errors, by > A > AP -->\n\n"  # the row A, not the row "A, linear"
        "<!-- results tiny: Errors -->\nold\n<!-- end of results -->\n\n"
        "<!-- results tiny -->\nold\n<!-- end of results -->\n\nend\n"
    )
    filled = Filler(stored).fill(text)
    figures = re.sub("<!--=.*?-->", "", filled.partition("\n\n")[0], flags=re.DOTALL)
    assert figures == "AP .5, p = 2e-06, 0.40, −4 %, −.250, .3"
    first, second = (found[0] for found in BLOCK.finditer(filled))
    assert "| 100 | -0.0004 |" in first
    assert "-0.0004" not in second  # placed above
    assert "| A, linear | one | 0.4729 | 1.9e-06 |" in second
    assert "commit abc; 2026-01-02; seed 3; numpy 2.0; x86-64; 61 s of processor time." in second
    assert "about it" in second
    assert "- C is best." in second
    assert "old" not in filled
    assert filled.endswith("end\n")
    assert Filler(stored).fill(filled) == filled


def test_a_page_may_show_the_provenance_alone(stored):
    filled = Filler(stored).fill("<!-- results tiny: provenance -->\n<!-- end of results -->\n")
    assert filled.splitlines()[2] == StoredResults.read("tiny", stored).provenance
    assert "about it" not in filled


def test_an_experiment_without_results_is_marked(stored):
    text = "<!-- results none -->\nold\n<!-- end of results -->\n"
    filled = Filler(stored).fill(text)
    assert "*Not measured yet: `make experiment NAME=none`.*" in filled
    assert "old" not in filled


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("tiny > Errors, by > A", "must be NAME > TITLE > ROW > COLUMN"),
        ("tiny > Nothing > A > AP", "names 0 places"),
        ("tiny > Err > 100 > AP", "names 2 places"),
        ("tiny > Errors, by > B > AP", "names 0 places"),
        ("tiny > Errors, by > A, linear > nDCG", "names 0 places"),
        ("tiny > findings > C > best", "no number after 'best'"),
        ("tiny > findings > C > worst", "no number after 'worst'"),
        ("none > A > B > C", "run: make experiment NAME=none"),
    ],
)
def test_a_mark_that_leads_nowhere_is_refused(stored, source, message):
    with pytest.raises(InputError, match=re.escape(message)):
        Filler(stored).fill(f"AP .1<!--= {source} -->")


def test_the_style_of_a_figure_is_kept():
    assert like("0.5", 0.0) == "0.0"
    assert like("+.1", -0.04) == "+.0"
    assert like("-0.1", -2.25) == "-2.3"
    assert like("12", 99.5) == "100"
    assert like("5%", 0.123) == "12%"


def test_a_file_is_read_as_it_was_written(stored):
    results = StoredResults.read("tiny", stored)
    assert json.loads((stored / "tiny.json").read_text())["report"]["tables"][1]["rows"] == [[100, -0.0004]]
    before = (stored / "tiny.json").read_bytes()
    replace(results).write(stored)
    assert (stored / "tiny.json").read_bytes() == before
    assert [path.name for path in stored.iterdir()] == ["tiny.json"]


DATED = re.compile(r"[Ff]igures of commit [0-9a-f]{8}, \d{4}-\d\d-\d\d")


@pytest.mark.parametrize("path", sorted((ROOT / "docs" / "experiments").glob("*.md")), ids=lambda path: path.stem)
def test_tables_that_are_not_stored_say_how_old_they_are(path):
    first, *sections = re.split(r"^(?=## )", BLOCK.sub("", path.read_text(encoding="utf-8")), flags=re.MULTILINE)
    for section in (first, *sections):
        if re.search(r"^\|.*\d.*\|$", section, flags=re.MULTILINE):
            dated = DATED.search(section) or DATED.search(first)
            assert dated, f"add to '{section.splitlines()[0]}': *Figures of commit (8 digits), (date).*"
