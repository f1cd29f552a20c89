from __future__ import annotations

import numpy as np
import pytest

from corank.errors import InputError
from corank_lab.screening import ScreeningJournal, UniqueRecords, combine, find_conflicts
from corank_lab.screening.answers import ScreeningAnswers, ScreeningEntry
from corank_lab.screening.methods import kappa_interval, screening_agreement
from corank_lab.screening.team import Adjudication
from helpers.records import collection

RECORDS = collection()


def entry(action, number, by="model", **words):
    return ScreeningEntry(action, f"r{number}", by, **words)


def answers(*entries):
    return ScreeningAnswers(RECORDS, entries)


def test_conflicts_are_of_those_who_read_and_end_with_the_adjudicator():
    ann = answers(entry("relevant", 1), entry("not", 2), entry("relevant", 3, "known"), entry("not", 4))
    bob = answers(entry("not", 1), entry("not", 2), entry("not", 3), entry("duplicate", 4, of="r1"), entry("later", 5))
    assert find_conflicts({"ann": ann, "bob": bob}) == [1]
    eve = answers(entry("not", 1, "adjudication", reason="dose"))
    everyone = {"ann": ann, "bob": bob, "eve": eve}
    assert find_conflicts(everyone) == []
    assert find_conflicts(everyone, settled=True) == [1]
    together = combine(everyone)
    assert together.relevant == {1: False, 2: False, 3: True, 4: False}
    assert together.current[1].reason == "dose"
    assert combine({"ann": ann, "bob": bob}).relevant[1] is True  # until it is settled


def test_answers_together_are_in_the_order_of_time():
    ann = answers(entry("not", 1, time="2026-01-01T10:00Z"), entry("relevant", 2, time="2026-01-01T12:00Z"))
    bob = answers(entry("relevant", 3, time="2026-01-01T11:00Z"), entry("relevant", 1, time="2026-01-01T13:00Z"))
    together = combine({"ann": ann, "bob": bob})
    assert together.ranked == [1, 3, 2]
    assert together.finds == [1, 2, 3]


def test_an_adjudicator_settles_conflicts_durably(tmp_path):
    judges = {
        "ann": [entry("relevant", 1), entry("not", 2, reason="dose"), entry("note", 2, text="see table")],
        "bob": [entry("not", 1), entry("relevant", 2)],
    }
    for judge, entries in judges.items():
        with ScreeningJournal(tmp_path / "corank.db", judge) as journal:
            journal.begin(UniqueRecords(RECORDS))
            journal.extend(entries)
    for round_ in range(2):
        with ScreeningJournal(tmp_path / "corank.db", "eve") as journal:
            session = Adjudication(UniqueRecords(RECORDS), journal)
            assert session.conflicts == [1, 2]
            if round_ == 0:
                assert session.next() == 1
                session.later(1)
                assert session.next() == 2
                verdicts = {one.judge: (one.entry.action, one.entry.reason, one.note) for one in session.verdicts(2)}
                assert verdicts == {"ann": ("not", "dose", "see table"), "bob": ("relevant", "", "")}
                session.answer(2, True)
                assert session.undo() == 2
                session.answer(2, False, reason="dose")
                session.note(2, "agreed")
                with pytest.raises(InputError, match="not in conflict"):
                    session.answer(7, True)
            assert session.left == [1]
            assert session.next() == 1
            assert [number for number, _ in session.history()] == [2]
            assert session.notes == {2: "agreed"}


def test_agreement_counts_records_that_both_read():
    ann = answers(*(entry("relevant" if at < 4 else "not", at, reason="" if at < 4 else "dose") for at in range(12)))
    bob = answers(
        *(entry("relevant" if at < 3 else "not", at, reason="dose" if at < 8 else "age") for at in range(10)),
        entry("relevant", 30, "known"),
    )
    agreement = screening_agreement({"ann": ann, "bob": bob, "eve": answers(entry("not", 3, "adjudication"))})
    included, *reasons = agreement.pairs
    assert included[:6] == ("ann", "bob", "included", 10, 9, 3)
    # 3 yes, 6 no, one apart: observed .9, by chance .4 * .3 + .6 * .7
    assert included.kappa == pytest.approx((0.9 - 0.54) / (1 - 0.54))
    assert included.low < included.kappa < included.high
    assert [(one.question, one.n_both, one.n_same) for one in reasons] == [("age", 6, 4), ("dose", 6, 4)]
    assert (agreement.n_conflicts, agreement.n_settled) == (1, 1)
    assert len(agreement.table().rows) == 3


def test_intervals_of_kappa_cover_the_true_value():
    """Pairs of answers with a known kappa: 95 % of the intervals hold it, within the error of 400 samples."""
    shares = np.array([0.15, 0.05, 0.05, 0.75])
    chance = 0.2 * 0.2 + 0.8 * 0.8
    kappa = (0.9 - chance) / (1 - chance)
    rng, hits = np.random.default_rng(1), 0
    for _ in range(400):
        drawn = rng.choice(4, size=100, p=shares)
        low, high = kappa_interval(drawn <= 1, (drawn == 0) | (drawn == 2))
        hits += low <= kappa <= high
    assert 0.92 <= hits / 400 <= 0.98
    low, high = kappa_interval(np.arange(12) < 4, np.arange(12) < 4)
    assert low < 0.9  # twelve equal answers prove little
    assert high <= 1.0
