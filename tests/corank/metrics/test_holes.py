"""Holes of runs: judged@k, condensed values, and bounds against the enumeration of all grades of unjudged documents."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from corank.errors import UsageWarning
from corank.metrics import compare_runs, evaluate, evaluate_run

RUN = {"q1": {"a": 5.0, "b": 4.0, "c": 3.0, "d": 2.0, "e": 1.0}, "q2": {"a": 3.0, "f": 2.0, "g": 1.0}}
QRELS = {"q1": {"a": 1, "c": 2, "x": 1}, "q2": {"f": 1, "g": 0}}


@pytest.mark.parametrize("convention", ["corank", "trec_eval"])
@pytest.mark.parametrize("metric", ["P@3", "RR", "DCG@3", "RBP", "Success@1"])
def test_no_grades_of_unjudged_documents_lie_beyond_the_bounds(metric, convention):
    found = evaluate_run(QRELS, RUN, metric, convention=convention)
    holes = found.holes(metric)
    values = []
    for b, d, e, a in product((0, 1, 2), repeat=4):  # d and e are below rank 3, where only RBP and RR look
        full = {"q1": {**QRELS["q1"], "b": b, "d": d, "e": e}, "q2": {**QRELS["q2"], "a": a}}
        values.append(evaluate_run(full, RUN, metric, convention=convention)[metric].values)
    np.testing.assert_allclose(holes.low, np.min(values, axis=0))
    np.testing.assert_allclose(holes.high, np.max(values, axis=0))


def test_judged_at_k_and_condensed_values():
    found = evaluate_run(QRELS, RUN, ["nDCG@3", "AP"], convention="trec_eval")
    holes = found.holes("ndcg@3")
    np.testing.assert_allclose(holes.judged, [2 / 3, 2 / 3])
    np.testing.assert_allclose(found.holes("AP").judged, [2 / 5, 2 / 3])
    condensed = {q: {d: s for d, s in row.items() if d in QRELS[q]} for q, row in RUN.items()}
    again = evaluate_run(QRELS, condensed, "nDCG@3", convention="trec_eval")
    np.testing.assert_allclose(holes.condensed, again["nDCG@3"].values)
    assert (holes.low <= found["nDCG@3"].values).all()
    assert (found["nDCG@3"].values <= holes.high).all()
    assert evaluate([1, 0], [1.0, 2.0], metrics="AP").holes("AP") is None


def test_a_difference_smaller_than_the_holes_is_said():
    other = {"q1": {"c": 5.0, "a": 4.0, "b": 3.0}, "q2": {"f": 3.0, "g": 2.0}}
    runs = {name: evaluate_run(QRELS, run, "nDCG@3") for name, run in (("old", RUN), ("new", other))}
    with pytest.warns(UsageWarning, match=r"judged\); judge the top"):
        compare_runs(runs, "nDCG@3")
    full = {q: {**dict.fromkeys(row, 0), **QRELS[q]} for q, row in RUN.items()}
    compare_runs({name: evaluate_run(full, run, "nDCG@3") for name, run in (("old", RUN), ("new", other))}, "nDCG@3")
