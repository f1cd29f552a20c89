"""Weights of documents give the metric back; probabilities, unbiasedness and coverage of the document estimate."""

from __future__ import annotations

import numpy as np
import pytest

from corank.data.io.run_objects import qrels_of, run_of
from corank.errors import InputError
from corank.metrics.cheap.documents import document_weights, estimate_documents, gains, sample_documents
from corank.metrics.cheap.values import GradedRuns
from corank.metrics.conventions import find_convention


def make(seed=0):
    rng = np.random.default_rng(seed)
    truth = {
        f"q{q}": {f"d{d}": int(g) for d, g in enumerate(rng.choice(4, 30, p=[0.5, 0.2, 0.2, 0.1]))} for q in range(12)
    }
    runs = {f"s{s}": run_of({q: {d: g + (1 + s) * rng.normal() for d, g in row.items()} for q, row in truth.items()})
            for s in range(3)}  # fmt: skip
    return GradedRuns.of(runs, [qrels_of(truth)])


@pytest.mark.parametrize("metric", ["DCG@10", "P@5", "RBP", "RBP(p=0.5)@7"])
@pytest.mark.parametrize("convention", ["corank", "trec_eval", "letor4"])
def test_weights_times_gains_are_the_metric(metric, convention):
    graded, rules = make(), find_convention(convention)
    W = document_weights(graded, metric, rules)
    values = next(iter(graded.values(graded.grades[0], [metric], rules).values()))
    np.testing.assert_allclose(W @ gains(graded.grades[0], metric, rules), values.mean(axis=1))


def test_the_draw_has_its_probabilities_and_the_estimate_is_unbiased_and_covers():
    graded, rules = make(), find_convention("trec_eval")
    W = document_weights(graded, "DCG@10", rules)
    h = gains(graded.grades[0], "DCG@10", rules)
    rng = np.random.default_rng(1)
    cheap = h + rng.normal(0.5, 0.7, len(h))
    truth = float((W[0] - W[2]) @ h)
    counts, found = np.zeros(len(h)), []
    pi = np.zeros(len(h))
    for _ in range(1500):
        sampled = sample_documents(W, 40, rng)
        counts[sampled.documents] += 1
        pi[sampled.documents] = sampled.probabilities
        assert abs(len(sampled.documents) - 40) <= 1
        one = estimate_documents(W, cheap, sampled, h[sampled.documents]).interval(0, 2)
        found.append((one.value, one.low <= truth <= one.high, one.standard_error))
    drawn = pi > 0
    np.testing.assert_allclose(counts[drawn] / 1500, pi[drawn], atol=0.07)
    value, covered, error = np.mean(found, axis=0)
    assert abs(value - truth) < 0.15 * error
    assert 0.92 < covered < 0.985


def test_all_documents_give_the_exact_value_and_other_metrics_are_refused():
    graded, rules = make(), find_convention("corank")
    W = document_weights(graded, "P@5", rules)
    h = gains(graded.grades[0], "P@5", rules)
    sampled = sample_documents(W, 10_000, np.random.default_rng(0))
    one = estimate_documents(W, np.zeros(len(h)), sampled, h[sampled.documents]).interval(0, 1)
    assert one.value == pytest.approx(float((W[0] - W[1]) @ h))
    assert one.high == pytest.approx(one.low)
    with pytest.raises(InputError, match="not linear"):
        document_weights(graded, "nDCG@10", rules)
