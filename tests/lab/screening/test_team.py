"""Several judges at once: who reads what, the answers together, and random samples."""

from __future__ import annotations

import numpy as np
import pytest

from corank_lab.screening.answers import ScreeningEntry, combine
from corank_lab.screening.matching import UniqueRecords
from corank_lab.screening.screening import Screening
from corank_lab.screening.team import KNOWN
from helpers.records import collection


def together(records, **options):
    return Screening(UniqueRecords(records), share=True, **options)


def learn(team):
    team.prepare()
    team.install(team.fit(team.judged))


def read(team, judge, truth, n, begin=0):
    """Read n records as the truth says; return their numbers."""
    numbers = []
    for at in range(n):
        number = team.open_for(judge, 5)[0].number
        action = "relevant" if truth[number] else "not"
        entry = ScreeningEntry(action, team.records.ids[number], team.why(number, judge).by, time=f"{begin + at:06}")
        team.add(judge, entry)
        learn(team)
        numbers.append(number)
    return numbers


@pytest.fixture
def records():
    return collection(60, 10)


@pytest.fixture
def truth(records):
    return records.labels.astype(bool)


def test_the_model_finds_relevant_records_first(records, truth):
    team = together(records)
    learn(team)
    numbers = read(team, "ann", truth, 30)
    assert len(set(numbers)) == 30
    assert truth[numbers].sum() >= 7  # 5 at random
    team.advice = team.plan_advice()()
    assert [line.split(":")[0] for line in team.advice.forecast] == ["Estimated", "Tested", "Proved"]


def test_each_record_is_read_by_as_many_judges_as_asked(records, truth):
    team = together(records, readers=2, overlap=1.0)
    learn(team)
    first = read(team, "ann", truth, 8)
    assert [one.slots for one in team.open_for("bob")][:9] == [1] * 8 + [2]
    assert read(team, "bob", truth, 8, 100) == first
    assert not {one.number for one in team.open_for("cat")} & set(first)
    assert team.n_finished == 8


def test_a_part_of_the_records_is_shared(records):
    team = together(records, readers=3, overlap=0.3)
    slots = [one.slots for one in team.open_for("ann")]
    assert set(slots) == {1, 3}
    assert 5 < slots.count(3) < 35


def test_records_put_aside_come_last_and_those_of_others_after_them(records):
    team = together(records)
    ids = records.ids
    team.add("ann", ScreeningEntry("later", ids[3]))
    team.add("bob", ScreeningEntry("later", ids[5]))
    assert [one.number for one in team.open_for("ann")][-2:] == [3, 5]
    assert [one.number for one in team.open_for("bob")][-2:] == [5, 3]
    team.add("ann", ScreeningEntry("undo", ids[3]))
    assert team.slots_for("ann", 3) == 1
    assert team.slots_for("bob", 5) == 0


def test_answers_together_are_the_same_when_they_are_added_one_by_one(records):
    team = together(records, readers=2, overlap=1.0)
    rng = np.random.default_rng(0)
    for step in range(300):
        judge, number = str(rng.choice(["ann", "bob", "cat"])), int(rng.integers(20))
        mine = team.answers_of(judge)
        action = str(rng.choice(["relevant", "not", "later", "undo", "settle", "duplicate"]))
        is_read, id = number in mine.current, records.ids[number]
        if action == "settle":
            entry = ScreeningEntry("not", id, "adjudication", time=f"{step:06}")
        elif action == "undo":
            entry = ScreeningEntry("undo", id, time=f"{step:06}") if mine.last == number else None
        elif action == "duplicate":
            entry = ScreeningEntry(action, id, "history" if is_read else "model", of=records.ids[30], time=f"{step:06}")
        else:
            entry = ScreeningEntry(action, id, "history" if is_read else "model", time=f"{step:06}")
        if entry is None:
            continue
        team.add(judge, entry)
        found, expected = team.team, combine(team.judges)
        assert found.relevant == expected.relevant
        assert list(found.relevant) == list(expected.relevant)
        assert found.finds == expected.finds


def test_labels_are_known_and_not_shown(records):
    team = together(records.take(range(60)))
    team.use_labels()
    assert team.open_for("ann") == []
    assert list(team.judges[KNOWN].relevant) == list(range(60))
    assert together(records).judges == {}


def test_the_advice_to_stop_is_withdrawn_with_the_next_find():
    """Before the next forecast is made, and by it."""
    team = together(collection(1000, 12))
    for number in range(1000):
        team.add("ann", ScreeningEntry("relevant" if number < 30 else "not", team.records.ids[number], "model"))
        if number % 10 == 9 and (forecast := team.plan_advice()()).may_stop:
            break
    team.advice = forecast
    assert team.advice is forecast
    assert forecast.advised_since == number + 1
    for more in range(1, 5):
        team.add("ann", ScreeningEntry("relevant", team.records.ids[number + more], "model"))
        assert (team.advice.may_stop, team.advice.evidence) == (False, None)
    assert not team.plan_advice()().may_stop
    for at in range(number + 5, 1000):
        team.add("ann", ScreeningEntry("not", team.records.ids[at], "model"))
    team.advice = team.plan_advice()()
    assert team.advice.evidence == "all read"
    team.add("ann", ScreeningEntry("undo", team.records.ids[999]))
    assert not team.advice.may_stop  # one record is unread again


def test_a_random_sample_follows_the_reading_and_proves_the_target(truth, records):
    team = together(records, rule="sample", target=0.7, confidence=0.7)
    learn(team)
    ways = []
    for step in range(60):
        candidates = team.open_for("ann", 5)
        if not candidates or team.plan_advice()().may_stop:
            break
        number = candidates[0].number
        ways.append(team.why(number, "ann").by)
        read(team, "ann", truth, 1, step)
    assert ways[0] == "start"
    assert "sample" in ways
    assert set(ways[ways.index("sample") :]) == {"sample"}
    assert team.plan_advice()().evidence in ("sample", "all read")
