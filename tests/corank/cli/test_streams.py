"""Text through pipes: ``-``, /dev/stdin, process substitution, and a reader that goes away."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import corank
from corank.cli import app
from corank.data.io.stores import open_store
from corank.data.io.trec import read_run
from corank.errors import InputError
from helpers.files import files
from helpers.terminal import OnTerminal

CORANK = f"{sys.executable} -m corank"


def shell(line: str) -> subprocess.CompletedProcess[bytes]:
    """Run a line of bash, in which corank is the command of this tree."""
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("process substitution needs bash")
    return subprocess.run([bash, "-c", line.replace("corank ", f"{CORANK} ")], capture_output=True, check=False)


@pytest.fixture
def piped():
    """Run a command that must end well on bytes from standard input; return what it writes to standard output."""

    def run(given: bytes, *words: object) -> bytes:
        result = CliRunner().invoke(app, [str(word) for word in words], input=given, catch_exceptions=False)
        assert result.exit_code == 0, result.output
        return result.stdout_bytes

    return run


def test_every_verb_reads_standard_input(piped, says, text: Path, tmp_path: Path) -> None:
    content = text.read_bytes()
    piped(content, "fit", "-", "-m", "crr", "--unjudged", "-1", "-o", tmp_path / "m")
    says("fit", text, "-m", "crr", "--unjudged", "-1", "-o", tmp_path / "same")
    assert (tmp_path / "m").read_bytes() == (tmp_path / "same").read_bytes()

    scores = says("rank", tmp_path / "m", text).encode()
    assert piped(content, "rank", tmp_path / "m", "-", "-o", "-") == scores
    run = piped(content, "rank", tmp_path / "m", "-", "-o", "-", "--format", "trec")
    (tmp_path / "run").write_bytes(run)
    assert len(read_run(tmp_path / "run").scores) == len(scores.splitlines())

    (tmp_path / "scores").write_bytes(scores)
    expected = says("evaluate", text, tmp_path / "scores", "--unjudged", "-1", "--json").encode()
    for given, words in ((content, ["-", tmp_path / "scores"]), (scores, [text, "-"]), (run, [text, "-"])):
        answer = piped(given, "evaluate", *words, "--unjudged", "-1", "--json")
        assert re.sub(rb', "holes": \{[^}]*\}', b"", answer) == expected  # a run has them, a list of scores has not

    piped(content, "convert", "-", tmp_path / "a.store", "--unjudged", "-1")
    np.testing.assert_array_equal(open_store(tmp_path / "a.store").X, corank.read(text).X)
    assert piped(content, "convert", "-", "-") == piped(b"", "convert", text, "-") != b""


def test_tables_and_qrels_come_from_standard_input(piped, tmp_path: Path) -> None:
    (tmp_path / "run").write_text("7 Q0 a 1 2.5 x\n7 Q0 b 2 1.5 x\n")
    for given in (
        b"label,qid,docid,f\n1,7,a,0.5\n0,7,b,0.5\n",
        b"7 0 a 1\n7 0 b 0\n",
        b"1 qid:7 1:1 # a\n0 qid:7 # b\n",
    ):
        said = piped(given, "evaluate", "-", tmp_path / "run", "-m", "RR", "--json")
        assert b'"RR": {"mean": 1.0' in said


def test_what_is_no_text_is_refused_on_a_stream(says, piped, text: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    says("convert", text, tmp_path / "a.parquet")
    with pytest.raises(InputError, match="Parquet needs random access"):
        piped((tmp_path / "a.parquet").read_bytes(), "convert", "-", tmp_path / "b.txt")
    with pytest.raises(InputError, match="- is standard output"):
        says("fit", text, "-m", "crr", "-o", "-")
    assert not Path("-").exists()


long = pytest.mark.long


@pytest.mark.parametrize(
    "line",
    [
        "RANK <(head -n 100 TEXT) <(tail -n +101 TEXT) -o >(cat)",
        pytest.param("gzip -c TEXT | RANK -", marks=long),
        pytest.param("RANK /dev/stdin < TEXT", marks=long),
        pytest.param("cat TEXT | RANK /dev/stdin -o /dev/stdout", marks=long),
        pytest.param("RANK <(cat TEXT)", marks=long),
    ],
)
def test_open_files_pipes_and_packed_text(line: str, says, text: Path, tmp_path: Path) -> None:
    says("fit", text, "-m", "crr", "-o", tmp_path / "m")
    scores = says("rank", tmp_path / "m", text).encode()
    said = shell(line.replace("TEXT", str(text)).replace("RANK", f"corank rank {tmp_path / 'm'}"))
    assert (said.returncode, said.stdout, said.stderr) == (0, scores, b"")


@pytest.mark.parametrize(
    "output", ["", pytest.param("-o /dev/stdout", marks=long), pytest.param("--format trec -o -", marks=long)]
)
def test_a_reader_that_has_enough_ends_the_command_in_silence(output: str, says, text: Path, tmp_path: Path) -> None:
    says("fit", text, "-m", "crr", "-o", tmp_path / "m")
    large = tmp_path / "large.txt"
    large.write_bytes(text.read_bytes() * 100)
    said = shell(f"corank rank {tmp_path / 'm'} {large} {output} | head -n 1")
    assert said.stderr == b""
    assert said.stdout.count(b"\n") == 1


@pytest.mark.thin(2)
@pytest.mark.parametrize(
    "words", ["screen records.csv", "prefer items.csv", pytest.param("fit - -m spd -o m", marks=long)]
)
def test_closed_standard_input_is_one_sentence(words: str, tmp_path: Path) -> None:
    said = shell(f"cd {files(tmp_path)} && corank {words} <&-")
    assert (said.returncode, said.stdout) == (1, b"")
    assert re.fullmatch(rb"corank: standard input is (closed|not available).*\n", said.stderr)
    assert not [*tmp_path.glob("records.csv.answers"), *tmp_path.glob("items.csv.preferences")]


@pytest.mark.parametrize(
    "settings",
    [
        "LC_ALL=C PYTHONUTF8=0 PYTHONCOERCECLOCALE=0",
        pytest.param("PYTHONIOENCODING=ascii", marks=long),
        pytest.param("LC_ALL=C.UTF-8", marks=long),
    ],
)
def test_letters_that_the_output_cannot_encode_become_escapes(settings: str, tmp_path: Path) -> None:
    (tmp_path / "records.csv").write_text(
        "id,title,abstract\n1,Größe ± 1,pump house\n2,Größe ± 1,roof house\n3,c,roof pump\n", encoding="utf-8"
    )
    said = shell(f"cd {tmp_path} && echo q | {settings} corank screen records.csv")
    assert (said.returncode, said.stderr) == (0, b"")
    title = "Größe ± 1".encode() if "UTF-8" in settings else rb"Gr\xf6\xdfe \xb1 1"
    assert title in said.stdout


BEGIN = """
import os, signal, sys
class Finder:
    @staticmethod
    def find_spec(name, *_):
        if name == {module!r}:
            os.kill(os.getpid(), signal.{signal})
sys.meta_path.insert(0, Finder)
from corank.__main__ import main
main()
"""


@pytest.mark.parametrize(
    ("module", "number", "code", "sentence"),
    [
        ("typer", "SIGINT", 130, "interrupted before it began"),
        ("pydantic", "SIGINT", 130, "interrupted; unfinished output was not written"),
        ("numpy", "SIGINT", 130, "interrupted; unfinished output was not written"),
        ("numpy", "SIGTERM", 143, "interrupted; unfinished output was not written"),
    ],
)
def test_a_signal_during_imports_is_one_sentence(module, number, code, sentence, text: Path, tmp_path: Path) -> None:
    script = BEGIN.format(module=module, signal=number)
    words = ["fit", text, "-m", "spd", "--unjudged", "-1", "-o", tmp_path / "m"]
    said = subprocess.run([sys.executable, "-c", script, *words], capture_output=True, check=False, text=True)
    if module == "pydantic" and said.returncode == 0:
        pytest.skip("this version of typer does not import pydantic")
    # an interrupt that passes through C code may end the process by the signal itself, which shells report alike
    assert said.returncode in (code, 128 - code)
    assert (said.stdout, said.stderr) == ("", f"corank: {sentence}.\n")
    assert not (tmp_path / "m").exists()


def test_termination_restores_the_terminal(tmp_path: Path) -> None:
    """A judge's terminal reads single keys; after SIGTERM it echoes lines as before."""
    termios = pytest.importorskip("termios")
    session = OnTerminal("screen", files(tmp_path) / "records.csv")
    before = termios.tcgetattr(session.handle)
    session.wait_for(b"q quit")
    assert termios.tcgetattr(session.handle) != before
    os.kill(session.child, signal.SIGTERM)  # while a key is read, this is a quit; otherwise an interrupt
    session.wait_for_end()
    _, status = os.waitpid(session.child, 0)
    assert os.waitstatus_to_exitcode(status) == 143
    assert termios.tcgetattr(session.handle) == before
    os.close(session.handle)
