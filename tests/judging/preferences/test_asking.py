from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from corank.data.formats.items import Choices
from corank.errors import InputError
from corank.gp import PreferenceGP
from corank.gp.ep.process import Posterior
from corank.judging.preferences import Asking, Journal, Question, Ranking, simulate
from corank.judging.preferences.answers import Told
from corank.judging.preferences.journal import Line
from corank.judging.preferences.model import Model

NAMES = list("abcdefgh")
X = np.random.default_rng(0).standard_normal((8, 2))


def answered(asking, n, y=None):
    y = np.arange(8)[::-1] if y is None else y
    for _ in range(n):
        question = asking.next()
        asking.answer(question, "left" if y[question.left] > y[question.right] else "right")
    return asking


def test_a_model_that_learns_one_by_one_is_the_one_that_learns_at_once():
    rng = np.random.default_rng(1)
    told = [Told(*rng.choice(8, 2, replace=False).tolist(), bool(rng.random() < 0.2)) for _ in range(15)]
    one_by_one = Model(X)
    for n in range(1, 16):
        one_by_one.learn(told[:n])
    for path in ([15], [9, 4, 15], [14, 15]):  # also where answers were taken back
        other = Model(X)
        for n in path:
            gp = other.learn(told[:n])
        np.testing.assert_allclose(gp.posterior().mean, one_by_one.learn(told).posterior().mean, atol=1e-6)


def test_the_kernel_is_the_columns_times_a_part_of_its_own():
    """Second derivation: the kernel as its docstring writes it, given as a table."""
    told = [Told(0, 1), Told(2, 3), Told(1, 4, True)]
    gp = Model(np.column_stack([X, np.ones(8)])).learn(told)
    z = (X - X.mean(axis=0)) / X.std(axis=0)
    D = ((z[:, None] - z) ** 2).sum(axis=-1)
    gamma = gp.kernel_.gamma
    K = np.exp(-gamma * (D + 2 * 0.3 * 2 * (1 - np.eye(8))))
    pairs, weight = [[0, 1], [2, 3], [1, 4], [4, 1]], [1, 1, 0.5, 0.5]
    plain = PreferenceGP("precomputed", 0.3, learn=False, scale=False).fit(K, pairs=pairs, pair_weight=weight)
    np.testing.assert_allclose(gp.posterior().mean, plain.posterior(K).mean, atol=1e-6)
    named = np.ix_(range(5), range(5))  # of others, a table of similarities does not say their own
    np.testing.assert_allclose(gp.posterior().covariance[named], plain.posterior(K).covariance[named], atol=1e-6)


def test_scores_and_deviations_are_those_of_differences_from_the_mean():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((5, 5))
    A, mean = A @ A.T, rng.standard_normal(5)
    ranking = Ranking.of(Posterior(mean, A))
    H = np.eye(5) - 0.2
    np.testing.assert_allclose(ranking.score, H @ mean)
    np.testing.assert_allclose(ranking.std, np.sqrt(np.diag(H @ A @ H)))
    wrong = []
    for a in range(5):
        for b in range(a):
            m, s = mean[a] - mean[b], np.sqrt(A[a, a] + A[b, b] - 2 * A[a, b])
            wrong.append(norm.cdf(0, abs(m), s))
    assert ranking.doubt == pytest.approx(np.mean(wrong))
    assert ranking.order.tolist() == np.argsort(-mean).tolist()


@pytest.mark.parametrize("rows", [X, np.empty((8, 0)), np.ones((8, 2))])
def test_every_order_is_found_whatever_the_columns_say(rows):
    asking = Asking(Choices(NAMES, rows), repeat=0.0, tol=0.0)
    answered(asking, 28)
    assert asking.next() is None
    assert asking.progress().is_complete
    assert asking.ranking().order.tolist() == list(range(8))
    assert asking.ranking().doubt < 0.1


def test_nothing_is_asked_twice_but_what_is_repeated(tmp_path):
    with Journal(tmp_path / "me.jsonl") as journal:
        asking = answered(Asking(Choices(NAMES, X), journal=journal, repeat=0.4, tol=0.0), 20)
        asked = [(frozenset((line.left, line.right)), line.by) for line in journal.lines]
        new = [pair for pair, by in asked if by != "repeat"]
        repeated = [pair for pair, by in asked if by == "repeat"]
        assert len(new) == len(set(new))
        assert 2 <= len(repeated) == len(set(repeated)) <= 14
        assert set(repeated) <= set(new)
        progress = asking.progress()
        assert (progress.repeated, progress.same) == (len(repeated), len(repeated))
        sides = [line.left < line.right for line in journal.lines]
        assert 3 <= sum(sides) <= 17


def test_who_goes_on_is_asked_the_same_and_has_the_same_order(tmp_path):
    choices = Choices(NAMES, X)
    with Journal(tmp_path / "me.jsonl") as journal:
        asking = answered(Asking(choices, journal=journal), 9)
        asking.answer(asking.next(), "skip")
        question = asking.next()
        score = asking.ranking().score
    with Journal(tmp_path / "me.jsonl") as journal:
        again = Asking(choices, journal=journal)
        assert again.next() == question
        np.testing.assert_allclose(again.ranking().score, score, atol=1e-6)
        assert again.progress().skipped == 1


def test_what_is_taken_back_is_as_if_it_was_never_said():
    asking = answered(Asking(Choices(NAMES, X)), 7)
    score, question = asking.ranking().score, asking.next()
    asking.answer(question, "equal")
    assert asking.undo() == question == asking.next()
    np.testing.assert_allclose(asking.ranking().score, score, atol=1e-6)
    fresh = Asking(Choices(NAMES, X))
    assert fresh.undo() is None
    assert fresh.ranking() is None


def test_contradictions_circles_and_ties_are_fine():
    asking = Asking(Choices(NAMES[:3]))
    for left, right in ((0, 1), (1, 2), (2, 0), (0, 1), (1, 0)):
        asking.answer(Question(left, right), "left")
    asking.answer(Question(0, 2), "equal")
    ranking = asking.ranking()
    assert np.isfinite(ranking.score).all()
    assert ranking.doubt > 0.2
    answers = asking.progress()
    assert (answers.answered, answers.equal) == (6, 1)


def test_repeats_are_compared_with_what_was_said_before(tmp_path):
    with Journal(tmp_path / "me.jsonl") as journal:
        for line in (
            Line("left", "a", "b"), Line("right", "b", "a", "repeat"), Line("equal", "a", "c"),
            Line("left", "c", "a", "repeat"), Line("skip", "b", "a", "repeat"),
        ):  # fmt: skip
            journal.append(line)
        progress = Asking(Choices(NAMES), journal=journal).progress()
    assert (progress.repeated, progress.same, progress.skipped) == (2, 1, 1)


@pytest.mark.long
def test_chosen_questions_find_the_order_sooner_than_random_ones():
    rng = np.random.default_rng(0)
    choices, y = Choices([f"t{k}" for k in range(14)]), rng.permutation(14)
    chosen, chance = (simulate(choices, y, 3, by=by, tol=0.0, n_questions=40) for by in ("bald", "random"))
    errors = [np.mean([replay.disagreement[-1] for replay in replays]) for replays in (chosen, chance)]
    assert errors[0] < 0.6 * errors[1]
    assert all(len(replay) == 40 for replay in chosen)


def test_it_stops_when_nothing_is_left_to_tell():
    replays = simulate(Choices(NAMES, X), X[:, 0], 2, tol=0.1)
    assert all(8 <= len(replay) < 28 for replay in replays)


def test_what_cannot_be_meant_is_one_sentence():
    with pytest.raises(InputError, match="repeat is 1"):
        Asking(Choices(NAMES), repeat=1)
    asking = Asking(Choices(NAMES))
    with pytest.raises(InputError, match="answer is 'up'; pass one of left, right, equal, skip"):
        asking.answer(asking.next(), "up")
    with pytest.raises(InputError, match="says the same of all"):
        simulate(Choices(NAMES), np.ones(8))
    for_other = [Line("left", "a", "z")]
    with pytest.raises(InputError, match="the journal speaks of 'z'"):
        Asking(Choices(NAMES), journal=type("", (), {"lines": for_other})())
