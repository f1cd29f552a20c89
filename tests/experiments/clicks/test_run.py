"""The experiment on small synthetic folds; figures of the real ones are in docs/experiments/clicks.md."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from corank.clicks import PDGD, CascadeClicks, PairwiseEpsilonGreedy, simulate_clicks
from corank.core.random import seed_state
from corank.data.ranking import RankingData
from corank.data.synthetic import make_ranking
from experiments.clicks import as_published, fidelity, learners, priors, problem, run
from experiments.clicks.interleaving_kernels import assign_clicks
from experiments.options import ExperimentOptions


@cache
def small_part(fold, which):
    made = make_ranking(
        12, 8, features_per_view=23, random_state=fold + 10 * ("train", "validation", "test").index(which)
    )
    X = made.X - made.X.min(axis=0)
    return RankingData.of(X / X.max(axis=0), np.minimum(made.y, 2), made.qid)


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        for module in (learners, priors, fidelity):
            patch.setattr(module, "part", small_part)
        patch.setattr(as_published, "SAMPLES", 100)
        patch.setattr(fidelity, "LISTS", 500)
        patch.setattr(fidelity, "LISTS_TIE", 3000)
        patch.setattr(priors, "AT", (5, 20))
        patch.setattr(learners, "LISTS_QUICK", 30)
        return run.run(ExperimentOptions(tmp_path_factory.mktemp("clicks"), quick=True, repeats=5))


@pytest.mark.long
def test_every_method_and_user_has_a_line(report):
    published, errors, ties, prior = report.tables
    assert {row[0] for row in published.rows} >= set(learners.PUBLISHED)
    assert [row[0] for row in errors.rows] == list(fidelity.PUBLISHED)
    assert [row[0] for row in ties.rows] == list(fidelity.METHODS)
    assert len(prior.rows) == 2 * 4 * 2
    assert all(plot.read_bytes().startswith(b"\x89PNG") for plot in report.plots)


@pytest.mark.long
def test_identical_rankings_tie_and_blind_users_prefer_none(report):
    for row in report.tables[2].rows:
        assert row[1:5] == (0.0, 0.0, 0.0, 0.0)
        assert abs(row[5]) < 4.0


@pytest.mark.long
def test_worst_first_exploits_from_the_wrong_end():
    data, user = small_part(0, "train"), CascadeClicks("perfect")
    right = simulate_clicks(
        PairwiseEpsilonGreedy(0.0), data, user, 300, evaluate_at=[300], n_runs=5, random_state=0, discount=1.0
    )
    upside_down = as_published.upside_down(data)
    wrong = simulate_clicks(
        as_published.WorstFirst(0.0),
        data,
        user,
        300,
        test=upside_down,
        evaluate_at=[300],
        n_runs=5,
        random_state=0,
        discount=1.0,
    )
    assert wrong.mean("online")[-1] < right.mean("online")[-1] - 20.0
    assert wrong.mean()[-1] > simulate_clicks(PDGD(0.0), data, user, 1, evaluate_at=[0], n_runs=5).mean()[0]


@pytest.mark.long
def test_assignments_are_drawn_by_their_shares():
    """Signs of many assignments against enumeration: two clicks, three rankings."""
    ranks = np.array([[0, 1, 2], [1, 0, 2], [2, 1, 0]])
    shares = np.zeros((2, 3))
    clicks, left = np.array([True, True]), np.zeros(3, dtype=bool)
    assign_clicks(ranks, np.arange(1.0, 4.0) ** -1.0, np.array([0, 1]), clicks, left, shares)
    wins = as_published._sampled_wins(shares, seed_state(np.random.default_rng(0)), 10_000)
    wanted = np.zeros(3)
    for one in range(3):
        for other in range(3):
            counts = np.bincount([one, other], minlength=3)
            wanted += shares[0, one] * shares[1, other] * np.sign(counts - counts[0])
    np.testing.assert_allclose(wins[1:] / 10_000, wanted[1:], atol=0.04)


def test_errors_are_those_of_runs_inside_folds():
    values = np.repeat(np.arange(5.0), 4)
    assert problem.fold_error(values) == 0.0
    noisy = values + np.tile([-1.0, 1.0, -1.0, 1.0], 5)
    assert problem.fold_error(noisy) == pytest.approx(np.sqrt(4 / 3 / 20))
    assert np.isnan(problem.fold_error(np.arange(5.0)))


def test_parts_are_scaled_inside_queries(real_data):
    data = problem.part(0, "test")
    assert data.X.min() == 0.0
    assert data.X.max() == 1.0
    assert problem.bm25(data).shape == (data.n_rows,)
    assert set(np.unique(data.y)) == {0.0, 1.0, 2.0}
