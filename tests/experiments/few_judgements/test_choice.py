from __future__ import annotations

import numpy as np
import pytest

from corank.metrics import average_precision
from corank.models.rls import RankRLS
from experiments.few_judgements import choice
from experiments.few_judgements.learners import RANKRLS
from experiments.few_judgements.replay import judging_curve
from experiments.options import ExperimentOptions


@pytest.fixture(scope="module")
def curves(pool, tmp_path_factory):
    return choice.choice_curves(ExperimentOptions(tmp_path_factory.mktemp("choice")), pool, 2, ["tin", "gold"])


@pytest.mark.long
def test_a_value_is_the_mean_of_curves_judged_on_the_pool(pool, curves):
    out = pool.is_test
    X, y = pool.text, pool.about["gold"]
    found = [
        judging_curve(
            RankRLS(scale=False), X[~out], y[~out], strategy="top", steps=4, test=(X[out], y[out]), n_repeats=1,
            random_state=seed,
        ).values[0, 0]
        for seed in (0, 1)
    ]  # fmt: skip
    np.testing.assert_allclose(curves.values["test", RANKRLS, "top"][1], np.mean(found, axis=0), atol=1e-6)


@pytest.mark.long
def test_the_table_begins_with_what_needs_no_judgement(pool, curves):
    table = curves.table()
    is_in = ~pool.is_test
    named = [average_precision(pool.about[topic][is_in], pool.named[topic][is_in]) for topic in ("tin", "gold")]
    assert table.rows[0][3] == pytest.approx(np.mean(named))
    assert len(table.rows) == 2 + len(choice.RULES) * len(choice.MEASURED)
    assert table.columns[3:7] == ("5 judged", "15 judged", "25 judged", "45 judged")


def test_a_finding_is_the_mean_difference_over_topics(curves):
    gap = curves.values["pool", RANKRLS, "uncertain"] - curves.values["pool", RANKRLS, "random"]
    first = curves.findings()[0]
    assert f"{gap[:, 4].mean():+.3f} (too few repeats to test)" in first  # two topics
    assert "made up, pool rows, 15, 25, 45 judged: RankRLS by uncertain minus RankRLS by random" in first


def test_a_topic_without_test_rows_is_measured_on_the_pool_alone(pool, tmp_path, monkeypatch):
    monkeypatch.setattr(choice, "MIN_TEST", int(pool.about["tin"][pool.is_test].sum()) + 1)
    monkeypatch.setattr(choice, "STEPS", 1)
    monkeypatch.setattr(choice, "MEASURED", (("pool", RANKRLS), ("test", RANKRLS)))
    monkeypatch.setitem(pool.about, "more", np.where(np.arange(300) % 2, 1.0, 0.0))
    monkeypatch.setitem(pool.named, "more", np.zeros(300))
    found = choice.choice_curves(ExperimentOptions(tmp_path), pool, 1, ["tin", "more"])
    assert found.values["pool", RANKRLS, "top"].shape == (2, 2)
    assert found.values["test", RANKRLS, "top"].shape == (1, 2)
