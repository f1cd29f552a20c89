"""What README and the guides show runs as shown, and every public name exists."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
GUIDES = sorted((ROOT / "docs" / "guide").glob("*.md"))


def python_blocks(path):
    return re.findall(r"```python\n(.*?)```", path.read_text(encoding="utf-8"), flags=re.DOTALL)


def test_the_example_of_the_readme_runs(capsys, monkeypatch, tmp_path):
    (example,) = python_blocks(ROOT / "README.md")
    monkeypatch.chdir(tmp_path)  # it may save a model
    exec(compile(example, "README.md", "exec"), {})
    said = capsys.readouterr().out
    assert re.search(r"^nDCG@10 +0\.\d{4} ", said, flags=re.MULTILINE)
    assert "convention corank; " in said


@pytest.mark.parametrize("path", GUIDES, ids=lambda path: path.stem)
def test_the_sessions_of_the_guides_answer_as_printed(path):
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    outcome = doctest.testfile(str(path), module_relative=False, optionflags=flags, encoding="utf-8")
    assert outcome.failed == 0


def test_the_guide_to_data_is_a_session():
    blocks = python_blocks(ROOT / "docs" / "guide" / "data.md")
    assert len(blocks) > 5
    assert all(block.startswith(">>> ") for block in blocks)


def test_the_example_of_the_guide_to_metrics_runs():
    (example,) = python_blocks(ROOT / "docs" / "guide" / "metrics.md")
    exec(compile(example, "metrics.md", "exec"), {"y": [2, 0, 1], "scores": [0.3, 0.2, 0.1], "qid": [1, 1, 1]})
