from __future__ import annotations

import csv
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from corank.cli import app
from corank.data import read_items
from corank.errors import InputError
from corank_lab.database.backends import SqliteDatabase
from corank_lab.preferences import PreferenceJournal
from corank_lab.preferences.answers import PreferenceEntry
from helpers.terminal import OnTerminal

on_posix = pytest.mark.skipif(os.name == "nt", reason="needs a pseudo-terminal")


@pytest.fixture
def things(tmp_path):
    path = tmp_path / "things.csv"
    story = "a long story of many words " * 20
    rows = [f"thing {at},{at * 3 % 8},{at},{story}" for at in range(8)]
    path.write_text("\n".join(["name,size,worth,story", *rows]) + "\n")
    return path


def runs(path, *words):
    result = CliRunner().invoke(app, ["prefer", str(path), *map(str, words)], catch_exceptions=False)
    assert result.exit_code == 0
    return result.output


@on_posix
@pytest.mark.parametrize(("columns", "lines"), [(80, 24), pytest.param(60, 20, marks=pytest.mark.long)])
def test_a_session_by_keys_fits_the_terminal_and_is_saved(things, columns, lines):
    terminal = OnTerminal("prefer", things, columns=columns, lines=lines)
    terminal.wait_for(b"q quit")
    keys = {
        b"l": "left", b"\x1b[C": "right", b"e": "equal", b"s": "skip", b"u": "undo", b"\x1bOD": "left", b"=": "equal",
    }  # fmt: skip
    for key in keys:
        terminal.type(key)
        terminal.wait_for(b"q quit")
    terminal.type(b"\x1b[3~x")  # an ignored escape sequence, and an unknown key
    terminal.wait_for(b"'x' is not a key")
    terminal.type(b"q")
    terminal.wait_for(b"to continue")
    terminal.close()
    assert actions(things) == list(keys.values())
    text = terminal.text
    assert "5 answers (2 equal)" in text
    screens = re.split(r"(?=question \d)", text)[1:]
    assert len(screens) == len(keys) + 1
    for shown in screens[:-1]:
        assert max(map(len, shown.splitlines())) <= columns
        assert len(shown.splitlines()) <= lines
        assert "..." in shown  # the story is cut off
    # a later session starts with the unanswered question
    again = OnTerminal("prefer", things, columns=columns, lines=lines)
    again.wait_for(b"q quit")
    again.type(b"\x04")
    again.wait_for(b"to continue")
    again.close()
    left = [shown.splitlines()[1] for shown in (screens[-1], re.split(r"(?=question \d)", again.text)[1])]
    assert left[0] == left[1]


@pytest.mark.long
@on_posix
def test_messages_for_no_answer_to_undo_and_all_pairs_asked(tmp_path):
    path = tmp_path / "three.csv"
    path.write_text("item\na\x1b[2Jb\nb\nc\n")
    terminal = OnTerminal("prefer", path)
    terminal.wait_for(b"q quit")
    terminal.type(b"u")
    terminal.wait_for(b"There is no answer to undo")
    terminal.type(b"rrr")  # typed ahead
    terminal.wait_for(b"to continue")
    terminal.close()
    assert "All pairs were asked." in terminal.text
    assert b"a\x1b[2J" not in terminal.said


def test_piped_lines_are_keys_or_words(things):
    """As in `corank screen`; the end of the input quits, and an unknown line does not answer."""
    arguments = ["prefer", str(things)]
    result = CliRunner().invoke(app, arguments, input="l\nright\n x \nE\n", catch_exceptions=False)
    assert result.exit_code == 0
    assert "'x' is not a key" in result.output
    assert actions(things) == ["left", "right", "equal"]
    assert "3 answers (1 equal)" in result.output


def actions(path):
    with SqliteDatabase(path.parent / "corank.db") as store:
        return [one.action for one in store.answers(store.projects()[0].id, judge="me")]


def answer(path, judge, pairs):
    with PreferenceJournal(path.parent / "corank.db", judge) as journal:
        journal.begin(read_items(path)[0], path.name)
        for left, right in pairs:
            journal.append(PreferenceEntry("left", f"thing {left}", f"thing {right}", "model"))


def test_export_writes_the_ranking_of_all_judges(things):
    answer(things, "ann", [(at + 1, at) for at in range(7)])
    out = things.parent / "order.csv"
    assert "8 items ranked by 7 answers; about" in runs(things, "--export", out)
    rows = list(csv.DictReader(out.read_text().splitlines()))
    assert list(rows[0]) == ["rank", "name", "score", "std", "low", "high"]
    assert [row["rank"] for row in rows] == [str(at) for at in range(1, 9)]
    scores = [float(row["score"]) for row in rows]
    assert scores == sorted(scores, reverse=True)
    assert abs(sum(scores)) < 1e-4
    assert all(float(row["std"]) > 0 for row in rows)
    with pytest.raises(InputError, match="exists already"):
        runs(things, "--export", out)
    answer(things, "bob", [(1, 0), (1, 2)])
    said = runs(things, "--export", out, "--force")
    assert "9 answers of 2 judges, who agree on 1 of 2 pairs" in said
    assert list(next(csv.DictReader(out.read_text().splitlines()))) == [
        "rank", "name", "score", "std", "low", "high", "score_ann", "score_bob",
    ]  # fmt: skip


@pytest.mark.long
@on_posix
@pytest.mark.parametrize(
    ("strategy", "message"),
    [
        ([], "Questions also depend on the answers of other judges so far (ann)."),
        (["--strategy", "entropy"], "Questions depend on your answers only, because of --strategy."),
    ],
)
def test_questions_to_a_second_judge_say_what_they_depend_on(things, strategy, message):
    answer(things, "ann", [(at + 1, at) for at in range(7)])
    terminal = OnTerminal("prefer", things, "--judge", "bob", *strategy)
    terminal.wait_for(b"q quit")
    terminal.type(b"lq")
    terminal.wait_for(b"to continue")
    terminal.close()
    assert " ".join(terminal.text.split()).count(message) == 1
    assert "1 answer" in terminal.text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--json"], "works with --export only"),
        (["--export", "a.txt"], r"choose a name that ends in \.csv"),
        (["--export", "a.csv"], "no answers for .* yet"),
        (["--export", "a.csv", "--features", "wort"], "no column 'wort'"),
        (["--export", "a.csv", "--features", "story"], "column 'story' does not hold numbers"),
    ],
)
def test_bad_options_raise(words, message, things, monkeypatch):
    monkeypatch.chdir(things.parent)
    with pytest.raises(InputError, match=message):
        runs(things, *words)


@pytest.mark.long
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_killed_sessions_lose_and_repeat_no_answer():
    tests = Path(__file__).parent.parent.parent
    roots = (tests, tests / "corank", tests.parent)
    paths = os.pathsep.join([*map(str, roots), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, tests / "faults" / "kill_prefer.py", "--kills", "4"],
        env={**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert '"faults": []' in done.stdout
