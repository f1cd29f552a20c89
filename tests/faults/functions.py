"""Every function of Python that writes a file or folder, and those of experiments."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path
from unittest.mock import patch

import numpy as np
from msgspec import convert

import corank
import experiments.options
from corank.comparison import Study
from corank.comparison.outcomes import write as write_study_report
from corank.comparison.report import Report
from corank.comparison.study import write_study
from corank.data.io.judgements import write_judgements
from corank.data.io.stores import store_letor
from corank.data.io.trec import write_qrels, write_run
from corank.data.io.write import write_parquet
from corank.data.judges import JudgementList
from corank.models.fusion import FusionDefinition
from corank.tables import ReportTable
from corank.text import Vectors, read_corpus, save_corpus
from corank.text.vectors import write_vectors
from corank_lab.api.history import export_log
from corank_lab.api.log import EventLog
from corank_lab.api.requests import Feedback, RankRequest
from corank_lab.api.service import Service
from corank_lab.records.records import read_records
from corank_lab.records.writer import write_records
from corank_lab.screening.methods import ScreeningFacts
from corank_lab.screening.prisma import PrismaCounts
from corank_lab.screening.report import write_report as write_screening_report
from corank_lab.screening.simulate import ScreeningReplay, plot_recall
from experiments.index_page import ExperimentRun, write_index
from experiments.lcra.problems import ProblemSource
from experiments.lcra.run import ALPHAS, COUPLINGS, plot_alphas
from experiments.options import ExperimentOptions
from faults.writers import PROBLEMS, Writer, model, sources
from helpers.api import ask, online_bytes
from helpers.stores import open_new
from helpers.study import full_study

_LOGS = tempfile.TemporaryDirectory()  # removed when Python ends


@cache
def some_study(version: int) -> Study:
    return full_study(20 + 4 * version)


def save(target: Path, version: int, overwrite: bool) -> None:
    corank.save(model(version), target, overwrite=overwrite)


def letor(target: Path, version: int, overwrite: bool) -> None:
    made = PROBLEMS[version]
    corank.data.write_letor(target, made.X, made.y, made.qid, overwrite=overwrite)


def store(target: Path, version: int, overwrite: bool) -> None:
    made = PROBLEMS[version]
    corank.data.write_store(target, made.X, made.y, made.qid, overwrite=overwrite)


def parquet(target: Path, version: int, overwrite: bool) -> None:
    made = PROBLEMS[version]
    write_parquet(target, made.X, made.y, made.qid, overwrite=overwrite)


def clicks(target: Path, version: int, overwrite: bool) -> None:
    made = PROBLEMS[version]
    log = corank.data.ClickLog.of(made.qid, np.arange(len(made.y)), np.arange(len(made.y)) % 8 + 1, made.y > 2)
    corank.data.write_clicks(target, log, overwrite=overwrite)


def run(target: Path, version: int, overwrite: bool) -> None:
    made = PROBLEMS[version]
    write_run(target, made.qid, np.arange(len(made.y)), made.y, overwrite=overwrite)


def qrels(target: Path, version: int, overwrite: bool) -> None:
    made = PROBLEMS[version]
    write_qrels(target, made.qid, np.arange(len(made.y)), made.y, overwrite=overwrite)


def judgements(target: Path, version: int, overwrite: bool) -> None:
    made = PROBLEMS[version]
    qid, docids = (np.array([str(one) for one in column], dtype=object) for column in (made.qid, range(len(made.y))))
    write_judgements(target, JudgementList(made.y, qid, docids), "quepid-book", overwrite=overwrite)


def records(target: Path, version: int, overwrite: bool) -> None:
    found = read_records(sources() / f"{version}" / "records.csv")
    write_records(target, found, found.labels, {"note": ["a"] * len(found)}, overwrite=overwrite)


def screening_report(target: Path, version: int, overwrite: bool) -> None:
    counts = PrismaCounts((("PubMed", 9 + version),), 0, 0, (("animals", 4 + version),), 5)
    write_screening_report(target, ScreeningFacts(counts), overwrite=overwrite)


def corpus(target: Path, version: int, overwrite: bool) -> None:
    save_corpus(read_corpus(sources() / f"{version}" / "articles"), target, overwrite=overwrite)


def from_letor(target: Path, version: int, overwrite: bool) -> None:
    store_letor(target, [sources() / f"{version}.txt"], overwrite=overwrite)


@cache
def event_log(version: int) -> EventLog:
    """The log of a service that has shown some lists; it stays open until Python ends."""
    folder = Path(_LOGS.name) / f"{version}"
    folder.mkdir()
    service = Service(open_new("sqlite", folder))
    service.registry.add("shop", "online", online_bytes(), {})
    for number in range(3 + version):
        shown = service.rank(convert(ask(seed=number, query="tea", id=f"list {number}"), RankRequest))
        shown.committed.result()
        clicks = {"impression": f"list {number}", "clicks": ["item0"]}
        service.append(service.feedback([(clicks, convert(clicks, Feedback))])).result()
    return service.log


def events_export(target: Path, version: int, overwrite: bool) -> None:
    export_log(event_log(version), target, overwrite=overwrite)


def recall_plot(target: Path, version: int, overwrite: bool) -> None:
    found = np.arange(10) % 5 == version
    plot_recall([ScreeningReplay(0, np.arange(10), found, 0.0, 5, 0.5)], target, overwrite=overwrite)


def study(target: Path, version: int, overwrite: bool) -> None:
    write_study(some_study(version), target.parent)


def study_report(target: Path, version: int, overwrite: bool) -> None:
    write_study_report(some_study(version), target.parent, overwrite=overwrite)


def report(target: Path, version: int, overwrite: bool) -> None:
    table = ReportTable("Cells", ("cell",), ((version,),), note="a note " * 20)
    Report("A test", f"version {version}", (table,)).write(target.parent)


def index(target: Path, version: int, overwrite: bool) -> None:
    write_index([ExperimentRun("lcra", "a command", "lcra", None, f"reason {version}")], target.parent, "index")


def gains_plot(target: Path, version: int, overwrite: bool) -> None:
    """Write the picture of one problem."""
    values = np.linspace(0.25 + version, 0.5, len(ALPHAS))
    trials = {"a problem": [{"SPD": values, "views": [values] * len(COUPLINGS)}]}
    plot_alphas(trials, {"a problem": ProblemSource("a problem", "", "AP", None, (0.1, 0.2))}, target)


def experiment(target: Path, version: int, overwrite: bool) -> None:
    """Results of an experiment; the second version is a longer run in the same folder."""
    options = ExperimentOptions(target.parent)
    with patch.object(experiments.options, "_processor_seconds", return_value=0.0):  # a line holds its time
        values = [
            options.result({"cell": cell}, lambda cell=cell: [cell / 3] * 2000) for cell in range(3 + 3 * version)
        ]
    table = ReportTable("Cells", ("cell", "value"), tuple((cell, value[0]) for cell, value in enumerate(values)))
    Report("A test", f"version {version}", (table,)).write(target.parent)


def fusion(target: Path, version: int, overwrite: bool) -> None:
    FusionDefinition.rrf(("bm25", "vectors"), 60.0 + version).save(target, overwrite=overwrite)


def vectors(target: Path, version: int, overwrite: bool) -> None:
    write_vectors(target, Vectors.of(np.eye(4 + version), None), overwrite=overwrite)


FUNCTIONS = (
    Writer("save", "model.safetensors", save),
    Writer("write_letor", "rows.txt", letor),
    Writer("write_store", "rows.store", store),
    Writer("write_parquet", "rows.parquet", parquet),
    Writer("write_run", "run.txt", run),
    Writer("write_qrels", "qrels.txt", qrels),
    Writer("write_judgements", "book.json", judgements),
    Writer("write_clicks", "clicks.csv", clicks),
    Writer("write_records to CSV", "records.csv", records),
    Writer("write_records to RIS", "records.ris", records),
    Writer("report of a screening", "report", screening_report),
    Writer("write_records to Excel", "records.xlsx", records),
    Writer("FusionDefinition.save", "fusion.json", fusion),
    Writer("write_vectors", "vectors.npz", vectors),
    Writer("save_corpus", "articles.index", corpus),
    Writer("store_letor", "rows.store", from_letor),
    Writer("events export", "log", events_export),
    Writer("plot_recall", "recall.png", recall_plot, is_slow=True),
)
RESULTS = (
    Writer("write_study", "study.json", study, replaces=True),
    Writer("plots of experiments", "gains.png", gains_plot, replaces=True, is_slow=True),
)
EXPERIMENT = Writer("experiment", "results.jsonl", experiment, in_parts=True, replaces=True)
IN_PARTS = (
    Writer("report of a study", "report.html", study_report, in_parts=True, is_slow=True),
    Writer("Report.write", "report.html", report, in_parts=True, replaces=True),
    Writer("index of experiments", "index.html", index, in_parts=True, replaces=True),
    EXPERIMENT,
)
