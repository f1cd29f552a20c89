from __future__ import annotations

import json

import pytest

from corank.errors import InputError
from experiments.options import ExperimentOptions


def test_a_result_is_computed_once_per_key_and_seed(tmp_path):
    calls = []

    def compute():
        calls.append(1)
        return {"value": len(calls)}

    options = ExperimentOptions(tmp_path)
    assert options.result({"a": 1, "b": 2}, compute) == {"value": 1}
    assert options.result({"b": 2, "a": 1}, compute) == {"value": 1}
    assert options.result({"a": 2, "b": 2}, compute) == {"value": 2}
    assert ExperimentOptions(tmp_path, seed=1).result({"a": 1, "b": 2}, compute) == {"value": 3}
    assert ExperimentOptions(tmp_path).result({"a": 1, "b": 2}, compute) == {"value": 1}


def test_a_line_cut_off_by_a_crash_is_computed_again_and_the_log_stays_readable(tmp_path):
    ExperimentOptions(tmp_path).result({"a": 1}, lambda: [1.5])
    ExperimentOptions(tmp_path).result({"a": 2}, lambda: [2.5])
    log = tmp_path / "results.jsonl"
    log.write_bytes(log.read_bytes()[:-7])
    again = ExperimentOptions(tmp_path)
    assert again.result({"a": 1}, lambda: pytest.fail("known")) == [1.5]
    assert again.result({"a": 2}, lambda: [9.0]) == [9.0]
    assert [json.loads(line)["value"] for line in log.read_text().splitlines()] == [[1.5], [9.0]]


def test_a_failing_computation_leaves_nothing(tmp_path):
    options = ExperimentOptions(tmp_path)
    with pytest.raises(ZeroDivisionError):
        options.result({"a": 1}, lambda: 1 / 0)
    assert options.result({"a": 1}, lambda: 3) == 3


def test_a_damaged_log_is_refused(tmp_path):
    (tmp_path / "results.jsonl").write_text("no json\n")
    with pytest.raises(InputError, match="damaged"):
        ExperimentOptions(tmp_path).result({"a": 1}, lambda: 1)


def test_repeats_must_be_positive(tmp_path):
    with pytest.raises(InputError, match="repeats is 0"):
        ExperimentOptions(tmp_path / "new", repeats=0)
    assert not (tmp_path / "new").exists()


def test_every_different_result_is_told_once_known_or_not(tmp_path):
    told = []
    for _ in range(2):
        options = ExperimentOptions(tmp_path, report_done=told.append)
        for cell in (1, 2, 1):
            options.result({"cell": cell}, lambda: 0)
    assert told == ["1", "2", "1", "2"]
