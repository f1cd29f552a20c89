"""compare: which of many rankers to use on some data, by query-level nested cross-validation."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from corank.comparing.crew import Crew
from corank.comparing.extras import MIXES, coefficients, promised, reliability, trade_off_points, worst_queries
from corank.comparing.files import RESULTS, keep_model, prepare, write_study
from corank.comparing.given import Given
from corank.comparing.jury import Jury
from corank.comparing.learning import Learning
from corank.comparing.methods import DEFAULT, Method, find_methods, trade_off
from corank.comparing.problem import Problem, make_problem
from corank.comparing.results import Results, Task, model_file
from corank.comparing.summary import summarise, versions
from corank.comparing.trial import Settings
from corank.comparing.values import CurvePoint, Outcome, PathPoint, Study, TradeOffPoint
from corank.comparing.verdict import RANDOM, RULE, Verdict, judge, quality
from corank.core.threads import n_threads
from corank.data.scratch import scratch_folder
from corank.errors import InputError
from corank.metrics import Convention, parse_metric
from corank.metrics.conventions import find_convention
from corank.parameters import check_values, none, number, whole
from corank.parameters import n_jobs as number_of_jobs

LEVEL = 0.95
FRACTIONS = (0.1, 0.25, 0.5)
MOST_JOBS = 4
"""Processes where nothing is said; each holds a training part in memory."""

# shares of the budget after which no method, and then nothing but the winner, is learnt
_METHODS_UNTIL, _ALL_UNTIL = 0.75, 0.9


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
        Names of `corank.comparing.METHODS`, or estimators by name, the simplest first; estimators are cloned, and those
        that are no `Ranker` see scored rows only. A random order and the mean of columns are added.
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
        Seconds after which no more is learnt but the winner. Cheap methods come first; what is left out is said.
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


@dataclass(frozen=True, eq=False)
class Plan:
    """What is to be compared, and how; see `compare`."""

    given: Given
    problem: Problem
    methods: dict[str, Method]
    settings: Settings
    metrics: tuple[str, ...]
    fractions: tuple[float, ...]
    n_repeats: int
    began: float
    budget: float | None
    name: str
    command: str
    notes: tuple[str, ...]

    @property
    def mixes(self) -> dict[float, Method]:
        """CRR at several mixes, where it is among the methods by name."""
        crr = self.methods.get("crr")
        return {} if crr is None or crr.signature else {mix: trade_off(mix) for mix in MIXES}

    @property
    def learnt(self) -> dict[str, Method]:
        """Everything that may be learnt, by name."""
        return {**self.methods, **{one.name: one for one in self.mixes.values()}}

    def carry_out(self, learning: Learning, folder: Path | None) -> Study:
        """
        Learn everything, and put together what was found.

        folder: where the model is kept; None keeps none.
        """
        metric, seed = self.metrics[0], self.settings.seed
        by_cost = sorted(self.methods, key=lambda name: self.methods[name].cost)
        tasks = [task for name in by_cost for task in learning.of_folds(name)]
        learning.run(tasks, f"{len(by_cost)} methods", self._until(_METHODS_UNTIL))
        outcomes = [learning.outcome(name) for name in self.methods]
        outcomes.sort(key=lambda one: (one.evaluation is None, -quality(one, metric), one.complexity))
        verdict = judge(outcomes, metric, LEVEL, seed)
        curve: tuple[CurvePoint, ...] = ()
        trade: tuple[TradeOffPoint, ...] = ()
        if verdict.winner:
            drawn = _drawn(outcomes, verdict)
            until = self._until(_ALL_UNTIL)
            curve = learning.curve(drawn, self.fractions, self.n_repeats, until) if self.fractions else ()
            trade = self._trade(learning, until)
        model, path, notes = self._refit(learning, verdict.winner, folder)
        columns = self.given.names_of(self.problem.X.shape[1])
        refitted = learning.known.get(Task(verdict.winner, None))
        scores = learning.scores(learning.of_folds(verdict.winner)) if verdict.winner else None
        return Study(
            data=summarise(self.problem, self.name, columns),
            metric=metric,
            metrics=self.metrics,
            convention=self.settings.convention.name,
            larger_is_better=parse_metric(metric).measure.larger_is_better,
            level=LEVEL,
            outcomes=tuple(outcomes),
            tests=verdict.tests,
            curve=curve,
            best=verdict.best,
            simplest=verdict.simplest,
            winner=verdict.winner,
            rule=RULE,
            verdict=verdict.sentence,
            notes=(*self.notes, *_cut(outcomes, self.budget), *notes),
            folds=self.problem.n_folds,
            seed=seed,
            versions=versions(self.methods.values()),
            command=self.command,
            seconds=monotonic() - self.began,
            model=path,
            ranker=model,
            path=() if refitted is None else tuple(PathPoint(*one) for one in refitted.path),
            reliability=() if scores is None else reliability(self.problem, scores),
            coefficients=coefficients(self.problem, model, columns),
            queries=_by_query(learning, outcomes, verdict),
            trade_off=trade,
            bounds=() if scores is None else promised(self.problem, scores, sum(one.is_complete for one in outcomes)),
        )

    def _until(self, share: float) -> float | None:
        return None if self.budget is None else self.began + share * self.budget

    def _trade(self, learning: Learning, deadline: float | None) -> tuple[TradeOffPoint, ...]:
        """Learn CRR at every mix, and lay ranking beside regression."""
        tasks = {mix: learning.of_folds(method.name) for mix, method in self.mixes.items()}
        learning.run([task for of in tasks.values() for task in of], "ranking against regression", deadline)
        scores = {mix: learning.scores(of) for mix, of in tasks.items()}
        metrics = list(dict.fromkeys((self.metrics[0], "MSE")))
        found = {mix: learning.jury.evaluate(one, metrics) for mix, one in scores.items() if one is not None}
        return trade_off_points(found, self.metrics[0])

    def _refit(self, learning: Learning, winner: str, folder: Path | None) -> tuple[Any, Path | None, tuple[str, ...]]:
        """Fit the winner on all rows; return it, its file, and why there is none."""
        if not winner:
            return None, None, ()
        task, method = Task(winner, None), self.methods[winner]
        learning.run([task], "the winner", None)
        if task not in learning.known:
            return None, None, (f"The winner could not be fitted on all rows: {learning.error_of(task)}",)
        if learning.known[task].note:
            return None, None, (f"The winner could not be saved: {learning.known[task].note}",)
        source = model_file(learning.results.file(task, method))
        path = None if folder is None else keep_model(source, folder)
        return learning.results.model(task, method), path, ()


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


def _cut(outcomes: Sequence[Outcome], budget: float | None) -> list[str]:
    cut = [one.title for one in outcomes if one.is_cut]
    if not cut or budget is None:
        return []
    return [
        f"The budget of {budget:g} s ended before these were done: {', '.join(cut)}; what was learnt of them is kept, "
        "and a further run goes on."
    ]


def _drawn(outcomes: Sequence[Outcome], verdict: Verdict) -> list[str]:
    """Choose methods for the curve: winner, best, simplest, the best that learns, LightGBM, what needs no judgement."""
    complete = [one for one in outcomes if one.evaluation is not None]
    learns = next((one.name for one in complete if not one.is_label_free), "")
    wanted = (verdict.winner, verdict.best, verdict.simplest, learns, "lightgbm")
    return [one.name for one in complete if one.name in wanted or (one.is_label_free and one.name != RANDOM)]


def _by_query(learning: Learning, outcomes: Sequence[Outcome], verdict: Verdict) -> Any:
    """List queries by what the winner makes of them, beside the simplest or else the best other method."""
    complete = {one.name: one.evaluation for one in outcomes if one.evaluation is not None}
    others = [name for name in (verdict.simplest, *complete) if name != verdict.winner]
    if not verdict.winner or not others:
        return ()
    winner, base = complete[verdict.winner], complete[others[0]]
    return worst_queries(winner, base, learning.metrics[0], learning.jury.sizes)
