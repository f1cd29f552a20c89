"""Several judges on one ranking: no record twice, and all answers are learnt from."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from corank.errors import InputError
from corank_lab.screening import Screening, ScreeningJournal, UniqueRecords, make_views
from corank_lab.screening.model import ScreeningModel
from helpers.records import collection

RECORDS = collection(120, 20, seed=3)
Y = RECORDS.labels > 0
VIEWS = make_views(RECORDS)
KNOWN = [RECORDS.ids[int(np.flatnonzero(Y)[0])]]


def begin(journal, overlap=0.0):
    return Screening(RECORDS, known=KNOWN, views=VIEWS, journal=journal, share=True, overlap=overlap)


def test_two_judges_take_turns_and_learn_from_each_other(tmp_path):
    with ScreeningJournal(tmp_path / "corank.db", "ann") as a, ScreeningJournal(tmp_path / "corank.db", "bob") as b:
        judges = [begin(a), begin(b)]
        judged, order = [int(np.flatnonzero(Y)[0])], []
        for turn in range(30):
            record = judges[turn % 2].next()
            scores = ScreeningModel(VIEWS).scores(judged, Y[judged])
            scores[judged] = -np.inf
            held = order[-1] if turn and order[-1] not in judged else None
            if held is not None:
                scores[held] = -np.inf
            assert scores[record] >= scores.max() - 2e-3
            judges[turn % 2].answer(record, bool(Y[record]))
            judged.append(record)
            order.append(record)
        assert len(set(order)) == 30
        for one in judges:
            one.next()
            assert one.progress().read == 31
            assert one.progress().found == int(Y[judged].sum())


def test_a_record_on_the_screen_or_put_aside_is_not_shown_to_others(tmp_path):
    with ScreeningJournal(tmp_path / "corank.db", "ann") as a, ScreeningJournal(tmp_path / "corank.db", "bob") as b:
        ann, bob = begin(a), begin(b)
        first = ann.next()
        second = bob.next()
        assert first != second
        ann.later(first)
        third = ann.next()
        assert bob.next() == second  # the same until it is answered
        bob.answer(second, False)
        assert bob.next() not in (first, second, third)
        assert bob.progress().elsewhere >= 2
        # what is withdrawn is held by its judge
        assert bob.undo() == second
        ann.answer(third, True)
        assert ann.next() not in (first, second, third)
        bob.answer(second, True)
    # holds of a judge who has ended are void; what is put aside stays with its judge
    with ScreeningJournal(tmp_path / "corank.db", "bob") as b:
        bob, seen = begin(b), set()
        while (record := bob.next()) is not None:
            seen.add(record)
            bob.answer(record, bool(Y[record]))
        assert len(seen) == 120 - 4
        assert first not in seen
        assert bob.progress().elsewhere == 1


def test_an_overlap_is_the_same_for_all_judges(tmp_path):
    with ScreeningJournal(tmp_path / "corank.db", "ann") as a, ScreeningJournal(tmp_path / "corank.db", "bob") as b:
        shown = []
        for journal in (a, b):
            one = begin(journal, overlap=0.3)
            shown.append(set())
            while (record := one.next()) is not None:
                one.answer(record, bool(Y[record]))
                shown[-1].add(record)
        assert len(shown[0]) == 119
        assert shown[1] <= shown[0]
        assert 0.15 < len(shown[1]) / 119 < 0.45
    with pytest.raises(InputError, match=r"overlap is 1\.5; pass a share"):
        Screening(RECORDS, overlap=1.5)


def test_changes_of_others_are_seen(tmp_path):
    with ScreeningJournal(tmp_path / "corank.db", "ann") as a, ScreeningJournal(tmp_path / "corank.db", "bob") as b:
        ann, bob = begin(a), begin(b)
        record = ann.next()
        ann.answer(record, False)
        bob.next()
        assert bob.progress().found == 1
        ann.change(record, True)
        bob.next()
        assert bob.progress().found == 2
        assert ann.undo() == record
        assert ann.undo() == record
        bob.next()
        assert (bob.progress().found, bob.progress().read) == (1, 1)


CODE = """
import json, sys
from pathlib import Path
from corank_lab.screening import Screening, ScreeningJournal
from helpers.records import collection

records = collection(260, 30, seed=5)
folder, judge, n = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
with ScreeningJournal(folder / "corank.db", judge) as journal:
    screening = Screening(records, known=["r0"], journal=journal, share=True)
    print("ready", flush=True)
    sys.stdin.readline()
    shown = []
    for _ in range(n):
        record = screening.next()
        shown.append(record)
        screening.answer(record, bool(records.labels[record]))
print(json.dumps(shown), flush=True)
"""


@pytest.mark.long
def test_two_processes_never_get_the_same_record(tmp_path):
    children = [
        subprocess.Popen(
            [sys.executable, "-c", CODE, str(tmp_path), judge, "100"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            text=True, env={**os.environ, "PYTHONPATH": ":".join(sys.path)},
        )
        for judge in ("ann", "bob")
    ]  # fmt: skip
    for child in children:
        assert child.stdout.readline() == "ready\n"
    for child in children:
        child.stdin.write("go\n")
        child.stdin.flush()
    shown = [json.loads(child.communicate()[0]) for child in children]
    assert [len(one) for one in shown] == [100, 100]
    assert len({*shown[0], *shown[1]}) == 200
    # both have worked at the same time: the answers alternate
    with ScreeningJournal(tmp_path / "corank.db") as journal:
        journal.begin(UniqueRecords(collection(260, 30, seed=5)))
        logs = journal.by_judge().values()
    times = [[entry.time for entry in entries if entry.by != "known"] for entries in logs]
    assert max(times[0][0], times[1][0]) < min(times[0][-1], times[1][-1])
