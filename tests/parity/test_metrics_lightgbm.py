"""The convention `lightgbm` against LightGBM's own ndcg and map, read from an untrained booster."""

from __future__ import annotations

import numpy as np
import pytest

from corank.metrics import evaluate

lightgbm = pytest.importorskip("lightgbm")
DEPTHS = [1, 2, 3, 5, 10, 100]


def by_lightgbm(y, scores, sizes):
    """Metrics of the initial scores: with no tree they are the predictions."""
    quiet = {"verbose": -1, "num_threads": 1}
    rows = np.zeros((len(y), 1))
    train = lightgbm.Dataset(rows, y, group=sizes, init_score=scores, params=quiet)
    held = lightgbm.Dataset(rows, y, group=sizes, init_score=scores, reference=train)
    booster = lightgbm.Booster(
        {"objective": "lambdarank", "metric": ["ndcg", "map"], "eval_at": DEPTHS, **quiet}, train
    )
    booster.add_valid(held, "held")
    return {result[1]: result[2] for result in booster.eval_valid()}


@pytest.mark.parametrize("seed", range(5))
def test_ndcg_and_map_on_ties_short_lists_and_empty_queries(seed):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 25, 60)
    qid = np.repeat(np.arange(60), sizes)
    y = rng.integers(0, 5, len(qid)) * (rng.random(60) < 0.7)[qid]
    scores = rng.integers(0, 6, len(qid)).astype(float)
    expected = by_lightgbm(y, scores, sizes)
    names = [f"{measure}@{k}" for measure in ("nDCG", "AP") for k in DEPTHS]
    found = evaluate(y, scores, qid, names, convention="lightgbm")
    for k in DEPTHS:
        assert found[f"nDCG@{k}"].mean == pytest.approx(expected[f"ndcg@{k}"], abs=1e-9)
        assert found[f"AP@{k}"].mean == pytest.approx(expected[f"map@{k}"], abs=1e-9)
    assert found["nDCG@10"].n_empty > 0
    # a list cut nowhere is the whole list
    whole = evaluate(y, scores, qid, ["nDCG", "AP"], convention="lightgbm")
    assert whole["nDCG"].mean == pytest.approx(expected["ndcg@100"], abs=1e-9)
    assert whole["AP"].mean == pytest.approx(expected["map@100"], abs=1e-9)


def test_the_tie_rule_is_the_order_of_the_input():
    y, scores, sizes = np.array([0, 2, 1]), np.zeros(3), [3]
    expected = by_lightgbm(y, scores, sizes)["ndcg@1"]
    assert expected == 0.0
    assert evaluate(y, scores, None, "nDCG@1", convention="lightgbm")["nDCG@1"].mean == expected
    assert evaluate(y, scores, None, "nDCG@1")["nDCG@1"].mean == pytest.approx((3 + 1) / 3 / 3)
