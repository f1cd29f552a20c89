"""Prior knowledge: its columns by definition, its weights by another solver, and what it does to the order."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize

from corank.errors import InputError
from corank_lab.records.records import Records
from corank_lab.screening import Screening, ScreeningJournal, UniqueRecords, make_views
from corank_lab.screening.model import ScreeningModel
from corank_lab.screening.prior import Prior, column_scores, logistic_map, probability_columns
from corank_lab.screening.project import keep_prior, kept_prior
from helpers.records import collection

RECORDS = collection(60, 12)
VIEWS = make_views(RECORDS)


def with_column(values):
    return replace(RECORDS, fields=[{**old, "LLM": [value]} for old, value in zip(RECORDS.fields, values, strict=True)])


def test_a_column_is_standardised_log_odds():
    p = np.random.default_rng(0).uniform(0.02, 0.98, 60)
    odds = np.log(p / (1 - p))
    for texts in ([f"{x:.12f}" for x in p], [f"{100 * x:.10f} %" for x in p]):
        column = Prior(column="llm").columns(with_column(texts), VIEWS)[:, 0]
        np.testing.assert_allclose(column, np.clip((odds - odds.mean()) / odds.std(), -3, 3), atol=1e-6)
    assert Prior(column="llm").columns(with_column(["", *texts[1:]]), VIEWS)[0, 0] == pytest.approx(0)
    small = column_scores(with_column(["0.5%", *["2%"] * 59]), "llm")
    np.testing.assert_allclose(small[:2], np.log([0.01 / 0.99, 0.02 / 0.98]))
    mixed = column_scores(with_column(["90%", *["0.2"] * 59]), "llm")
    np.testing.assert_allclose(mixed[:2], np.log([0.9 / 0.1, 0.2 / 0.8]))


def test_old_reviews_score_by_a_plain_ridge_regression():
    old = collection(40, 8, seed=3)
    rows = VIEWS.vocabulary.rows([f"{t} {a}" for t, a in zip(old.titles, old.abstracts, strict=True)]).toarray()
    t = np.where(old.labels == 1, 1.0, -1.0)
    w = np.where(t > 0, 10 / (t > 0).sum(), 1 / (t < 0).sum())
    w *= 40 / w.sum()
    a = np.linalg.solve(rows @ rows.T + 1 + np.diag(4 / w), t)
    scores = VIEWS.text_of(np.arange(60)).toarray() @ rows.T @ a
    column = Prior(old).columns(RECORDS, VIEWS)[:, 0]
    np.testing.assert_allclose(column, np.clip((scores - scores.mean()) / scores.std(), -3, 3), atol=0.02)


def test_the_weights_are_the_minimum_of_the_penalised_loss():
    rng = np.random.default_rng(1)
    x = np.column_stack([np.ones(80), rng.normal(size=(80, 3))])
    y = (rng.random(80) < 1 / (1 + np.exp(-x @ [-1, 2, 0.5, 0]))).astype(float)
    mean, precision = np.array([0, 1.5, 0.25, 0.25]), np.array([1e-3, 0.25, 4, 4])

    def loss(w):
        z = x @ w
        return np.logaddexp(0, z).sum() - y @ z + 0.5 * precision @ (w - mean) ** 2

    np.testing.assert_allclose(logistic_map(x, y, mean, precision), minimize(loss, mean, tol=1e-10).x, atol=1e-4)


def test_a_good_source_gains_weight_and_noise_loses_it():
    y = RECORDS.labels == 1
    rng = np.random.default_rng(2)
    good, noise = y + rng.normal(0, 0.4, 60), rng.normal(size=60)
    sources = np.column_stack([(s - s.mean()) / s.std() for s in (good, noise)])
    judged = rng.permutation(60)[:50].tolist()
    model = ScreeningModel(VIEWS, sources)
    scores = model.scores(judged, y[judged].tolist())
    weights = model._weights._last[2]
    assert weights[0] > 2 * abs(weights[1])
    # the order depends on the answers alone, not on the models fitted before
    again = ScreeningModel(VIEWS, sources)
    again.scores(judged[:20], y[judged[:20]].tolist())
    np.testing.assert_allclose(again.scores(judged, y[judged].tolist()), scores, atol=0.02)


def test_a_prior_leads_the_reading_before_the_first_find():
    y = RECORDS.labels == 1
    records = with_column([str(0.9 if hit else 0.1) for hit in y])
    screening = Screening(records, prior=Prior(column="LLM"))
    first = screening.next()
    assert y[first]
    screening.answer(first, relevant=True)
    found = []
    for _ in range(11):
        record = screening.next()
        found.append(bool(y[record]))
        screening.answer(record, relevant=found[-1])
    assert sum(found) >= 9


@pytest.mark.parametrize(
    ("prior", "values", "message"),
    [
        (Prior(column="LMM"), ["0.5"] * 60, "did you mean 'LLM'"),
        (Prior(column="LLM"), ["likely"] * 60, "expected a probability"),
        (Prior(column="LLM"), ["-2"] * 60, "no probabilities"),
        (Prior(column="LLM"), [" "] * 60, "no probabilities"),
        (Prior(Records(["a"], ["tin"], [""])), ["0.5"] * 60, "old reviews have 0 relevant and 0 irrelevant"),
    ],
)
def test_what_is_no_prior_raises(prior, values, message):
    with pytest.raises(InputError, match=message):
        prior.columns(with_column(values), VIEWS)


def test_a_project_keeps_its_sources_for_every_session(tmp_path):
    records, old = with_column([str(0.2 + 0.01 * at) for at in range(60)]), collection(40, 8, seed=3)
    with ScreeningJournal(tmp_path / "corank.db") as journal:
        journal.begin(UniqueRecords(records))
        journal.change_settings(**keep_prior(journal.store, journal.project, records, old, "llm"))
        kept, remark = kept_prior(journal.store, journal.project, records)
        assert not remark
        np.testing.assert_array_equal(kept.columns(records, VIEWS), Prior(old, "llm").columns(records, VIEWS))
        assert keep_prior(journal.store, journal.project, records, None, None) == {}
        # a file of a later search may lack the column
        kept, remark = kept_prior(journal.store, journal.project, RECORDS)
        assert (kept.column, kept.reviews is None) == ("", False)
        assert remark.startswith("The probabilities are not used: the records have no column 'llm'")


def test_columns_of_probabilities_are_those_that_can_be_read_as_such():
    fields = [{"p": [f"{at} %"], "n": [str(at)], "same": ["0.5"], "word": ["a"], "gap": ["0.1"] * (at % 2)}
              for at in range(120)]  # fmt: skip
    records = Records([f"{at}" for at in range(120)], ["tin"] * 120, [""] * 120, fields=fields)
    assert probability_columns(records.take(range(90))) == ["p", "n"]
    assert probability_columns(records) == []
