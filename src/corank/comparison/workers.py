"""
Fits of a comparison in worker processes: fit a method on a training part, score the left-out rows, measure the time.

Every worker is an executor of its own with one process and one thread, so that a killed process ends one fit only, and
processor times of methods can be compared. A worker compiles the kernels of a method before its first fit is measured.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import asdict, dataclass, field
from functools import cache
from importlib.metadata import version
from pathlib import Path
from threading import Thread
from time import monotonic, process_time, sleep
from typing import Any, Self

import joblib
import numpy as np
from joblib.externals.loky.process_executor import BrokenProcessPool, ProcessPoolExecutor
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as tensors
from scipy import sparse
from sklearn.pipeline import Pipeline

from corank._version import __version__
from corank.comparison.methods import METHODS, LightGBM, Method, Settings, TrainingPart
from corank.comparison.problem import ComparisonProblem
from corank.data.columns import MissingValues
from corank.data.durable.atomic import atomic_file, explain_write_errors
from corank.data.durable.files import require_regular
from corank.data.routing import fit_with_qid, predict_with_qid
from corank.data.rows import has_missing
from corank.deploy.persist import load, save
from corank.errors import InputError, MissingExtra, UsageWarning, reason

Floats = NDArray[np.float64]

ONE_THREAD = {
    f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "VECLIB_MAXIMUM", "NUMBA", "BLIS")
}
PROBLEM = "problem.joblib"
"""File of a `ComparisonProblem`, whose arrays the workers map into memory."""

# number of queries, and of rows of each, for warming up
_WARM_QUERIES, _WARM_ROWS = 6, 40


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
            "corank": __version__, "data": self.fingerprint, "folds": self.n_folds, **asdict(self.settings),
            "title": method.title, "tuning": method.tuning, "signature": method.signature,
            "module": f"{method.module} {version(method.module)}" if method.module else "", **asdict(task),
        }  # fmt: skip
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


def perform(problem: ComparisonProblem, method: Method, settings: Settings, task: FoldTask, path: Path) -> None:
    """Run a task and write its result."""
    seeds = (settings.seed, 0 if task.fold is None else task.fold + 1, task.repeat)
    rows, y = problem.train(task.fold, task.fraction, seeds)
    part = part_of(problem, method, rows, y, settings, seeds)
    test = np.empty(0, dtype=np.int64) if task.fold is None else problem.test(task.fold)
    X, codes = _rows(problem, test), problem.codes[test]
    if has_missing(X) and not has_missing(part.X):
        # nothing could be learnt about missing values: use the means of the training rows
        X = MissingValues.of(part.X).fill(X)
    began = process_time()
    with warnings.catch_warnings():
        # a comparison tries the kernel that this hint suggests
        warnings.filterwarnings("ignore", "on left-out queries", UsageWarning)
        model = fit_with_qid(method.make(part), part.X, part.y, part.qid)
    fitted = process_time()
    scores = np.asarray(predict_with_qid(model, X, codes), np.float64) if len(test) else np.empty(0)
    seconds = fitted - began, process_time() - fitted
    if scores.shape != (len(test),) or not np.isfinite(scores).all():
        raise InputError("predict did not return one finite score for each row; leave this method out, or correct it.")
    note = "" if task.fold is not None else _save_model(model, problem.names, model_file(path))
    write_result(TaskResult(scores, chosen_of(model), *seconds, note=note), path)


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


def _warm_up(problem: ComparisonProblem, method: Method, settings: Settings) -> None:
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
    if isinstance(error, BrokenProcessPool):
        return "its process was killed, perhaps out of memory."
    text = reason(error) if isinstance(error, Exception) else ""
    name = type(error).__name__
    return f"{name}: {text}." if text != name else f"{name}."


def chosen_of(model: Any) -> dict[str, Any]:
    """Return the tuned parameters."""
    if hasattr(model, "best_params_"):
        return {name.rpartition("__")[2]: _plain(value) for name, value in model.best_params_.items()}
    while isinstance(model, Pipeline) or hasattr(model, "ranker_"):
        model = model[-1] if isinstance(model, Pipeline) else model.ranker_
    return {name[:-1]: _plain(getattr(model, name)) for name in ("alpha_", "coupling_") if hasattr(model, name)}


def _save_model(model: Any, names: tuple[str, ...] | None, path: Path) -> str:
    """Save a model with the names of its columns; return why it failed, or ""."""
    model = getattr(model, "best_estimator_", model)
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


def _begin(parent: int) -> None:
    """Prepare a worker: it ends with its parent, Ctrl-C is for the parent, and what libraries print is not shown."""

    def watch() -> None:
        while os.getppid() == parent:
            sleep(1.0)
        os._exit(1)

    Thread(target=watch, daemon=True).start()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.stdout.flush()
    for stream in (1, 2):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
    warnings.simplefilter("ignore")


@cache
def _problem(folder: Path) -> ComparisonProblem:
    problem: ComparisonProblem = joblib.load(folder / PROBLEM, mmap_mode="r")
    return problem


_warm: set[tuple[Path, str]] = set()


def _run(folder: Path, own: Method | None, settings: Settings, task: FoldTask, path: Path) -> str:
    """Run a task in a worker, by a method of the user or a named one; return its error, "" for success."""
    try:
        problem, method = _problem(folder), own or METHODS[task.method]
        if method.warms_up and (folder, method.name) not in _warm:
            _warm.add((folder, method.name))
            _warm_up(problem, method, settings)
        perform(problem, method, settings, task, path)
    except Exception as error:
        return error_message(error)
    return ""


@dataclass
class WorkerPool:
    """Workers that share one problem, written to a scratch folder."""

    scratch: Path
    methods: Mapping[str, Method]
    settings: Settings
    n: int  # number of workers
    _workers: dict[int, Any] = field(default_factory=dict)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """End all workers and what they run."""
        while self._workers:
            self._workers.popitem()[1].shutdown(wait=True, kill_workers=True)

    def run(
        self,
        tasks: Iterable[tuple[FoldTask, Path]],
        on_done: Callable[[FoldTask, str], None],
        is_wanted: Callable[[FoldTask], bool],
        deadline: float | None,
    ) -> None:
        """Run tasks in order; at the deadline, running ones are killed."""
        waiting, idle = iter(list(tasks)), list(range(self.n))
        running: dict[Future[str], tuple[int, FoldTask]] = {}
        try:
            while True:
                while idle and (deadline is None or monotonic() < deadline):
                    task, path = next((item for item in waiting if is_wanted(item[0])), (None, None))
                    if task is None or path is None:
                        break
                    number = idle.pop(0)
                    running[self._submit(number, task, path)] = number, task
                if not running:
                    return
                left = None if deadline is None else max(0.0, deadline - monotonic())
                done = wait(running, left, FIRST_COMPLETED).done
                if not done:
                    self.__exit__()
                    return
                for future in done:
                    number, task = running.pop(future)
                    idle.append(number)
                    on_done(task, self._error(number, future))
        except BaseException:
            self.__exit__()
            raise

    def _submit(self, number: int, task: FoldTask, path: Path) -> Any:
        if number not in self._workers:
            self._workers[number] = ProcessPoolExecutor(1, initializer=_begin, initargs=(os.getpid(),), env=ONE_THREAD)
        method = self.methods[task.method]
        own = method if method.signature else None
        return self._workers[number].submit(_run, self.scratch, own, self.settings, task, path)

    def _error(self, number: int, future: Future[str]) -> str:
        try:
            return future.result()
        except BrokenProcessPool as error:  # the next task starts a new process
            self._workers.pop(number).shutdown(wait=True, kill_workers=True)
            return error_message(error)
