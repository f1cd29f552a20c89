"""No command writes onto one of its inputs, with --force too; journals stay in the folder of the records."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import get_args, get_type_hints

import pytest
from cli.test_bad_things import COMMANDS, tree, write_answers

from corank import cli
from corank.cli import app
from corank.errors import InputError
from corank_lab.cli.screening.results import REPORT_FILES
from corank_lab.records import read_records
from faults.writers import write_journal
from helpers.files import files

INPUTS = {
    "add_to", "answers", "certificate", "cheap", "compare", "config", "data", "database", "documents", "features",
    "files", "folder", "gold", "grade", "index", "items", "judgements", "links", "log", "model", "names", "pairs",
    "drawn", "predictions", "prior", "qrels", "queries",
    "query_ids", "query_vectors", "reasons", "records", "rows", "runs", "source", "test", "texts", "truth", "valid",
    "vectors", "verify", "votes",
}  # fmt: skip


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(files(tmp_path))
    return tmp_path


def takes_path(hint):
    return hint is Path or any(takes_path(part) for part in get_args(hint))


def test_every_path_of_a_command_is_an_input_or_an_output():
    """A new name must be added to `INPUTS` here, or to `corank.cli.OUTPUTS`."""
    for name, verb in cli.VERBS.items():
        hints = get_type_hints(verb.function)
        paths = {name for name, hint in hints.items() if takes_path(hint)}
        assert paths <= INPUTS | set(cli.OUTPUTS), name


# each command with an output, and an input in its place
CASES = [
    (words, at, given)
    for verb, commands in COMMANDS.items()
    if verb != "compare"  # whose output must be a folder, which keeps its files
    for words in (command.split() for command in commands)
    for at in [next((at for at, word in enumerate(words) if word.startswith(">")), None)]
    for given in [word[1:] for word in words if word.startswith("<")]
    if at is not None
]


@pytest.mark.thin(5)
@pytest.mark.parametrize("how", ["the name", "another spelling", "a link", "a hard link"])
@pytest.mark.parametrize(
    ("words", "at", "given"), CASES, ids=lambda one: " ".join(one) if isinstance(one, list) else None
)
def test_an_output_that_is_an_input_is_refused(words, at, given, how, here):
    if given == "articles.index" and "--add-to" in words:
        pytest.skip("an index may be extended in its place")
    write_answers(here, words)
    if how == "a hard link" and (here / given).is_dir():
        pytest.skip("folders have no hard links")
    name = {"the name": given, "another spelling": f"./articles/../{given}"}.get(how, "other.csv")
    if how == "a link":
        os.symlink(here / given, "other.csv")
    elif how == "a hard link":
        os.link(given, "other.csv")
    before = tree(here)
    said = [name if place == at else word.lstrip("<") for place, word in enumerate(words)]
    with pytest.raises(InputError, match=r"(input|is also an input).*, which would be lost"):
        app([*said, "--force"], standalone_mode=False)
    assert tree(here) == before


def test_a_folder_that_contains_an_input_is_not_replaced(here):
    (here / "mine").mkdir()
    for name in ("records.csv", "test.txt"):
        (here / name).rename(here / "mine" / name)
    before = tree(here)
    for words in (
        ["screen", "replay", "mine/records.csv", "--starts", "1", "-o", "mine"],
        ["convert", "mine/test.txt", "mine"],
    ):
        with pytest.raises(InputError, match="mine contains the input mine/"):
            app([*words, "--force"], standalone_mode=False)
    assert tree(here) == before


def test_a_file_of_an_input_folder_is_not_replaced(here):
    app(["convert", "test.txt", "some.store"], standalone_mode=False)
    (here / "texts").mkdir()
    for name in ("a.txt", "old.index"):
        (here / "texts" / name).write_text("tin")
    before = tree(here)
    for words in (
        ["rank", "model.safetensors", "some.store", "-o", "some.store/y.bin"],
        ["index", "texts", "--language", "none", "-o", "texts/a.txt"],
    ):
        with pytest.raises(InputError, match=r"is part of the input \w+(\.store)?"):
            app([*words, "--force"], standalone_mode=False)
    assert tree(here) == before
    app(["index", "texts", "--language", "none", "-o", "texts/old.index", "--force"], standalone_mode=False)
    assert (here / "texts" / "old.index").read_bytes() != b"tin"


def test_a_report_replaces_only_a_report(here):
    """With --force too: the folder may hold answers, or anything else."""
    (here / "records.csv.answers").mkdir()
    (here / "records.csv.answers" / "me.jsonl").write_text("")
    before = tree(here)
    simulate = ["screen", "replay", "records.csv", "--starts", "1", "--force", "-o"]
    with pytest.raises(InputError, match=r"answers holds me\.jsonl"):
        app([*simulate, "records.csv.answers"], standalone_mode=False)
    assert tree(here) == before
    for _ in range(2):
        app([*simulate, "report"], standalone_mode=False)
    assert {file.name for file in (here / "report").iterdir()} == set(REPORT_FILES)


def test_an_export_onto_a_journal_is_refused(here):
    write_journal(here, "records.csv")
    os.symlink("corank.db", "out.csv")
    before = tree(here)
    with pytest.raises(InputError, match=r"out\.csv is the same file as the input"):
        app(["screen", "export", "records.csv", "-o", "out.csv", "--force"], standalone_mode=False)
    assert tree(here) == before


@pytest.mark.parametrize(
    "line", ["convert - test.txt --force < test.txt", "rank model.safetensors test.txt >> test.txt"]
)
def test_redirected_streams_count_too(line, here):
    before = (here / "test.txt").read_bytes()
    done = subprocess.run(f"{sys.executable} -m corank {line}", shell=True, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "input" in done.stderr
    assert "would be lost" in done.stderr
    assert (here / "test.txt").read_bytes() == before


@pytest.mark.parametrize("link", ["folder", "file"])
def test_links_out_of_the_folder_of_the_records_are_refused(link, here):
    (here / "home").mkdir()
    (here / "records.csv").rename(here / "home" / "records.csv")
    source, outside = Path("home/records.csv"), here / "outside"
    outside.mkdir()
    (outside / "me.jsonl").write_text("")
    folder = Path("home/records.csv.answers")
    if link == "folder":
        os.symlink(outside, folder)
    else:
        folder.mkdir()
        os.symlink(outside / "me.jsonl", folder / "me.jsonl")
    for words in (["screen", source], ["screen", "export", source, "-o", "e.csv"]):
        with pytest.raises(InputError, match=r"me\.jsonl leads to .*outside/me\.jsonl by a"):
            app([*map(str, words)], standalone_mode=False)
    assert (outside / "me.jsonl").read_text() == ""


def test_links_inside_the_folder_of_the_records_are_followed(here):
    (here / "answers").mkdir()
    os.symlink("answers", "records.csv.answers")
    (here / "answers" / "me.jsonl").write_text('{"action": "relevant", "id": "0"}\n')
    app(["screen", "export", "records.csv", "-o", "e.csv"], standalone_mode=False)
    assert read_records(here / "e.csv").labels[0] == 1.0
