from __future__ import annotations

import pytest

from corank import check_lambda
from corank.errors import InputError


def test_the_verdict_is_printed(says):
    said = says("check-lambda", "margin(2)", "--labels", "1,0", "--points", "10")
    assert said == f"{check_lambda('margin(2)', [1, 0], n_points=10)}\n"
    assert said.startswith("margin(delta=2): a cost exists; not convex.")


def test_a_function_that_stands_here(says, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "whirl_of_forces.py").write_text("def whirl(s, y):\n    return [-s[1], s[0]] + [0.0] * (len(s) - 2)\n")
    said = says("check-lambda", "whirl_of_forces:whirl", "--labels", "2,1,0", "--points", "5", "--plot", "whirl.png")
    assert "whirl_of_forces:whirl: no cost has these slopes" in said
    assert (tmp_path / "whirl.png").exists()
    with pytest.raises(InputError, match=r"whirl\.png"):
        says("check-lambda", "ranknet", "--plot", "whirl.png")


def test_bad_words(says):
    with pytest.raises(InputError, match="--labels is '2;1'; write grades separated by commas"):
        says("check-lambda", "ranknet", "--labels", "2;1")
    with pytest.raises(InputError, match="no known λ 'ndgc'"):
        says("check-lambda", "ndgc")
