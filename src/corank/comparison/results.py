"""Files of a comparison: one per finished task, named by a hash of its inputs, ``study.json``, the winner's model."""

from __future__ import annotations

import hashlib
import json
import math
import shutil
from dataclasses import asdict, dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from corank._version import __version__
from corank.comparison.fold import Settings
from corank.comparison.methods import Method
from corank.comparison.values import Study
from corank.data.durable.atomic import atomic_file, explain_write_errors
from corank.data.durable.regular import read_regular, require_regular
from corank.deploy.persist import load
from corank.errors import InputError
from corank.metrics import Evaluation

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class FoldTask:
    """One fit."""

    method: str  # name of the method
    fold: int | None  # test fold; None fits on all rows and saves the model
    fraction: float = 1.0  # share of the scored queries that keep their scores
    repeat: int = 0  # number of the random draw of that share


@dataclass(frozen=True, eq=False)
class TaskResult:
    """
    Result of a task.

    path: (parameter, value, mean metric, whether it was chosen) of each candidate.
    """

    scores: Floats  # of the test rows, ascending; empty for a fit on all rows
    chosen: dict[str, Any]  # tuned parameters
    fit_seconds: float  # fit_seconds, predict_seconds: processor time
    predict_seconds: float
    peak_bytes: int  # peak memory beyond that of the process before the fit
    n_queries: int  # number of scored training queries
    path: list[tuple[str, float, float, bool]]
    note: str = ""  # why the model could not be saved, or ""


@dataclass(frozen=True)
class ResultStore:
    """The results of one problem in a folder."""

    folder: Path
    fingerprint: str  # fingerprint, n_folds: of the problem; together with the seed they determine the folds
    n_folds: int
    settings: Settings

    def file(self, task: FoldTask, method: Method) -> Path:
        """Return the path of a result; its name is a hash of everything it depends on."""
        about = {
            "corank": __version__,
            "data": self.fingerprint,
            "folds": self.n_folds,
            **asdict(self.settings),
            "title": method.title,
            "tuning": method.tuning,
            "signature": method.signature,
            "module": _version_of(method.module),
            **asdict(task),
        }
        name = hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()[:32]
        return self.folder / f"{name}.safetensors"

    def read(self, task: FoldTask, method: Method) -> TaskResult | None:
        """Return a result, or None if it or its model is missing or damaged."""
        result = read_result(self.file(task, method))
        lacks_model = result is not None and task.fold is None and not result.note and self.model(task, method) is None
        return None if lacks_model else result

    def model(self, task: FoldTask, method: Method) -> Any:
        """Return the saved model of a task, or None if it is missing or damaged."""
        try:
            return load(model_file(self.file(task, method)))
        except (InputError, OSError):
            return None


def model_file(result: Path) -> Path:
    """Return the path of the model of a result."""
    return result.with_suffix(".model.safetensors")


def write_result(result: TaskResult, path: Path) -> None:
    """Write a result atomically."""
    about = {key: value for key, value in vars(result).items() if key != "scores"}
    with explain_write_errors(path), atomic_file(path, overwrite=True) as scratch:
        # `save_file` raises no OSError on a full disk
        scratch.write_bytes(
            save({"scores": np.asarray(result.scores, np.float64)}, metadata={"result": json.dumps(about)})
        )


def read_result(path: Path) -> TaskResult | None:
    """Read a result; None if it is missing or damaged."""
    try:
        require_regular(path)
        with safe_open(path, "numpy") as file:
            about = json.loads(file.metadata()["result"])
            return TaskResult(scores=file.get_tensor("scores"), **about)
    except (OSError, SafetensorError, KeyError, TypeError, ValueError, RecursionError):
        return None


def _version_of(module: str) -> str:
    if not module:
        return ""
    from importlib.metadata import version

    return f"{module} {version(module)}"


STUDY, MODEL, RESULTS = "study.json", "model.safetensors", "results"
"""Names in the folder of a study."""


def prepare(folder: Path, fingerprint: str, overwrite: bool) -> None:
    """Create the folder of a study, or reuse an existing one."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file, not a folder; choose another name.")
    with explain_write_errors(folder):
        (folder / RESULTS).mkdir(parents=True, exist_ok=True)
    if overwrite:
        return
    if (folder / STUDY).exists():
        try:
            held = json.loads(read_regular(folder / STUDY))["data"]["fingerprint"]
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            held = None
        if held != fingerprint:
            raise InputError(
                f"{folder} holds a study of other data; choose another folder, or replace it with overwrite=True."
            )
    elif (folder / MODEL).exists():
        raise InputError(f"{folder / MODEL} exists already; choose another folder, or replace it with overwrite=True.")


def write_study(study: Study, folder: Path) -> Path:
    """Write ``study.json``; return its path."""
    with explain_write_errors(folder / STUDY), atomic_file(folder / STUDY, overwrite=True) as scratch:
        scratch.write_text(json.dumps(study_record(study), indent=1, allow_nan=False) + "\n", encoding="utf-8")
    return folder / STUDY


def keep_model(source: Path, folder: Path) -> Path:
    """Copy the winner's model into the folder of a study; return its path."""
    with explain_write_errors(folder / MODEL), atomic_file(folder / MODEL, overwrite=True) as scratch:
        shutil.copyfile(source, scratch)
    return folder / MODEL


def study_record(study: Study) -> dict[str, Any]:
    """Return a study as JSON values: NaN is null, and evaluations hold the values of every query."""
    record: dict[str, Any] = {
        field.name: _plain(getattr(study, field.name)) for field in fields(study) if field.name != "ranker"
    }
    return record


def _plain(value: Any) -> Any:
    if isinstance(value, Evaluation):
        return {
            "convention": value.convention.name,
            "queries": [str(query) for query in value.query_ids.tolist()],
            "n_single_grade_queries": value.n_single_grade,
            "n_unjudged_rows": value.n_unjudged_rows,
            "metrics": {
                name: {"mean": _plain(item.mean), "n_used": item.n_used, "values": _plain(item.values)}
                for name, item in value.items()
            },
        }
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return str(value) if isinstance(value, Path) else value
