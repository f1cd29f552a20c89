from __future__ import annotations

import json
import sys
from types import ModuleType

import pytest
from typer.testing import CliRunner

from corank import experiments
from corank.cli import app
from corank.errors import InputError
from corank.report import Report, ReportTable


@pytest.fixture
def tiny(monkeypatch):
    module = ModuleType("tiny_experiment")
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
    words = ["experiment", "tiny", "--quick", "--seed", "3", "--repeats", "2", "-o", str(tmp_path / "out")]
    for _ in range(2):
        result = CliRunner().invoke(app, words)
        assert result.exit_code == 0, result.output
        assert "seed 3" in result.output
        assert "0.2500" in result.output
    assert len(tiny.calls) == 1
    assert json.loads((tmp_path / "out" / "report.json").read_text())["tables"][0]["rows"] == [[2, 0.25]]


def test_names_are_listed(tiny):
    assert CliRunner().invoke(app, ["experiment"]).output.split() == list(experiments.EXPERIMENTS)


def test_an_unknown_name_leaves_no_folder(tmp_path):
    result = CliRunner().invoke(app, ["experiment", "none", "-o", str(tmp_path / "out")])
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
    result = CliRunner().invoke(app, ["experiment", "tiny", "-o", str(tmp_path / "out")])
    assert result.exit_code == 0, result.output
    assert "3/3" in result.stderr
