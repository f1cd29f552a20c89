"""Comparisons of several judges: who is asked what, one model, and reliability."""

from __future__ import annotations

import numpy as np
import pytest

from corank.data.io.items import Items
from corank_lab.preferences.answers import PreferenceAnswers, PreferenceEntry
from corank_lab.preferences.model import judge_reliability
from corank_lab.preferences.session import PreferenceSession

NAMES = ["a", "b", "c", "d", "e", "f"]
PAIRS = [(a, b) for a in range(6) for b in range(a + 1, 6)]


def answer(team, judge, pair, by="model", action=None):
    left, right = pair
    better = action or ("left" if left < right else "right")
    team.add(judge, PreferenceEntry(better, NAMES[left], NAMES[right], by))


def ask(team, judge):
    """Answer the judge's first choice by the order of the names; return whether there was one."""
    choices = team.choices(judge)
    if not choices:
        return False
    question, _ = team.question(judge, choices[0].pair)
    answer(team, judge, question[:2], question.chosen_by)
    return True


def test_the_order_of_two_judges_is_found_and_questions_end():
    team = PreferenceSession(Items(NAMES), repeat=0.1, overlap=0.2)
    n = 0
    while any([ask(team, "ann"), ask(team, "bob")]):
        team.model = team.learn(team.pairwise(), team.asked())
        n += 1
        assert n < 60
    assert team.model.ranking.order.tolist() == list(range(6))
    for judge in ("ann", "bob"):
        assert all(team.model.gain(pair, judge) < team.tol for pair in new_to(team, judge))


def new_to(team, judge):
    """The pairs that a judge was not asked."""
    return set(PAIRS) - set(team.answers_of(judge).asked)


def test_others_may_answer_when_each_pair_was_asked_but_the_order_is_uncertain():
    team = PreferenceSession(Items(NAMES[:4]))
    for number, pair in enumerate((a, b) for a in range(4) for b in range(a + 1, 4)):
        answer(team, "ann", pair, action="left" if number % 2 else "right")
    team.model = team.learn(team.pairwise(), team.asked())
    assert team.model.ahead == ()
    assert not team.model.is_precise
    assert team.model.gain(team.model.best) > team.tol
    assert {choice.pair for choice in team.choices("bob")} == set(team.asked())


def test_a_judge_who_answers_at_random_gets_little_weight():
    team, rng = PreferenceSession(Items(NAMES)), np.random.default_rng(0)
    pairs = [(a, b) for a in range(6) for b in range(a + 1, 6)] * 2
    for pair in pairs:
        for judge in ("ann", "bob"):
            answer(team, judge, pair)
        answer(team, "coin", pair, action="left" if rng.random() < 0.5 else "right")
    model = team.learn(team.pairwise(), team.asked())
    assert model.ranking.order.tolist() == list(range(6))
    assert model.weights["coin"] < 0.2 < 0.6 < model.weights["ann"]
    # the answer of a coin says less about the order of all
    assert model.gain((2, 3), "coin") < 0.5 * model.gain((2, 3), "ann")
    assert model.gain((2, 3), "new") == model.gain((2, 3))
    alone = team.learn({"ann": team.pairwise()["ann"]}, team.asked())
    assert alone.weights == {}


def test_a_judge_gets_the_same_choices_until_an_answer_and_a_new_team_the_same():
    first, second = (PreferenceSession(Items(NAMES)) for _ in range(2))
    assert first.choices("ann") == first.choices("ann") == second.choices("ann")
    pair = first.choices("ann")[0].pair
    assert first.question("ann", pair) == second.question("ann", pair)
    assert first.question("ann", pair)[0].chosen_by == "start"


def test_shares_of_repeats_and_overlap():
    rng = np.random.default_rng(0)
    names = [f"i{k}" for k in range(40)]
    team = PreferenceSession(Items(names), repeat=0.3, overlap=0.3)
    by = []
    for n in range(400):
        judge = f"j{n % 4}"
        question, _ = team.question(judge, team.choices(judge)[0].pair)
        by.append(question.chosen_by)
        action = "left" if rng.random() < 0.5 else "right"
        team.add(judge, PreferenceEntry(action, names[question.left], names[question.right], question.chosen_by))
    assert 0.2 < by.count("repeat") / 400 < 0.35
    assert 0.1 < by.count("overlap") / 400 < 0.3


def test_pairs_of_others_are_shared_and_come_last():
    team = PreferenceSession(Items(NAMES[:3]), repeat=0.0, overlap=0.0)
    for pair in ((0, 1), (0, 2), (1, 2)):
        answer(team, "ann", pair)
    assert team.choices("ann") == []
    choices = team.choices("bob")
    assert {one.pair for one in choices} == {(0, 1), (0, 2), (1, 2)}
    assert all(one.is_shared for one in choices)
    assert team.question("bob", (0, 1))[0].chosen_by == "overlap"
    assert team.question("ann", (0, 1))[0].chosen_by == "repeat"


def test_sides_are_random():
    team = PreferenceSession(Items(NAMES))
    sides = {team.question(f"judge {k}", (0, 1))[0].left for k in range(20)}
    assert sides == {0, 1}


def test_a_change_replaces_the_answer():
    answers = PreferenceAnswers(Items(NAMES))
    for action, by in (("left", "model"), ("right", "repeat"), ("equal", "change")):
        answers.add(PreferenceEntry(action, "a", "b", by))
    assert [action for action, _ in answers.answers] == ["left", "equal"]
    assert answers.repeats == [False]


def test_a_coin_is_near_chance_and_a_careful_judge_is_not():
    items = Items([f"i{k}" for k in range(12)])
    rng = np.random.default_rng(3)
    judges = {name: PreferenceAnswers(items) for name in ("ann", "bob", "coin", "new")}
    pairs = [(a, b) for a in range(12) for b in range(a + 1, 12)][:40]
    for name, answers in judges.items():
        for a, b in pairs if name != "new" else pairs[:2]:
            action = "left" if name != "coin" or rng.random() < 0.5 else "right"
            answers.add(PreferenceEntry(action, f"i{a}", f"i{b}", "overlap"))
    found = judge_reliability(judges)
    assert [found[name].is_near_chance for name in judges] == [False, False, True, False]
    assert found["ann"].compared == 40 + 40 + 2
    for item in found.values():  # Wilson: |k/n - p| = z sqrt(p (1 - p) / n)
        for end in (item.low, item.high):
            width = 1.959964 * np.sqrt(end * (1 - end) / item.compared)
            assert abs(item.same / item.compared - end) == pytest.approx(width, abs=1e-6)
