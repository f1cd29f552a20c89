from __future__ import annotations

import numpy as np
import pytest

from corank.metrics import average_precision
from corank.models.rls import RankRLS
from experiments.few_judgements import positives
from experiments.few_judgements.learners import RANKRLS, learners
from experiments.options import ExperimentOptions


def test_known_and_presumed_rows_are_not_measured(pool, monkeypatch):
    monkeypatch.setattr(positives, "N_PRESUMED", 50)
    found = positives._draw(pool, "tin", 2, np.random.default_rng(3))
    rng, y = np.random.default_rng(3), pool.about["tin"]
    known = rng.choice(np.flatnonzero(y), 2, replace=False)
    presumed = rng.choice([row for row in range(300) if row not in known], 50, replace=False)
    rest = [row for row in range(300) if row not in {*known, *presumed}]
    grades = np.full(300, np.nan)
    grades[presumed], grades[known] = 0.0, 1.0
    model = RankRLS(scale=False).fit(pool.text, grades, qid=np.zeros(300))
    assert found[RANKRLS][0] == pytest.approx(average_precision(y[rest], model.predict(pool.text)[rest]), abs=1e-6)
    mean = pool.text.toarray()[known].mean(axis=0)
    assert found[positives.MEAN][0] == pytest.approx(average_precision(y[rest], (pool.text @ mean)[rest]), abs=1e-6)


def test_the_table_holds_gains_over_the_ranker_on_text(pool, tmp_path):
    table = positives.positives_table(ExperimentOptions(tmp_path), pool, 2, ["tin", "gold"])
    assert [row[0] for row in table.rows] == [positives.NAMED, positives.MEAN, *learners()]
    rows = {row[0]: row for row in table.rows}
    assert rows[RANKRLS][2] == "+0.000 (too few repeats to test)"
    for row in table.rows:
        assert float(row[2].split()[0]) == pytest.approx(row[1] - rows[RANKRLS][1], abs=6e-4)
