"""Agreement with gold grades against the coefficients of two judges, and its intervals."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from corank.cli import app
from corank.errors import InputError
from corank.metrics.agreement import agreement_with_gold, cohen_kappa, krippendorff_alpha


def test_figures_are_those_of_two_judges():
    rng = np.random.default_rng(0)
    gold = rng.choice(4, 400, p=[0.5, 0.2, 0.2, 0.1]).astype(float)
    judge = np.clip(gold + rng.choice([-1, 0, 0, 1], 400), 0, 3)
    judge[:7] = np.nan
    qid = np.repeat(np.arange(20), 20)
    found = agreement_with_gold(gold, judge, qid)
    a, b = gold[7:], judge[7:]
    assert found.kappa.value == pytest.approx(cohen_kappa(a, b))
    assert found.weighted.value == pytest.approx(cohen_kappa(a, b, "quadratic"))
    assert found.alpha.value == pytest.approx(krippendorff_alpha(np.stack([a, b]), "ordinal"))
    assert found.saved.value == pytest.approx(np.corrcoef(a, b)[0, 1] ** 2)
    assert (found.gold_mean.value, found.judge_mean.value) == pytest.approx((a.mean(), b.mean()))
    assert found.kappa.low < found.kappa.value < found.kappa.high
    assert sum(row[1 + at] for at, row in enumerate(found.confusion.rows)) == int((a == b).sum())


def test_intervals_cover_the_kappa_of_many_queries():
    rng = np.random.default_rng(1)

    def draw(n):
        shift = np.repeat(rng.normal(0, 0.7, n), 15)  # documents of a query are judged alike
        gold = rng.choice(3, 15 * n).astype(float)
        return gold, np.clip(np.round(gold + shift + rng.normal(0, 0.5, 15 * n)), 0, 2), np.repeat(np.arange(n), 15)

    gold, judge, _ = draw(20_000)
    truth, hits = cohen_kappa(gold, judge), []
    for _ in range(120):
        kappa = agreement_with_gold(*draw(30)).kappa
        hits.append(kappa.low <= truth <= kappa.high)
    assert np.mean(hits) > 0.87


def test_a_constant_judge_explains_nothing_and_constant_gold_does_not_tell():
    saved = agreement_with_gold([0, 1, 2, 0, 2, 1], [1] * 6, [1, 1, 2, 2, 3, 3]).saved
    assert (saved.value, saved.low, saved.high) == (0.0, 0.0, 0.0)
    assert np.isnan(agreement_with_gold([1] * 6, [0, 1, 2, 0, 2, 1], [1, 1, 2, 2, 3, 3]).saved.value)


def test_nothing_in_common_is_refused():
    with pytest.raises(InputError, match="no document has a gold grade"):
        agreement_with_gold([1, np.nan], [np.nan, 1], [1, 1])


def test_the_command_compares_each_judge_with_gold(tmp_path):
    (tmp_path / "gold.csv").write_text("query,docid,rating\na,1,0\na,2,1\nb,1,2\nb,2,0\n")
    rows = "query,docid,rating,judge\na,1,0,llm:x\na,2,1,llm:x\nb,1,2,llm:x\nb,2,1,llm:x\na,1,1,llm:y\nb,1,2,llm:y\n"
    (tmp_path / "llm.csv").write_text(rows)
    words = ["agreement", str(tmp_path / "llm.csv"), "--gold", str(tmp_path / "gold.csv")]
    said = CliRunner().invoke(app, words, catch_exceptions=False)
    assert said.exit_code == 0
    assert "llm:x: 4 documents of 2 queries" in said.output
    found = json.loads(CliRunner().invoke(app, [*words, "--json"], catch_exceptions=False).output)["gold"]
    assert found["llm:x"]["kappa"]["value"] == pytest.approx(cohen_kappa([0, 1, 2, 0], [0, 1, 2, 1]))
    assert found["llm:y"]["n_documents"] == 2
