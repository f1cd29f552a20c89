"""
Fits of a comparison in worker processes, their stored results, and out-of-fold values.

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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import cache, cached_property
from importlib.metadata import version
from pathlib import Path
from threading import Thread
from time import monotonic, process_time, sleep
from typing import Any

import joblib
import numpy as np
from joblib.externals.loky.process_executor import BrokenProcessPool, ProcessPoolExecutor
from numpy.typing import NDArray
from scipy import sparse
from sklearn.pipeline import Pipeline

from corank._version import __version__
from corank.comparison.methods import METHODS, LightGBM, Method, Settings, TrainingPart
from corank.comparison.problem import ComparisonProblem
from corank.data.columns import MissingValues
from corank.data.durable.files import JsonLines
from corank.data.queries import Queries
from corank.data.routing import fit_with_qid, predict_with_qid
from corank.data.rows import has_missing
from corank.deploy.persist import save
from corank.errors import InputError, MissingExtra, UsageWarning, reason
from corank.metrics import Evaluation, evaluate, sign_flip
from corank.progress import progress

Floats = NDArray[np.float64]

ONE_THREAD = {
    f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "VECLIB_MAXIMUM", "NUMBA", "BLIS")
}
PROBLEM = "problem.joblib"
"""File of a `ComparisonProblem`, whose arrays the workers map into memory."""

# number of queries, and of rows of each, for warming up
_WARM_QUERIES, _WARM_ROWS = 6, 40
# units of the progress bar per unit of cost, and the cost of starting a task
_UNITS, _START_COST = 100, 0.3


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
    digest: str = ""  # SHA-256 of the file of the saved model


def perform(
    problem: ComparisonProblem, method: Method, settings: Settings, task: FoldTask, model_file: Path
) -> TaskResult:
    """Run a task; a fit on all rows writes the model."""
    seeds = (settings.seed, 0 if task.fold is None else task.fold + 1, task.repeat)
    rows, y = problem.train(task.fold, task.fraction, seeds)
    part = part_of(problem, method, rows, y, settings, seeds)
    began = process_time()
    with warnings.catch_warnings():
        # a comparison tries the kernel that this hint suggests
        warnings.filterwarnings("ignore", "on left-out queries", UsageWarning)
        model = fit_with_qid(method.make(part), part.X, part.y, part.qid)
    fit_seconds = process_time() - began
    if task.fold is None:
        note = _save_model(model, problem.names, model_file)
        return TaskResult(np.empty(0), chosen_of(model), fit_seconds, 0.0, note, "" if note else file_hash(model_file))
    test = problem.test(task.fold)
    X = _rows(problem, test)
    if has_missing(X) and not has_missing(part.X):
        # nothing could be learnt about missing values: use the means of the training rows
        X = MissingValues.of(part.X).fill(X)
    began = process_time()
    scores = np.asarray(predict_with_qid(model, X, problem.codes[test]), np.float64)
    if scores.shape != (len(test),) or not np.isfinite(scores).all():
        raise InputError("predict did not return one finite score for each row; leave this method out, or correct it.")
    return TaskResult(scores, chosen_of(model), fit_seconds, process_time() - began)


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


def chosen_of(model: Any) -> dict[str, Any]:
    """Return the tuned parameters."""
    if hasattr(model, "best_params_"):
        return {name.rpartition("__")[2]: _plain(value) for name, value in model.best_params_.items()}
    while isinstance(model, Pipeline) or hasattr(model, "ranker_"):
        model = model[-1] if isinstance(model, Pipeline) else model.ranker_
    return {name[:-1]: _plain(getattr(model, name)) for name in ("alpha_", "coupling_") if hasattr(model, name)}


def _plain(value: Any) -> Any:
    value = value.item() if isinstance(value, np.generic) else value
    return value if isinstance(value, bool | int | float | str) or value is None else repr(value)


def _save_model(model: Any, names: tuple[str, ...] | None, path: Path) -> str:
    """Save a model with the names of its columns; return why it failed, or ""."""
    model = getattr(model, "best_estimator_", model)
    model = model.ranker_ if isinstance(model, LightGBM) else model
    if names is not None:  # it was fitted on an array
        first = model[0] if isinstance(model, Pipeline) else model
        first.feature_names_in_ = np.array(names, dtype=object)
    try:
        save(model, path, overwrite=True)
    except InputError as error:
        return str(error)
    return ""


def file_hash(path: Path) -> str:
    """Return the SHA-256 of a file; "" if it cannot be read."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return ""


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


@cache
def _warm_up(folder: Path, name: str, settings: Settings) -> None:
    """Fit a named method on a few rows, so that kernels are compiled before times are measured; ignore failures."""
    problem, method = _problem(folder), METHODS[name]
    units = sorted(problem.comparable)[:_WARM_QUERIES]
    rows = np.concatenate([np.flatnonzero(problem.units == unit)[:_WARM_ROWS] for unit in units])
    with suppress(Exception):
        part = part_of(problem, method, rows, problem.y[rows], settings, (0,))
        predict_with_qid(fit_with_qid(method.make(part), part.X, part.y, part.qid), part.X, part.qid)


def _run(folder: Path, user_method: Method | None, settings: Settings, task: FoldTask, model: Path) -> TaskResult | str:
    """Run a task in a worker, by a method of the user or a named one; return its result, or why it failed."""
    try:
        if user_method is None:
            _warm_up(folder, task.method, settings)
        return perform(_problem(folder), user_method or METHODS[task.method], settings, task, model)
    except Exception as error:
        return error_message(error)


@dataclass(eq=False)
class WorkerPool:
    """Workers that share one problem, written to a scratch folder."""

    methods: Mapping[str, Method]
    settings: Settings
    n: int  # number of workers
    model: Path  # file of the model of a fit on all rows
    scratch: Path = Path()  # folder with the problem
    _workers: dict[int, Any] = field(default_factory=dict)

    def close(self) -> None:
        """End all workers and what they run."""
        while self._workers:
            self._workers.popitem()[1].shutdown(wait=True, kill_workers=True)

    def run(self, tasks: Iterable[FoldTask], deadline: float | None) -> Iterator[tuple[FoldTask, TaskResult | str]]:
        """Run tasks in order; yield each with its result, or why it failed. Fits that run at the deadline are ended."""
        waiting, idle = iter(tasks), list(range(self.n))
        running: dict[Future[TaskResult | str], tuple[int, FoldTask]] = {}
        while True:
            while idle and (deadline is None or monotonic() < deadline) and (task := next(waiting, None)):
                number = idle.pop(0)
                running[self._submit(number, task)] = number, task
            if not running:
                return
            left = None if deadline is None else max(0.0, deadline - monotonic())
            done = wait(running, left, FIRST_COMPLETED).done
            if not done:
                self.close()
                return
            for future in done:
                number, task = running.pop(future)
                idle.append(number)
                try:
                    yield task, future.result()
                except BrokenProcessPool as error:  # the next task starts a new process
                    self._workers.pop(number).shutdown(wait=True, kill_workers=True)
                    yield task, error_message(error)

    def _submit(self, number: int, task: FoldTask) -> Any:
        if number not in self._workers:
            self._workers[number] = ProcessPoolExecutor(1, initializer=_begin, initargs=(os.getpid(),), env=ONE_THREAD)
        method = self.methods[task.method]
        user_method = method if method.signature else None
        return self._workers[number].submit(_run, self.scratch, user_method, self.settings, task, self.model)


class ResultLog:
    """Results of fits as JSON lines, by a hash of everything that each depends on; damaged lines are ignored."""

    def __init__(self, path: Path, about: Mapping[str, Any], methods: Mapping[str, Method]) -> None:
        self.about, self.methods = {"corank": __version__, **about}, methods
        try:
            self._log = JsonLines(path)
        except BlockingIOError:
            raise InputError(f"{path} is in use by another comparison; wait, or choose another folder.") from None
        self.close = self._log.close
        self._known: dict[str, TaskResult] = {}
        for line in self._log.lines:
            with suppress(ValueError, TypeError, KeyError, AttributeError, ArithmeticError, RecursionError):
                record = json.loads(line)
                key, scores = record.pop("key"), np.array(record.pop("scores"), dtype=np.float64)
                record |= {name: float(record[name]) for name in ("fit_seconds", "predict_seconds")}
                self._known[key] = TaskResult(scores, **{**record, "chosen": dict(record["chosen"])})

    def key(self, task: FoldTask) -> str:
        """Return the hash of a task."""
        method = self.methods[task.method]
        about = {
            **self.about, "title": method.title, "tuning": method.tuning, "signature": method.signature,
            "module": f"{method.module} {version(method.module)}" if method.module else "", **asdict(task),
        }  # fmt: skip
        return hashlib.sha256(json.dumps(about, sort_keys=True, default=asdict).encode()).hexdigest()[:32]

    def get(self, task: FoldTask) -> TaskResult | None:
        """Return the result of a task, or None."""
        return self._known.get(self.key(task))

    def add(self, task: FoldTask, result: TaskResult) -> None:
        """Store the result of a task; it is on the disk when this returns."""
        self._log.append({"key": self.key(task), **vars(result), "scores": result.scores.tolist()})
        self._known[self.key(task)] = result


@dataclass(eq=False)
class TaskRunner:
    """Runs tasks on one problem, and evaluates their scores."""

    problem: ComparisonProblem
    queries: Queries  # ids of the queries
    docids: Any  # document ids of the rows of the data, or None
    methods: dict[str, Method]  # all methods by name
    settings: Settings
    metrics: Sequence[str]  # the first one is the metric of the study
    pool: WorkerPool
    verbose: bool
    log: ResultLog = field(init=False)
    errors: dict[FoldTask, str] = field(default_factory=dict)  # messages of failed tasks

    def run(self, tasks: Sequence[FoldTask], what: str, deadline: float | None) -> bool:
        """Run the tasks without a stored result, in the given order; return whether all were run in time."""
        missing = [task for task in tasks if self.result(task) is None]
        costs = {task: _START_COST + self.methods[task.method].cost * task.fraction for task in missing}
        weights = {task: round(_UNITS * cost) for task, cost in costs.items()}
        with progress(sum(weights.values()), what, self.verbose and bool(missing)) as advance:
            for task, result in self.pool.run((task for task in missing if not self.error_of(task)), deadline):
                advance(weights[task])
                if isinstance(result, str):
                    self.errors[task] = result
                else:
                    self.log.add(task, result)
        return all(self.result(task) is not None or self.error_of(task) for task in missing)

    def result(self, task: FoldTask) -> TaskResult | None:
        """Return a stored result; None if it, or the model of a fit on all rows, is missing or damaged."""
        result = self.log.get(task)
        if result is None:
            return None
        if task.fold is None:
            return result if result.note or (result.digest and result.digest == file_hash(self.pool.model)) else None
        is_whole = result.scores.shape == (len(self.problem.test(task.fold)),)
        return result if is_whole and np.isfinite(result.scores).all() else None

    def error_of(self, task: FoldTask) -> str:
        """Return why this task, or another fold of it, failed; "" if none did."""
        return next((error for other, error in self.errors.items() if replace(other, fold=task.fold) == task), "")

    def tasks_of(self, method: str, fraction: float = 1.0, repeat: int = 0) -> list[FoldTask]:
        """Return the tasks of a method, one per fold."""
        return [FoldTask(method, fold, fraction, repeat) for fold in range(self.problem.n_folds)]

    def scores(self, tasks: Sequence[FoldTask]) -> Floats | None:
        """Return the out-of-fold scores of all evaluated rows; None if a fold is missing."""
        scores = np.empty(len(self.problem.y))
        for task in tasks:
            result = self.result(task)
            if result is None or task.fold is None:
                return None
            scores[self.problem.test(task.fold)] = result.scores
        return scores[self.problem.judged]

    @cached_property
    def ids(self) -> NDArray[Any]:
        """Query id of each evaluated row."""
        units, codes = (part[self.problem.judged] for part in (self.problem.units, self.problem.codes))
        if not np.array_equal(units, codes):
            return np.array([f"part {unit + 1}" for unit in units])
        return np.asarray(self.queries.ids[codes])

    def evaluate(self, scores: Floats, metrics: Sequence[str]) -> Evaluation:
        """Evaluate scores of ``problem.judged``."""
        rows = self.problem.judged
        docids = None if self.docids is None else np.asarray(self.docids)[rows]
        convention = self.settings.convention
        return evaluate(self.problem.y[rows], scores, self.ids, metrics, convention=convention, docids=docids)

    def require_metric(self) -> None:
        """Raise `InputError`, before any fit, if the grades do not suit a metric."""
        result = self.evaluate(np.zeros(len(self.problem.judged)), self.metrics)
        if not result[self.metrics[0]].n_used:
            raise InputError(
                f"{self.metrics[0]} is undefined for every judged query; choose another metric with metrics=."
            )

    def interval(self, values: Floats, level: float) -> tuple[float, float]:
        """Return the interval of a mean over queries, with the same draws for every method."""
        return sign_flip(values, np.random.default_rng([self.settings.seed, 2]), level)[:2]
