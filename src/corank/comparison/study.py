"""compare: choose among rankers by nested cross-validation over queries."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
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
from corank.comparison.advice import RANDOM, RULE, Advice, give_advice, quality
from corank.comparison.methods import DEFAULT, Method, Settings, find_methods
from corank.comparison.outcomes import CurvePoint, DataSummary, MethodOutcome, Study
from corank.comparison.problem import ComparisonProblem, InputRows, make_problem
from corank.comparison.runner import PROBLEM, FoldTask, ResultLog, TaskRunner, WorkerPool
from corank.core.threads import n_threads
from corank.data.durable.atomic import atomic_file, explain_write_errors, scratch_folder
from corank.data.durable.files import read_regular
from corank.data.rows import encode_like
from corank.deploy.persist import load
from corank.errors import InputError
from corank.metrics import Convention, Evaluation, parse_metric
from corank.metrics.conventions import find_convention
from corank.parameters import check_values, integer, none, number
from corank.parameters import n_jobs as number_of_jobs
from corank.tables import json_values

FRACTIONS = (0.1, 0.25, 0.5)
"""Default shares of the scored queries for the learning curve."""

N_DRAWS = 2
"""Random draws of each share."""

MAX_JOBS = 4
"""Largest default number of processes; each holds a training part in memory."""

LEVEL = 0.95
"""Level of all intervals."""

STUDY, MODEL, RESULTS = "study.json", "model.safetensors", "results.jsonl"
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
        {"folds": folds, "random_state": random_state, "budget": budget, "n_jobs": n_jobs},
        {
            "folds": integer(2), "random_state": integer(0), "n_jobs": number_of_jobs,
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
    shares = sorted({float(share) for share in fractions})
    if any(not 0.0 < share < 1.0 for share in shares):
        raise InputError(f"fractions is {list(fractions)!r}; pass shares between 0 and 1, such as [0.1, 0.5], or [].")
    settings = Settings(names[0], find_convention(convention), random_state, columns)
    about = {"data": problem.fingerprint, "folds": problem.n_folds, **asdict(settings)}
    with ExitStack() as leaving:
        place = Path(leaving.enter_context(TemporaryDirectory()) if folder is None else folder)
        n_processes = min(n_threads(), MAX_JOBS) if n_jobs is None else n_threads(n_jobs)
        workers = WorkerPool(methods, settings, n_processes, place / MODEL)
        runner = TaskRunner(problem, queries, inputs.docids, methods, settings, names, workers, verbose)
        runner.require_metric()
        prepare(place, problem.fingerprint, overwrite)
        workers.scratch = leaving.enter_context(scratch_folder(place / "problem"))
        joblib.dump(problem, workers.scratch / PROBLEM)
        leaving.callback(workers.close)
        runner.log = ResultLog(place / RESULTS, about, methods)
        leaving.callback(runner.log.close)
        until = [None if budget is None else began + share * budget for share in (_METHODS_UNTIL, _ALL_UNTIL)]
        outcomes = _evaluate(runner, until[0])
        advice = give_advice(outcomes, names[0], LEVEL, random_state, problem.unit)
        curve: tuple[CurvePoint, ...] = ()
        is_complete = True
        if advice.winner and shares:
            curve, is_complete = _curve(runner, _curve_methods(outcomes, advice), shares, until[1])
        model, failures = _refit(runner, advice.winner, place / MODEL)
        notes = [*_notes(problem, chosen.values(), columns, folds), *_cut(outcomes, budget, is_complete), *failures]
        packages = [*_SHOWN, *sorted({method.module for method in methods.values() if method.module})]
        versions = {"corank": __version__, "python": platform.python_version()}
        versions |= {package: version(package) for package in packages}
        study = Study(
            data=DataSummary.of(problem, name),
            metric=names[0],
            metrics=names,
            convention=settings.convention.name,
            larger_is_better=parse_metric(names[0]).measure.larger_is_better,
            level=LEVEL,
            outcomes=outcomes,
            tests=advice.tests,
            curve=curve,
            best=advice.best,
            simplest=advice.simplest,
            winner=advice.winner,
            rule=RULE,
            verdict=advice.sentence,
            notes=tuple(notes),
            folds=problem.n_folds,
            seed=random_state,
            versions=versions,
            command=command,
            seconds=monotonic() - began,
            model=None if folder is None or model is None else place / MODEL,
            ranker=model,
            rivals=advice.rivals,
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
    outcomes = [_outcome(runner, name) for name in methods]
    return tuple(sorted(outcomes, key=lambda item: (item.evaluation is None, -quality(item, metric), item.complexity)))


def _outcome(runner: TaskRunner, name: str) -> MethodOutcome:
    method, tasks = runner.methods[name], runner.tasks_of(name)
    done = [result for result in map(runner.result, tasks) if result is not None]
    scores = runner.scores(tasks)
    evaluation = None if scores is None else runner.evaluate(scores, runner.metrics)
    low = high = float("nan")
    if evaluation is not None:
        low, high = runner.interval(evaluation[runner.metrics[0]].values, LEVEL)
    return MethodOutcome(
        name, method.title, method.is_label_free, method.uses_unscored, method.complexity, method.tuning,
        tuple(item.chosen for item in done), evaluation, low, high, sum((item.fit_seconds for item in done), 0.0),
        sum((item.predict_seconds for item in done), 0.0), len(done), runner.error_of(tasks[0]),
    )  # fmt: skip


def _curve(
    runner: TaskRunner, names: Sequence[str], fractions: Sequence[float], deadline: float | None
) -> tuple[tuple[CurvePoint, ...], bool]:
    """Fit methods on shares of the scored queries; return the points, and whether they are complete."""
    problem, methods, metric = runner.problem, runner.methods, runner.metrics[0]
    training = [problem.train(fold) for fold in range(problem.n_folds)]
    n_scored = [len(np.unique(problem.units[rows][~np.isnan(y)])) for rows, y in training]
    shares = [share for share in fractions if share * min(n_scored) >= 2]
    learnt = [name for name in names if not methods[name].is_label_free]
    draws = [(name, share, repeat) for repeat in range(N_DRAWS) for share in shares for name in learnt]
    is_complete = runner.run([task for draw in draws for task in runner.tasks_of(*draw)], "learning curve", deadline)
    points = []
    for name in names:
        for share in (*shares, 1.0):
            is_same = methods[name].is_label_free or share == 1.0
            drawn = [(1.0, 0)] if is_same else [(share, repeat) for repeat in range(N_DRAWS)]
            scores = [runner.scores(runner.tasks_of(name, *draw)) for draw in drawn]
            values = [runner.evaluate(part, [metric])[metric].values for part in scores if part is not None]
            if values:
                means = np.mean(values, axis=0)
                mean = float(np.nanmean(means)) if not np.isnan(means).all() else float("nan")
                n = round(share * float(np.mean(n_scored)))
                points.append(CurvePoint(name, share, n, mean, *runner.interval(means, LEVEL)))
    return tuple(points), is_complete


def _curve_methods(outcomes: Sequence[MethodOutcome], advice: Advice) -> list[str]:
    """Choose methods for the curve: winner, best, simplest, best learnt, LightGBM and the label-free ones."""
    complete = [outcome for outcome in outcomes if outcome.evaluation is not None]
    learns = next((item.name for item in complete if not item.is_label_free), "")
    wanted = (advice.winner, advice.best, advice.simplest, learns, "lightgbm")
    return [item.name for item in complete if item.name in wanted or (item.is_label_free and item.name != RANDOM)]


def _refit(runner: TaskRunner, winner: str, file: Path) -> tuple[Any, list[str]]:
    """Fit the winner on all rows; return the model, which is saved, and notes about failures."""
    if not winner:
        return None, []
    task = FoldTask(winner, None)
    runner.run([task], "the winner", None)
    result = runner.result(task)
    if result is not None and not result.note:
        return load(file), []
    file.unlink(missing_ok=True)  # of an earlier run
    if result is None:
        return None, [f"The winner could not be fitted on all rows: {runner.error_of(task)}"]
    return None, [f"The winner could not be saved: {result.note}"]


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


def _notes(
    problem: ComparisonProblem, methods: Iterable[Method], columns: tuple[int, ...] | None, folds: int
) -> list[str]:
    """Return notes about methods that are left out, and about unusual folds and rows."""
    notes = [
        f"{method.title} was left out: {method.module} is not installed; run: pip install 'corank[trees]'."
        for method in methods
        if not method.is_installed
    ]
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
        folder.mkdir(parents=True, exist_ok=True)
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
    elif (folder / MODEL).exists() and not (folder / RESULTS).exists():
        raise InputError(f"{folder / MODEL} exists already; choose another folder, or replace it with overwrite=True.")


def write_study(study: Study, folder: Path) -> Path:
    """Write ``study.json``; return its path."""
    with explain_write_errors(folder / STUDY), atomic_file(folder / STUDY, overwrite=True) as scratch:
        scratch.write_text(json.dumps(study_record(study), indent=1, allow_nan=False) + "\n", encoding="utf-8")
    return folder / STUDY


def study_record(study: Study) -> dict[str, Any]:
    """Return a study as JSON values: NaN is null, and evaluations hold the values of every query."""
    record: dict[str, Any] = json_values(replace(study, outcomes=(), ranker=None))
    del record["ranker"]
    record["outcomes"] = [
        json_values({**vars(outcome), "evaluation": _evaluation_record(outcome.evaluation)})
        for outcome in study.outcomes
    ]
    return record


def _evaluation_record(evaluation: Evaluation | None) -> dict[str, Any] | None:
    if evaluation is None:
        return None
    return {
        "convention": evaluation.convention.name,
        "queries": [str(query) for query in evaluation.query_ids.tolist()],
        "n_single_grade_queries": evaluation.n_single_grade,
        "n_unjudged_rows": evaluation.n_unjudged_rows,
        "metrics": {
            name: {"mean": item.mean, "n_used": item.n_used, "values": item.values} for name, item in evaluation.items()
        },
    }
