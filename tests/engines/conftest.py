"""The table of docs/experiments/engines.md: every comparison with a real engine is a row."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

PAGE = Path(__file__).parents[2] / "docs" / "experiments" / "engines.md"
BEGIN, END = "<!-- {} written by make engines -->\n", "<!-- end of table -->"
ROWS, LATENCIES = [], []


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


@pytest.fixture
def latency():
    """Return a function that notes milliseconds: the median and the 99th percentile by kind of request."""

    def latency(engine, percentiles):
        LATENCIES.extend((engine, kind, p50, p99) for kind, (p50, p99) in percentiles.items())

    return latency


def pytest_sessionfinish(session):
    if not os.environ.get("CORANK_ENGINES_TABLE") or not ROWS or session.testsfailed:
        return
    rows = [f"| {engine} | {what} | {n:,} | {changed} | {gap:.0e} |" for engine, what, n, changed, gap in ROWS]
    write("table", "| engine | model or fusion | documents | changed pairs | largest difference |", rows)
    rows = [f"| {engine} | {kind} | {p50:.1f} | {p99:.1f} |" for engine, kind, p50, p99 in LATENCIES]
    write("latencies", "| engine | request | p50, ms | p99, ms |", rows)


def write(name, header, rows):
    """Replace one table of the page."""
    lines = "\n".join([header, "|" + "---|" * (header.count("|") - 1), *rows])
    before, mark, rest = PAGE.read_text().partition(BEGIN.format(name))
    PAGE.write_text(f"{before}{mark}\n{lines}\n\n{END}{rest.partition(END)[2]}")
