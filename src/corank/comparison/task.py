"""
Tasks of a comparison: fit a method on a training part, score the left-out rows, measure time and memory.

`serve` is the main function of a worker process. It imports and compiles once, and forks a process for each task, so
that time and memory are the task's own and a killed task harms no other. It exits at the end of its input, which also
happens if its parent is killed. Without a safe fork (Windows, macOS) a worker runs one task and exits.
"""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import select
import signal
import sys
import warnings
from base64 import b64decode
from dataclasses import asdict, dataclass
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as tensors
from scipy import sparse
from sklearn.pipeline import Pipeline

from corank._version import __version__
from corank.comparison.methods import METHODS, LightGBM, Method, Settings, TrainingPart
from corank.comparison.problem import ComparisonProblem
from corank.data.durable.atomic import atomic_file, explain_write_errors
from corank.data.durable.regular import require_regular
from corank.data.missing import MissingValues
from corank.data.routing import fit_with_qid, predict_with_qid
from corank.data.rows import has_missing
from corank.deploy.persist import load, save
from corank.errors import InputError, MissingExtra, UsageWarning, reason

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
    """Result of a task."""

    scores: Floats  # of the test rows, ascending; empty for a fit on all rows
    chosen: dict[str, Any]  # tuned parameters
    fit_seconds: float  # fit_seconds, predict_seconds: processor time
    predict_seconds: float
    peak_bytes: int  # peak memory beyond that of the process before the fit
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
            tensors({"scores": np.asarray(result.scores, np.float64)}, metadata={"result": json.dumps(about)})
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


# number of queries, and of rows of each, for warming up
_WARM_QUERIES, _WARM_ROWS = 6, 40


def perform(problem: ComparisonProblem, method: Method, settings: Settings, task: FoldTask, path: Path) -> None:
    """Run a task and write its result."""
    seeds = (settings.seed, 0 if task.fold is None else task.fold + 1, task.repeat)
    rows, y = problem.train(task.fold, task.fraction, seeds)
    part = part_of(problem, method, rows, y, settings, seeds)
    test = np.empty(0, dtype=np.int64) if task.fold is None else problem.test(task.fold)
    # read before memory is measured: pages of a mapped file count when they are first read
    X, codes = _rows(problem, test), problem.codes[test]
    if has_missing(X) and not has_missing(part.X):
        # nothing could be learnt about missing values: use the means of the training rows
        X = MissingValues.of(part.X).fill(X)
    before, began = _peak_bytes(), process_time()
    with warnings.catch_warnings():
        # a comparison tries the kernel that this hint suggests
        warnings.filterwarnings("ignore", "on left-out queries", UsageWarning)
        model = fit_with_qid(method.make(part), part.X, part.y, part.qid)
    fitted = process_time()
    scores = np.asarray(predict_with_qid(model, X, codes), np.float64) if len(test) else np.empty(0)
    ended, peak = process_time(), _peak_bytes()
    if scores.shape != (len(test),) or not np.isfinite(scores).all():
        raise InputError("predict did not return one finite score for each row; leave this method out, or correct it.")
    result = TaskResult(
        scores,
        chosen_of(model),
        fit_seconds=fitted - began,
        predict_seconds=ended - fitted,
        peak_bytes=max(0, peak - before),
        note="" if task.fold is not None else _save_model(model, problem.names, model_file(path)),
    )
    write_result(result, path)


def part_of(
    problem: ComparisonProblem, method: Method, rows: Any, y: Any, settings: Settings, seeds: tuple[int, ...]
) -> TrainingPart:
    """Return what a method may see of a training part."""
    if method.is_label_free:
        y = np.full(len(y), np.nan)
    elif not method.takes_unscored:
        rows, y = rows[~np.isnan(y)], y[~np.isnan(y)]
    return TrainingPart(_rows(problem, rows), y, np.asarray(problem.codes[rows]), settings, seeds)


def _rows(problem: ComparisonProblem, rows: Any) -> Any:
    """Return a copy of rows in memory."""
    X = problem.X[rows]
    return X if sparse.issparse(X) else np.asarray(X)


def warm_up(problem: ComparisonProblem, method: Method, settings: Settings) -> None:
    """Fit and predict on a few rows, so that kernels are compiled before times are measured; ignore failures."""
    units = sorted(problem.comparable)[:_WARM_QUERIES]
    rows = np.concatenate([np.flatnonzero(problem.units == unit)[:_WARM_ROWS] for unit in units])
    try:
        part = part_of(problem, method, rows, problem.y[rows], settings, (0,))
        predict_with_qid(fit_with_qid(method.make(part), part.X, part.y, part.qid), part.X, part.qid)
    except Exception:
        return


def error_message(error: BaseException) -> str:
    """Return a sentence about why a task failed."""
    if isinstance(error, InputError | MissingExtra):
        return str(error)
    if isinstance(error, MemoryError):
        return "not enough memory."
    text = reason(error) if isinstance(error, Exception) else ""
    name = type(error).__name__
    return f"{name}: {text}." if text != name else f"{name}."


def ranker_of(model: Any) -> Any:
    """Return the fitted ranker inside a search, a pipeline or a prior."""
    while True:
        if hasattr(model, "best_estimator_"):
            model = model.best_estimator_
        elif isinstance(model, Pipeline):
            model = model[-1]
        elif hasattr(model, "ranker_"):
            model = model.ranker_
        else:
            return model


def chosen_of(model: Any) -> dict[str, Any]:
    """Return the tuned parameters."""
    if hasattr(model, "best_params_"):
        return {name.rpartition("__")[2]: _plain(value) for name, value in model.best_params_.items()}
    ranker = ranker_of(model)
    names = ("alpha_", "coupling_")
    return {name[:-1]: _plain(getattr(ranker, name)) for name in names if hasattr(ranker, name)}


def _save_model(model: Any, names: tuple[str, ...] | None, path: Path) -> str:
    """Save a model with the names of its columns; return why it failed, or ""."""
    if hasattr(model, "best_estimator_"):
        model = model.best_estimator_
    if isinstance(model, LightGBM):
        model = model.ranker_
    if names is not None:  # it was fitted on an array
        first = model[0] if isinstance(model, Pipeline) else model
        first.feature_names_in_ = np.array(names, dtype=object)
    try:
        save(model, path, overwrite=True)
    except InputError as error:
        return str(error)
    return ""


def _plain(value: Any) -> Any:
    value = value.item() if isinstance(value, np.generic) else value
    return value if isinstance(value, bool | int | float | str) or value is None else repr(value)


def _peak_bytes() -> int:
    """Return the peak memory of this process; 0 if the system does not provide it."""
    if sys.platform == "win32":
        return 0
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(peak) if sys.platform == "darwin" else 1024 * int(peak)


CAN_FORK = hasattr(os, "fork") and sys.platform != "darwin"


def serve() -> None:
    """Read tasks from standard input, a line each, and answer each by a line, until the input ends."""
    answers = os.dup(1)
    # keep text that libraries print out of the answers
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    setup = sys.stdin.buffer.readline()
    if not setup:
        return
    # safe to unpickle: written by the parent process
    server = TaskServer(*pickle.loads(b64decode(setup)))
    for line in iter(sys.stdin.buffer.readline, b""):
        answer = server.answer(json.loads(line))
        os.write(answers, json.dumps(answer).encode() + b"\n")
        if not CAN_FORK:
            return


class TaskServer:
    """
    Runs tasks in a worker process.

    folder: written by `ComparisonProblem.save`.
    """

    def __init__(self, folder: str, methods: dict[str, Method], settings: Settings) -> None:
        self.problem = ComparisonProblem.open(Path(folder))
        self.methods, self.settings = {**METHODS, **methods}, settings
        self.warm: set[str] = set()

    def answer(self, request: dict[str, Any]) -> dict[str, str]:
        """Run a task; return its ``error``, "" for success."""
        path, task = Path(request["path"]), FoldTask(**request["task"])
        method = self.methods[task.method]
        if method.warms_up and method.name not in self.warm:
            self.warm.add(method.name)
            warm_up(self.problem, method, self.settings)
        return {"error": self._run_forked(task, path) if CAN_FORK else self._run(task, path)}

    def _run(self, task: FoldTask, path: Path) -> str:
        try:
            perform(self.problem, self.methods[task.method], self.settings, task, path)
        except Exception as error:
            return error_message(error)
        return ""

    def _run_forked(self, task: FoldTask, path: Path) -> str:
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                os.close(reading)
                os.write(writing, self._run(task, path).encode()[:60_000])
            finally:
                os._exit(0)
        os.close(writing)
        message = b""
        while True:
            # no further task arrives before the answer: readable input means its end
            ready, _, _ = select.select([0, reading], [], [])
            if 0 in ready:
                os.kill(child, signal.SIGKILL)
                os._exit(0)
            piece = os.read(reading, 65_536)
            if not piece:
                break
            message += piece
        os.close(reading)
        _, status = os.waitpid(child, 0)
        if os.WIFSIGNALED(status):
            name = signal.Signals(os.WTERMSIG(status)).name
            return f"its process was killed by {name}" + (", perhaps out of memory." if name == "SIGKILL" else ".")
        return message.decode()
