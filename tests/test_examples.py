"""Every example runs without any data at hand, and draws its picture."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_it_draws(path, tmp_path):
    picture = tmp_path / "picture.png"
    without_data = {name: value for name, value in os.environ.items() if name != "CORANK_DATA"}
    subprocess.run([sys.executable, path, picture], check=True, cwd=tmp_path, env=without_data, timeout=300)
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_there_are_examples():
    assert EXAMPLES
