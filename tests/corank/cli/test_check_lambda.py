from __future__ import annotations

import inspect

import pytest

from corank.cli.research import check_lambda as command
from corank.errors import InputError
from corank.models import check_lambda
from corank.models.lambdarank import LAMBDAS


def test_the_result_is_printed(says):
    said = says("check-lambda", "margin(2)", "--labels", "1,0", "--points", "10")
    assert said == f"{check_lambda('margin(2)', [1, 0], n_points=10)}\n"
    assert said.startswith("margin(delta=2): a cost exists; not convex.")


def test_a_function_in_the_working_directory(says, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rotating_field.py").write_text("def whirl(s, y):\n    return [-s[1], s[0]] + [0.0] * (len(s) - 2)\n")
    said = says("check-lambda", "rotating_field:whirl", "--labels", "2,1,0", "--points", "5", "--plot", "whirl.png")
    assert "rotating_field:whirl: no cost has this gradient" in said
    assert (tmp_path / "whirl.png").exists()
    with pytest.raises(InputError, match=r"whirl\.png"):
        says("check-lambda", "ranknet", "--plot", "whirl.png")


def test_the_help_lists_the_registry():
    argument = inspect.signature(command, eval_str=True).parameters["lambdas"].annotation.__metadata__[0]
    assert argument.help.startswith(f"Gradients: {', '.join(LAMBDAS)}, a weighted sum")


def test_bad_words(says):
    with pytest.raises(InputError, match="--labels is '2;1'; write grades separated by commas"):
        says("check-lambda", "ranknet", "--labels", "2;1")
    with pytest.raises(InputError, match="unknown λ 'ndgc'"):
        says("check-lambda", "ndgc")
