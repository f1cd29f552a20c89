"""Every example runs without any data of others and draws its picture; the gallery of the site shows each."""

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
    environment = dict(os.environ, MPLBACKEND="agg")
    environment.pop("CORANK_DATA", None)
    subprocess.run([sys.executable, path, picture], check=True, cwd=tmp_path, env=environment, timeout=300)
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_there_are_examples():
    assert EXAMPLES
