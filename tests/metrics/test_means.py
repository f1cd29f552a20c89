from __future__ import annotations

import numpy as np
import pytest

from corank import metrics

FUNCTIONS = {
    "nDCG@10": metrics.ndcg,
    "MeanNDCG": metrics.mean_ndcg,
    "AP": metrics.average_precision,
    "P@10": metrics.precision,
    "RR": metrics.reciprocal_rank,
    "WTA": metrics.winner_take_all,
    "ERR": metrics.expected_reciprocal_rank,
    "BEP": metrics.break_even_point,
    "AUC": metrics.auc,
    "disagreement": metrics.disagreement_error,
    "kpartite": metrics.kpartite_error,
    "kendall": metrics.kendall_tau,
}


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    return rng.integers(0, 3, 60), rng.integers(0, 9, 60), rng.integers(0, 5, 60)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("convention", ["corank", "letor4"])
def test_each_function_is_the_mean_of_its_metric(problem, name, convention):
    expected = metrics.evaluate(*problem, name, convention=convention)[name].mean
    assert FUNCTIONS[name](*problem, convention=convention) == expected


def test_depths_and_parameters_are_passed_on(problem):
    found = metrics.evaluate(*problem, ["nDCG", "nDCG@2", "P@3", "ERR@4", "kpartite(alpha=0.5)"])
    assert metrics.ndcg(*problem, k=None) == found["nDCG"].mean
    assert metrics.ndcg(*problem, k=2) == found["nDCG@2"].mean
    assert metrics.precision(*problem, k=3) == found["P@3"].mean
    assert metrics.expected_reciprocal_rank(*problem, k=4) == found["ERR@4"].mean
    assert metrics.kpartite_error(*problem, alpha=0.5) == found["kpartite(alpha=0.5)"].mean
    assert metrics.kpartite_error(*problem, alpha=1e-7) != metrics.kpartite_error(*problem, alpha=0.0)
