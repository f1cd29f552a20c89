from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from corank.comparison.methods import METHODS
from corank.comparison.winner import INFLATION, OFFSETS, PSEUDO, SPREAD, SURE, Expectation, offsets_at


def test_means_are_those_of_judged_and_pseudo_queries_together():
    rng = np.random.default_rng(0)
    values = {"a": rng.random(7), "b": rng.random(7), "c": rng.random(7)}
    offsets = {"a": 0.1, "b": -0.02}
    found = Expectation.of(values, offsets, 8.0)
    b = np.array([0.1, -0.02, 0.0]) - 0.08 / 3
    everything = np.column_stack(list(values.values()))
    # 8 further rows, each the mean of all methods plus b
    pseudo = np.tile(everything.mean() + b, (8, 1))
    np.testing.assert_allclose(found.means, np.concatenate([everything, pseudo]).mean(axis=0))
    assert found.difference("a", "c") == pytest.approx(found.means[0] - found.means[2])


def test_probabilities_are_the_posterior_of_the_conjugate_normal_model():
    # with the variance pooled over judged and pseudo-queries
    rng = np.random.default_rng(1)
    n, b = 200, 0.03
    d = 0.02 + 0.3 * rng.normal(size=n)
    found = Expectation.of({"a": d, "b": np.zeros(n)}, {"a": b, "b": 0.0})
    mean = (n * d.mean() + PSEUDO * b) / (n + PSEUDO)
    deviation = INFLATION * np.sqrt(n * d.var() + PSEUDO * SPREAD**2) / (n + PSEUDO)
    assert found.difference("a", "b") == pytest.approx(mean)
    for margin in (0.0, 0.01, 0.05):
        wanted = stats.norm.sf(margin, mean, deviation)
        assert found.p_above("a", "b", margin) == pytest.approx(wanted, abs=1e-9)
    assert found.p_above("a", "a") == 0.5
    assert found.p_best(rng)[0] == pytest.approx(found.p_above("a", "b"), abs=0.03)


def test_a_few_queries_that_agree_are_not_certain():
    few = {"a": np.array([0.9, 0.9]), "b": np.array([0.8, 0.8]), "c": np.array([0.9, 0.9])}
    found = Expectation.of(few, {})
    assert 0.5 < found.p_above("a", "b") < 0.9
    assert found.p_above("a", "c", -0.005) < 0.9
    none = Expectation.of(few, {}, 0.0)
    assert none.p_above("a", "b") == 1.0


def test_the_needed_number_makes_the_lead_probable():
    rng = np.random.default_rng(2)
    d = rng.normal(size=30)
    d += 0.1 - d.mean()
    found = Expectation.of({"a": d, "b": np.zeros(30)}, {"a": 0.02, "b": 0.0})
    n = found.n_needed("a", "b")

    def p(n_queries):
        mean = (n_queries * 0.1 + PSEUDO * 0.02) / (n_queries + PSEUDO)
        variance = (n_queries * d.var() + PSEUDO * SPREAD**2) / (n_queries + PSEUDO) ** 2
        return stats.norm.cdf(mean / np.sqrt(variance) / INFLATION)

    assert p(n) >= SURE - 1e-5
    assert p(n - 1) < SURE + 1e-5
    assert n > 30
    assert found.n_needed("b", "a") is None


def test_a_query_without_a_value_is_left_out():
    a, b = np.array([0.1, np.nan, 0.3]), np.array([0.2, 0.5, 0.3])
    assert Expectation.of({"a": a, "b": b}, {}).values.tolist() == [[0.1, 0.2], [0.3, 0.3]]


def test_offsets_follow_the_logarithm_of_the_number_of_queries():
    assert set(OFFSETS) <= set(offsets_at(10)) <= set(METHODS)
    assert offsets_at(30)["ranksvm"] == offsets_at(30)["rankrls"]
    assert offsets_at(3) == offsets_at(10)
    assert offsets_at(80) == offsets_at(5000)
    assert {name: offsets_at(80)[name] for name in OFFSETS} == {name: of[-1] for name, of in OFFSETS.items()}
    for name, of in OFFSETS.items():
        assert offsets_at(round(10 * 2**0.5))[name] == pytest.approx(
            (of[0] + of[1]) / 2, abs=abs(of[1] - of[0]) / 50 + 1e-12
        )
