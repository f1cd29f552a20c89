from __future__ import annotations

import numpy as np
import pytest

from corank.data.queries import Queries
from experiments.bounds import coverage
from experiments.bounds.populations import Lists, Rows
from experiments.options import ExperimentOptions


@pytest.fixture
def small(monkeypatch):
    rng = np.random.default_rng(0)
    X, grades = rng.normal(size=(300, 3)), np.arange(300) % coverage.N_GRADES
    X[:, 0] += grades
    lists = Lists(X, grades.astype(float), Queries.of(np.repeat(np.arange(60), 5), 300))
    monkeypatch.setattr(coverage, "POPULATIONS", {"lists": lambda: lists})
    monkeypatch.setattr(coverage, "LISTS", [("lists", 20, 0.0)])
    monkeypatch.setattr(coverage, "ROWS", [(shares, 40, 0.0) for shares in ("observed", "unknown", "given")])
    monkeypatch.setattr(coverage, "houses", lambda: Rows(X, grades))
    monkeypatch.setattr(coverage, "N_SAMPLES", 3)


def test_the_report_has_coverage_and_width_of_what_each_method_supports(small, tmp_path):
    table = coverage.run(ExperimentOptions(tmp_path, repeats=2)).tables[0]
    assert [row[0] for row in table.rows] == [
        "lists, queries",
        *(f"Boston, rows, shares {s}" for s in ("observed", "unknown", "given")),
    ]
    for row in table.rows:
        supported = [cell != "" for cell in row[3:6]]
        assert supported == [True, row[0].endswith(("queries", "observed")), not row[0].endswith("given")]
        held, widths = [c for c in row[3:6] if c != ""], [c for c in row[6:] if c != ""]
        assert all(0 <= share <= 1 for share in held)
        assert all(width > 0 for width in widths)
        if len(widths) == 3:
            assert widths[1] > widths[0]  # the proved interval is wider
