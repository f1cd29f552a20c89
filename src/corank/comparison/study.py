"""compare: choose among rankers by nested cross-validation over queries."""

from __future__ import annotations

import json
import math
import os
import platform
import shutil
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import fields, is_dataclass
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any

import joblib
import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from corank._moved import old_parameters
from corank._version import __version__
from corank.comparison.methods import DEFAULT, Method, Settings, find_methods
from corank.comparison.problem import ComparisonProblem, InputRows, make_problem
from corank.comparison.runner import FoldEvaluator, TaskRunner
from corank.comparison.values import CurvePoint, DataSummary, MethodOutcome, Study
from corank.comparison.winner import RANDOM, RULE, WinnerChoice, choose_winner, quality
from corank.comparison.workers import PROBLEM, FoldTask, ResultStore, WorkerPool, model_file
from corank.core.threads import n_threads
from corank.data.durable.atomic import atomic_file, explain_write_errors, scratch_folder
from corank.data.durable.files import read_regular
from corank.data.rows import encode_like
from corank.errors import InputError
from corank.metrics import Convention, Evaluation, parse_metric
from corank.metrics.conventions import find_convention
from corank.parameters import check_values, integer, none, number
from corank.parameters import n_jobs as number_of_jobs

FRACTIONS = (0.1, 0.25, 0.5)
"""Default shares of the scored queries for the learning curve."""

MAX_JOBS = 4
"""Largest default number of processes; each holds a training part in memory."""

LEVEL = 0.95
"""Level of all intervals."""

STUDY, MODEL, RESULTS = "study.json", "model.safetensors", "results"
"""Names in the folder of a study."""

# shares of the budget for the methods, and for all fits; the rest is for the refit
_METHODS_UNTIL, _ALL_UNTIL = 0.75, 0.9

# packages whose versions a study lists
_SHOWN = ("numpy", "scipy", "scikit-learn", "numba")


@old_parameters(unscored="unjudged", unscored_qid="unjudged_qid")
def compare(
    models: Iterable[str] | Mapping[str, Any] = DEFAULT,
    X: Any = None,
    y: ArrayLike | None = None,
    qid: ArrayLike | None = None,
    *,
    unjudged: Any = None,
    unjudged_qid: ArrayLike | None = None,
    prior: Sequence[int | str] | None = None,
    metrics: str | Sequence[str] | None = None,
    convention: str | Convention = "corank",
    folds: int = 5,
    fractions: Sequence[float] = FRACTIONS,
    n_repeats: int = 2,
    budget: float | None = None,
    folder: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    n_jobs: int | None = None,
    random_state: int = 0,
    verbose: bool = False,
    name: str = "arrays",
    command: str = "",
) -> Study:
    """
    Compare rankers by nested cross-validation: the same outer folds of whole queries, tuning within training parts.

    Each fit runs in its own process on one thread and scores the queries of its test fold. Label-free orders are
    included as baselines. The method with the best expected result is recommended and refitted on all rows; a simpler
    one is preferred only if it is practically equivalent. `Study.rivals` holds the probability that it is better than
    each other method. Results are stored in `folder`, and a second call, even after a kill, continues from them.

    Parameters
    ----------
    models : iterable of str, or mapping of str to estimator
        Names from `corank.comparison.METHODS`, or estimators by name, the simplest first. Estimators are
        cloned; those that are not a `Ranker` get scored rows only. A random order and the mean of columns are added.
    X : array-like, CSR matrix, DataFrame, Dataset or RankingData
        Rows; the result of `corank.read` also holds y and qid.
    y : array-like of shape (n_rows,)
        Scores, higher is better; NaN marks an unjudged row.
    qid : array-like of shape (n_rows,), optional
        One query id per row. Without it, or if one query has all scores, groups of its rows replace queries.
    unjudged : array-like, CSR matrix, DataFrame or Dataset, optional
        Further rows without scores, for semi-supervised methods. Rows of test queries are left out.
    unjudged_qid : array-like, optional
        Query ids of the unjudged rows.
    prior : sequence of int or str, optional
        Columns, by number or name, that hold prior scores, such as BM25: their mean is a baseline, and corank's named
        rankers are fitted on top of it.
    metrics : str or sequence of str, optional
        Metrics; the first one tunes, tests and chooses. By default nDCG@10 and AP for whole grades from 0 to 10, else
        disagreement and Kendall's tau.
    convention : str or Convention
        Convention of the metrics.
    folds : int
        Number of outer folds; fewer if there are fewer judged queries.
    fractions : sequence of float
        Shares of the scored queries for the learning curve; empty for no curve.
    n_repeats : int
        Random draws of each share.
    budget : float, optional
        Time limit in seconds. Cheap methods run first; a quarter of the time is reserved for the learning curve and the
        refit of the winner, which is never stopped. The study lists what was left out.
    folder : path, optional
        Folder for results, ``study.json`` and the winner's ``model.safetensors``; no file is written by default.
    overwrite : bool
        Whether to replace a study of other data in `folder`.
    n_jobs : int, optional
        Number of processes; None for all processors but at most four, −1 for all.
    random_state : int
        Random seed.
    verbose : bool
        Whether to show a progress bar, on a terminal or in a notebook.
    name, command : str
        Name of the data, and the command that repeats the study, for reports.

    Returns
    -------
    Study
        All results; `Study.ranker` is the refitted winner.

    Examples
    --------
    >>> from corank import compare, make_ranking
    >>> problem = make_ranking(20, 8, random_state=0)
    >>> study = compare(["rankrls"], problem.X, problem.y, problem.qid, folds=2, fractions=(), n_jobs=1)
    >>> study
    <Study of arrays by nDCG@10: rankrls, random, columns; winner rankrls>
    """
    began = monotonic()
    check_values(
        {"folds": folds, "random_state": random_state, "n_repeats": n_repeats, "budget": budget, "n_jobs": n_jobs},
        {
            "folds": integer(2), "random_state": integer(0), "n_repeats": integer(1), "n_jobs": number_of_jobs,
            "budget": number(0, inside="()") | none,
        },
    )  # fmt: skip
    inputs = InputRows.of(X, y, qid)
    pool = None if unjudged is None else InputRows.of(encode_like(unjudged, inputs.names), None, unjudged_qid)
    problem, queries = make_problem(inputs, pool, folds, random_state)
    columns = None if prior is None else inputs.columns(prior, problem.X.shape[1])
    requested = [metrics] if isinstance(metrics, str) else list(metrics or problem.default_metrics)
    names = tuple(dict.fromkeys(str(parse_metric(item)) for item in requested))
    chosen = find_methods(models, columns, is_sparse=sparse.issparse(problem.X))
    methods = {item.name: item for item in chosen.values() if item.is_installed}
    shares = _shares(fractions)
    settings = Settings(names[0], find_convention(convention), random_state, columns)
    evaluator = FoldEvaluator(problem, queries, inputs.docids, settings.convention)
    evaluator.require(names)
    with ExitStack() as leaving:
        place = Path(leaving.enter_context(TemporaryDirectory()) if folder is None else folder)
        prepare(place, problem.fingerprint, overwrite)
        scratch = leaving.enter_context(scratch_folder(place / "problem"))
        joblib.dump(problem, scratch / PROBLEM)
        workers = leaving.enter_context(WorkerPool(scratch, methods, settings, _n_processes(n_jobs)))
        results = ResultStore(place / RESULTS, problem.fingerprint, problem.n_folds, settings)
        runner = TaskRunner(evaluator, methods, results, workers, names, LEVEL, verbose)
        until = [None if budget is None else began + share * budget for share in (_METHODS_UNTIL, _ALL_UNTIL)]
        outcomes = _evaluate(runner, until[0])
        choice = choose_winner(outcomes, names[0], LEVEL, random_state, problem.unit)
        curve: tuple[CurvePoint, ...] = ()
        is_complete = True
        if choice.winner and shares:
            ends = None if until[1] is None else until[1] - runner.refit_seconds(choice.winner)
            curve, is_complete = runner.curve(_curve_methods(outcomes, choice), shares, n_repeats, ends)
        ranker, model, failures = _refit(runner, choice.winner, None if folder is None else place)
        notes = [*_absent(chosen.values()), *_notes(problem, chosen.values(), columns, folds)]
        notes += [*_cut(outcomes, budget, is_complete), *failures]
        study = Study(
            data=DataSummary.of(problem, name),
            metric=names[0],
            metrics=names,
            convention=settings.convention.name,
            larger_is_better=parse_metric(names[0]).measure.larger_is_better,
            level=LEVEL,
            outcomes=outcomes,
            tests=choice.tests,
            curve=curve,
            best=choice.best,
            simplest=choice.simplest,
            winner=choice.winner,
            rule=RULE,
            verdict=choice.sentence,
            notes=tuple(notes),
            folds=problem.n_folds,
            seed=random_state,
            versions=_versions(methods.values()),
            command=command,
            seconds=monotonic() - began,
            model=model,
            ranker=ranker,
            rivals=choice.rivals,
        )
        if folder is not None:
            write_study(study, place)
    return study


def _evaluate(runner: TaskRunner, deadline: float | None) -> tuple[MethodOutcome, ...]:
    """Run all folds of all methods, the cheap ones first; return the outcomes, the best first."""
    methods, metric = runner.methods, runner.metrics[0]
    by_cost = sorted(methods, key=lambda name: methods[name].cost)
    # label-free methods take almost no time and are run whatever the budget
    free = [name for name in by_cost if methods[name].is_label_free]
    runner.run([task for name in free for task in runner.tasks_of(name)], "label-free methods", None)
    runner.run([task for name in by_cost for task in runner.tasks_of(name)], f"{len(by_cost)} methods", deadline)
    outcomes = [runner.outcome(name) for name in methods]
    return tuple(sorted(outcomes, key=lambda item: (item.evaluation is None, -quality(item, metric), item.complexity)))


def _refit(runner: TaskRunner, winner: str, folder: Path | None) -> tuple[Any, Path | None, list[str]]:
    """Fit the winner on all rows; return the model, its file, and notes about failures."""
    if not winner:
        return None, None, []
    task, method = FoldTask(winner, None), runner.methods[winner]
    runner.run([task], "the winner", None)
    if task not in runner.known:
        return None, None, [f"The winner could not be fitted on all rows: {runner.error_of(task)}"]
    if runner.known[task].note:
        return None, None, [f"The winner could not be saved: {runner.known[task].note}"]
    source = model_file(runner.results.file(task, method))
    return runner.results.model(task, method), None if folder is None else keep_model(source, folder), []


def _cut(outcomes: Sequence[MethodOutcome], budget: float | None, is_complete: bool) -> list[str]:
    """Return notes about what the budget left out."""
    notes = []
    if budget is not None and (cut := [outcome.title for outcome in outcomes if outcome.is_cut]):
        notes.append(
            f"The budget of {budget:g} s ended before these methods were finished: {'; '.join(cut)}. Run again to "
            "continue; a run needs time for at least one fold of a method."
        )
    if not is_complete:
        notes.append("The budget ended before all points of the learning curve were computed; run again to continue.")
    return notes


def _curve_methods(outcomes: Sequence[MethodOutcome], choice: WinnerChoice) -> list[str]:
    """Choose methods for the curve: winner, best, simplest, best learnt, LightGBM and the label-free ones."""
    complete = [outcome for outcome in outcomes if outcome.evaluation is not None]
    learns = next((item.name for item in complete if not item.is_label_free), "")
    wanted = (choice.winner, choice.best, choice.simplest, learns, "lightgbm")
    return [item.name for item in complete if item.name in wanted or (item.is_label_free and item.name != RANDOM)]


def _versions(methods: Iterable[Method]) -> dict[str, str]:
    """Return the versions of corank and of its main dependencies."""
    names = [*_SHOWN, *sorted({method.module for method in methods if method.module})]
    return {"corank": __version__, "python": platform.python_version(), **{name: version(name) for name in names}}


def _shares(fractions: Sequence[float]) -> tuple[float, ...]:
    result = sorted({float(share) for share in fractions})
    if any(not 0.0 < share < 1.0 for share in result):
        raise InputError(f"fractions is {list(fractions)!r}; pass shares between 0 and 1, such as [0.1, 0.5], or [].")
    return tuple(result)


def _n_processes(n_jobs: int | None) -> int:
    return min(n_threads(), MAX_JOBS) if n_jobs is None else n_threads(n_jobs)


def _absent(methods: Iterable[Method]) -> list[str]:
    return [
        f"{method.title} was left out: {method.module} is not installed; run: pip install 'corank[trees]'."
        for method in methods
        if not method.is_installed
    ]


def _notes(
    problem: ComparisonProblem, methods: Iterable[Method], columns: tuple[int, ...] | None, folds: int
) -> list[str]:
    """Return notes about unusual folds and rows."""
    notes = []
    scored = ~np.isnan(problem.y)
    if not np.array_equal(problem.units[scored], problem.codes[scored]):
        n = len(np.unique(problem.units[scored]))
        notes.append(f"All scored rows are in one query: {n} groups of them replace queries in the evaluation.")
    if problem.n_folds < folds:
        notes.append(f"There are {problem.n_folds} folds instead of {folds}, one for each judged query.")
    unjudged = problem.codes[~scored]
    if columns is not None:
        what = f"the mean of {len(columns)} columns" if len(columns) > 1 else "the present order"
        notes.append(f"corank's rankers are fitted on top of {what}.")
    agreeing = [method.title for method in methods if method.uses_unscored]
    if agreeing and len(np.unique(unjudged)) == len(unjudged):
        notes.append(f"No query has two unjudged rows, so {', '.join(agreeing)} could not use unjudged rows.")
    return notes


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
