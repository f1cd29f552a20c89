"""
Tasks of a comparison: fit a method on a training part, score the left-out rows, measure time and memory.

`serve` is the main function of a worker process. It imports and compiles once, and forks a process for each task, so
that time and memory are the task's own and a killed task harms no other. It exits at the end of its input, which also
happens if its parent is killed. Without a safe fork (Windows, macOS) a worker runs one task and exits.
"""

from __future__ import annotations

import json
import os
import pickle
import select
import signal
import sys
import warnings
from base64 import b64decode
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.pipeline import Pipeline

from corank.base.search import QuerySearchCV
from corank.comparison.fold import Settings, TrainingPart
from corank.comparison.methods import LightGBM, Method
from corank.comparison.problem import ComparisonProblem
from corank.comparison.results import FoldTask, TaskResult, model_file, write_result
from corank.data.missing import MissingValues
from corank.data.routing import fit_with_qid, predict_with_qid
from corank.data.rows import has_missing
from corank.deploy.persist import save
from corank.errors import InputError, MissingExtra, UsageWarning, reason
from corank.metrics import parse_metric

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
        n_queries=len(np.unique(part.qid[part.scored])),
        path=[*path_of(model)],
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


class TuningStep(NamedTuple):
    """One candidate: the parameter's name and value, its mean held-out metric, and whether it was chosen."""

    parameter: str
    value: float
    mean: float
    is_chosen: bool


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


def path_of(model: Any) -> list[TuningStep]:
    """Return the candidates of alpha, of the longest grid, or of the number of terms; empty without a path."""
    if isinstance(model, QuerySearchCV):
        return _search_path(model)
    ranker = ranker_of(model)
    if hasattr(ranker, "terms_") and hasattr(ranker, "validation_errors_"):
        n_terms = len(ranker.terms_)
        return [
            TuningStep("n_terms", float(i), float(error), i == n_terms)
            for i, error in enumerate(ranker.validation_errors_)
            if np.isfinite(error)
        ]
    if getattr(ranker, "alphas", None) is None or not hasattr(ranker, "loo_scores_"):
        return []
    means = np.asarray(ranker.loo_scores_)
    if means.ndim == 2:
        couplings = [ranker.coupling_] if ranker.couplings is None else ranker.couplings
        means = means[int(np.argmin(np.abs(np.asarray(couplings) - ranker.coupling_)))]
    pairs = zip(ranker.alphas, means, strict=True)
    return [
        TuningStep("alpha", float(a), float(mean), bool(np.isclose(a, ranker.alpha_)))
        for a, mean in pairs
        if np.isfinite(mean)
    ]


def _search_path(search: QuerySearchCV) -> list[TuningStep]:
    grid = {name: values for name, values in search.param_grid.items() if len(values) > 1}
    name = next(
        (entry for entry in grid if entry.endswith("alpha")), max(grid, key=lambda item: len(grid[item]), default="")
    )
    if not name or not all(isinstance(value, int | float) for value in grid[name]):
        return []
    sign = 1.0 if parse_metric(search.metric).measure.larger_is_better else -1.0
    means = np.asarray(search.cv_results_["mean_test_score"])
    tried = np.array([params[name] for params in search.cv_results_["params"]], dtype=np.float64)
    result = []
    for value in grid[name]:
        of_value = means[tried == value]
        if np.isfinite(of_value).any():
            # at the best values of the other parameters
            best = sign * float(np.nanmax(of_value))
            result.append(TuningStep(name.rpartition("__")[2], float(value), best, value == search.best_params_[name]))
    return result


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
        self.methods, self.settings = methods, settings
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
