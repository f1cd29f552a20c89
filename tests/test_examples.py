"""Every example runs and draws its picture, some only where real data are at hand."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.py"))
NEED_DATA = {"plot_rankrls_path"}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_it_draws(path, tmp_path):
    picture = tmp_path / "picture.png"
    environment = dict(os.environ, MPLBACKEND="agg")
    if path.stem not in NEED_DATA:
        environment.pop("CORANK_DATA", None)
    elif "CORANK_DATA" not in environment:
        pytest.skip("needs CORANK_DATA")
    subprocess.run([sys.executable, path, picture], check=True, cwd=tmp_path, env=environment, timeout=300)
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_there_are_examples():
    assert EXAMPLES
