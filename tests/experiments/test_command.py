from __future__ import annotations

import json
import re
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType

import pytest
from typer.testing import CliRunner

import experiments
from corank.comparison.report import Report
from corank.errors import InputError, import_extra
from corank.tables import ReportTable
from experiments.command import app
from helpers.page_reader import Page


def made(name):
    """A module that no file holds."""
    module = ModuleType(name)
    module.__spec__ = ModuleSpec(name, None)
    return module


@pytest.fixture
def tiny(monkeypatch):
    module = made("tiny_experiment")
    module.calls = []

    def run(settings):
        value = settings.result({"cell": settings.quick}, lambda: module.calls.append(1) or 0.25)
        return Report(
            "Tiny", f"seed {settings.seed}", (ReportTable("T", ("n", "value"), ((settings.repeats, value),)),)
        )

    module.run = run
    monkeypatch.setitem(sys.modules, "tiny_experiment", module)
    monkeypatch.setitem(experiments.EXPERIMENTS, "tiny", "tiny_experiment")
    return module


def test_it_prints_and_writes_the_report_and_goes_on_where_it_ended(tiny, tmp_path):
    words = ["tiny", "--quick", "--seed", "3", "--repeats", "2", "-o", str(tmp_path / "out")]
    for _ in range(2):
        result = CliRunner().invoke(app, words)
        assert result.exit_code == 0, result.output
        assert "seed 3" in result.output
        assert "0.2500" in result.output
    assert len(tiny.calls) == 1
    assert json.loads((tmp_path / "out" / "report.json").read_text())["tables"][0]["rows"] == [[2, 0.25]]


def test_stored_results_are_printed_without_data():
    result = CliRunner().invoke(app, ["gp-spiral", "--stored"])
    assert result.exit_code == 0, result.output
    assert "python -m experiments gp-spiral" in result.output
    assert "semi-supervised" in result.output


def test_names_are_listed(tiny):
    assert CliRunner().invoke(app, []).output.split() == list(experiments.EXPERIMENTS)


def test_what_each_asks_is_listed_without_importing_it(tiny, monkeypatch):
    monkeypatch.setattr(experiments, "EXPERIMENTS", {"lcra": "experiments.lcra.run"})
    monkeypatch.delitem(sys.modules, "experiments.lcra.run", raising=False)
    said = CliRunner().invoke(app, ["--list"]).output
    assert "experiments.lcra.run" not in sys.modules
    assert said.split()[:2] == ["experiment", "question"]
    assert said.splitlines()[1].startswith("lcra")
    assert "Does agreement of views on unjudged rows help?" in said


@pytest.fixture
def three(tiny, monkeypatch):
    """Experiments of which the second has no data and the third no library."""
    lost, bare = made("lost_experiment"), made("bare_experiment")

    def run(settings):
        settings.result({"cell": 0}, lambda: 1)
        raise InputError("part.txt of data set lost is not in data; set CORANK_DATA.")

    lost.run = run
    bare.run = lambda settings: import_extra("no_such_library", "report")
    for name, module in (("lost", lost), ("bare", bare)):
        monkeypatch.setitem(sys.modules, f"{name}_experiment", module)
    names = {name: f"{name}_experiment" for name in ("tiny", "lost", "bare")}
    monkeypatch.setattr(experiments, "EXPERIMENTS", names)
    return tiny


def test_all_of_them_stand_on_one_page_and_what_cannot_be_run_is_named(three, tmp_path):
    words = ["all", "--quick", "--seed", "3", "-o", str(tmp_path / "out")]
    for _ in range(2):
        result = CliRunner().invoke(app, words)
        assert result.exit_code == 1
        assert "2 of 3 experiments were not run: lost, bare." in result.stderr
    assert len(three.calls) == 1  # the second run knew the result
    page = Page((tmp_path / "out" / "index-quick.html").read_text(encoding="utf-8"))
    assert [row[0] for row in page.tables[0].rows] == ["tiny", "lost", "bare"]
    assert page.table("T").rows == [["", "0.2500"]]
    assert page.text_of("h2") == ["Tiny", "lost", "bare"]
    assert page.text_of("code")[0] == "python -m experiments tiny --quick --seed 3"
    said = page.text_of("p")
    assert "Not run: part.txt of data set lost is not in data; set CORANK_DATA." in said
    assert any("pip install 'corank[report]'" in text for text in said)
    assert (tmp_path / "out" / "tiny-quick" / "report.html").is_file()
    markdown = (tmp_path / "out" / "index-quick.md").read_text(encoding="utf-8")
    assert "    python -m experiments tiny --quick --seed 3" in markdown


def test_when_all_could_be_run_the_code_is_0(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr(experiments, "EXPERIMENTS", {"tiny": "tiny_experiment"})
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["all"])
    assert result.exit_code == 0, result.output
    assert (tmp_path / "out/experiments/index.html").is_file()
    assert (tmp_path / "out/experiments/tiny/report.json").is_file()  # where a run alone keeps it


def test_pictures_are_in_the_page_and_found_from_the_markdown(tiny, tmp_path, monkeypatch):
    def run(settings):
        picture = settings.folder / "gains.png"
        picture.write_bytes(b"\x89PNG")
        return Report("Tiny", "about", (), (), (picture,))

    tiny.run = run
    monkeypatch.setattr(experiments, "EXPERIMENTS", {"tiny": "tiny_experiment"})
    assert CliRunner().invoke(app, ["all", "-o", str(tmp_path)]).exit_code == 0
    (image,) = Page((tmp_path / "index.html").read_text(encoding="utf-8")).all("img")
    assert image["src"] == "data:image/png;base64,iVBORw=="
    (name,) = re.findall(r"!\[gains\]\((.*)\)", (tmp_path / "index.md").read_text(encoding="utf-8"))
    assert (tmp_path / name).is_file()


def test_an_unknown_name_leaves_no_folder(tmp_path):
    result = CliRunner().invoke(app, ["none", "-o", str(tmp_path / "out")])
    assert isinstance(result.exception, InputError)
    assert not (tmp_path / "out").exists()


def test_on_a_terminal_a_bar_counts_results(tiny, tmp_path, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")

    def run(settings):
        settings.expect(2)
        settings.expect(1)
        for cell in range(3):
            settings.result({"cell": cell}, lambda: 0)
        return Report("Tiny", "about", ())

    tiny.run = run
    result = CliRunner().invoke(app, ["tiny", "-o", str(tmp_path / "out")])
    assert result.exit_code == 0, result.output
    assert "3/3" in result.stderr
