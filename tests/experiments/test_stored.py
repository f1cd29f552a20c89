"""Stored results: what a rerun compares, and what --store refuses and writes."""

from __future__ import annotations

import sys
from dataclasses import replace
from importlib.machinery import ModuleSpec
from types import ModuleType

import numpy as np
import pytest
from typer.testing import CliRunner

import experiments
from corank.comparison.report import Report
from corank.errors import InputError
from corank.tables import ReportTable
from experiments import command, pages, stored
from experiments.command import QUICK, app
from experiments.options import ExperimentOptions
from experiments.stored import StoredResults, differences, keep, spreads


def results_of(values, seconds=1.0):
    report = Report("T", "about", (ReportTable("Means", ("method", "AP"), (("a", float(np.mean(values))),)),))
    found = spreads([({"method": "a", "fold": at}, {"AP": value, "cpu": at}) for at, value in enumerate(values)])
    return StoredResults("tiny", "c", "abc", "2026-01-02", 0, None, {}, "m", seconds, report, found)


def test_a_difference_beyond_the_spread_over_repeats_is_reported():
    old = results_of([0.4, 0.5, 0.6])
    assert differences(old, old) == []
    assert differences(old, results_of([0.45, 0.55, 0.65])) == ["1 of 2 table cells are printed otherwise than before."]
    far, cells = differences(old, results_of([0.55, 0.65, 0.75]))
    assert far == "method=a AP: 0.5 stored, 0.65 now, spread over repeats 0.1"
    assert cells.startswith("1 of 2")


def test_times_are_not_compared():
    old = results_of([0.5, 0.5])
    slow = replace(old, spreads={"method=a": {**old.spreads["method=a"], "cpu": (99.0, 0.1, 2)}})
    assert differences(old, slow) == []


def test_results_are_grouped_by_all_but_the_repeat():
    found = spreads([({"way": way, "repeat": r}, [float(r), 2.0 * r]) for way in "ab" for r in range(3)])
    assert found == {f"way={way}": {"": (1.5, 1.5, 3)} for way in "ab"}
    assert spreads([({"way": "a"}, 1.0), ({"way": "b"}, 2.0)]) == {}  # nothing was repeated


def test_plots_and_results_are_replaced(tmp_path, monkeypatch):
    monkeypatch.setattr(stored, "FOLDER", tmp_path / "results")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "gains.png").write_bytes(b"\x89PNG")
    new = results_of([0.5, 0.6])
    new = replace(new, report=replace(new.report, plots=(tmp_path / "out" / "gains.png",)))
    for _ in range(2):
        assert keep(new, tmp_path)[:-1] == ["no figure differs from the stored ones."]
        assert (tmp_path / "gains.png").read_bytes() == b"\x89PNG"
    assert StoredResults.read("tiny", tmp_path / "results").report.plots[0].name == "gains.png"


def test_seconds_of_nested_results_count_once(tmp_path, monkeypatch):
    clock = iter([0.0, 1.0, 4.0, 9.0])  # outer begins, inner begins, inner ends, outer ends
    monkeypatch.setattr("experiments.options._processor_seconds", lambda: next(clock))
    options = ExperimentOptions(tmp_path, commit="abc")
    options.result({"outer": 1}, lambda: options.result({"inner": 1}, lambda: 2))
    assert options.seconds == 9.0
    again = ExperimentOptions(tmp_path, commit="def")
    again.result({"inner": 1}, lambda: pytest.fail("known"))
    assert (again.seconds, again.commits) == (3.0, ["abc"])
    strict = ExperimentOptions(tmp_path, commit="def", reuse=False)
    monkeypatch.setattr("experiments.options._processor_seconds", lambda: 0.0)
    assert strict.result({"inner": 1}, lambda: 5) == 5  # the result of another commit does not count
    assert strict.commits == ["def"]


@pytest.fixture
def tiny(monkeypatch, tmp_path):
    module = ModuleType("tiny_experiment")
    module.__spec__ = ModuleSpec("tiny_experiment", None)

    def run(options):
        """
        Run it.

        options: 2 repeats; quick runs make 1, of
            two sets.
        """
        values = [options.result({"repeat": r}, lambda r=r: r / 10) for r in range(options.repeats or 2)]
        return Report("Tiny", "about", (ReportTable("T", ("n", "mean"), ((len(values), float(np.mean(values))),)),))

    module.run = run
    monkeypatch.setitem(sys.modules, "tiny_experiment", module)
    monkeypatch.setattr(experiments, "EXPERIMENTS", {"tiny": "tiny_experiment"})
    monkeypatch.setattr(stored, "FOLDER", tmp_path / "results")
    monkeypatch.setattr(pages, "fill_pages", lambda: print("filled"))
    monkeypatch.setattr(stored, "code_commit", lambda: "abc")
    return tmp_path


def test_store_keeps_the_results_and_their_repeats(tiny):
    run = CliRunner()
    first = run.invoke(app, ["tiny", "--store", "--repeats", "3", "-o", str(tiny / "out")])
    assert first.exit_code == 0, first.output
    assert "filled" in first.output
    found = StoredResults.read("tiny", tiny / "results")
    assert (found.commit, found.repeats, found.command) == ("abc", 3, "python -m experiments tiny --repeats 3")
    assert found.report.tables[0].rows == ((3, 0.1),)
    assert set(found.versions) >= {"corank", "numpy"}
    # the next run has as many repeats
    second = run.invoke(app, ["all", "--store", "-o", str(tiny / "out")])
    assert second.exit_code == 0, second.output
    assert "tiny: about" in second.output
    assert "no figure differs" in second.output
    assert StoredResults.read("tiny", tiny / "results").repeats == 3


def test_an_experiment_without_trials_has_a_commit_and_a_time(tiny, monkeypatch):
    clock = iter([1.0, 3.5])
    monkeypatch.setattr(command, "process_time", lambda: next(clock))
    sys.modules["tiny_experiment"].run = lambda options: Report("Tiny", "about", ())
    assert CliRunner().invoke(app, ["tiny", "--store", "-o", str(tiny / "out")]).exit_code == 0
    found = StoredResults.read("tiny", tiny / "results")
    assert (found.commit, found.seconds) == ("abc", 2.5)


def test_uncommitted_code_and_quick_runs_are_not_stored(tiny, monkeypatch):
    monkeypatch.setattr(stored, "code_commit", lambda: "abc+")
    for words, message in ((["--store"], "uncommitted changes"), (["--store", "--quick"], "leave one of them out")):
        result = CliRunner().invoke(app, ["tiny", *words, "-o", str(tiny / "out")])
        assert isinstance(result.exception, InputError)
        assert message in str(result.exception)
    assert not (tiny / "results").exists()


def test_a_quick_run_says_what_it_cannot_show(tiny):
    result = CliRunner().invoke(app, ["tiny", "--quick", "-o", str(tiny / "out")])
    assert result.exit_code == 0, result.output
    text = (tiny / "out" / "report.md").read_text(encoding="utf-8")
    assert f"Quick runs make 1, of two sets. {QUICK} about" in text


@pytest.mark.parametrize("name", experiments.EXPERIMENTS)
def test_every_experiment_says_what_its_quick_runs_leave_out(name):
    note = command._quick_note(experiments.find(name))
    assert note.startswith("Quick runs ") or name == "gp-spiral"  # which has no shorter form
