"""compare: which of many rankers to use on some data, by query-level nested cross-validation."""

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

from corank.core.threads import n_threads
from corank.data.durable.scratch import scratch_folder
from corank.errors import InputError
from corank.evaluation.compare.fold import Settings
from corank.evaluation.compare.learning import Jury, Learning
from corank.evaluation.compare.methods import DEFAULT, Method, find_methods
from corank.evaluation.compare.plan import LEVEL, Plan
from corank.evaluation.compare.pool import Crew
from corank.evaluation.compare.problem import Given, Problem, make_problem
from corank.evaluation.compare.results import RESULTS, Results, prepare, write_study
from corank.evaluation.compare.values import Study
from corank.metrics import Convention, parse_metric
from corank.metrics.conventions import find_convention
from corank.parameters import check_values, none, number, whole
from corank.parameters import n_jobs as number_of_jobs

FRACTIONS = (0.1, 0.25, 0.5)
"""Shares of the scored queries, where nothing is said."""

MOST_JOBS = 4
"""Processes where nothing is said; each holds a training part in memory."""


def compare(
    models: Iterable[str] | Mapping[str, Any] = DEFAULT,
    X: Any = None,
    y: ArrayLike | None = None,
    qid: ArrayLike | None = None,
    *,
    unscored: Any = None,
    unscored_qid: ArrayLike | None = None,
    prior: Sequence[int] | None = None,
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
    Find out which ranker to use: all on the same folds of whole queries, each tuned inside its training parts.

    Every method is fitted for every fold in a process of its own, on one thread, and scores the queries it has not
    seen. Orders that need no judgement stand among the methods. Paired tests over queries, corrected for their number,
    say what chance explains; the simplest method that does not lose to the best is refitted on all rows. What is learnt
    is kept in `folder`: a second call, also after a kill, goes on from there.

    Parameters
    ----------
    models : iterable of str, or mapping of str to estimator
        Names of `corank.evaluation.compare.METHODS`, or estimators by name, the simplest first; estimators are cloned,
        and those that are no `Ranker` see scored rows only. A random order and the mean of columns are added.
    X : array-like, CSR matrix, DataFrame, Collection or RankingData
        The rows; what `corank.read` returns brings y and qid.
    y : array-like of shape (n_rows,)
        Scores, higher is better; NaN marks an unscored row.
    qid : array-like of shape (n_rows,), optional
        One query id per row. Without it, or where one query has all scores, groups of its rows stand for queries.
    unscored : array-like, CSR matrix, DataFrame or Collection, optional
        Further rows without scores, for methods that learn from such. Rows of a query that is left out are left out
        too.
    unscored_qid : array-like, optional
        Their queries.
    prior : sequence of int, optional
        Columns that are scores already, such as BM25's: their mean is what needs no judgement, and corank's named
        rankers learn on top of it.
    metrics : str or sequence of str, optional
        What is evaluated; the first chooses and tests. By default nDCG@10 and AP for whole grades from 0 to 10, else
        disagreement and Kendall's tau.
    convention : str or Convention
        How their names are read.
    folds : int
        Outer folds; fewer where there are fewer judged queries.
    fractions : sequence of float
        Shares of the scored queries at which the learning curve is drawn; empty draws none.
    n_repeats : int
        Draws of each share.
    budget : float, optional
        Seconds that all of it may take. Cheap methods come first, and nothing is begun that would leave no time for the
        refit of the winner, as long as folds tell; that is never cut. What is left out is said.
    folder : path, optional
        Where results, ``study.json`` and the winner's ``model.safetensors`` are kept; nothing is kept by default.
    overwrite : bool
        Whether the study of other data that stands there is replaced.
    n_jobs : int, optional
        Processes; None is every processor but no more than four, −1 every processor.
    random_state : int
        Seed of every draw.
    verbose : bool
        Whether to show a progress bar with the time that is left, on a terminal or in a notebook.
    name, command : str
        What the study calls the data, and what repeats it.

    Returns
    -------
    Study
        Everything that was found; `Study.ranker` is the refitted winner.

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
            "folds": whole(2), "random_state": whole(0), "n_repeats": whole(1), "n_jobs": number_of_jobs,
            "budget": number(0, inside="()") | none,
        },
    )  # fmt: skip
    given, pool = Given.of(X, y, qid), None if unscored is None else Given.of(unscored, None, unscored_qid)
    problem, queries = make_problem(given, pool, folds, random_state)
    columns = None if prior is None else given.columns(prior, problem.X.shape[1])
    asked = [metrics] if isinstance(metrics, str) else list(metrics or problem.default_metrics)
    names = tuple(dict.fromkeys(str(parse_metric(one)) for one in asked))
    chosen = find_methods(models, columns, is_sparse=sparse.issparse(problem.X))
    plan = Plan(
        given, problem,
        methods={one.name: one for one in chosen.values() if one.is_installed},
        settings=Settings(names[0], find_convention(convention), random_state, columns),
        metrics=names,
        fractions=_shares(fractions),
        n_repeats=n_repeats,
        began=began,
        budget=budget,
        name=name,
        command=command,
        notes=(*_absent(chosen.values()), *_oddities(problem, chosen.values(), columns, folds)),
    )  # fmt: skip
    jury = Jury(problem, queries, given.docids, plan.settings.convention)
    jury.require(names)
    with ExitStack() as leaving:
        place = Path(leaving.enter_context(TemporaryDirectory()) if folder is None else folder)
        prepare(place, problem.fingerprint, overwrite)
        scratch = leaving.enter_context(scratch_folder(place / "problem"))
        problem.save(scratch)
        crew = leaving.enter_context(Crew(scratch, plan.learnt, plan.settings, _n_processes(n_jobs)))
        results = Results(place / RESULTS, problem.fingerprint, problem.n_folds, plan.settings)
        learning = Learning(jury, plan.learnt, results, crew, names, LEVEL, verbose)
        study = plan.carry_out(learning, None if folder is None else place)
        if folder is not None:
            write_study(study, place)
    return study


def _shares(fractions: Sequence[float]) -> tuple[float, ...]:
    found = sorted({float(share) for share in fractions})
    if any(not 0.0 < share < 1.0 for share in found):
        raise InputError(f"fractions is {list(fractions)!r}; pass shares between 0 and 1, such as [0.1, 0.5], or [].")
    return tuple(found)


def _n_processes(n_jobs: int | None) -> int:
    return min(n_threads(), MOST_JOBS) if n_jobs is None else n_threads(n_jobs)


def _absent(methods: Iterable[Method]) -> list[str]:
    return [
        f"{one.title} was left out: {one.module} is not installed; run: pip install 'corank[trees]'."
        for one in methods
        if not one.is_installed
    ]


def _oddities(problem: Problem, methods: Iterable[Method], columns: tuple[int, ...] | None, folds: int) -> list[str]:
    """Say what a reader would not expect of folds and rows."""
    notes = []
    scored = ~np.isnan(problem.y)
    if not np.array_equal(problem.units[scored], problem.codes[scored]):
        n = len(np.unique(problem.units[scored]))
        notes.append(
            f"All scored rows lie in one query: {n} groups of them stand for queries where methods are judged."
        )
    if problem.n_folds < folds:
        notes.append(f"There are {problem.n_folds} folds, not {folds}: no more queries are judged.")
    unscored = problem.codes[~scored]
    if columns is not None:
        notes.append(f"corank's rankers learn on top of the mean of {len(columns)} columns.")
    agreeing = [one.title for one in methods if one.uses_unscored]
    if agreeing and len(np.unique(unscored)) == len(unscored):
        notes.append(
            f"No query holds two unscored rows, so {', '.join(agreeing)} had nothing to learn from unscored rows."
        )
    return notes
