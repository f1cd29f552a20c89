"""A short reproducible round of every fuzzer, and checks that the fuzzers detect faults."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fuzz.run import formats
from fuzz.saved import classes

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="workers are forked")

TOY = """
import os, sys, time, warnings
from fuzz import pool, run
from fuzz.format import Format, Wrong
from corank.errors import InputError

class Toy(Format):
    name, suffix, is_text, sample = "toy", ".txt", True, b"fine"
    words = [b"fine", b"refused", b"foreign", b"signal", b"hang", b"part", b"memory", b"warning", b"wrong", b"exit"]

    def generate(self, rng):
        return b"some " + rng.choice(self.words) + b" thing"

    def check(self, content, way, folder):
        if b"refused" in content:
            raise InputError("no.")
        if b"foreign" in content:
            {}["key"]
        if b"signal" in content:
            os.kill(os.getpid(), 11)
        if b"hang" in content:
            time.sleep(600)
        if b"part" in content:
            (folder / ".x.part").touch()
        if b"memory" in content:
            bytearray(2 * pool.MEMORY)
        if b"warning" in content:
            warnings.warn("overflow", RuntimeWarning)
        if b"wrong" in content:
            raise Wrong("number", 7)
        if b"exit" in content:
            os._exit(3)
        return True

pool.SECONDS_AN_INPUT = 2.0
run.formats = lambda: {"toy": Toy()}
run.main()
"""


RECORDS = (
    "records_csv", "records_xlsx", "records_ris", "records_pubmed", "records_ovid", "records_cochrane", "records_wos",
    "records_refworks", "records_refer", "records_bibtex", "records_endnote", "records_pubmed_xml", "records_jsonl",
    "records_json",
)  # fmt: skip
LINES = (
    "journal_screen", "journal_ask", "items_csv", "items_jsonl", "clicks_csv", "clicks_tsv", "clicks_ubi",
    "documents_jsonl", "documents_tsv", "links_tsv", "scores", "preferences_csv", "ratings", "labels", "judgements",
    "uploads", "archives",
)  # fmt: skip


def fuzz(*arguments, code="from fuzz.run import main; main()"):
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)], cwd=ROOT, capture_output=True, text=True, timeout=600
    )


@pytest.mark.parametrize(
    ("names", "count"),
    [
        # damaged stores, models, Parquet and packed files are among the tests of their readers, too
        (("letor", "run", "qrels", "csv", "tree_text", *RECORDS, *LINES), 12),
        *(
            pytest.param(names, 600, marks=pytest.mark.long)
            for names in (
                ("letor",),
                ("run", "qrels", "csv"),
                ("parquet", "container"),
                ("store",),
                *((f"model.{kind}",) for kind in classes()),
                ("trees", "tree_text"),
                RECORDS,
                ("index",),
                ("service",),
                LINES,
                ("projects",),
            )
        ),
    ],
)
def test_a_short_round_and_the_corpus_pass(names, count, tmp_path):
    shutil.copytree(ROOT / "fuzz" / "corpus", tmp_path / "corpus")
    done = fuzz(*names, "--count", count, "--seed", 0, "--jobs", 1, "--corpus", tmp_path / "corpus")
    assert done.returncode == 0, done.stdout + done.stderr
    counts = re.findall(r"^([\w.]+)/? +(\d+) +(\d+) +(\d+) +(\d+)", done.stdout, flags=re.MULTILINE)
    rounds = {name: [int(n) for n in numbers] for name, *numbers in counts if int(numbers[0]) == count}
    for name in names:
        inputs, accepted, refused, failures = rounds[name]
        assert (accepted + refused, failures) == (inputs, 0)
        # a round with only accepted or only rejected inputs tests little
        assert count < 100 or min(accepted, refused) > inputs / 20


def test_every_format_has_a_round():
    here = Path(__file__).read_text(encoding="utf-8")
    plain = [name for name in formats() if not name.startswith("model.")]
    assert [name for name in plain if f'"{name}"' not in here] == []
    assert set(formats()) - set(plain) == {f"model.{kind}" for kind in classes()}


@pytest.mark.long
def test_every_broken_rule_is_noticed_and_its_input_kept(tmp_path):
    done = fuzz("--count", 60, "--seed", 0, "--jobs", 2, "--corpus", tmp_path, code=TOY)
    assert done.returncode == 1, done.stderr
    for kind in (
        "KeyError in <string> check", "SIGSEGV outside corank", "hang outside corank", "leftovers",
        "MemoryError in <string> check", "RuntimeWarning in <string> check", "wrong: number", "exit 3 outside corank",
    ):  # fmt: skip
        assert f" x {kind}" in done.stdout
    kept = {file.read_bytes() for file in (tmp_path / "toy").iterdir()}
    assert kept == {b"foreign", b"signal", b"hang", b"part", b"memory", b"warning", b"wrong", b"exit"}
    # what was kept is tried first the next time
    again = fuzz("--count", 0, "--corpus", tmp_path, code=TOY)
    assert again.returncode == 1
    assert re.search(r"^toy/ +8 +0 +0 +8 ", again.stdout, flags=re.MULTILINE)


@pytest.mark.long
def test_seed_and_number_give_an_input_again():
    code = "from fuzz.model import Model; from fuzz.pool import draw; print([draw(Model('SPD'), 3, n) for n in {}])"
    both, one = fuzz(code=code.format([17, 18])), fuzz(code=code.format([18]))
    assert one.returncode == 0, one.stderr
    assert both.stdout.endswith(one.stdout[1:])
    assert both.stdout.count("Input(") == 2
