"""
Every verb fed with bad things: one sentence on standard error, the right exit code, and nothing half-written.

`COMMANDS` has every verb of `GROUPS`; one that is missing fails. A command works on the files of `helpers.files`,
with a mark on each word that names a file to read (``<``) or to write (``>``).
"""

from __future__ import annotations

import inspect
import json
import os
import shlex
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest

from corank import cli
from faults.limits import small_files, without_rights
from faults.writers import write_journal
from helpers.files import files

COMMANDS = {
    "fit": ["fit <train.txt --model crr --unjudged -1 --output >m"],
    "rank": [
        "rank <model.safetensors <test.txt --output >s",
        "rank <model.safetensors <test.txt --format trec --output >run.gz",
    ],
    "evaluate": ["evaluate <test.txt <scores.txt --per-query >q.tsv", "evaluate <test.txt <scores.txt --json"],
    "compare": ["compare <train.txt --unjudged -1 --models spd --folds 2 --no-curve --jobs 1 --output >study"],
    "card": ["card <model.safetensors <test.txt --output >card.html"],
    "explain": [
        "explain <model.safetensors <test.txt --pair 1 2",
    ],
    "suggest": ["suggest <model.safetensors <train.txt --unjudged -1 --output >n.txt"],
    "screen read": [],  # tests/lab/cli/screening runs it
    "screen replay": ["screen replay <records.csv --starts 1 --output >out"],
    "screen protocol": ["screen protocol <records.csv"],
    "screen report": ["screen report <reviewed.csv --output >report", "screen report <reviewed.csv"],
    "screen export": ["screen export <records.csv --output >e.csv"],
    "screen settle": ["screen settle <reviewed.csv --judge eve"],
    "records": ["records <records.csv --duplicates", "records <records.csv --output >r.ris"],
    "screen certify": ["screen certify <reviewed.csv --output >c.json --page >c.html"],
    "screen verify": ["screen verify <certificate.json <reviewed.csv"],
    "agreement": ["agreement <judged.csv --list", "agreement <judged.csv --output >c.csv"],
    "leaderboard": [
        "leaderboard <votes.csv --cheap <llm.csv --report >board.html",
        "leaderboard <votes.csv --output >b.csv",
    ],
    "fuse": ["fuse <bm25.run <vectors.run --qrels <judgements.csv --output >f.json"],
    "prefer": ["prefer <items.csv --export >e.csv"],
    "index": ["index <articles --output >i", "index <articles --add-to <articles.index --output >i"],
    "search": [
        "search <articles.index pump --model <links.safetensors --output >run",
        "search <articles.index --queries <links.tsv",
    ],
    "learn-links": ["learn-links <articles.index <links.tsv --steps 2 --output >m"],
    "learn-clicks": ["learn-clicks <rows.csv <clicks.csv --bias 1 --output >m"],
    "replay": ["replay <shown.csv --model <model.safetensors --rows <rows.csv --bias 1"],
    "convert": ["convert <test.txt >c.txt", "convert <test.txt >c.store", "convert <test.txt >c.parquet"],
    "export": [
        "export <model.safetensors --to solr --output >m.json",
        "export <model.safetensors --to sql --verify <test.txt --output >m.sql",
    ],
    "lab recover": ["lab recover <damaged.db --output >recovered"],
    "demo": ["demo --output >out"],
    "lab pages": [],  # tests/lab/pages runs it
}
JUNK = bytes(range(256)) * 40


def names() -> set[str]:
    return {name for name in cli.VERBS if not name.startswith("serve ")}  # tests/lab/api runs them


def test_every_verb_is_fed_and_has_an_example():
    assert names() == set(COMMANDS)


SLOW = {"compare", "demo"}
EVERY = [
    pytest.param(command, id=command, marks=[pytest.mark.long] if verb in SLOW else [])
    for verb, commands in COMMANDS.items()
    for command in commands
]
READS = [
    pytest.param(command, at, id=f"{command} [{word[1:]}]")
    for commands in COMMANDS.values()
    for command in commands
    for at, word in enumerate(command.split())
    if word.startswith("<")
]
WRITES = [param for param in EVERY if ">" in param.id]


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with all files, in which the command is run."""
    monkeypatch.chdir(files(tmp_path))
    monkeypatch.setenv("CORANK_DATA", str(tmp_path / "nowhere"))
    return tmp_path


@pytest.fixture
def run(monkeypatch, capsys):
    """Run words as the command does, and return exit code, standard output and standard error."""

    def say(words):
        monkeypatch.setattr(sys, "argv", ["corank", *words])
        code = 0
        try:
            cli.main()
        except SystemExit as stop:
            code = stop.code
        said = capsys.readouterr()
        return code, said.out, said.err

    return say


def write_answers(folder, words):
    """Write answers, if a command exports them."""
    source = next((word.lstrip("<") for word in words if word.endswith(("records.csv", "items.csv"))), None)
    if source is not None and ("--export" in words or words[:2] == ["screen", "export"]):
        write_journal(folder, source)


def plain(command):
    return [word.lstrip("<>") for word in command.split()]


def tree(folder):
    """Every file and folder, but for scratch folders, which the next writer clears, and studies, which go on."""
    found = [path for path in sorted(folder.rglob("*")) if ".part" not in str(path.relative_to(folder))]
    for path in found:  # a study keeps what it learnt, whole
        if "study" in path.parts and path.suffix == ".json":
            json.loads(path.read_text())
    found = [path for path in found if "study" not in path.parts]
    found = [path for path in found if not path.name.endswith(("-wal", "-shm"))]  # of a database, which is read whole
    return {path: content(path) if path.is_file() else None for path in found}


def content(path):
    """The bytes of a file; of a database the statements that make it again, since SQLite arranges its pages anew."""
    if path.suffix != ".db":
        return path.read_bytes()
    try:
        with closing(sqlite3.connect(path)) as database:
            return "\n".join(database.iterdump())
    except sqlite3.DatabaseError:  # junk under the name of a database
        return path.read_bytes()


def remove_all_but(before, folder):
    for path in sorted(set(tree(folder)) - set(before), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()


def is_one_sentence(text):
    return text.startswith("corank: ") and text.count("\n") == 1 and text.endswith((".\n", "]'\n"))


def error_of(words, err):
    """Return the message of an error; `fuse` says before it what it assumes of its files."""
    return err.splitlines(keepends=True)[-1] if words[0] == "fuse" else err


def spoil(path, how):
    if path.is_dir():
        for file in path.iterdir():
            file.unlink()
        path.rmdir()
    else:
        path.unlink()
    if how == "a folder":
        path.mkdir()
    elif how != "missing":
        path.write_bytes(b"" if how == "empty" else JUNK)


@pytest.mark.thin(11)
@pytest.mark.parametrize("how", ["missing", "a folder", "empty", "junk"])
@pytest.mark.parametrize(("command", "at"), READS)
def test_a_file_that_cannot_be_read(command, at, how, here, run):
    words = plain(command)
    spoil(here / words[at], how)
    before = tree(here)
    code, out, err = run(words)
    assert (code, out) == (1, ""), err
    assert is_one_sentence(err), err
    assert words[at].rstrip("/") in err
    assert tree(here) == before


@pytest.mark.thin(3)
@pytest.mark.parametrize("command", WRITES)
@pytest.mark.parametrize("where", ["under a file", "in no folder", "without the right", "on a full disk"])
def test_a_place_that_cannot_be_written(command, where, here, run):
    (here / "file").write_text("")
    (here / "locked").mkdir()
    folder = {"under a file": "file/", "in no folder": "none/", "without the right": "locked/"}.get(where, "")
    words = [folder + word[1:] if word.startswith(">") else word for word in command.split()]
    words = [word.lstrip("<") for word in words]
    write_answers(here, words)
    if words[0] in ("demo", "compare") and where == "in no folder":
        pytest.skip("it makes its folder")
    before = tree(here)
    if where == "without the right":
        with without_rights(here / "locked"):
            code, _, err = run(words)
    elif where == "on a full disk":
        run([*words, "--force"] if words[0] != "demo" else words)  # compiles what it needs, and keeps records read
        remove_all_but(before, here)
        before = tree(here)
        with small_files(100):
            code, _, err = run(words)
    else:
        code, _, err = run(words)
    assert code in (1, 2), err
    assert code == 2 or is_one_sentence(error_of(words, err)), err
    if words[0] == "demo" and where == "on a full disk":
        (here / "out").rmdir()  # which is empty
    assert tree(here) == before


class Calls:
    """Counts the calls of corank's functions inside a verb, and interrupts at one of them."""

    def __init__(self, words, last=None):
        said = " ".join(words) + " "
        self.verb = next(verb.function.__code__ for name, verb in cli.VERBS.items() if said.startswith(f"{name} "))
        self.last, self.count, self.inside = last, 0, False

    def __enter__(self):
        sys.setprofile(self)
        return self

    def __exit__(self, *_):
        sys.setprofile(None)

    def __call__(self, frame, event, _):
        code = frame.f_code
        if code is self.verb and event in ("call", "return"):
            self.inside = event == "call"
        # what is done once in a process, and what may be closed by nobody, is passed over
        if not self.inside or event != "call" or code.co_name == "<module>" or code.co_flags & inspect.CO_GENERATOR:
            return
        module = frame.f_globals.get("__name__", "")
        if module.startswith("corank.") and module != "corank.console":  # which is called while results are printed
            self.count += 1
            if self.count == self.last:
                sys.setprofile(None)
                raise KeyboardInterrupt


@pytest.mark.thin(13)
@pytest.mark.parametrize("command", EVERY)
def test_control_c(command, here, run):
    words = plain(command)
    write_answers(here, words)
    before, places = tree(here), [1]
    after = before
    if words[0] != "demo" and "--plot" not in words:  # which take long, or end without data
        run(words)  # compiles, which takes several times as long while calls are counted
        remove_all_but({*before, here / "corank.db"}, here)  # the first command adds the file to its project, whole
        before = tree(here)
        shutil.rmtree(here / "study", ignore_errors=True)
        with Calls(words) as calls:
            run(words)
        after, places = tree(here), [1, calls.count // 2, calls.count * 4 // 5]
        remove_all_but(before, here)
    for last in places:
        with Calls(words, last):
            code, out, err = run(words)
        assert code == 130
        assert out == "" or words[:2] == ["screen", "replay"]  # which shows what it found before that is written
        err = error_of(words, err)
        assert err.count("\n") == 1
        assert err.startswith("corank: interrupted")
        assert tree(here).keys() in (before.keys(), after.keys())
        remove_all_but(before, here)
    assert tree(here) == before


@pytest.mark.parametrize(
    "command", ["convert - c.store", pytest.param("rank model.safetensors - -o s", marks=pytest.mark.long)]
)
def test_control_c_from_a_terminal(command, here):
    """The signal itself, while a process waits for more of what it reads."""
    before = tree(here)
    words = [sys.executable, "-m", "corank", *shlex.split(command)]
    with subprocess.Popen(words, stdin=-1, stdout=-1, stderr=-1) as process:
        process.stdin.write(b"1 qid:1 1:1\n" * 100_000)  # more than a pipe holds: it is reading when this returns
        process.stdin.flush()
        os.kill(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=600)
    assert (process.returncode, out) == (130, b"")
    assert err.decode().startswith("corank: interrupted")
    assert err.count(b"\n") == 1
    assert tree(here) == before


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("fit train.txt -m spdd -o m", "did you mean 'spd'"),
        ("rank model.safetensors wide.txt -o s", "n_features=6, found 9"),
        (
            "rank model.safetensors wide.csv -o s",
            "wide.csv has 7 features ('a', 'b', 'c', ..., 'e', 'f', 'g' (7",
        ),
        ("fit rows.csv -m crr -o m", "rows.csv has no label column (label, grade, "),
        ("evaluate test.txt short.txt", "short.txt has 1 scores for 160 rows"),
        ("search links.safetensors pump", "links.safetensors"),
        ("rank articles.index test.txt", "articles.index"),
        ("learn-links model.safetensors links.tsv -o m", "model.safetensors"),
        ("learn-links articles.index wide.csv -o m", "line 1: 1 columns; write two"),
    ],
)
def test_wrong_columns_and_wrong_models(words, sentence, here, run):
    (here / "wide.txt").write_text("1 qid:1 1:1 9:1\n")
    (here / "wide.csv").write_text("qid,a,b,c,d,e,f,g\n" + "1,1,1,1,1,1,1,1\n")
    (here / "short.txt").write_text("1\n")
    before = tree(here)
    code, out, err = run(shlex.split(words))
    assert (code, out) == (1, "")
    assert is_one_sentence(err)
    assert sentence in err
    assert tree(here) == before


@pytest.mark.parametrize("cut", [0.02, 0.5, 0.99])
@pytest.mark.parametrize("file", ["model.safetensors", "links.safetensors", "articles.index"])
def test_a_model_that_was_cut(file, cut, here, run):
    content = (here / file).read_bytes()
    (here / file).write_bytes(content[: int(cut * len(content))])
    words = {
        "model.safetensors": "rank model.safetensors test.txt -o s",
        "links.safetensors": "search articles.index pump --model links.safetensors -o s",
        "articles.index": "search articles.index pump -o s",
    }[file]
    before = tree(here)
    code, out, err = run(words.split())
    assert (code, out) == (1, "")
    assert is_one_sentence(err)
    assert file in err
    assert tree(here) == before


@pytest.mark.parametrize("words", [["nothing"], ["fit"], ["rank", "--nothing"], ["search", "i", "w", "-n", "many"]])
def test_words_that_make_no_command(words, run):
    code, out, err = run(words)
    assert (code, out) == (2, "")
    assert "Error" in err or "there is no command" in err


def test_what_should_not_happen_is_one_sentence_and_debug_shows_where(here, run, monkeypatch):
    def fail(*_, **__):
        raise RuntimeError("odd. Very odd")

    monkeypatch.setattr("corank.deploy.persist.load", fail)
    words = ["explain", "model.safetensors", "test.txt", "--pair", "1", "2"]
    code, out, err = run(words)
    assert (code, out) == (1, "")
    assert err == "corank: internal error (RuntimeError: odd); run again with --debug for a traceback.\n"
    for debug in (["--debug", *words], [*words, "--debug"]):
        code, out, err = run(debug)
        assert (code, out) == (1, "")
        assert err.startswith("Traceback")
        assert err.endswith("RuntimeError: odd. Very odd\n")
