"""Escape sequences in file names, columns, ids, titles and arguments do not reach the terminal from any command."""

from __future__ import annotations

import json
import os
import sys

import pytest
from test_console import Terminal

from corank import cli
from helpers.files import files

# an operating system command, a colour, a C1 sequence, a reversal of the direction, a backspace, invalid UTF-8
EVIL = "\x1b]0;x\x07\x1b[31m\x9b2J\u202e\x08\udcff"
NAME = EVIL.replace("\x08", "\n")
RAW = ("\x1b]", "\x1b[31m", "\x9b", "\u202e", "\x08", "\x07")


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with hostile files, in which the command is run."""
    monkeypatch.chdir(files(tmp_path))
    evil = EVIL.encode(errors="surrogateescape").decode(errors="replace")
    head, *rows = (tmp_path / "rows.csv").read_text().splitlines()
    label = [f"{int(row) % 3}" for row in range(len(rows))]
    named = head.replace("f0", f"f0{evil}").replace("f1", f'"{evil}"')
    lines = [f"{y},{row}".replace(",d", f",{evil}d") for y, row in zip(label, rows, strict=True)]
    (tmp_path / "evil.csv").write_text("\n".join([f"label,{named}", *lines]) + "\n")
    (tmp_path / f"{NAME}.csv").write_bytes(b"\xff\xfe\x1b[31m")
    text = (tmp_path / "records.csv").read_text().replace("study of", f"{evil} study of").replace("\n1,", f"\n{evil},")
    (tmp_path / "records.csv").write_text(text)
    (tmp_path / "items.csv").write_text((tmp_path / "items.csv").read_text().replace("thing", f"{evil} thing"))
    (tmp_path / "clicks.csv").write_text((tmp_path / "clicks.csv").read_text().replace(",d", f",{evil}d"))
    (tmp_path / "articles" / f"{NAME}.txt").write_text(evil)
    return tmp_path


@pytest.fixture
def drawn(monkeypatch):
    """Run words on a terminal, and return the exit code and all that is drawn."""

    def say(*words, keys=""):
        out, err = Terminal(), Terminal()
        monkeypatch.setattr(sys, "argv", ["corank", *words])
        for name, stream in (("stdout", out), ("stderr", err)):
            monkeypatch.setattr(sys, name, stream)
        read, write = os.pipe()
        os.write(write, keys.encode())
        os.close(write)
        with os.fdopen(read) as stdin:
            monkeypatch.setattr(sys, "stdin", stdin)
            try:
                cli.main()
            except SystemExit as stop:
                return stop.code, out.drawn + err.drawn
        return 0, out.drawn + err.drawn

    return say


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (1, ["fit", f"{NAME}.csv", "-m", "spd", "-o", "m"]),
        (1, ["fit", "evil.csv", "-m", "spd", "--label", EVIL, "-o", "m"]),
        (0, ["fit", "evil.csv", "-m", "crr", "-o", f"{NAME}.m"]),
        (1, ["rank", f"{NAME}.csv", "test.txt"]),
        (0, ["evaluate", "test.txt", "scores.txt", "--per-query", f"{NAME}.tsv"]),
        (1, ["evaluate", "test.txt", "scores.txt", "-m", EVIL]),
        (0, ["screen", "records.csv"]),
        (1, ["prefer", "items.csv", "--features", EVIL, "--export", "e.csv"]),
        (1, ["learn-clicks", "rows.csv", "clicks.csv", "--bias", "1", "-o", "m"]),
        (1, ["index", "articles", "-o", f"{NAME}.index"]),
        (1, ["index", NAME, "-o", "i"]),
        (0, ["search", "articles.index", f"pump {EVIL}"]),
        (0, ["convert", "evil.csv", f"{NAME}.txt"]),
        (1, ["convert", "test.txt", f"{NAME}/rows.txt"]),
        (2, [EVIL]),
        (2, ["fit", f"--{EVIL}"]),
        (2, ["fit", "evil.csv", "-o", "m", "--seed", EVIL]),
    ],
    ids=ascii,
)
def test_no_escape_sequence_reaches_the_terminal(code, words, here, drawn):
    found, text = drawn(*words, keys=f"note {EVIL.replace(chr(0xDCFF), '')}\nr\nn\n{EVIL[0]}\nq\n")
    assert found == code, text
    assert text
    assert [sign for sign in RAW if sign in text] == []


def test_saved_names_stay_exact_and_are_shown_escaped(here, drawn):
    """A model keeps the names of its columns; `explain` shows them, and suggestions name documents."""
    assert drawn("fit", "evil.csv", "-m", "crr", "-o", "m")[0] == 0
    for words in (["explain", "m", "evil.csv", "--pair", "1", "2"], ["suggest", "m", "evil.csv", "--number", "3"]):
        code, text = drawn(*words)
        assert code in (0, 1), text
        assert [sign for sign in RAW if sign in text] == []


def test_debug_shows_a_printable_traceback(here, drawn):
    code, text = drawn("fit", f"{NAME}.csv", "-m", "spd", "-o", "m", "--debug")
    assert code == 1
    assert "Traceback" in text
    assert [sign for sign in RAW if sign in text] == []


def test_json_keeps_a_file_name_exactly(here, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["corank", "convert", "test.txt", f"{NAME}.txt", "--json"])
    with pytest.raises(SystemExit):
        cli.main()
    assert json.loads(capsys.readouterr().out)["output"] == f"{NAME}.txt"
