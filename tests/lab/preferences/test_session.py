from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from corank.data.io.items import Items
from corank.errors import InputError
from corank.metrics import disagreement_error
from corank.models.gp.process import Posterior
from corank_lab.preferences import PreferenceJournal, PreferenceSession, Question, Ranking
from corank_lab.preferences.answers import PairwiseAnswer, PreferenceEntry
from corank_lab.preferences.model import PreferenceModel

NAMES = list("abcdefgh")
X = np.random.default_rng(0).standard_normal((8, 2))


def answered(session, n, y=None):
    y = np.arange(8)[::-1] if y is None else y
    while n and (question := session.next()) is not None:
        n -= 1
        session.answer(question, "left" if y[question.left] > y[question.right] else "right")
    return session


@pytest.mark.long
def test_answers_one_by_one_give_the_model_of_all_answers():
    rng = np.random.default_rng(1)
    told = [PairwiseAnswer(*rng.choice(8, 2, replace=False).tolist(), bool(rng.random() < 0.2)) for _ in range(15)]
    one_by_one = PreferenceModel(X)
    for n in range(1, 16):
        one_by_one.learn(told[:n])
    for path in ([15], [9, 4, 15], [14, 15]):  # also after withdrawn answers
        other = PreferenceModel(X)
        for n in path:
            gp = other.learn(told[:n])
        np.testing.assert_allclose(gp.posterior().mean, one_by_one.learn(told).posterior().mean, atol=1e-6)


def test_items_with_equal_features_have_values_of_their_own():
    rows = np.repeat(X[:4], 2, axis=0)
    told = [PairwiseAnswer(0, 1)] * 5 + [PairwiseAnswer(2, 4), PairwiseAnswer(5, 6, True)]
    mean, var = PreferenceModel(rows).learn(told).posterior().differences([[0, 1], [2, 3]])
    assert mean[0] > 0.3
    assert 0.0 < var[0] < var[1]


def test_a_constant_column_and_the_scale_of_columns_have_no_effect():
    told = [PairwiseAnswer(0, 1), PairwiseAnswer(2, 3), PairwiseAnswer(1, 4, True)]
    one = PreferenceModel(X).learn(told).posterior()
    other = PreferenceModel(np.column_stack([100.0 * X + 7.0, np.ones(8)])).learn(told).posterior()
    np.testing.assert_allclose(one.mean, other.mean, atol=1e-6)
    np.testing.assert_allclose(one.covariance, other.covariance, atol=1e-6)


def test_scores_and_deviations_are_relative_to_the_mean():
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
    assert ranking.expected_disagreement == pytest.approx(np.mean(wrong))
    assert ranking.order.tolist() == np.argsort(-mean).tolist()


@pytest.mark.thin(3)
@pytest.mark.parametrize("rows", [X, np.empty((8, 0)), np.ones((8, 2))])
def test_the_order_is_found_with_any_features(rows):
    session = PreferenceSession(Items(NAMES, rows), repeat=0.0, tol=0.0)
    answered(session, 28)
    assert session.next() is None
    assert session.progress().is_complete
    assert session.ranking().order.tolist() == list(range(8))
    assert session.ranking().expected_disagreement < 0.1


@pytest.mark.long
def test_only_repetitions_are_asked_twice(tmp_path):
    with PreferenceJournal(tmp_path / "corank.db") as journal:
        session = answered(PreferenceSession(Items(NAMES, X), journal=journal, repeat=0.4, tol=0.0), 20)
        asked = [(frozenset((entry.left, entry.right)), entry.by) for entry in journal.entries]
        new = [pair for pair, by in asked if by != "repeat"]
        repeated = [pair for pair, by in asked if by == "repeat"]
        assert len(new) == len(set(new))
        assert 2 <= len(repeated) == len(set(repeated)) <= 14
        assert set(repeated) <= set(new)
        progress = session.progress()
        assert (progress.repeated, progress.same) == (len(repeated), len(repeated))
        sides = [entry.left < entry.right for entry in journal.entries]
        assert 3 <= sum(sides) <= 17


def test_a_later_session_has_the_same_question_and_ranking(tmp_path):
    items = Items(NAMES, X)
    with PreferenceJournal(tmp_path / "corank.db") as journal:
        session = answered(PreferenceSession(items, journal=journal), 9)
        session.answer(session.next(), "skip")
        question = session.next()
        score = session.ranking().score
    with PreferenceJournal(tmp_path / "corank.db") as journal:
        again = PreferenceSession(items, journal=journal)
        assert again.next() == question
        np.testing.assert_allclose(again.ranking().score, score, atol=1e-6)
        assert again.progress().skipped == 1


def test_a_withdrawn_answer_has_no_effect():
    session = answered(PreferenceSession(Items(NAMES, X)), 7)
    score, question = session.ranking().score, session.next()
    session.answer(question, "equal")
    assert session.undo() == question == session.next()
    np.testing.assert_allclose(session.ranking().score, score, atol=1e-6)
    fresh = PreferenceSession(Items(NAMES, X))
    assert fresh.undo() is None
    assert fresh.ranking() is None


def test_contradictions_cycles_and_ties_are_allowed():
    session = PreferenceSession(Items(NAMES[:3]))
    for left, right in ((0, 1), (1, 2), (2, 0), (0, 1), (1, 0)):
        session.answer(Question(left, right), "left")
    session.answer(Question(0, 2), "equal")
    ranking = session.ranking()
    assert np.isfinite(ranking.score).all()
    assert ranking.expected_disagreement > 0.2
    answers = session.progress()
    assert (answers.answered, answers.equal) == (6, 1)


def test_repeats_are_compared_with_the_earlier_answer(tmp_path):
    with PreferenceJournal(tmp_path / "corank.db") as journal:
        journal.begin(Items(NAMES))
        for entry in (
            PreferenceEntry("left", "a", "b"), PreferenceEntry("right", "b", "a", "repeat"),
            PreferenceEntry("equal", "a", "c"), PreferenceEntry("left", "c", "a", "repeat"),
            PreferenceEntry("skip", "b", "a", "repeat"),
        ):  # fmt: skip
            journal.append(entry)
        progress = PreferenceSession(Items(NAMES), journal=journal).progress()
    assert (progress.repeated, progress.same, progress.skipped) == (2, 1, 1)


@pytest.mark.long
def test_the_strategy_needs_fewer_questions_than_random_ones():
    rng = np.random.default_rng(0)
    items, y = Items([f"t{k}" for k in range(14)]), rng.permutation(14)
    errors = []
    for strategy in ("bald", "random"):
        sessions = [PreferenceSession(items, strategy=strategy, repeat=0.0, tol=0.0, random_state=k) for k in range(3)]
        for session in sessions:
            answered(session, 40, y)
        errors.append(np.mean([disagreement_error(y, session.ranking().score) for session in sessions]))
    assert errors[0] < 0.6 * errors[1]


@pytest.mark.long
def test_it_stops_when_gains_are_below_tol():
    session = PreferenceSession(Items(NAMES, X), repeat=0.0, tol=0.1, random_state=1)
    answered(session, 28, X[:, 0])
    assert 8 <= session.progress().answered < 28


def test_bad_input_raises(tmp_path):
    with pytest.raises(InputError, match="repeat is 1"):
        PreferenceSession(Items(NAMES), repeat=1)
    session = PreferenceSession(Items(NAMES))
    with pytest.raises(InputError, match="answer is 'up'"):
        session.answer(session.next(), "up")
    with PreferenceJournal(tmp_path / "corank.db") as journal:
        journal.begin(Items(NAMES))
        journal.append(PreferenceEntry("left", "a", "z"))
        with pytest.raises(InputError, match="answer 1: an answer about 'z'"):
            PreferenceSession(Items(NAMES), journal=journal)
