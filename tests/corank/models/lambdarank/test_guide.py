"""The table in the guide agrees with `check_lambda`."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from corank.models import check_lambda
from corank.models.lambdarank import LAMBDAS, Lambda

GUIDE = (Path(__file__).parents[4] / "docs" / "guide" / "lambdarank.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| `([^`]+)` \| (yes|no) \| (yes|no) \|", GUIDE, flags=re.MULTILINE)


def test_the_table_lists_the_registry():
    assert set(LAMBDAS) <= {term.name for text, *_ in ROWS for term in Lambda.of(text).terms}


@pytest.mark.thin(7)
@pytest.mark.parametrize(("text", "conservative", "convex"), ROWS)
def test_the_table_is_true(text, conservative, convex):
    result = check_lambda(text, n_points=15)
    assert (result.conservative, result.convex) == (conservative == "yes", convex == "yes")


def test_the_ratios_of_equation_1_are_true():
    """λ of the relevant documents at ranks 2 and 1000, for scores from 5 down to −5."""
    rows = re.findall(r"^\| `([^`]+)` \| (\S+) \| (\S+) \| (\S+) \|$", GUIDE, flags=re.MULTILINE)
    assert rows
    y = np.zeros(1000)
    y[[1, 999]] = 1
    for name, *figures in rows:
        lambdas = Lambda.of(name)(np.linspace(5, -5, 1000), y)
        found = lambdas[1], lambdas[999], lambdas[1] / lambdas[999]
        np.testing.assert_allclose(found, [float(figure) for figure in figures], rtol=0.08)
