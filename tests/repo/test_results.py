"""docs/results.md agrees with the pages of the experiments and their commands."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

from experiments import EXPERIMENTS

ROOT = Path(__file__).parents[2]
RESULTS = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def make_results():
    spec = importlib.util.spec_from_file_location("make_results", ROOT / "docs" / "make_results.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_it_is_up_to_date(make_results):
    assert make_results.full_results() == RESULTS, "run: python docs/make_results.py"


def test_every_experiment_has_its_results():
    named = set(re.findall(r"^    python -m experiments (\S+)", RESULTS, flags=re.MULTILINE))
    assert set(EXPERIMENTS) <= named


def test_every_page_is_there_with_a_command_and_its_words():
    sections = RESULTS.split("\n## ")[1:]
    pages = sorted((ROOT / "docs" / "experiments").glob("*.md"))
    assert len(sections) == len(pages)
    for section, page in zip(sections, pages, strict=True):
        heading, *lines = section.splitlines()
        assert heading.endswith(f"](experiments/{page.name})")
        assert any(re.match("    (corank|python) ", line) for line in lines)
        # word for word: every line of prose stands on the page
        own = re.sub(r"<!--=.*?-->", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        own = own.replace("](", "](experiments/")
        assert all(line in own for line in lines if not line.startswith("    "))


def test_links_lead_somewhere():
    links = re.findall(r"\]\(([^)#]+)\)", RESULTS)
    assert links
    assert not [link for link in links if not (ROOT / "docs" / link).exists()]


def test_what_ends_the_words_of_a_page(make_results):
    page = "# T\n\nMade by `python -m experiments a\n--quick`.\n\n**How to read it.**\n\n- one\n\ntwo [x](y.md)\n\n"
    for end in ("## More", "| a |", "![x](y.png)", "**Table**", "<!-- results a -->"):
        assert make_results.findings(page + end + "\n\nno") == "- one\n\ntwo [x](experiments/y.md)"
    assert make_results.commands(page) == ["python -m experiments a --quick"]
    assert make_results.findings("# nothing") == ""
