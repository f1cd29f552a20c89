"""The benchmark history stores figures with their context; a failed benchmark stores none."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def record(tmp_path, monkeypatch):
    spec = importlib.util.spec_from_file_location("record", ROOT / "benchmarks" / "record.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    (tmp_path / "history").mkdir()
    monkeypatch.setattr(module, "commit", lambda: "abc1234")
    monkeypatch.setattr(module, "HERE", tmp_path)
    return module


def test_each_figure_is_one_line_with_its_context(record, tmp_path, capsys):
    (tmp_path / "bench_toy.py").write_text(
        'import sys\nprint(\'a remark\')\nprint(\'{"figure": "steps", "seconds": 0.5}\')\nprint(sys.argv[1])\n'
    )
    record.main("toy", "[1, 2]")
    record.main("toy", "--quick")
    lines = [json.loads(line) for line in (tmp_path / "history" / "toy.json").read_text().splitlines()]
    assert [line["arguments"] for line in lines] == [["[1, 2]"], ["--quick"]]
    assert all(line["figure"] == "steps" and line["commit"] == "abc1234" for line in lines)
    assert set(lines[0]["versions"]) == set(record.LIBRARIES)
    assert "a remark" in capsys.readouterr().out


def test_a_benchmark_that_fails_leaves_no_line(record, tmp_path):
    (tmp_path / "bench_toy.py").write_text("print('{\"figure\": 1}')\nraise SystemExit(3)\n")
    with pytest.raises(SystemExit) as stop:
        record.main("toy")
    assert stop.value.code == 3
    assert not (tmp_path / "history" / "toy.json").exists()


@pytest.mark.parametrize("path", sorted((ROOT / "benchmarks" / "history").glob("*.json")), ids=lambda path: path.stem)
def test_stored_figures_can_be_read(path):
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert lines
    assert (ROOT / "benchmarks" / f"bench_{path.stem}.py").is_file()
    for line in lines:
        assert {"commit", "date", "arguments", "versions", "processor"} < line.keys()
