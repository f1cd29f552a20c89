"""compare: choose among rankers by nested cross-validation over queries."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from corank._moved import old_parameters
from corank.comparison.fold import Settings
from corank.comparison.methods import DEFAULT, Method, find_methods
from corank.comparison.plan import LEVEL, ComparisonPlan
from corank.comparison.pool import WorkerPool
from corank.comparison.problem import ComparisonProblem, InputRows, make_problem
from corank.comparison.results import RESULTS, ResultStore, prepare, write_study
from corank.comparison.runner import FoldEvaluator, TaskRunner
from corank.comparison.values import Study
from corank.core.threads import n_threads
from corank.data.durable.scratch import scratch_folder
from corank.errors import InputError
from corank.metrics import Convention, parse_metric
from corank.metrics.conventions import find_convention
from corank.parameters import check_values, integer, none, number
from corank.parameters import n_jobs as number_of_jobs

FRACTIONS = (0.1, 0.25, 0.5)
"""Default shares of the scored queries for the learning curve."""

MAX_JOBS = 4
"""Largest default number of processes; each holds a training part in memory."""


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
        Time limit in seconds. Cheap methods run first, and time for the refit of the winner is reserved, as estimated
        from its folds; the refit is never stopped. The study lists what was left out.
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
    pool = None if unjudged is None else InputRows.of(unjudged, None, unjudged_qid)
    problem, queries = make_problem(inputs, pool, folds, random_state)
    columns = None if prior is None else inputs.columns(prior, problem.X.shape[1])
    requested = [metrics] if isinstance(metrics, str) else list(metrics or problem.default_metrics)
    names = tuple(dict.fromkeys(str(parse_metric(item)) for item in requested))
    chosen = find_methods(models, columns, is_sparse=sparse.issparse(problem.X))
    plan = ComparisonPlan(
        inputs, problem,
        methods={item.name: item for item in chosen.values() if item.is_installed},
        settings=Settings(names[0], find_convention(convention), random_state, columns),
        metrics=names,
        fractions=_shares(fractions),
        n_repeats=n_repeats,
        began=began,
        budget=budget,
        name=name,
        command=command,
        notes=(*_absent(chosen.values()), *_notes(problem, chosen.values(), columns, folds)),
    )  # fmt: skip
    evaluator = FoldEvaluator(problem, queries, inputs.docids, plan.settings.convention)
    evaluator.require(names)
    with ExitStack() as leaving:
        place = Path(leaving.enter_context(TemporaryDirectory()) if folder is None else folder)
        prepare(place, problem.fingerprint, overwrite)
        scratch = leaving.enter_context(scratch_folder(place / "problem"))
        problem.save(scratch)
        workers = leaving.enter_context(WorkerPool(scratch, plan.all_methods, plan.settings, _n_processes(n_jobs)))
        results = ResultStore(place / RESULTS, problem.fingerprint, problem.n_folds, plan.settings)
        runner = TaskRunner(evaluator, plan.all_methods, results, workers, names, LEVEL, verbose)
        study = plan.carry_out(runner, None if folder is None else place)
        if folder is not None:
            write_study(study, place)
    return study


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
