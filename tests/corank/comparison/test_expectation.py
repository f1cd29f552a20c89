from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from corank.comparison import advice
from corank.comparison.advice import SURE, WIDTHS, Expectation, Prior
from corank.comparison.methods import METHODS

NAMES = ("a", "b", "c")
KNOWN = {name: name for name in NAMES}


def some_prior(rows=3, inflation=1.5):
    rng = np.random.default_rng(5)
    return Prior(NAMES, np.array([10.0, 20.0, 40.0])[:rows], rng.normal(0.5, 0.05, (rows, 3)), 0.1, inflation)


def noise(V, prior):
    """Covariance of the means."""
    n = len(V)
    own = (V - V.mean(axis=0)).T @ (V - V.mean(axis=0))
    S = (own + 10 * prior.spread**2 / 2 * np.eye(V.shape[1])) / (n - 1 + 10)
    return prior.inflation**2 * S / n


def test_a_posterior_is_that_of_importance_sampling():
    """Draw collection, width and results from the prior; weigh each draw by the density of the observed differences."""
    rng, prior = np.random.default_rng(0), some_prior()
    V = rng.normal([0.5, 0.55, 0.52], 0.1, (15, 3))
    found = Expectation.of(dict(zip(NAMES, V.T, strict=True)), KNOWN, prior)
    N, C = 400_000, np.array([[-1.0, 1.0, 0.0], [-1.0, 0.0, 1.0]])
    share = np.minimum(15 / prior.sizes, prior.sizes / 15)
    rows = rng.choice(3, N, p=share / share.sum())
    theta = prior.results[rows] + rng.choice(WIDTHS, N)[:, None] * rng.normal(size=(N, 3))
    weights = stats.multivariate_normal(C @ V.mean(axis=0), C @ noise(V, prior) @ C.T).pdf(theta @ C.T)
    weights /= weights.sum()
    error = 4 / np.sqrt(1 / (weights**2).sum())
    for first, second in (("a", "b"), ("c", "a"), ("b", "c")):
        gap = theta[:, NAMES.index(first)] - theta[:, NAMES.index(second)]
        assert found.difference(first, second) == pytest.approx(weights @ gap, abs=error * gap.std())
        for margin in (0.0, 0.02):
            assert found.p_above(first, second, margin) == pytest.approx(weights @ (gap > margin), abs=error)


def test_the_order_of_methods_changes_nothing():
    rng, prior = np.random.default_rng(1), some_prior()
    values = {name: rng.random(9) for name in NAMES}
    one, other = (Expectation.of({name: values[name] for name in order}, KNOWN, prior) for order in ("abc", "cba"))
    assert one.difference("a", "c") == pytest.approx(other.difference("a", "c"))
    assert one.p_above("a", "b") == pytest.approx(other.p_above("a", "b"))
    assert one.p_above("b", "a") == pytest.approx(1.0 - one.p_above("a", "b"))
    assert one.p_above("a", "a") == 0.5


def test_many_queries_overrule_other_collections_and_few_do_not():
    rng, prior = np.random.default_rng(2), some_prior(1)
    lead = prior.results[0, 0] - prior.results[0, 1]

    def difference(n, known):
        a = rng.normal(0.5, 0.1, n)
        return Expectation.of({"a": a - 0.2 + 0.05 * rng.normal(size=n), "b": a}, known, prior).difference("a", "b")

    assert difference(20_000, KNOWN) == pytest.approx(-0.2, abs=0.01)
    assert abs(difference(2, KNOWN) - lead) < abs(difference(2, KNOWN) + 0.2)
    assert difference(20_000, {}) == pytest.approx(-0.2, abs=0.01)


def test_a_few_queries_that_agree_are_not_certain():
    few = {"a": np.array([0.9, 0.9]), "b": np.array([0.8, 0.8]), "c": np.array([0.9, 0.9])}
    found = Expectation.of(few, {})
    assert 0.5 < found.p_above("a", "b") < 0.95
    assert found.p_above("a", "c") == pytest.approx(0.5)
    nothing = Expectation.of({name: np.full(2, np.nan) for name in "ab"}, {})
    assert nothing.difference("a", "b") == 0.0
    assert Expectation.of({"a": few["a"]}, {}).means.tolist() == [0.0]


def test_the_needed_number_makes_the_lead_probable():
    d = np.random.default_rng(2).normal(size=30)
    d += 0.1 - d.mean()
    found = Expectation.of({"a": d, "b": np.zeros(30)}, {})
    n = found.n_needed("a", "b")

    def p(n_queries):
        return stats.norm.cdf(0.1 / (found.inflation * d.std(ddof=1) / np.sqrt(n_queries)))

    assert p(n) >= SURE > p(n - 1)
    assert found.n_needed("b", "a") is None


def test_a_query_without_a_value_is_left_out():
    a, b = np.array([0.1, np.nan, 0.3]), np.array([0.2, 0.5, 0.3])
    assert Expectation.of({"a": a, "b": b}, {}).values.tolist() == [[0.1, 0.2], [0.3, 0.3]]


def test_the_results_are_those_of_the_stored_experiment():
    stored = Path(__file__).parents[3] / "experiments" / "results" / "compare-advice.json"
    report = json.loads(stored.read_text(encoding="utf-8"))["report"]
    (table,) = [table for table in report["tables"] if table["columns"][:2] == ["collection", "queries"]]
    prior = Prior.read()
    assert tuple(table["columns"][2:]) == prior.methods
    assert [row[1] for row in table["rows"]] == prior.sizes.tolist()
    np.testing.assert_allclose([row[2:] for row in table["rows"]], prior.results, atol=6e-5)
    assert f"σ = {prior.spread:g}, c = {prior.inflation:g}." in table["note"]
    assert set(prior.methods) <= set(METHODS)
    assert set(advice._LIKE) <= set(METHODS) - set(prior.methods)
    assert set(advice._LIKE.values()) <= set(prior.methods)
