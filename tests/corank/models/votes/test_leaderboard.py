"""Leaderboards: what is known of simulated votes is found again, and poor judges do no harm."""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from corank import Leaderboard
from corank.data.io.votes import Votes, read_votes
from corank.errors import InputError, UsageWarning
from corank.models.votes import board_table, judge_table, sentences
from corank.models.votes.laplace import log_probabilities
from corank.models.votes.ranks import ScorePosterior, groups_of, rank_sets

ARENA = Path(os.environ.get("CORANK_DATA", "missing"), "arena_votes")


def simulated(s, n, seed=0, *, kappa=-0.7, beta=0.0, r=None, group_sd=0.0, n_groups=0):
    """Draw n votes on random pairs of items with scores s."""
    rng = np.random.default_rng(seed)
    m = len(s)
    a = rng.integers(0, m, n)
    b = (a + rng.integers(1, m, n)) % m
    judge = None if r is None else rng.integers(0, len(r), n)
    group = rng.integers(0, n_groups, n) if n_groups else None
    own = rng.normal(0.0, group_sd, (n_groups, m)) if n_groups else np.zeros((1, m))
    g = np.zeros(n, dtype=int) if group is None else group
    eta = (s[a] + own[g, a] - s[b] - own[g, b]) * (1.0 if r is None else np.asarray(r)[judge]) + beta
    p = np.exp(log_probabilities(eta, kappa)).cumsum(axis=1)
    outcome = (rng.random(n)[:, None] > p).sum(axis=1).clip(0, 2)
    return Votes(
        tuple(f"i{at}" for at in range(m)), a, b, outcome, np.ones(n, dtype=np.int64), judge,
        () if r is None else tuple(f"j{at}" for at in range(len(r))), group, tuple(map(str, range(n_groups))),
    )  # fmt: skip


def in_order(board, values):
    position = {name: at for at, name in enumerate(board.items_)}
    return np.asarray(values)[[position[f"i{at}"] for at in range(len(position))]]


def test_scores_bias_ties_and_reliabilities_are_found_again():
    s, r = np.linspace(-1.5, 1.5, 8), np.array([2.0, 1.0, 1.0, 1.0, 0.0, -0.5])
    board = Leaderboard().fit(simulated(s, 12_000, kappa=-0.4, beta=0.5, r=r))
    assert board.items_ == tuple(f"i{at}" for at in range(7, -1, -1))
    scores = in_order(board, board.scores_)
    assert np.corrcoef(scores, s)[0, 1] > 0.995
    assert board.side_bias_ == pytest.approx(0.5, abs=0.08)
    assert np.log(board.tie_weight_) == pytest.approx(-0.4, abs=0.1)
    found = dict(zip(board.judges_, board.reliabilities_ * np.polyfit(s, scores, 1)[0], strict=True))
    assert [found[f"j{at}"] for at in range(6)] == pytest.approx(r, abs=0.15)
    worth = {row[0]: row[-1] for row in judge_table(board).rows}
    assert worth["j0"] > worth["j1"] > 0.5 > 0.1 > worth["j4"]
    assert board.next_votes(1)[0][2] == "j0"


def test_predictions_average_over_the_posterior():
    board = Leaderboard().fit(["x", "x", "y"], ["y", "z", "z"])
    C, at = board.covariance_, {name: row for row, name in enumerate(board.items_)}
    i, j = at["x"], at["z"]
    draws = np.random.default_rng(0).normal(
        board.scores_[i] - board.scores_[j], np.sqrt(C[i, i] + C[j, j] - 2 * C[i, j]), 400_000
    )
    p = board.predict_proba("x", "z")
    assert p[0, 0] == pytest.approx(np.mean(1 / (1 + np.exp(-draws))), abs=2e-3)
    assert p[0, 1] == 0.0
    assert board.predict_proba("z", "x")[0, ::-1] == pytest.approx(p[0])
    assert board.predict_proba("x", ["y", "z"]).shape == (2, 3)
    assert board.win_matrix() + board.win_matrix().T == pytest.approx(1.0)
    assert board.is_better("x", "z") == pytest.approx(np.mean(draws > 0), abs=2e-3)


def test_error_bars_are_those_of_differences_to_the_mean_item():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(4, 4))
    posterior = ScorePosterior(rng.normal(size=4), root @ root.T, -1.0)
    draws = rng.multivariate_normal(np.zeros(4), root @ root.T, 200_000)
    draws -= draws.mean(axis=1, keepdims=True)
    assert posterior.std == pytest.approx(draws.std(axis=0), rel=0.01)
    # a level that all items share changes nothing
    shifted = ScorePosterior(posterior.mean + 3.0, posterior.covariance + 50.0, -1.0)
    assert shifted.std == pytest.approx(posterior.std)


def test_sets_of_ranks_hold_together_in_other_draws():
    rng = np.random.default_rng(0)
    mean, sd = np.array([3.0, 1.0, 0.8, 0.0, -4.0]), np.array([0.3, 0.5, 0.5, 0.4, 0.3])
    sets = rank_sets(mean + sd * rng.normal(size=(4000, 5)), 0.9)
    drawn = mean + sd * rng.normal(size=(50_000, 5))
    ranks = 1 + (drawn[:, :, None] < drawn[:, None, :]).sum(axis=2)
    both = np.all((ranks >= sets[:, 0]) & (ranks <= sets[:, 1]), axis=1).mean()
    assert both > 0.88
    assert sets[[0, 4]].tolist() == [[1, 1], [5, 5]]
    # sharper sets of the same kind do not hold
    inner = np.sort(ranks, axis=0)[[5000, 45_000]].T
    assert np.all((ranks >= inner[:, 0]) & (ranks <= inner[:, 1]), axis=1).mean() < 0.9
    # many items: the sets of few draws are widened
    drawn = np.linspace(2, -2, 200) + 0.2 * rng.normal(size=(2000, 200))
    sets = rank_sets(drawn[:400], 0.95)
    ranks = np.argsort(np.argsort(-drawn[400:], axis=1), axis=1) + 1
    assert np.all((ranks >= sets[:, 0]) & (ranks <= sets[:, 1]), axis=1).mean() > 0.88


def test_groups_are_runs_of_overlapping_sets():
    assert groups_of(np.array([[1, 2], [1, 3], [2, 4], [4, 4]])) == [[0, 1, 2], [2, 3]]
    assert groups_of(np.array([[1, 3], [1, 3], [1, 3]])) == [[0, 1, 2]]
    assert groups_of(np.array([[1, 1], [2, 2]])) == [[0], [1]]


def test_gains_are_mutual_informations():
    posterior = ScorePosterior(np.array([0.5, 0.0, -2.0]), np.diag([0.5, 0.4, 0.1]), -0.5)
    rng = np.random.default_rng(0)
    s = rng.multivariate_normal(posterior.mean, posterior.covariance, 100_000)
    p = np.exp(log_probabilities(s[:, 0] - s[:, 1], -0.5))
    entropy = lambda q: -np.sum(q * np.log(q), axis=-1)  # noqa: E731
    expected = entropy(p.mean(axis=0)) - entropy(p).mean()
    assert posterior.gains(np.array([0]), np.array([1]))[0] == pytest.approx(expected, abs=1e-3)
    share = np.bincount(s.argmax(axis=1), minlength=3) / len(s)
    expected = expected * np.sqrt(share[0] * share[1])
    assert posterior.best_gains(np.array([0]), np.array([1]))[0] == pytest.approx(expected, rel=0.05)
    assert posterior.next_pairs(2, "best").tolist()[0] == [0, 1]
    assert len({tuple(pair) for pair in posterior.next_pairs(9, "order").tolist()}) == 3


def test_votes_to_separate_agree_with_the_variance_after_them():
    posterior = ScorePosterior(np.array([0.5, 0.0]), np.diag([0.5, 0.4]), -np.inf)
    n = posterior.votes_to_separate(0, 1, 0.95)
    for votes, is_enough in ((n, True), (n - 1, False)):
        assert (posterior.after(0, 1, votes).p_better(0, 1) > 0.975) == is_enough
    assert posterior.votes_to_separate(0, 1, 0.1) == 0
    assert ScorePosterior(np.zeros(2), np.eye(2), -np.inf).votes_to_separate(0, 1, 0.95) is None


def test_counts_order_and_names_of_votes_do_not_matter():
    votes = simulated(np.linspace(-1, 1, 5), 200)
    table = {"model_a": [votes.items[at] for at in votes.first], "model_b": [votes.items[at] for at in votes.second]}
    table["winner"] = [("model_a", "tie", "model_b")[at] for at in votes.outcome]
    order = np.random.default_rng(0).permutation(200)
    shuffled = {name: [values[at] for at in order] for name, values in table.items()}
    boards = [Leaderboard().fit(one) for one in (votes, table, shuffled)]
    for board in boards[1:]:
        assert board.items_ == boards[0].items_
        assert board.scores_ == pytest.approx(boards[0].scores_, abs=1e-6)
        assert board.covariance_ == pytest.approx(boards[0].covariance_, abs=1e-6)


def error(board, s, kappa=-0.7):
    a, b = np.triu_indices(len(s), 1)
    p, q = (
        board.predict_proba([f"i{at}" for at in a], [f"i{at}" for at in b]),
        np.exp(log_probabilities(s[a] - s[b], kappa)),
    )
    return np.sqrt(np.mean(((p - q) @ [1.0, 0.5, 0.0]) ** 2))


@pytest.mark.parametrize(("slope", "noise"), [(1.5, 0.1), (-1.5, 0.1), (0.0, 1.0), (0.8, 0.8)])
def test_cheap_votes_help_or_do_no_harm(slope, noise):
    errors = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        s = rng.normal(0.0, 1.0, 12)
        cheap = simulated(slope * s + noise * rng.normal(size=12), 3000, seed + 50)
        votes = simulated(s, 200, seed)
        errors.append([error(Leaderboard().fit(votes), s), error(Leaderboard().fit(votes, cheap=cheap), s)])
    alone, both = np.mean(errors, axis=0)
    assert both < alone + 0.005
    if abs(slope) > 1:
        assert both < 0.6 * alone


def test_features_help_if_they_explain_the_scores():
    errors = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(15, 2))
        s = X @ [1.0, -0.6]
        votes = simulated(s, 60, seed)
        features = {f"i{at}": row for at, row in enumerate(X)}
        errors.append([error(Leaderboard().fit(votes), s), error(Leaderboard().fit(votes, features=features), s)])
    alone, both = np.mean(errors, axis=0)
    assert both < 0.8 * alone


def test_votes_of_a_group_widen_the_errors():
    s = np.linspace(-1, 1, 6)
    alike = simulated(s, 3000, n_groups=20)
    apart = simulated(s, 3000, n_groups=20, group_sd=1.0)
    boards = [Leaderboard().fit(votes) for votes in (alike, apart)]
    assert boards[0].dispersion_ < 1.5 < 3.0 < boards[1].dispersion_
    assert boards[1].std_.mean() > 1.7 * boards[0].std_.mean()


def test_tastes_of_judges_widen_the_errors():
    s, stds = np.linspace(-1, 1, 6), []
    for sd in (0.0, 1.0):
        votes = simulated(s, 900, n_groups=15, group_sd=sd)
        board = Leaderboard().fit(replace(votes, judge=votes.group, judges=votes.groups, group=None, groups=()))
        stds.append(board.std_.mean())
    assert "Votes of a judge depend on each other" in board.summary()
    assert stds[1] > 1.2 * stds[0]


@pytest.mark.long
@pytest.mark.parametrize("group_sd", [0.0, 0.7])
def test_coverage_of_intervals_and_of_sets_of_ranks(group_sd):
    inside, ranked = [], []
    for seed in range(60):
        s = np.random.default_rng(seed).normal(0.0, 0.8, 8)
        board = Leaderboard().fit(simulated(s, 400, seed, n_groups=30, group_sd=group_sd))
        centred = s - s.mean()
        low, high = in_order(board, board.lower_), in_order(board, board.upper_)
        # groups of different items make all votes noisier, which changes the scale
        scale = 1.0 if not group_sd else np.polyfit(centred, in_order(board, board.scores_), 1)[0]
        inside.append(np.mean((low <= scale * centred) & (scale * centred <= high)))
        rank = 1 + (s[:, None] < s).sum(axis=1)
        sets = in_order(board, board.ranks_)
        ranked.append(np.all((sets[:, 0] <= rank) & (rank <= sets[:, 1])))
    assert 0.91 < np.mean(inside) <= 0.985
    assert np.mean(ranked) >= 0.88


def test_items_that_no_votes_connect_are_named():
    with pytest.warns(UsageWarning, match=r"connects 2 groups of items.*\(x, y\)"):
        board = Leaderboard().fit(["x", "u"], ["y", "v"])
    assert board.is_better("x", "u") == pytest.approx(0.5, abs=0.05)


def test_cheap_votes_may_be_on_other_items():
    cheap = {"winner": ["x", "x", "new", "new"] * 10, "loser": ["y", "z", "x", "x"] * 10}
    board = Leaderboard().fit(["x", "x", "y"], ["y", "z", "z"], cheap=cheap)
    assert board.items_[0] == "new"
    assert board.n_votes_[0] == 0
    assert board.std_[0] > board.std_[board.items_.index("x")]


def test_text_table_and_plot(tmp_path):
    board = Leaderboard().fit(simulated(np.linspace(-1, 1, 5), 400, beta=0.4, r=[1.0, 0.8, 1.1]))
    assert board_table(board).columns[0] == "ranks"
    text = board.summary()
    assert "i4 leads i3" in text
    assert "shown first gets" in text
    assert "| j0 |" in text
    figure = board.plot(tmp_path / "board.png")
    assert len(figure.axes) == 3
    assert (tmp_path / "board.png").stat().st_size > 1000
    one = Leaderboard().fit({"a": ["x"], "b": ["y"], "winner": ["a"], "judge": ["ann"]})
    assert any("one judge" in sentence for sentence in sentences(one))


def test_manners_of_scikit_learn_and_bad_values():
    board = clone(Leaderboard(level=0.8))
    assert board.get_params() == {"level": 0.8}
    with pytest.raises(NotFittedError):
        board.predict_proba("x", "y")
    with pytest.raises(InputError, match="level is 2"):
        Leaderboard(level=2.0).fit(["x"], ["y"])
    board.fit(["x"], ["y"])
    with pytest.raises(InputError, match="no item 'q'"):
        board.predict_proba("x", "q")
    with pytest.raises(InputError, match="goal is 'all'"):
        board.next_votes(1, "all")
    with pytest.raises(InputError, match="no row for y"):
        Leaderboard().fit(["x"], ["y"], features={"x": [1.0], "z": [2.0]})
    for row in ([1.0, 2.0], ["red"]):
        with pytest.raises(InputError, match="rows of several lengths, or text"):
            Leaderboard().fit(["x"], ["y"], features={"x": [1.0], "y": row})
    with pytest.raises(InputError, match="without losers"):
        Leaderboard().fit({"winner": ["x"], "loser": ["y"]}, judge=["ann"])


@pytest.mark.long
@pytest.mark.skipif(not ARENA.is_dir(), reason="CORANK_DATA has no arena_votes")
def test_cheap_votes_of_the_arena_replace_many_human_ones():
    human, cheap = (read_votes(ARENA / f"{name}.csv.gz") for name in ("human", "gpt-4"))
    everything = Leaderboard().fit(human)
    rng = np.random.default_rng(0)
    errors = []
    for _ in range(5):
        some = rng.permutation(len(human))[:100]
        part = Votes(human.items, human.first[some], human.second[some], human.outcome[some], human.count[some])
        board = Leaderboard().fit(part, cheap=cheap)
        a, b = np.triu_indices(len(human.items), 1)
        pairs = np.array(human.items)[a], np.array(human.items)[b]
        gap = (board.predict_proba(*pairs) - everything.predict_proba(*pairs)) @ [1.0, 0.5, 0.0]
        errors.append(np.sqrt(np.mean(gap**2)))
    assert np.mean(errors) < 0.05


def vote_rows(winners, losers):
    return [{"winner": winner, "loser": loser} for winner, loser in zip(winners, losers, strict=True)]


def test_cheap_votes_on_items_of_other_names_are_noticed():
    with pytest.warns(UserWarning, match=r"2 of 3 items .* not in the cheap votes"):
        Leaderboard().fit(vote_rows("ab", "bc"), cheap=vote_rows("aB", "BC"))


def test_items_that_no_votes_connect_do_not_lead_each_other():
    with pytest.warns(UserWarning, match="no chain of votes connects"):
        board = Leaderboard().fit(["a", "a", "a", "c", "c"], ["b", "b", "b", "d", "d"])
    said = board.summary()
    first, second = board.items_[:2]
    assert {first, second} == {"a", "c"}
    assert "No chain of votes connects" in said
    assert " leads " not in said
