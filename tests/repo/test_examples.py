"""Every example runs without external data and draws its figure; the gallery lists all."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.py"))
# the others take seconds
SHORT = {"plot_calibrated", "plot_conventions"}


@pytest.mark.parametrize(
    "path",
    [pytest.param(path, id=path.stem, marks=[] if path.stem in SHORT else [pytest.mark.long]) for path in EXAMPLES],
)
def test_it_draws(path, tmp_path, monkeypatch):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    picture = tmp_path / "picture.png"
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CORANK_DATA", raising=False)
    monkeypatch.setattr(sys, "argv", [str(path), str(picture)])
    pyplot.switch_backend("agg")
    with pyplot.rc_context():
        runpy.run_path(str(path), run_name="__main__")
    pyplot.close("all")
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_there_are_examples():
    assert {path.stem for path in EXAMPLES} > SHORT
