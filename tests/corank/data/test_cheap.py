"""CheapPolicy: scales, worth against a regression, useless and reversed judges."""

from __future__ import annotations

import numpy as np
import pytest

from corank.data import CheapPolicy
from corank.errors import InputError


def make(noise, seed=0, n_queries=40, size=12):
    rng = np.random.default_rng(seed)
    qid = np.repeat(np.arange(n_queries), size)
    truth = rng.choice(4, len(qid), p=[0.5, 0.2, 0.2, 0.1]).astype(float)
    cheap = np.clip(np.round(truth + rng.normal(0, noise, len(qid))), 0, 3)
    return qid, truth, np.where(qid < 15, truth, np.nan), cheap


def test_human_grades_stay_and_cheap_ones_weigh_the_variance_that_they_explain():
    qid, truth, y, cheap = make(0.8)
    rows = CheapPolicy().apply(y, {"llm": cheap}, qid=qid)
    human = qid < 15
    np.testing.assert_array_equal(rows.y, np.where(human, truth, cheap))
    dummies = (qid[human, None] == np.arange(15)).astype(float)
    full = np.column_stack([dummies, cheap[human]])
    rss = [np.sum((truth[human] - X @ np.linalg.lstsq(X, truth[human], rcond=None)[0]) ** 2) for X in (dummies, full)]
    assert rows.weights[human].tolist() == [1.0] * int(human.sum())
    assert rows.weights[~human] == pytest.approx(1 - rss[1] / rss[0], abs=0.01)
    assert "180 documents with both grades" in rows.sentence


def test_other_scales_are_mapped_and_reversed_or_random_judges_weigh_nothing():
    qid, truth, y, cheap = make(0.5)
    mapped = CheapPolicy().apply(y, 20 * cheap + 5, qid=qid)
    assert "mapped to the human scale" in mapped.sentence
    assert set(mapped.y) <= {0.0, 1.0, 2.0, 3.0}
    turned = CheapPolicy().apply(y, 3 - truth, qid=qid)
    assert np.isnan(turned.y[qid >= 15]).all()
    random = np.random.default_rng(1).permutation(cheap)
    assert CheapPolicy().apply(y, {"r": random}, qid=qid).weights[-1] < 0.05 or np.isnan(y[-1])
    both = CheapPolicy().apply(y, {"good": cheap, "turned": 3 - truth}, qid=qid)
    np.testing.assert_allclose(both.y[qid >= 15], cheap[qid >= 15])


def test_without_common_documents_the_worth_is_unknown_and_said():
    qid, _, y, cheap = make(0.5)
    apart = np.where(qid < 15, np.nan, cheap)
    rows = CheapPolicy().apply(y, apart, qid=qid)
    assert rows.weights[-1] == 0.5
    assert "too few" in rows.sentence
    with pytest.raises(InputError, match="no document has both"):
        CheapPolicy().apply(y, 10 * apart, qid=qid)
    with pytest.raises(InputError, match="weight"):
        CheapPolicy(weight=2.0)
    with pytest.raises(InputError, match="cheap"):
        CheapPolicy().apply(y, {})
