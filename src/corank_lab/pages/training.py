"""
Train and compare: rankers are compared on the grades of a project, and the recommended one is kept.

The comparison runs in a thread, its fits in processes of their own, so that pages do not wait. Report and model are
files of the project: they survive restarts, and travel with the saved project.
"""

from __future__ import annotations

import json
import os
import shlex
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from corank.errors import InputError
from corank.progress import listen_to_progress
from corank_lab.database.database import Database
from corank_lab.database.schema import utc_now
from corank_lab.grading.export import RANK, SCORES, GradingFeatures

MIN_QUERIES = 5  # number of queries with two different grades that a comparison needs
BUDGET = 600.0  # time limit of a comparison, in seconds
MAX_NAMED = 12  # columns that are named in the result
REPORT, MODEL, ABOUT = "train/report.html", "train/model.safetensors", "train/about.json"
"""Names of the files; uploaded files have no slash in their names."""


@dataclass(eq=False)
class TrainingJob:
    """One comparison."""

    thread: threading.Thread
    what: str = ""  # what, done, total: the step at work, and how far it is
    done: int = 0
    total: int = 0
    error: str = ""  # why it failed, empty if it did not

    @property
    def is_running(self) -> bool:
        return self.thread.is_alive()

    def listen(self, what: str, done: int, total: int) -> None:
        self.what, self.done, self.total = what, min(done, total), total


Files = dict[str, tuple[str, bytes]]  # media type and content by name
_JOBS: WeakKeyDictionary[Database, dict[str, TrainingJob]] = WeakKeyDictionary()
_LOCK = threading.Lock()


def job_of(store: Database, project: str) -> TrainingJob | None:
    """Return the last comparison of a project since the start of the server."""
    return _JOBS.get(store, {}).get(project)


def last_result(store: Database, project: str) -> dict[str, Any] | None:
    """Return what is known of the last comparison that ended well; None if that cannot be read."""
    result = store.file(project, ABOUT)
    try:
        values = {} if result is None else json.loads(result[1])
        datetime.fromisoformat(values["time"])
        numbers = {name: int(values[name]) for name in ("n_answers", "n_grades", "n_queries")}
        return {
            **numbers, "time": values["time"], "verdict": str(values["verdict"]),
            "has_model": bool(values["has_model"]), "used": str(values.get("used", "")),
        }  # fmt: skip
    except (LookupError, TypeError, ValueError, RecursionError):  # the file of a saved project may hold anything
        return None


def too_few(y: np.ndarray[Any, Any], queries: np.ndarray[Any, Any]) -> str:
    """Return why the grades do not suffice; empty if they do."""
    graded = ~np.isnan(y)
    n = sum(len(set(y[graded & (queries == item)])) > 1 for item in np.unique(queries[graded]))
    sentence = f"{n} queries have two different grades; grade documents of at least {MIN_QUERIES} queries differently "
    return "" if n >= MIN_QUERIES else sentence + "before rankers can be compared."


def start(store: Database, project: str, work: Callable[[TrainingJob], Files]) -> None:
    """Start a comparison, whose files are stored; nothing changes if one is running."""

    def run() -> None:
        try:
            store.add_files(project, work(job))
        except InputError as error:
            job.error = str(error)
        except Exception as error:
            kind = type(error).__name__
            job.error = f"The comparison failed ({kind}). Try again; the terminal of corank lab shows the details."
            raise  # the terminal shows the details

    with _LOCK:
        jobs = _JOBS.setdefault(store, {})
        if project in jobs and jobs[project].is_running:
            return
        job = jobs[project] = TrainingJob(threading.Thread(target=run, name="corank-train", daemon=True))
        job.thread.start()


def compare_rankers(
    job: TrainingJob, name: str, features: GradingFeatures, y: Any, rows: Sequence[tuple[str, str]], n_answers: int
) -> Files:
    """Compare rankers on final grades y of rows, which are queries and documents; return report, result and model."""
    from corank.comparison import compare, study_html
    from corank.data import Dataset, as_texts

    qid, docids = (as_texts([row[i] for row in rows]) for i in (0, 1))
    graded = ~np.isnan(y)
    data = Dataset(features.X, y, list(features.columns), _qid=lambda: qid, _docids=lambda: docids)
    prior = [] if features.prior is None else ["--prior", features.prior]
    with TemporaryDirectory(prefix="corank-") as folder, listen_to_progress(job.listen):
        study = compare(
            X=data, prior=prior[1:] or None, budget=BUDGET, folder=Path(folder, "study"), name=name,
            n_jobs=max(1, min(4, (os.cpu_count() or 2) - 1)),  # a processor for the pages
            command=shlex.join(["corank", "compare", "features.csv", *prior]),
        )  # fmt: skip
        about = {
            "time": utc_now(), "n_answers": n_answers, "n_grades": int(graded.sum()),
            "n_queries": len(set(qid[graded])), "verdict": study.verdict, "has_model": study.model is not None,
            "used": _used(features),
        }  # fmt: skip
        files = {
            REPORT: ("text/html", study_html(study).encode()),
            ABOUT: ("application/json", json.dumps(about).encode()),
        }
        if study.model is not None:
            files[MODEL] = ("application/octet-stream", Path(study.model).read_bytes())
    return files


def _used(features: GradingFeatures) -> str:
    """Say what was learnt from, and what the baseline is."""
    columns, more = list(features.columns[:MAX_NAMED]), len(features.columns) - MAX_NAMED
    listed = ", ".join([*columns, *([f"{more} more"] if more > 0 else [])])
    if features.prior is None:
        return f"Learnt from: {listed}."
    is_given = features.prior == RANK or features.prior.casefold() in SCORES
    what = (
        f"is the order by {features.prior}, as the files give it."
        if is_given
        else f"is that by {features.prior}, words that query and text share, since the files give no order."
    )
    return f"Learnt from: {listed}. “Present order” {what}"
