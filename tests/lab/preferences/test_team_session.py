"""A session whose questions depend on the answers of other judges."""

from __future__ import annotations

import numpy as np
import pytest

from corank.data.io.items import Items
from corank_lab.preferences import PreferenceSession
from corank_lab.preferences.answers import PreferenceEntry

ITEMS = Items([f"item {number}" for number in range(8)])
PAIRS = [(a, b) for a in range(8) for b in range(a + 1, 8)]


def answers_of(pairs, rng=None):
    """Answers by the order of the items, or at random."""
    names = ITEMS.names
    actions = ["left" if rng is None or rng.random() < 0.5 else "right" for _ in pairs]
    return [PreferenceEntry(action, names[a], names[b], "model") for action, (a, b) in zip(actions, pairs, strict=True)]


def session_of(judge, others, **options):
    """A session of a judge after the answers of others."""
    session = PreferenceSession(ITEMS, judge=judge, **options)
    for name, entries in others.items():
        for entry in entries:
            session.add(name, entry)
    return session


def n_questions(session):
    n = 0
    while (question := session.next()) is not None:
        session.answer(question, "left" if question.left < question.right else "right")
        n += 1
    return n


@pytest.mark.long
def test_fewer_questions_are_needed_after_a_careful_judge_than_after_a_coin():
    alone = n_questions(PreferenceSession(ITEMS, repeat=0.0))
    careful = n_questions(session_of("bob", {"ann": answers_of(PAIRS * 2)}, repeat=0.0))
    after_a_coin = n_questions(session_of("bob", {"ann": answers_of(PAIRS * 2, np.random.default_rng(0))}, repeat=0.0))
    assert careful < alone
    assert careful < after_a_coin


def test_the_ranking_is_that_of_the_judges_own_answers():
    session = session_of("bob", {"ann": answers_of(PAIRS)})
    assert session.ranking() is None
    question = session.next()
    session.answer(question, "right" if question.left < question.right else "left")
    assert session.ranking().order[0] == max(question.left, question.right)
    assert session.progress().answered == 1


def test_a_later_session_asks_the_same_question_and_undo_returns_to_the_last():
    others = {"ann": answers_of(PAIRS[::3]), "carl": answers_of(PAIRS[::4])}
    session = session_of("bob", others, random_state=3)
    for _ in range(5):
        question = session.next()
        session.answer(question, "left")
    again = session_of("bob", others, random_state=3)
    for _ in range(5):
        repeated = again.next()
        again.answer(repeated, "left")
    assert again.next() == session.next()
    assert again.undo() == repeated == again.next()
