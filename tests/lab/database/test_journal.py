"""Journals in a database, and files of JSON lines that are read into them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from corank.data.io.items import Items
from corank.errors import InputError
from corank_lab.database.backends import SqliteDatabase
from corank_lab.database.database import ClaimableItem
from corank_lab.database.journal import parse_lines
from corank_lab.preferences import PreferenceJournal
from corank_lab.preferences.answers import PreferenceAnswers, PreferenceEntry
from corank_lab.screening import Records, ScreeningJournal, UniqueRecords
from corank_lab.screening.answers import ScreeningEntry
from faults.limits import small_files

RECORDS = UniqueRecords(Records(["W1", "Wü 2", "W3"], ["tin", "gold", "zinc"], [""] * 3))
ONE, TWO = ScreeningEntry("relevant", "W1", "model"), ScreeningEntry("not", "Wü 2", "model")
ITEMS = Items(["a", "b", "c"], np.empty((0, 0)))


def opened(path, judge="me", unique=RECORDS):
    journal = ScreeningJournal(path / "corank.db", judge)
    journal.begin(unique)
    return journal


def ids(journal):
    return [(entry.action, entry.id) for entry in journal.entries]


def test_entries_are_read_back_with_time_judge_and_keys(tmp_path):
    note = ScreeningEntry("note", "W1", text='two\nlines, "quoted" caf\udce9')
    with opened(tmp_path) as journal:
        journal.append(ONE)
        journal.extend([TWO, note])
    with opened(tmp_path) as journal:
        assert ids(journal) == [("relevant", "W1"), ("not", "Wü 2"), ("note", "W1")]
        assert journal.entries[2].text == 'two\nlines, "quoted" caf?'
        for entry in journal.entries:
            assert (entry.judge, entry.records) == ("me", RECORDS.hash)
            assert entry.time
            assert entry.version
            assert entry.keys


def test_two_processes_see_the_answers_of_each_other(tmp_path):
    with opened(tmp_path, "ann") as ann, opened(tmp_path, "ann") as again, opened(tmp_path, "bob") as bob:
        ann.append(ONE)
        bob.append(TWO)
        for journal in (ann, again, bob):
            journal.refresh()
        assert ids(again) == ids(ann) == [("relevant", "W1")]
        assert [judge for judge, _ in ann.log] == ["ann", "bob"]
        assert list(bob.by_judge()) == ["ann", "bob"]
        assert ann.claim([ClaimableItem("W3")])
        assert again.claim([ClaimableItem("W3")])  # the same judge
        assert not bob.claim([ClaimableItem("W3")])
        assert bob.held_by_others() == {"W3"}
    with opened(tmp_path, "bob") as bob:
        assert bob.held_by_others() == set()


def test_a_project_is_found_by_content_and_a_changed_file_continues_it(tmp_path):
    def records(n, begin=0):
        names = [f"w{at}" for at in range(begin, begin + n)]
        return UniqueRecords(Records(names, [f"study {name} of tin" for name in names], [""] * n))

    with opened(tmp_path, unique=records(6)) as journal:
        journal.append(ScreeningEntry("relevant", "w1"))
        first, is_new = journal.id, journal.is_new
    for unique, same in ((records(6), True), (records(9), True), (records(4, begin=2), True), (records(6, 50), False)):
        with opened(tmp_path, unique=unique) as journal:
            assert (journal.id == first) is same
            assert len(journal.entries) == same
    assert is_new
    with SqliteDatabase(tmp_path / "corank.db") as store:
        assert len(store.projects()) == 2
        assert store.payload(first)["records"]["ids"] == ["w2", "w3", "w4", "w5"]


def test_items_that_lose_an_answered_one_are_another_project(tmp_path):
    for names, n in ((["a", "b", "c"], 0), (["c", "b", "a", "d"], 1), (["a", "b"], 0)):
        with PreferenceJournal(tmp_path / "corank.db") as journal:
            journal.begin(Items(names))
            assert len(journal.entries) == n
            if names == ["a", "b", "c"]:
                journal.append(PreferenceEntry("left", "a", "c"))


def test_a_full_disk_keeps_the_answers_and_raises(tmp_path):
    with opened(tmp_path) as journal:
        journal.append(ONE)
        size = sum(path.stat().st_size for path in tmp_path.iterdir() if path.name.endswith("-wal"))
        with small_files(size + 10), pytest.raises(InputError, match=r"corank\.db cannot be written"):
            journal.append(TWO)
        assert ids(journal) == [("relevant", "W1")]
        journal.append(TWO)
    with opened(tmp_path) as journal:
        assert ids(journal) == [("relevant", "W1"), ("not", "Wü 2")]


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
def test_a_bad_line_is_named_and_nothing_is_imported(line, fault, tmp_path):
    path = tmp_path / "me.jsonl"
    content = line if isinstance(line, bytes) else line.encode()
    path.write_bytes(b'{"action": "not", "id": "W1"}\n' + content + b"\n")
    sentence = rf"me\.jsonl, line 2: .* is not an answer: .*{fault}.*restore the file from a copy, or remove this line"
    with opened(tmp_path) as journal:
        with pytest.raises(InputError, match=sentence):
            journal.import_files([path])
        assert journal.entries == []


@pytest.mark.parametrize("cut", range(1, len('{"action": "not", "id": "W2"}\n')))
def test_an_incomplete_line_is_left_out(cut):
    content = b'{"action": "relevant", "id": "W1"}\n' + b'{"action": "not", "id": "W2"}\n'[:cut]
    assert parse_lines(ScreeningEntry, content, Path("x")) == [ScreeningEntry("relevant", "W1")]


def test_files_are_imported_once_for_the_judges_that_they_name(tmp_path):
    lines = [f'{{"action": "not", "id": "W{at}", "judge": "{judge}"}}\n' for judge in ("李", "bo/b") for at in (1, 3)]
    (tmp_path / "both.jsonl").write_text("".join(lines))
    (tmp_path / "7.jsonl").write_text(lines[0].replace("not", "relevant"))
    (tmp_path / "ann.jsonl").write_text(lines[0])
    paths = sorted(tmp_path.glob("*.jsonl"))
    with opened(tmp_path) as journal:
        assert [journal.import_files(paths) for _ in range(2)] == [6, 0]
        found = {judge: [entry.id for entry in entries] for judge, entries in journal.by_judge().items()}
    assert found == {"ann": ["W1"], "bo/b": ["W1", "W3"], "李": ["W1", "W1", "W3"]}


def test_an_answer_about_an_unknown_item_is_named(tmp_path):
    with PreferenceJournal(tmp_path / "corank.db") as journal:
        journal.begin(ITEMS)
        journal.append(PreferenceEntry("left", "a", "x"))
        with pytest.raises(InputError, match="answer 1: an answer about 'x'"):
            PreferenceAnswers(ITEMS, journal.entries)


@pytest.mark.parametrize("judge", ["", "a/b", "..", "x" * 65, "a\nb"])
def test_bad_names_of_judges_raise(judge, tmp_path):
    with pytest.raises(InputError, match=r"judge is .*; pass a name"):
        ScreeningJournal(tmp_path / "corank.db", judge)


def test_a_file_of_lines_is_not_a_database(tmp_path):
    with pytest.raises(InputError, match=r"me\.jsonl is a file of JSON lines, .* pass a"):
        ScreeningJournal(tmp_path / "me.jsonl")
    assert list(tmp_path.iterdir()) == []
