"""Exports of a screening: answers of several judges are settled, spread over duplicates, and written."""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corank.errors import InputError
from corank_lab.records.records import RecordDetails, Records, read_records
from corank_lab.screening.export import JudgeAnswer, SettledAnswer, export_screening, settle, spread

YES, NO, LATER = JudgeAnswer(1.0, time="2024-01-02"), JudgeAnswer(0.0, "animals", time="2024-01-01"), JudgeAnswer()


@dataclass(frozen=True)
class SomeGroups:
    """Groups given as tuples; the first member represents a group."""

    n: int
    found: tuple[tuple[int, ...], ...]

    @property
    def representatives(self):
        return [at for at in range(self.n) if not any(at in group[1:] for group in self.found)]

    def group_of(self, number):
        return next((group for group in self.found if number in group), (number,))


def some_records(n):
    return Records(
        [f"W{at}" for at in range(n)], [f"Title {at}" for at in range(n)], [""] * n,
        fields=[{"Volume": [str(at)]} for at in range(n)],
        details=[RecordDetails(given_id=f"W{at}") for at in range(n)],
    )  # fmt: skip


def rows_of(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_agreement_conflict_and_adjudication():
    answers = {"ann": {0: YES, 1: YES, 2: NO, 3: LATER, 5: NO}, "bob": {0: YES, 1: NO, 2: NO, 4: YES, 5: YES}}
    final = {5: ("cy", JudgeAnswer(0.0, "wrong design", ("x",), "see p. 3"))}
    found = settle(answers, final)
    assert {number: one.status for number, one in found.items()} == {
        0: "included", 1: "conflict", 2: "excluded", 3: "unread", 4: "included", 5: "excluded",
    }  # fmt: skip
    assert found[1].reason == "animals"
    assert found[2].reason == "animals"
    assert (found[5].reason, found[5].settled_by, found[5].tags, found[5].note) == (
        "wrong design", "cy", ("x",), "cy: see p. 3",
    )  # fmt: skip
    assert found[5].judges == {"ann": 0.0, "bob": 1.0}
    assert not found[5].is_conflict


def test_a_duplicate_is_not_a_vote():
    found = settle(
        {"ann": {0: JudgeAnswer(0.0, duplicate_of="W7"), 1: JudgeAnswer(duplicate_of="W7")}, "bob": {1: YES}}
    )
    assert [one.status for one in found.values()] == ["duplicate", "included"]


def test_export_of_all_records_with_columns(tmp_path):
    ann = {
        0: JudgeAnswer(1.0, "", ("key", "new"), "good", "2024-05-01T10:00:00Z", "model, rank 1"),
        1: JudgeAnswer(0.0, "animals", time="2024-05-01T10:01:00Z", shown="random sample"),
        2: JudgeAnswer(1.0),
    }
    bob = {0: JudgeAnswer(1.0, note="=1+1"), 2: JudgeAnswer(0.0, "wrong dose")}
    groups = SomeGroups(6, ((0, 4),))
    settled = settle({"ann": ann, "bob": bob})
    counts = export_screening(tmp_path / "a.csv", some_records(6), settled, groups=groups, all_copies=True)
    assert (counts.n_records, counts.n_relevant, counts.n_not, counts.n_disagreed, counts.n_unread) == (
        6,
        2,
        1,
        1,
        2,
    )
    assert counts.n_duplicates == 1
    rows = rows_of(tmp_path / "a.csv")
    assert [row["included"] for row in rows] == ["1", "0", "", "", "1", ""]
    assert rows[0]["note"] == "ann: good; bob: =1+1"
    assert (rows[0]["tags"], rows[0]["judges"], rows[0]["shown"]) == ("key; new", "ann; bob", "model, rank 1")
    assert (rows[1]["reason"], rows[1]["time"], rows[1]["shown"]) == (
        "animals",
        "2024-05-01T10:01:00Z",
        "random sample",
    )
    assert (rows[2]["conflict"], rows[2]["included_ann"], rows[2]["included_bob"]) == ("open", "1", "0")
    assert rows[4]["duplicate_of"] == "W0"
    assert [row["Volume"] for row in rows] == list("012345")
    again = read_records(tmp_path / "a.csv")
    np.testing.assert_array_equal(again.labels, [1, 0, np.nan, np.nan, 1, np.nan])


@pytest.mark.parametrize(("only", "titles"), [("all", [0, 1, 2, 3]), ("included", [0, 3]), ("unread", [2])])
def test_each_work_is_written_once(only, titles, tmp_path):
    """Record 4 is a copy of 0, and a judge marked 5 as a copy of 3."""
    settled = settle({"ann": {0: YES, 1: NO, 3: YES, 5: JudgeAnswer(0.0, duplicate_of="W3")}})
    groups = SomeGroups(6, ((0, 4),))
    counts = export_screening(tmp_path / "a.csv", some_records(6), settled, groups=groups, only=only)
    assert read_records(tmp_path / "a.csv").titles == [f"Title {at}" for at in titles]
    assert (counts.n_relevant, counts.n_not, counts.n_unread, counts.n_duplicates) == (2, 1, 1, 2)


@pytest.mark.parametrize(
    ("ann", "bob", "left"),
    [
        ({0: JudgeAnswer(0.0, duplicate_of="W1"), 1: JudgeAnswer(0.0, duplicate_of="W0")}, {}, [0, 2, 3]),
        ({0: JudgeAnswer(0.0, duplicate_of="W1")}, {1: JudgeAnswer(0.0, duplicate_of="W0")}, [0, 2, 3]),
        ({0: JudgeAnswer(0.0, duplicate_of="W1")}, {1: JudgeAnswer(0.0, duplicate_of="W3")}, [2, 3]),
        ({0: JudgeAnswer(0.0, duplicate_of="gone")}, {}, [0, 1, 2, 3]),
        ({0: JudgeAnswer(0.0, duplicate_of="W1"), 1: YES}, {0: YES}, [1, 2, 3]),
        ({0: JudgeAnswer(0.0, duplicate_of="W1"), 1: YES}, {0: NO}, [0, 1, 2, 3]),  # to be looked at
    ],
)
def test_marks_of_duplicates_lose_no_work_and_write_none_twice(ann, bob, left, tmp_path):
    export_screening(tmp_path / "a.csv", some_records(4), settle({"ann": ann, "bob": bob}), groups=SomeGroups(4, ()))
    assert read_records(tmp_path / "a.csv").titles == [f"Title {at}" for at in left]


@pytest.mark.parametrize("suffix", [".csv", ".ris", ".xlsx", ".jsonl", ".tsv"])
@pytest.mark.parametrize(
    ("only", "titles"), [("included", [0]), ("excluded", [1]), ("conflicts", [2]), ("unread", [3])]
)
def test_parts_in_every_format(suffix, only, titles, tmp_path):
    settled = settle({"ann": {0: YES, 1: NO, 2: YES}, "bob": {2: NO}})
    counts = export_screening(tmp_path / f"a{suffix}", some_records(4), settled, only=only)
    assert counts.n_records == 1
    assert read_records(tmp_path / f"a{suffix}").titles == [f"Title {at}" for at in titles]


def test_nothing_to_export_and_unknown_choices(tmp_path):
    with pytest.raises(InputError, match="no record is in conflict, so"):
        export_screening(tmp_path / "a.csv", some_records(2), {}, only="conflicts")
    with pytest.raises(InputError, match="only is 'includes'; did you mean 'included'"):
        export_screening(tmp_path / "a.csv", some_records(2), {}, only="includes")
    assert not (tmp_path / "a.csv").exists()


def test_a_wrong_tag_does_not_export_what_is_to_be_left_out(tmp_path):
    settled = settle({"ann": {0: JudgeAnswer(1.0, tags=("privileged",)), 1: YES}})
    for tag, titles in (("privileged", [0]), ("!privileged", [1, 2])):
        export_screening(tmp_path / "a.csv", some_records(3), settled, tag=tag, overwrite=True)
        assert read_records(tmp_path / "a.csv").titles == [f"Title {at}" for at in titles]
    for tag in ("!privilege", "!", ""):
        with pytest.raises(InputError, match="no record has the tag"):
            export_screening(tmp_path / "b.csv", some_records(3), settled, tag=tag)
    with pytest.raises(InputError, match="no record has a tag"):
        export_screening(tmp_path / "b.csv", some_records(3), {}, tag="!privileged")
    with pytest.raises(InputError, match="no record with the tag 'privileged' is"):
        export_screening(tmp_path / "b.csv", some_records(3), settled, tag="privileged", only="excluded")
    assert not (tmp_path / "b.csv").exists()


LABELS = st.sampled_from([0.0, 1.0, math.nan])


@given(st.lists(st.tuples(LABELS, LABELS, LABELS, st.booleans()), min_size=1, max_size=12))
def test_settling_by_counting_votes(rows):
    judges = {
        name: {at: JudgeAnswer(row[place]) for at, row in enumerate(rows)} for place, name in enumerate(("a", "b", "c"))
    }
    final = {at: ("z", JudgeAnswer(1.0)) for at, row in enumerate(rows) if row[3]}
    found = settle(judges, final)
    for at, (*labels, is_final) in enumerate(rows):
        yes, no = labels.count(1.0), labels.count(0.0)
        expected = (
            "included" if is_final or (yes and not no) else "conflict" if yes and no else "excluded" if no else "unread"
        )
        assert found[at].status == expected
    status = [one.status for one in spread(len(rows), found)]
    assert len(status) == sum(status.count(kind) for kind in ("included", "excluded", "conflict", "unread"))


def test_a_record_without_answers_is_unread():
    assert SettledAnswer(0).status == "unread"


def test_different_reasons_of_judges_are_one_reason_in_any_order():
    pop, dose = (JudgeAnswer(0.0, reason) for reason in ("population", "dose"))
    found = settle({"ann": {0: pop, 1: dose}, "bob": {0: dose, 1: pop}}, {})
    assert [found[number].reason for number in (0, 1)] == ["dose / population"] * 2
