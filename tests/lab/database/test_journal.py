from __future__ import annotations

import json
import os

import numpy as np
import pytest

from corank.data.io.items import Items
from corank.errors import InputError
from corank_lab.preferences.answers import PreferenceAnswers, PreferenceEntry, PreferenceJournal
from corank_lab.screening.answers import ScreeningEntry, ScreeningJournal
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
    ("line", "fault"),
    [
        ("{", "it is not valid JSON"),
        ("", "it is not valid JSON"),
        ("[]", "it is not a JSON object"),
        ("{}", "action is None, expected one of relevant, not"),
        ('{"action": "maybe"}', "action is 'maybe', expected one of relevant, not"),
        ('{"action": ["not"]}', r"action is \['not'\]"),
        ('{"action": "not", "id": 3}', "id is 3, expected a string"),
        ('{"action": "not", "id": null}', "id is None, expected a string"),
        ('{"action": "not", "who": "x"}', "the key 'who' is unknown, expected action, id, by, text"),
        ('{"action": "not", "place": "x"}', "the key 'place' is unknown"),
        ('{"action": "not", "id": "W1", "id": "W2"}', "the keys action, id, id are not distinct"),
        ('{"action": "note", "text": "\\ud83d"}', "which holds half a character"),
        ("[" * 100_000, "it is nested too deeply"),
        ('{"a":' * 100_000, "it is nested too deeply"),
        ('{"action": "not"', "it is not valid JSON"),
        ("\xff".encode("latin-1"), "it is not valid JSON"),
    ],
)
def test_a_bad_line_is_named(line, fault, tmp_path):
    path = tmp_path / "me.jsonl"
    content = line if isinstance(line, bytes) else line.encode()
    path.write_bytes(b'{"action": "not", "id": "W1"}\n' + content + b"\n")
    sentence = rf"me\.jsonl, line 2: .* is not an answer: .*{fault}.*restore the file from a copy, or remove this line"
    with pytest.raises(InputError, match=sentence):
        ScreeningJournal(path)
    with pytest.raises(InputError, match=sentence):
        ScreeningJournal.parse(path.read_bytes().splitlines(), path)
    assert os.listdir(tmp_path) == ["me.jsonl"]


def test_half_characters_are_replaced_before_they_are_written(tmp_path):
    with ScreeningJournal(tmp_path / "me.jsonl") as journal:
        journal.append(ScreeningEntry("note", "W1", text="caf\udce9"))
        assert journal.entries == [ScreeningEntry("note", "W1", text="caf?")]
    with ScreeningJournal(tmp_path / "me.jsonl") as journal:
        assert journal.entries == [ScreeningEntry("note", "W1", text="caf?")]


def test_an_answer_about_an_unknown_item_is_named_with_its_line(tmp_path):
    path = tmp_path / "me.jsonl"
    path.write_text('{"action": "left", "left": "a", "right": "b"}\n{"action": "right", "left": "a", "right": "x"}\n')
    items = Items(["a", "b"], np.empty((0, 0)))
    with PreferenceJournal(path) as journal, pytest.raises(InputError) as caught:
        PreferenceAnswers(items, journal.entries)
    assert str(caught.value) == (
        f"{path}, line 2: an answer about 'x', which is not one of the 2 items; open the file that the journal was "
        "started with, or remove this line."
    )


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
