"""
All writers of corank, as a user calls them, with two versions of the content.

A writer is called with the folder to write in, the version (0 or 1) and whether to overwrite. Folders are
compared byte for byte: all writers give the same bytes for the same rows.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from unittest import mock

import numpy as np

import corank
from corank.cli import app
from corank.data.durable import atomic
from corank.data.formats.trec import write_qrels, write_run
from corank.data.formats.write_frames import write_parquet
from corank.data.problem.synthetic import make_ranking
from corank.evaluation.report import Report
from corank.tables import ReportTable
from experiments.options import ExperimentOptions

PROBLEMS = [make_ranking(n, 8, features_per_view=5, random_state=n) for n in (6, 9)]

Tree = dict[str, bytes]

_SOURCES = tempfile.TemporaryDirectory()  # removed when Python ends


@dataclass(frozen=True)
class Writer:
    """
    One writer.

    name: the command or function.
    target: name of its output in the folder.
    write: called with the target, the version, and whether to overwrite.
    in_parts: whether it writes several files, each atomic by itself.
    """

    name: str
    target: str
    write: Callable[[Path, int, bool], None]
    in_parts: bool = False

    def __call__(self, folder: Path, version: int, overwrite: bool = True) -> None:
        self.write(folder / self.target, version, overwrite)

    def allows(self, found: Tree, old: Tree, new: Tree) -> bool:
        """Whether this is allowed after the writer was killed."""
        if not self.in_parts:
            return found in (old, new)
        log = "results.jsonl"  # it grows by lines; an incomplete last line is ignored
        found, grown = {**found}, found.get(log, b"")
        lines = grown[: grown.rfind(b"\n") + 1]
        if not (new[log].startswith(grown) and lines.startswith(old.get(log, b""))):
            return False
        found.pop(log, None)
        return all(text in (old.get(name), new.get(name)) for name, text in found.items()) and (
            old.keys() <= found.keys() | {log}
        )


def tree(folder: Path) -> Tree:
    """Every file below a folder, except those in scratch folders."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    found = {path.relative_to(folder): path.read_bytes() for path in files}
    return {str(name): content for name, content in found.items() if not name.parts[0].endswith(".part")}


@cache
def sources() -> Path:
    folder = Path(_SOURCES.name)
    for version, made in enumerate(PROBLEMS):
        corank.write_letor(folder / f"{version}.txt", made.X, made.y, made.qid)
        corank.save(model(version), folder / f"{version}.safetensors")
        (folder / f"{version}.scores").write_text("".join(f"{row % 5}\n" for row in range(len(made.y))))
    return folder


@cache
def model(version: int) -> corank.SPD:
    made = PROBLEMS[version]
    return corank.SPD(n_steps=500, random_state=0).fit(made.X, made.y, qid=made.qid)


def say(*words: object, overwrite: bool) -> None:
    app([*map(str, words), *(["--force"] if overwrite else [])], standalone_mode=False)


def convert(target: Path, version: int, overwrite: bool) -> None:
    say("convert", sources() / f"{version}.txt", target, overwrite=overwrite)


def convert_without_exchange(target: Path, version: int, overwrite: bool) -> None:
    with mock.patch.object(atomic, "exchange", return_value=False):
        convert(target, version, overwrite)


def fit(target: Path, version: int, overwrite: bool) -> None:
    words = ["--model", "spd", "--iterations", 500, "-o", target]
    say("fit", sources() / f"{version}.txt", *words, overwrite=overwrite)


def rank(target: Path, version: int, overwrite: bool) -> None:
    model, rows = sources() / f"{version}.safetensors", sources() / f"{version}.txt"
    form = "trec" if target.suffix == ".run" else "scores"
    say("rank", model, rows, "--format", form, "-o", target, overwrite=overwrite)


def evaluate(target: Path, version: int, overwrite: bool) -> None:
    truth, scores = sources() / f"{version}.txt", sources() / f"{version}.scores"
    say("evaluate", truth, scores, "--per-query", target, overwrite=overwrite)


def save(target: Path, version: int, overwrite: bool) -> None:
    corank.save(model(version), target, overwrite=overwrite)


def letor(target: Path, version: int, overwrite: bool) -> None:
    made = PROBLEMS[version]
    corank.write_letor(target, made.X, made.y, made.qid, overwrite=overwrite)


def store(target: Path, version: int, overwrite: bool) -> None:
    made = PROBLEMS[version]
    corank.write_store(target, made.X, made.y, made.qid, overwrite=overwrite)


def parquet(target: Path, version: int, overwrite: bool) -> None:
    made = PROBLEMS[version]
    write_parquet(target, made.X, made.y, made.qid, overwrite=overwrite)


def clicks(target: Path, version: int, overwrite: bool) -> None:
    made = PROBLEMS[version]
    log = corank.ClickLog.of(made.qid, np.arange(len(made.y)), np.arange(len(made.y)) % 8 + 1, made.y > 2)
    corank.write_clicks(target, log, overwrite=overwrite)


def run(target: Path, version: int, overwrite: bool) -> None:
    made = PROBLEMS[version]
    write_run(target, made.qid, np.arange(len(made.y)), made.y, overwrite=overwrite)


def qrels(target: Path, version: int, overwrite: bool) -> None:
    made = PROBLEMS[version]
    write_qrels(target, made.qid, np.arange(len(made.y)), made.y, overwrite=overwrite)


def experiment(target: Path, version: int, overwrite: bool) -> None:
    """Results of an experiment; the second version is a longer run in the same folder."""
    options = ExperimentOptions(target.parent)
    values = [options.result({"cell": cell}, lambda cell=cell: [cell / 3] * 2000) for cell in range(3 + 3 * version)]
    table = ReportTable("Cells", ("cell", "value"), tuple((cell, value[0]) for cell, value in enumerate(values)))
    Report("A test", f"version {version}", (table,)).write(target.parent)


COMMANDS = (
    Writer("convert to text", "rows.txt", convert),
    Writer("convert to packed text", "rows.txt.gz", convert),
    Writer("convert to store", "rows.store", convert),
    Writer("convert to store without exchange", "rows.store", convert_without_exchange),
    Writer("convert to Parquet", "rows.parquet", convert),
    Writer("fit", "model.safetensors", fit),
    Writer("rank", "scores.txt", rank),
    Writer("rank --format trec", "rows.run", rank),
    Writer("evaluate --per-query", "queries.tsv", evaluate),
)
FUNCTIONS = (
    Writer("save", "model.safetensors", save),
    Writer("write_letor", "rows.txt", letor),
    Writer("write_store", "rows.store", store),
    Writer("write_parquet", "rows.parquet", parquet),
    Writer("write_run", "run.txt", run),
    Writer("write_qrels", "qrels.txt", qrels),
    Writer("write_clicks", "clicks.csv", clicks),
    Writer("write_clicks to UBI", "events.jsonl", clicks),
)
EXPERIMENT = Writer("experiment", "results.jsonl", experiment, in_parts=True)
