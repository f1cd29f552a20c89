from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from corank.errors import InputError
from corank_lab.records.records import Records
from corank_lab.screening import Screening, ScreeningJournal, UniqueRecords, make_views
from corank_lab.screening.methods import protocol_paragraph
from corank_lab.screening.model import ScreeningModel
from corank_lab.screening.stopping.rules import stopping_rule
from corank_lab.screening.stopping.urns import draw_order, richness_sentence
from helpers.records import collection

RECORDS = collection()
Y = RECORDS.labels > 0
VIEWS = make_views(RECORDS)
PAIR = {"known": [RECORDS.ids[np.flatnonzero(Y)[0]]], "rejected": [RECORDS.ids[np.flatnonzero(~Y)[0]]]}


def start(**words):
    return Screening(RECORDS, views=VIEWS, **{**PAIR, **words})


def read_on(screening, n):
    shown = []
    for _ in range(n):
        record = screening.next()
        screening.answer(record, bool(Y[record]))
        shown.append(record)
    return shown


def test_the_highest_score_is_read_next_and_each_record_once():
    screening, judged = start(), [int(np.flatnonzero(Y)[0]), int(np.flatnonzero(~Y)[0])]
    for _ in range(20):
        scores = ScreeningModel(VIEWS).scores(judged, Y[judged])
        scores[judged] = -np.inf
        record = screening.next()
        assert scores[record] >= scores.max() - 2e-3  # conjugate gradients stop early
        screening.answer(record, bool(Y[record]))
        judged.append(record)
    rest = read_on(screening, len(RECORDS) - len(judged))
    assert sorted([*judged, *rest]) == list(range(len(RECORDS)))
    assert screening.next() is None
    assert screening.unread == 0
    assert screening.progress().may_stop
    assert screening.progress().evidence == "all read"


@pytest.mark.parametrize("relevant", [False, True])
def test_a_prefetched_answer_gives_the_fitted_scores(relevant):
    one, other = start(), start()
    for screening in (one, other):
        read_on(screening, 6)
    record = one.next()
    assert record == other.next()
    one.prefetch(record)
    one.answer(record, relevant)
    other.answer(record, relevant)
    assert one.next() == other.next()
    first = Screening(RECORDS, views=VIEWS)  # no relevant record yet
    first.prefetch(first.next())
    first.answer(first.next(), relevant)
    assert first.next() is not None


def test_a_withdrawn_answer_has_no_effect():
    screening, other = start(), start()
    assert screening.undo() is None  # known records stay
    assert read_on(screening, 5) == read_on(other, 5)
    expected = screening.next()
    screening.answer(expected, True)
    screening.next()
    assert screening.undo() == expected
    assert screening.next() == expected
    assert screening.answers == other.answers
    screening.answer(expected, False)
    assert screening.answers[expected] is False


def test_a_postponed_record_comes_last_and_can_be_undone():
    screening = start()
    record = screening.next()
    screening.later(record)
    assert screening.next() != record
    assert screening.undo() == record
    assert screening.next() == record
    screening.later(record)
    rest = read_on(screening, screening.unread)
    assert rest[-1] == record


def test_a_journal_is_continued(tmp_path):
    through = start(topic="topic1")
    expected = read_on(through, 20)
    with ScreeningJournal(tmp_path / "corank.db") as journal:
        screening = start(journal=journal, topic="topic1")
        shown = read_on(screening, 8)
        screening.later(screening.next())
        screening.undo()
        screening.note(shown[2], "a note")
        seen = screening.answers
    with ScreeningJournal(tmp_path / "corank.db") as journal:
        again = start(journal=journal, topic="topic1")
        assert list(again.answers.items()) == list(seen.items())
        assert again.notes == {shown[2]: "a note"}
        assert len(journal.entries) == 8 + 2 + 4  # known and rejected records and the topic are not written twice
        assert [*shown, *read_on(again, 12)] == expected


def test_answers_about_other_records_are_listed_and_kept(tmp_path):
    path = tmp_path / "corank.db"
    with ScreeningJournal(path) as journal:
        Screening(RECORDS, known=["r59", "r3"], journal=journal, views=VIEWS)
    with ScreeningJournal(path) as journal:
        screening = Screening(RECORDS.take(range(20)), journal=journal)
        assert screening.answers == {3: True}
        assert [(entry.id, entry.title) for entry in screening.unmatched] == [("r59", RECORDS.titles[59])]
    with ScreeningJournal(path) as journal:
        assert Screening(RECORDS, journal=journal, views=VIEWS).answers == {59: True, 3: True}


def test_bad_records_raise():
    screening = start()
    record = screening.next()
    screening.answer(record, True)
    with pytest.raises(InputError, match=r"is answered; withdraw the answer first"):
        screening.answer(record, False)
    for number in (-1, 60, 1.5, True):
        with pytest.raises(InputError, match=f"record is {number}; pass a number from 0 to 59"):
            screening.later(number)
    with pytest.raises(InputError, match="there is no record 'r99'"):
        start(known=["r99"])


def test_from_nothing_typical_and_random_records_are_read_in_turn():
    screening = Screening(RECORDS, views=VIEWS, random_state=3)
    K = VIEWS.kernel - np.diag(VIEWS.own)
    assert screening.next() == np.argmax(K.mean(axis=1))
    rejected = []
    for turn in range(4):
        record = screening.next()
        assert record == screening.next()  # the same until it is answered
        if turn % 2 == 0:
            value = K.mean(axis=1) - (K[:, rejected].mean(axis=1) if rejected else 0)
            value[rejected] = -np.inf
            assert record == np.argmax(value)
        screening.answer(record, False)
        rejected.append(record)


def test_the_topic_is_used_until_the_first_find():
    records = collection(seed=4)
    screening = Screening(records, topic="topic1 topic2 topic3 topic4", random_state=1)
    y = records.labels > 0
    record = screening.next()
    assert y[record]
    screening.answer(record, True)
    assert screening.next() is not None


@pytest.mark.thin(2)
@pytest.mark.parametrize("rule", ["agree", "sample"])
def test_progress_adds_up_and_ends_with_the_advice_to_stop(rule):
    records = collection(300, 12, seed=2)
    y, views = records.labels > 0, make_views(records)
    screening = Screening(records, known=[records.ids[int(np.flatnonzero(y)[0])]], views=views, rule=rule)
    sampled, reads = [], 0
    while not (progress := screening.progress()).may_stop:
        assert progress.read == reads + 1
        assert progress.found == sum(screening.answers.values())
        sampled.append(progress.to_sample)
        record = screening.next()
        screening.answer(record, bool(y[record]))
        reads += 1
    assert screening.progress().found >= 0.95 * y.sum()
    assert progress.evidence == ("sample" if rule == "sample" else "rule")
    if rule != "sample":
        assert not any(sampled)
        assert progress.estimate.low <= progress.estimate.recall <= progress.estimate.high
    else:
        # it counts down to the next test
        began = next(at for at, left in enumerate(sampled) if left)
        assert all(a - b == 1 for a, b in zip(sampled[began:], sampled[began + 1 :], strict=False) if a > 1)
        # further reading is ranked again, and the proof is kept
        screening.answer(screening.next(), False)
        assert screening.progress().may_stop


@pytest.mark.long
def test_the_advice_to_stop_is_withdrawn_when_relevant_records_follow():
    records = collection(1000, 12, seed=2)
    y = records.labels > 0
    screening = Screening(records, known=[records.ids[int(np.flatnonzero(y)[0])]])
    while not (progress := screening.progress()).may_stop:
        record = screening.next()
        screening.answer(record, bool(y[record]))
    came = progress.read
    assert progress.advised_since == came
    screening.answer(screening.next(), False)
    assert (screening.progress().may_stop, screening.progress().advised_since) == (True, came)
    for _ in range(4):  # before the next look, which is 10 records after the last
        screening.answer(screening.next(), True)
    later = screening.progress()
    assert (later.may_stop, later.evidence, later.advised_since) == (False, None, None)
    assert "the rule stops after" in later.forecast[0]
    assert f"withdrawn at record {came + 2}, which is relevant" in later.advice


@pytest.mark.long
def test_a_sample_is_continued_with_its_postponed_records(tmp_path):
    records = collection(200, 12, seed=2)
    y, views = records.labels > 0, make_views(records)
    words = {"known": [records.ids[int(np.flatnonzero(y)[0])]], "views": views, "rule": "sample"}

    def read(screening, most=1000, put_off=()):
        shown, put_off = [], set(put_off)
        while len(shown) < most and not screening.progress().may_stop:
            record = screening.next()
            if record in put_off:
                put_off.remove(record)
                screening.later(record)
            else:
                screening.answer(record, bool(y[record]))
                shown.append(record)
        return shown

    whole = Screening(records, **words)
    expected = read(whole)
    shown = []
    while len(shown) < len(expected):
        with ScreeningJournal(tmp_path / "corank.db") as journal:
            shown += read(Screening(records, journal=journal, **words), 37)
            ways = [line.by for line in journal.entries]
    assert shown == expected
    n_ranked = ways.index("sample") - 1  # the first entry is the known record
    assert n_ranked < len(expected)
    postponed = read(Screening(records, **words), put_off=expected[n_ranked : n_ranked + 5])
    assert postponed[:n_ranked] == expected[:n_ranked]
    assert postponed[n_ranked] == expected[n_ranked + 5]
    assert set(postponed) == set(expected)


HASHES = """
import hashlib
from corank_lab.records import load_review
from corank_lab.screening.views import reference_views
views = [part for view in reference_views(load_review()) for part in (view.data, view.indices, view.indptr)]
print(hashlib.sha256(b"".join(part.tobytes() for part in views)).hexdigest())
"""


@pytest.mark.long
def test_views_do_not_depend_on_the_hash_seed():
    found = {
        subprocess.run(
            [sys.executable, "-c", HASHES], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(found) == 1


def test_a_random_sample_is_not_larger_than_the_collection():
    records = collection(20, 4)
    with pytest.raises(InputError, match="richness is 21"):
        Screening(records, richness=21)
    with pytest.raises(InputError, match="richness is 21"):
        protocol_paragraph(20, {"a.csv": "0"}, stopping_rule("agree", 20), 0, 21)


def test_a_protocol_says_how_the_sample_is_read():
    for rule, has_sample in (("sample", True), ("agree", False)):
        text = protocol_paragraph(20, {"a.csv": "0"}, stopping_rule(rule, 20, confidence=0.9), 0, 5)
        assert ("random unread records are read in the order of the seed" in text) == has_sample
        assert "an accepted error of 1 in 10, over many screenings" in text


def test_a_random_sample_before_the_reading_states_the_richness():
    records = collection(60, 12)
    screening = Screening(records, richness=10, random_state=4)
    drawn = []
    for _ in range(10):
        record = screening.next()
        assert screening.why(record).by == "richness"
        drawn.append(record)
        screening.answer(record, relevant=bool(records.labels[record] == 1))
        said = screening.progress().forecast[-1]  # no share of a sample whose size may depend on its answers
        assert said == f"Richness: {len(drawn)} of 10 random records are read." or len(drawn) == 10
    assert drawn == draw_order(60, (), 4)[:10]
    found = int(records.labels[drawn].sum())
    assert screening.progress().forecast[-1].startswith(f"Richness: {found} of 10 random records are relevant")
    assert screening.why(screening.next()).by != "richness"
    assert screening.rule.n == 50  # the ranking has no part in the sample
    assert screening.team.n_known == found
    assert "2 of 2 random records are relevant (100 %). " in richness_sentence(135, 2, 2)


def test_a_gap_ends_the_random_sample():
    records = collection(60, 12)
    screening = Screening(records, richness=10, random_state=4)
    drawn = draw_order(60, (), 4)[:10]
    for record in drawn:
        screening.next()
        screening.later(record) if record == drawn[6] else screening.answer(record, relevant=True)
    assert "Richness: 6 of 10 random records are read." in screening.progress().forecast


def test_a_thread_follows_the_family():
    fields = [{"Thread": ["t1"]}, {}, {"Thread": ["t1"], "Family": ["f"]}, {"Family": ["f"]}, {"Thread": ["t2"]}]
    unique = UniqueRecords(Records(list("abcde"), ["tin"] * 5, [""] * 5, fields=fields))
    assert [unique.family(number) for number in range(5)] == [(2,), (), (3, 0), (2,), ()]
