from __future__ import annotations

import json
import os

import pytest

from corank.errors import InputError
from corank.judging.preferences.answers import PreferenceEntry, PreferenceJournal
from corank.judging.screening.answers import ScreeningEntry, ScreeningJournal
from faults.limits import small_files

ONE, TWO = ScreeningEntry("relevant", "W1", "model"), ScreeningEntry("not", "Wü 2", "model")


def test_entries_are_read_back(tmp_path):
    path = tmp_path / "new" / "me.jsonl"
    with ScreeningJournal(path) as journal:
        journal.append(ONE)
        journal.append(TWO)
        journal.append(ScreeningEntry("note", "W1", text='two\nlines, "quoted"'))
    with ScreeningJournal(path) as journal:
        assert journal.entries == [ONE, TWO, ScreeningEntry("note", "W1", text='two\nlines, "quoted"')]
    assert [json.loads(line)["action"] for line in path.read_text().splitlines()] == ["relevant", "not", "note"]


@pytest.mark.parametrize("cut", range(1, len('{"action": "not", "id": "W2"}\n')))
def test_an_incomplete_line_is_replaced_by_the_next_entry(cut, tmp_path):
    path = tmp_path / "me.jsonl"
    with ScreeningJournal(path) as journal:
        journal.append(ONE)
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"action": "not", "id": "W2"}\n'[:cut])
    with ScreeningJournal(path) as journal:
        assert journal.entries == [ONE]
        journal.append(TWO)
    assert path.read_bytes().startswith(whole)
    with ScreeningJournal(path) as journal:
        assert journal.entries == [ONE, TWO]


def test_two_writers_of_one_judge_are_refused_and_readers_are_not(tmp_path):
    records = tmp_path / "works.csv"
    path = ScreeningJournal.path_for(records, "ann b.")
    with ScreeningJournal(path) as journal:
        journal.append(ONE)
        with pytest.raises(InputError, match=r"in use by another process; .*another name with judge="):
            ScreeningJournal(path)
        with ScreeningJournal(ScreeningJournal.path_for(records, "bob")) as other:
            other.append(TWO)
        assert dict(ScreeningJournal.read_all(records)) == {"ann b.": [ONE], "bob": [TWO]}
    ScreeningJournal(path).close()


def test_a_full_disk_keeps_the_file_and_raises(tmp_path):
    path = tmp_path / "me.jsonl"
    with ScreeningJournal(path) as journal:
        journal.append(ONE)
        before = path.read_bytes()
        with small_files(len(before) + 10), pytest.raises(InputError, match=r"me\.jsonl cannot be written"):
            journal.append(TWO)
        assert path.read_bytes() == before
        assert journal.entries == [ONE]
        journal.append(TWO)
    with ScreeningJournal(path) as journal:
        assert journal.entries == [ONE, TWO]


@pytest.mark.parametrize(
    "line", ["{", "[]", "{}", '{"action": "maybe"}', '{"action": "not", "id": 3}', '{"action": "not", "who": "x"}', ""]
)
def test_a_bad_line_is_named(line, tmp_path):
    path = tmp_path / "me.jsonl"
    path.write_text('{"action": "not", "id": "W1"}\n' + line + "\n")
    with pytest.raises(InputError, match=r"me\.jsonl, line 2: .* is not an answer"):
        ScreeningJournal(path)
    assert os.listdir(tmp_path) == ["me.jsonl"]


@pytest.mark.parametrize("judge", ["", "a/b", "..", "x" * 65, "a\nb"])
def test_bad_names_of_judges_raise(judge):
    with pytest.raises(InputError, match=r"judge is .*; pass a name"):
        ScreeningJournal.path_for("works.csv", judge)


def test_missing_permission_raises(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written"):
        ScreeningJournal(tmp_path / "file" / "me.jsonl")


def test_journals_of_earlier_versions_are_read(tmp_path):
    screening, preferences = tmp_path / "s.jsonl", tmp_path / "p.jsonl"
    screening.write_text(
        '{"action": "topic", "text": "tin"}\n{"action": "relevant", "id": "W1", "by": "known"}\n'
        '{"action": "later", "id": "W2"}\n'
    )
    preferences.write_text(
        '{"action": "left", "left": "tea", "right": "milk", "by": "start"}\n'
        '{"action": "undo", "left": "tea", "right": "milk", "by": "start"}\n'
    )
    with ScreeningJournal(screening) as journal:
        assert journal.entries == [
            ScreeningEntry("topic", text="tin"),
            ScreeningEntry("relevant", "W1", "known"),
            ScreeningEntry("later", "W2"),
        ]
    with PreferenceJournal(preferences) as journal:
        assert [entry.action for entry in journal.entries] == ["left", "undo"]
        assert journal.entries[0] == PreferenceEntry("left", "tea", "milk", "start")
