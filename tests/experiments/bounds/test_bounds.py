"""The experiment on bounds: true errors of populations by brute force, and the whole on small populations."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from corank import make_ranking
from corank.data.queries import Queries
from experiments.bounds import populations, run
from experiments.bounds.populations import Lists, Rows
from experiments.options import ExperimentOptions

MADE = make_ranking(40, (2, 7), random_state=0)
LISTS = Lists(MADE.X, MADE.y.astype(float), Queries.of(MADE.qid, len(MADE.y)))
ROWS = Rows(MADE.X, np.minimum(MADE.y, 4).astype(int))


def wrong(a, b):
    return 1.0 if a < b else 0.5 if a == b else 0.0


@pytest.mark.parametrize("power", [0.0, 1.0])
def test_the_error_among_rows_of_given_shares(power):
    scores, shares = np.round(ROWS.X[:, 0]), np.array([0.4, 0.3, 0.2, 0.1, 0.0])
    total = pairs = 0.0
    for low, high in combinations(range(5), 2):
        mean = np.mean([wrong(b, a) for a in scores[low == ROWS.y] for b in scores[high == ROWS.y]])
        total += shares[low] * shares[high] * (high - low) ** power * mean
        pairs += shares[low] * shares[high]
    assert ROWS.error(scores, power, shares) == pytest.approx(total / pairs)


def test_the_error_of_a_list():
    scores, found, weighted = LISTS.X[:, 0], [], []
    for query in range(len(LISTS.queries)):
        rows = np.flatnonzero(LISTS.queries.codes == query)
        pairs = [(i, j) for i in rows for j in rows if LISTS.y[i] > LISTS.y[j]]
        gaps = np.array([LISTS.y[i] - LISTS.y[j] for i, j in pairs])
        losses = np.array([wrong(scores[i], scores[j]) for i, j in pairs])
        found += [losses.mean()] if pairs else []
        weighted.append(gaps @ losses / gaps.sum() if pairs else 0.0)
    assert LISTS.error(scores, 0.0) == pytest.approx(np.mean(found))
    assert LISTS.cv_error(scores) == pytest.approx(np.mean(weighted))


def test_lists_are_drawn_whole():
    X, y, qid = LISTS.draw(200, np.random.default_rng(0))
    known = {MADE.X[q == MADE.qid].tobytes() for q in np.unique(MADE.qid)}
    assert {X[qid == q].tobytes() for q in range(200)} <= known
    assert len(y) == len(X)


def test_small_populations_make_a_report(tmp_path, monkeypatch):
    monkeypatch.setattr(run, "LISTS", {"made": (lambda: LISTS, (100,))})
    for module in (run, populations):
        monkeypatch.setattr(module, "houses", lambda: ROWS)
    report = run.run(ExperimentOptions(tmp_path, repeats=3, quick=True))
    held_out, upper, parts = report.tables
    rows = {(row[0], row[2]): row for row in (*held_out.rows, *upper.rows)}
    assert rows["made", "kpartite_interval, power 0"][5] == rows["made", "cv_bound"][5] == 1.0
    assert rows["Boston, rows", "linear_class"][7] == 1.0
    (row,) = parts.rows
    assert rows["made", "cv_bound"][6] == pytest.approx(sum(row[2:]) - rows["made", "cv_bound"][4])
    again = run.run(ExperimentOptions(tmp_path, repeats=3, quick=True))
    assert again.tables == report.tables
