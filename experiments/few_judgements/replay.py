"""
Compare strategies by replay: judgements of judged data are revealed step by step.

Every repeat starts from the same judged rows for all strategies, so that strategies are compared in pairs.
"""

from __future__ import annotations

import reprlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corank.base.suggestions import find_strategy, suggest
from corank.data.inputs import as_scores
from corank.data.queries import Queries
from corank.data.routing import fit_with_qid, predict_with_qid
from corank.data.rows import as_rows
from corank.errors import InputError, import_extra, suggest_names
from corank.metrics import evaluate, parse_metric
from corank.metrics.significance import standard_error
from corank.parameters import check_values, integer, rng_of, seed

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
TESTS = ("unjudged", "all")
"""Names of the rows of X to measure on."""


@dataclass(frozen=True, eq=False)
class JudgingCurve:
    """
    Quality against the number of judgements, per strategy; the result of `judging_curve`.

    n_judged: Number of judged rows, including those at the start; the rounded mean of the repeats if they differ.
    """

    strategies: tuple[str, ...]  # names of the strategies
    n_judged: Integers
    values: Floats  # the metric after each step; a repeat has the same start for all strategies
    metric: str  # name of the metric
    measured_on: str  # rows on which the metric is measured; "all rows" includes the judged ones

    @property
    def mean(self) -> Floats:
        """Mean over the repeats, of shape (n_strategies, n_points)."""
        return np.asarray(self.values.mean(axis=1))

    @property
    def error(self) -> Floats:
        """Standard error of the mean, of shape (n_strategies, n_points); NaN for a single repeat."""
        return standard_error(self.values, axis=1)

    def gain(self, strategy: str, over: str) -> tuple[Floats, Floats]:
        """Compare two strategies, repeat by repeat."""
        for name in (strategy, over):
            if name not in self.strategies:
                raise InputError(f"{name!r} is not a strategy of this curve; {suggest_names(name, self.strategies)}.")
        difference = self.values[self.strategies.index(strategy)] - self.values[self.strategies.index(over)]
        return np.asarray(difference.mean(axis=0)), standard_error(difference)

    def plot(self, ax: Any = None) -> Any:
        """Plot the mean of each strategy with a band of one standard error."""
        pyplot = import_extra("matplotlib.pyplot", "report")
        ax = pyplot.subplots()[1] if ax is None else ax
        for name, mean, error in zip(self.strategies, self.mean, np.nan_to_num(self.error), strict=True):
            (line,) = ax.plot(self.n_judged, mean, marker="o", label=name)
            ax.fill_between(self.n_judged, mean - error, mean + error, color=line.get_color(), alpha=0.2, linewidth=0)
        ax.set_xlabel("judged rows")
        ax.set_ylabel(f"{self.metric} on {self.measured_on}")
        ax.legend()
        return ax

    def __repr__(self) -> str:
        width = max(map(len, self.strategies))
        lines = [f"{'':<{width}}  " + "  ".join(f"{count:>6}" for count in self.n_judged)]
        for name, mean in zip(self.strategies, self.mean, strict=True):
            lines.append(f"{name:<{width}}  " + "  ".join(f"{value:6.4f}" for value in mean))
        return "\n".join([*lines, f"{self.metric} on {self.measured_on}, mean of {self.values.shape[1]} repeats"])


def judging_curve(
    estimator: Any,
    X: Any,
    y: ArrayLike,
    qid: ArrayLike | None = None,
    *,
    strategy: Sequence[Any] = ("uncertain", "top", "random"),
    start: int = 5,
    steps: int = 4,
    batch: int = 10,
    metric: str = "AP",
    test: str | tuple[Any, ...] = "unjudged",
    n_repeats: int = 5,
    similar: float = 0.9,
    random_state: Any = None,
) -> JudgingCurve:
    """
    Measure what each strategy gains, by revealing the judgements of judged data step by step.

    A repeat starts with `start` judged rows of each query: two of different grades, if the query has such, and others
    at random. Each strategy then continues on its own: fit, measure, let `suggest` choose `batch` rows, reveal their
    judgements.

    By default, half of the graded rows of each query are never judged, and the metric is measured on them. The half is
    drawn once per repeat, so all strategies and steps are measured on the same rows. The rows that a strategy happens
    not to choose would not do: a strategy that finds the relevant rows removes them from the measured ones.
    """
    check_values(
        {"start": start, "steps": steps, "batch": batch, "n_repeats": n_repeats, "random_state": random_state},
        {"start": integer(2), "steps": integer(0), "batch": integer(1), "n_repeats": integer(1), "random_state": seed},
    )
    listed = [strategy] if isinstance(strategy, str) or callable(strategy) else strategy
    strategies = [find_strategy(item) for item in listed]
    names = tuple(name for name, _ in strategies)
    if len(set(names)) != len(names) or not names:
        raise InputError(f"strategy lists {', '.join(names) or 'no names'}; pass one or more, each once.")
    rows = as_rows(X)
    grades = as_scores(y, rows.shape[0])
    codes = Queries.of(qid, len(grades)).codes
    name = str(parse_metric(metric))
    if not (test in TESTS if isinstance(test, str) else isinstance(test, tuple) and len(test) in (2, 3)):
        raise InputError(
            f"test is {reprlib.repr(test)}; pass 'unjudged' or 'all', or a tuple (X, y) or (X, y, qid) of other rows."
        )
    measured_on = f"{test} rows" if isinstance(test, str) else "test rows"
    other = (*test, None)[:3] if isinstance(test, tuple) else (rows, grades, codes)
    to_judge, held_out = np.flatnonzero(~np.isnan(grades)), None
    values = np.empty((len(strategies), n_repeats, steps + 1))
    n_judged = np.empty((n_repeats, steps + 1))
    for repeat, rng in enumerate(rng_of(random_state).spawn(n_repeats)):
        if measured_on == "unjudged rows":
            to_judge, held_out = _halves(grades, codes, rng)
        replay = _Replay(estimator, rows, grades, codes, to_judge, other, held_out, name, steps, batch, similar)
        y_start, first_seed = replay.start(start, rng), int(rng.integers(2**31))
        if steps and not np.isnan(y_start[to_judge]).any():
            raise InputError(
                f"start={start} rows of each query are all {len(to_judge)} rows that can be judged, so strategies have "
                "nothing to choose; pass a smaller start, or more rows."
            )
        for i, (_, function) in enumerate(strategies):
            n_judged[repeat], values[i, repeat] = replay.run(function, y_start, first_seed)
    return JudgingCurve(names, np.rint(n_judged.mean(axis=0)).astype(np.int64), values, name, measured_on)


def _halves(y: Floats, qid: Integers, rng: np.random.Generator) -> tuple[Integers, Integers]:
    """Split the graded rows of each query: every second one in random order within the order of the grades."""
    graded = rng.permutation(np.flatnonzero(~np.isnan(y)))
    graded = graded[np.lexsort([y[graded], qid[graded]])]
    first = np.searchsorted(qid[graded], qid[graded])  # place of the first row of the query
    offset = rng.integers(2, size=int(qid.max(initial=-1)) + 1)
    is_held_out = (np.arange(len(graded)) - first + offset[qid[graded]]) % 2 == 1
    held_out = graded[is_held_out]
    if not ((np.diff(qid[held_out]) == 0) & (np.diff(y[held_out]) != 0)).any():
        raise InputError(
            "the half of the graded rows that is never judged has no query with two grades, so no ranking can be "
            "measured on it; pass more rows, test='all', or other rows as test=(X, y, qid)."
        )
    return np.sort(graded[~is_held_out]), np.sort(held_out)


@dataclass(frozen=True, eq=False)
class _Replay:
    """Graded rows `to_judge`, whose grades are revealed as a strategy chooses them."""

    estimator: Any
    X: Any
    y: Floats
    qid: Integers
    to_judge: Integers
    test: tuple[Any, ...]
    held_out: Integers | None
    metric: str
    steps: int
    batch: int
    similar: float

    def start(self, size: int, rng: np.random.Generator) -> Floats:
        """Reveal `size` rows of each query, including two of different grades if it has such."""
        y = np.full_like(self.y, np.nan)
        queries = Queries.of(self.qid[self.to_judge], len(self.to_judge))
        for first, last in pairwise(queries.starts):
            rows = rng.permutation(self.to_judge[queries.order[first:last]])
            grades, number, counts = np.unique(self.y[rows], return_inverse=True, return_counts=True)
            if len(grades) > 1:
                # all pairs of different grades are equally likely: draw the first row by its number of partners
                partners = len(rows) - counts[number]
                item = rng.choice(len(rows), p=partners / partners.sum())
                other = np.flatnonzero(number != number[item])[0]
                rows = np.concatenate([rows[[item, other]], np.delete(rows, [item, other])])
            y[rows[:size]] = self.y[rows[:size]]
        return y

    def run(self, strategy: Any, y_start: Floats, first_seed: int) -> tuple[Integers, Floats]:
        """Follow one strategy; return the number of judged rows and the metric after each step."""
        y, counts, values = y_start.copy(), np.empty(self.steps + 1, dtype=np.int64), np.empty(self.steps + 1)
        to_judge = self.to_judge
        X, qid = self.X if len(to_judge) == len(y) else self.X[to_judge], self.qid[to_judge]
        X_test, y_test, qid_test = self.test
        for step in range(self.steps + 1):
            model = fit_with_qid(self.estimator, self.X, y, self.qid)
            grades, scores, queries = y_test, predict_with_qid(model, X_test, qid_test), qid_test
            if self.held_out is not None:
                grades, scores, queries = (column[self.held_out] for column in (grades, scores, queries))
            results = evaluate(grades, scores, queries, self.metric)
            counts[step], values[step] = np.count_nonzero(~np.isnan(y)), results[self.metric].mean
            if step < self.steps:
                options = {"similar": self.similar, "random_state": first_seed + step}
                chosen = to_judge[suggest(model, X, y[to_judge], qid, self.batch, strategy, **options)]
                y[chosen] = self.y[chosen]
        return counts, values
