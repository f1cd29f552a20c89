from __future__ import annotations

import csv
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from corank.cli import app
from corank.errors import InputError
from corank_lab.cli.screening.actions import summary
from corank_lab.cli.screening.session import open_project
from corank_lab.database.backends import SqliteDatabase
from corank_lab.records.records import read_records
from corank_lab.records.writer import write_records
from corank_lab.screening import ScreeningProgress
from helpers.records import collection
from helpers.terminal import OnTerminal

RECORDS = collection()
RELEVANT = {one for one, label in zip(RECORDS.ids, RECORDS.labels, strict=True) if label}


@pytest.fixture
def works(tmp_path):
    write_records(tmp_path / "works.csv", RECORDS, np.full(len(RECORDS), np.nan), {})
    return tmp_path / "works.csv"


@pytest.fixture
def judged(tmp_path):
    write_records(tmp_path / "judged.csv", RECORDS, RECORDS.labels, {})
    return tmp_path / "judged.csv"


def types(path, keys, *words, verb=()):
    words = ["screen", *verb, str(path), *map(str, words)]
    result = CliRunner().invoke(app, words, input=keys, catch_exceptions=False)
    assert result.exit_code == 0
    return result.output


def shown(said):
    return re.findall(r"^record (\S+)$", said, flags=re.MULTILINE)


def test_a_complete_screening_by_keys(works):
    known = sorted(RELEVANT)[0]
    said = types(works, "r\nn\nrelevant\nl\nu\nn\nx\no a remark\nnot\nq\n", "--known", known)
    records = shown(said)
    assert len(records) == 8
    assert records[3] == records[5]  # postponed, then undone
    assert "found 3 relevant, read 6 of 60." in said
    assert "Run the same command to continue" in said
    # a later session starts with the unanswered record and keeps the answers
    again = types(works, "", "--known", known)
    assert shown(again) == [records[-1]]
    types(works, "r\n", "--judge", "bob", "--topic", "topic1 topic2")
    out = works.parent / "out.csv"
    assert "4 relevant" in types(works, "", "-o", out, verb=["export"])
    rows = {row["id"]: row for row in csv.DictReader(out.read_text().splitlines())}
    answers = {one: row["included_me"] for one, row in rows.items() if row["included_me"]}
    assert answers == dict(zip((known, *records[:3], *records[5:7]), "110100", strict=True))
    assert rows[records[6]]["note"] == "me: a remark"
    assert [row["included_bob"] for row in rows.values()].count("1") == 1


def test_prior_knowledge_is_kept_with_the_project(judged, tmp_path):
    rows = [(one, f"{0.9 if one in RELEVANT else 0.1}") for one in RECORDS.ids]
    works = tmp_path / "works.csv"
    write_records(works, RECORDS, np.full(len(RECORDS), np.nan), {"llm": [p for _, p in rows]})
    first = shown(types(works, "r\nq\n", "--probability", "llm", "--prior", judged))
    assert set(first) <= RELEVANT
    assert set(shown(types(works, "r\nr\nq\n"))) <= RELEVANT  # a later session need not be told again
    with SqliteDatabase(tmp_path / "corank.db") as store:
        (project,) = store.projects()
        assert project.settings["probability"] == "llm"
        assert project.settings["prior"].startswith("judged.csv: 60 judged records, 10 relevant (")
        assert open_project(store, [works], {}, ([], "")).endswith("/judge")
        assert store.projects()[0].settings["probability"] == ""
    with pytest.raises(InputError, match="no column 'lmm'"):
        types(works, "q\n", "--probability", "lmm")


def test_records_on_which_judges_disagree_are_left_empty(works):
    first = sorted(RELEVANT)[:1]
    record = shown(types(works, "r\n", "--known", first[0]))[0]
    assert shown(types(works, "n\n", "--known", first[0], "--judge", "bob"))[0] == record
    out = works.parent / "out.ris"
    assert "1 on which the judges disagree" in types(works, "", "-o", out, verb=["export"])
    labels = dict(zip(RECORDS.ids, read_records(out).labels, strict=True))
    assert labels[first[0]] == 1.0
    assert labels[record] != labels[record]


def test_messages_for_no_answer_to_undo_and_all_records_read(works):
    said = types(works, "u\n" + "n\n" * 60)
    assert "There is no answer to undo" in said
    assert "All records are read." in said
    assert "read 60 of 60. All records are read." in said
    assert "advises to stop" not in said


def test_the_advice_to_stop_is_part_of_the_summary():
    counts = {"n": 100, "read": 40, "found": 10}
    progress = ScreeningProgress(may_stop=True, evidence="rule", advised_since=38, advice="Stop: p = .01.", **counts)
    assert summary(progress) == "found 10 relevant, read 40 of 100. Stop: p = .01."
    assert summary(ScreeningProgress(**counts)) == "found 10 relevant, read 40 of 100."


def test_a_replay_prints_its_measures_and_writes_them(judged):
    pytest.importorskip("matplotlib")
    folder = judged.parent / "out"
    said = types(judged, "", "--starts", 2, "-o", folder, verb=["replay"])
    assert re.search(r"^mean +0\.\d{3}", said, flags=re.MULTILINE)
    assert "60 records, 10 relevant" in said
    assert sorted(os.listdir(folder)) == ["curves.csv", "recall.png", "report.html", "report.json", "report.md"]
    curves = (folder / "curves.csv").read_text().splitlines()
    assert len(curves) == 1 + 2 * 58
    assert sum(line.endswith(",1") for line in curves) == 2 * 9
    with pytest.raises(InputError, match="exists already"):
        types(judged, "", "-o", folder, verb=["replay"])


def test_a_folder_must_become_one_file(tmp_path):
    folder = tmp_path / "mail"
    folder.mkdir()
    for topic in ("pump", "bees", "house"):
        (folder / f"{topic}.eml").write_text(f"From: a@x.org\nSubject: {topic}\n\nA letter about {topic} and more.\n")
    with pytest.raises(InputError, match=r"corank records .*mail -o documents\.csv"):
        CliRunner().invoke(app, ["screen", str(folder), "--topic", "pump"], input="q\n", catch_exceptions=False)
    assert not (tmp_path / "corank.db").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["export", "-o", "a.txt"], r"choose a name that ends in \.ris, \.csv"),
        (["export", "-o", "a.csv"], "no answers for .* yet"),
        (["--judge", "a/b"], "judge is 'a/b'"),
        (["--known", "r99"], "there is no record 'r99'"),
        (["--target", "1.5"], "target is 1.5"),
        (["--criteria", "criteria.txt"], r"there is no file criteria\.txt"),
    ],
)
def test_bad_options_raise(words, message, works, monkeypatch):
    monkeypatch.chdir(works.parent)
    with pytest.raises(InputError, match=message):
        types(works, "", *words[words[0] == "export" :], verb=["export"] if words[0] == "export" else [])


MOVED = {
    "--simulate": "corank screen replay RECORDS", "--export": "corank screen export RECORDS --output FILE",
    "--report": "corank screen report RECORDS --output FOLDER", "--agreement": "corank screen report RECORDS",
    "--adjudicate": "corank screen settle RECORDS", "--settle": "corank screen settle RECORDS",
}  # fmt: skip


@pytest.mark.parametrize("words", [["screen"], ["screen", "read"]])
@pytest.mark.parametrize("option", MOVED)
def test_an_option_that_became_a_command_is_refused_with_its_name(option, words, works):
    for given in ([option], [f"{option}=out.csv"]):
        said = CliRunner().invoke(app, [*words, str(works), *given])
        assert (said.exit_code, said.stdout) == (2, "")
        assert said.stderr == f"corank: {option} is now '{MOVED[option]}'.\n"
    assert os.listdir(works.parent) == ["works.csv"]


def test_a_file_named_like_a_command_is_read_by_its_path(works, monkeypatch):
    monkeypatch.chdir(works.parent)
    works.rename(works.parent / "report.csv")
    (works.parent / "report").write_bytes((works.parent / "report.csv").read_bytes())
    said = CliRunner().invoke(app, ["screen", "./report"], input="q\n", catch_exceptions=False)
    assert (said.exit_code, "read 0 of 60" in said.output) == (0, True)
    said = CliRunner().invoke(app, ["screen", "report"])
    assert (said.exit_code, "Missing argument 'records'" in said.stderr) == (2, True)


def test_control_characters_are_removed(tmp_path):
    path = tmp_path / "works.csv"
    path.write_text("id,title\na,tin \x1b[2Jore\nb,gold \x07mine\n")
    said = types(path, "q\n")
    assert "\x1b" not in said
    assert "\x07" not in said


@pytest.mark.skipif(os.name == "nt", reason="needs a pseudo-terminal")
def test_single_keys_on_a_terminal_of_80_columns(works):
    """A real terminal: keys without newlines, a note on its own line, no line wider than the screen."""
    import time

    terminal = OnTerminal("screen", works, "--known", sorted(RELEVANT)[0])
    terminal.wait_for(b"enter begin")
    terminal.type(b"\n")
    terminal.wait_for(b"q quit")
    for key in (b"r", b"n", b"l", b"u"):
        terminal.type(key)
        terminal.wait_for(b"q quit")
    terminal.type(b"o")
    terminal.wait_for(b"note")
    terminal.type(b"a remark\n")
    time.sleep(0.5)
    terminal.type(b"\x1bOR")  # a function key whose last letter would be an answer
    time.sleep(0.5)
    terminal.type(b"n")
    terminal.wait_for(b"q quit")
    terminal.type(b"q")
    terminal.wait_for(b"to continue")
    terminal.close()
    text = terminal.text
    assert "found 2 relevant, read 4 of 60" in text
    assert max(map(len, text.splitlines())) <= 80 or "answers are saved in" in text
    with SqliteDatabase(works.parent / "corank.db") as store:
        actions = [one.action for one in store.answers(store.projects()[0].id)]
    assert actions == [
        "relevant", "relevant", "not", "later", "undo", "note", "not",
    ]  # fmt: skip


@pytest.mark.long
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_killed_screenings_lose_and_repeat_no_answer():
    tests = Path(__file__).parents[3]
    roots = (tests, tests / "corank", tests.parent)
    paths = os.pathsep.join([*map(str, roots), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, tests / "faults" / "kill_screen.py", "--kills", "4"],
        env={**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert '"faults": []' in done.stdout


def test_slow_imports_are_avoided():
    """Each of these imports takes longer than reading a thousand abstracts."""
    code = (
        "import sys; from corank.cli import app; from corank_lab.records import load_review; "
        "from corank_lab.screening import simulate; import corank_lab.cli.screening.results, corank.cli.output; "
        "import corank_lab.cli.screening.view; "
        "simulate(load_review(), 1); print([name for name in ('sklearn', 'scipy.stats', 'numba', 'pandas', "
        "'matplotlib') if name in sys.modules])"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "[]"
