"""The table of docs/experiments/engines.md: every comparison with a real engine is a row."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

PAGE = Path(__file__).parents[2] / "docs" / "experiments" / "engines.md"
BEGIN, END = "<!-- table written by make engines -->\n", "<!-- end of table -->"
ROWS = []


def pytest_collection_modifyitems(items):
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.engines)


@pytest.fixture
def compare():
    """Return a function that counts pairs which an engine orders against corank, and notes a row of the table."""

    def compare(engine, what, lists, *, tolerance):
        """
        Compare scores of the same documents; no pair may change, and no score differ by more than the tolerance.

        lists: for each query, corank's scores and the engine's, as two arrays.
        tolerance: relative to the largest score.
        """
        n = changed = 0
        largest = 0.0
        for expected, actual in lists:
            expected, actual = np.asarray(expected, float), np.asarray(actual, float)
            assert len(expected) == len(actual) > 1
            slack = tolerance * np.abs(expected).max()
            gap, other = (np.subtract.outer(scores, scores) for scores in (expected, actual))
            changed += int(((gap > 2 * slack) & (other <= 0)).sum())
            largest = max(largest, float(np.abs(expected - actual).max() / np.abs(expected).max()))
            n += len(expected)
        ROWS.append((engine, what, n, changed, largest))
        assert changed == 0, f"{changed} pairs, largest difference {largest}"
        assert largest <= tolerance

    return compare


def pytest_sessionfinish(session):
    if os.environ.get("CORANK_ENGINES_TABLE") and ROWS and not session.testsfailed:
        lines = [
            "| engine | model or fusion | documents | changed pairs | largest difference |",
            "|" + "---|" * 5,
        ]
        lines += [f"| {engine} | {what} | {n:,} | {changed} | {gap:.0e} |" for engine, what, n, changed, gap in ROWS]
        before, _, rest = PAGE.read_text().partition(BEGIN)
        PAGE.write_text(before + BEGIN + "\n" + "\n".join(lines) + "\n\n" + END + rest.partition(END)[2])
