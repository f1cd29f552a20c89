from __future__ import annotations

import numpy as np
import pytest

from corank import QueryScaler
from experiments.lambdarank import methods, problems, run
from experiments.options import ExperimentOptions


@pytest.mark.long
def test_the_report_holds_what_was_measured(tmp_path, monkeypatch):
    """Values of the tests' own in place of fits: tables hold their means, and a second run asks for nothing."""
    asked = []

    def fake(method, split, seed):
        asked.append(method)
        values = np.random.default_rng([len(method), seed]).random(20).tolist()
        return {metric: [*values, float("nan")] for metric in methods.METRICS}

    monkeypatch.setattr(run, "measured", fake)
    monkeypatch.setattr(run, "mq2008", lambda fold: problems.made(fold, 50))
    monkeypatch.setattr(run, "mslr", lambda: problems.made(7, 50))
    report = run.run(ExperimentOptions(tmp_path, quick=True))
    n = len(asked)
    table = {row[0]: row[1:] for row in report.tables[0].rows}
    assert set(table) == {methods.BM25, *methods.METHODS, methods.LIGHTGBM, methods.LIGHTGBM_SAME}
    expected = np.nanmean(fake("SPD", None, 0)["AP"])
    assert table["SPD"][1] == pytest.approx(expected)
    assert table[methods.LIGHTGBM_SAME][-1] == 1.0
    assert "differ from LightGBM's own lambdarank" in report.findings[0]
    run.run(ExperimentOptions(tmp_path, quick=True))
    assert len(asked) == n + 1


@pytest.mark.long
def test_methods_learn_what_is_made():
    split = problems.made(0, 40)
    chance = methods.measured("SPD", problems.Split(split.train.some(1, np.random.default_rng(0)), split.test, None), 0)
    for method in ("linear, ndcg", "trees, ndcg(near=0.01)", methods.LIGHTGBM_SAME):
        found = methods.measured(method, split, 0)
        assert np.nanmean(found["nDCG@10"]) > np.nanmean(chance["nDCG@10"])


def test_bm25_needs_no_judgement(real_data):
    split = problems.mq2008(0)
    X, qid = split.test.X[:, 20:25], split.test.qid
    means = QueryScaler("zscore").fit(X, qid=qid).transform(X, qid).mean(axis=1)
    np.testing.assert_allclose(methods.score(methods.BM25, split, 0), means)
