"""
What a rule of choice is worth: judged data, of which the judgements are revealed step by step.

Every repeat begins with the same judged rows for all rules, so that rules are compared in pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corank.data.problem.inputs import as_scores
from corank.data.problem.queries import Queries
from corank.data.problem.routing import fit_with_qid, predict_with_qid
from corank.data.problem.rows import as_rows
from corank.errors import InputError, import_extra, suggest_names
from corank.judging.suggestions.strategies import find_rule
from corank.judging.suggestions.suggest import suggest
from corank.metrics import evaluate, parse_metric
from corank.parameters import check_values, rng_of, seed, whole

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class JudgingCurve:
    """
    Quality against the number of judgements, for each rule; what `judging_curve` returns.

    Attributes
    ----------
    rules : tuple of str
        Names of the rules.
    n_judged : array of int64, shape (n_points,)
        Judged rows, those at the start included.
    values : array of float64, shape (n_rules, n_repeats, n_points)
        The metric after each step; repeats of all rules begin alike.
    metric : str
        What was measured.
    measured_on : {"all rows", "test rows"}
        The rows it was measured on.
    """

    rules: tuple[str, ...]
    n_judged: NDArray[np.int64]
    values: Floats
    metric: str
    measured_on: str

    @property
    def mean(self) -> Floats:
        """Mean over the repeats, of shape (n_rules, n_points)."""
        return np.asarray(self.values.mean(axis=1))

    @property
    def error(self) -> Floats:
        """Standard error of the mean, of shape (n_rules, n_points); NaN for a single repeat."""
        return _error(self.values)

    def gain(self, rule: str, over: str) -> tuple[Floats, Floats]:
        """
        Compare two rules, repeat by repeat.

        Parameters
        ----------
        rule : str
            One of `rules`.
        over : str
            Another.

        Returns
        -------
        mean : array of shape (n_points,)
            Mean difference of the metric.
        error : array of shape (n_points,)
            Its standard error; NaN for a single repeat.
        """
        for name in (rule, over):
            if name not in self.rules:
                raise InputError(f"{name!r} is no rule of this curve; {suggest_names(name, self.rules)}.")
        difference = self.values[self.rules.index(rule)] - self.values[self.rules.index(over)]
        return np.asarray(difference.mean(axis=0)), _error(difference)

    def plot(self, ax: Any = None) -> Any:
        """
        Draw the mean of each rule, with one standard error around it.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        matplotlib Axes
            The drawing.
        """
        pyplot = import_extra("matplotlib.pyplot", "report")
        ax = pyplot.subplots()[1] if ax is None else ax
        for rule, mean, error in zip(self.rules, self.mean, np.nan_to_num(self.error), strict=True):
            (line,) = ax.plot(self.n_judged, mean, marker="o", label=rule)
            ax.fill_between(self.n_judged, mean - error, mean + error, color=line.get_color(), alpha=0.2, linewidth=0)
        ax.set_xlabel("judged rows")
        ax.set_ylabel(f"{self.metric} on {self.measured_on}")
        ax.legend()
        return ax

    def __repr__(self) -> str:
        width = max(map(len, self.rules))
        lines = [f"{'':<{width}}  " + "  ".join(f"{count:>6}" for count in self.n_judged)]
        for rule, mean in zip(self.rules, self.mean, strict=True):
            lines.append(f"{rule:<{width}}  " + "  ".join(f"{value:6.4f}" for value in mean))
        return "\n".join([*lines, f"{self.metric} on {self.measured_on}, mean of {self.values.shape[1]} repeats"])


def judging_curve(
    estimator: Any,
    X: Any,
    y: ArrayLike,
    qid: ArrayLike | None = None,
    *,
    by: Sequence[Any] = ("uncertain", "top", "random"),
    start: int = 5,
    steps: int = 4,
    batch: int = 10,
    metric: str = "AP",
    test: tuple[Any, ...] | None = None,
    n_repeats: int = 5,
    similar: float = 0.9,
    random_state: Any = None,
) -> JudgingCurve:
    """
    Judge step by step what is judged already, and measure what each rule of choice brings.

    A repeat begins with `start` judged rows of each query: two of different grades, where it has such, and others at
    random. Then every rule goes its own way: fit, measure, let `suggest` choose `batch` rows, judge them.

    Parameters
    ----------
    estimator : Ranker or Pipeline
        What learns; it is cloned and fitted anew after each step, on all rows, NaN where not yet judged. What does not
        look at y, such as `Smooth`, is better applied to X before.
    X : array-like or CSR matrix, shape (n_rows, n_features)
        The rows.
    y : array-like of shape (n_rows,)
        Grades; rows with NaN are there to be learnt from, but are never judged nor measured.
    qid : array-like of shape (n_rows,), optional
        One query id per row.
    by : sequence of str or callable
        Rules, see `suggest`.
    start : int
        Judged rows of each query at the start, at least 2.
    steps : int
        Number of steps.
    batch : int
        Rows that are judged in a step, over all queries.
    metric : str
        What is measured, under corank's convention; see `corank.metrics.parse_metric`.
    test : tuple (X, y) or (X, y, qid), optional
        Rows to measure on. None measures on all rows of X, those judged included.
    n_repeats : int
        Repeats, each with a start of its own.
    similar : float
        See `suggest`.
    random_state : int, RandomState or None
        Seed of the starts and of the rules' dice.

    Returns
    -------
    JudgingCurve
        Quality against judgements.

    Examples
    --------
    >>> from corank import RankRLS, make_ranking
    >>> data = make_ranking(1, 200, random_state=0)
    >>> curve = judging_curve(RankRLS(), data.X, data.y, steps=2, batch=5, metric="nDCG@10", random_state=0)
    >>> curve.n_judged.tolist(), curve.values.shape
    ([5, 10, 15], (3, 5, 3))
    """
    given = {"start": start, "steps": steps, "batch": batch, "n_repeats": n_repeats, "random_state": random_state}
    counts = {"start": whole(2), "steps": whole(0), "batch": whole(1), "n_repeats": whole(1), "random_state": seed}
    check_values(given, counts)
    rules = [find_rule(rule) for rule in ([by] if isinstance(by, str) or callable(by) else by)]
    names = tuple(name for name, _ in rules)
    if len(set(names)) != len(names) or not names:
        raise InputError(f"by names the rules {', '.join(names) or 'of none'}; pass one or more, each of another name.")
    rows = as_rows(X)
    grades = as_scores(y, rows.shape[0])
    codes = Queries.of(qid, len(grades)).codes
    name = str(parse_metric(metric))
    measured = (rows, grades, codes) if test is None else (*test, None)[:3]
    replay = _Replay(estimator, rows, grades, codes, measured, name, steps, batch, similar)
    values = np.empty((len(rules), n_repeats, steps + 1))
    for repeat, rng in enumerate(rng_of(random_state).spawn(n_repeats)):
        begun, dice = replay.start(start, rng), int(rng.integers(2**31))
        for at, (_, rule) in enumerate(rules):
            n_judged, values[at, repeat] = replay.run(rule, begun, dice)
    return JudgingCurve(names, n_judged, values, name, "all rows" if test is None else "test rows")


@dataclass(frozen=True, eq=False)
class _Replay:
    """Judged rows whose judgements are revealed as a rule asks for them."""

    estimator: Any
    X: Any
    y: Floats
    qid: NDArray[np.int64]
    measured: tuple[Any, ...]
    metric: str
    steps: int
    batch: int
    similar: float

    def start(self, size: int, rng: np.random.Generator) -> Floats:
        """Judge so many rows of each query, two of different grades among them where there are such."""
        y = np.full_like(self.y, np.nan)
        known_rows = np.flatnonzero(~np.isnan(self.y))
        queries = Queries.of(self.qid[known_rows], len(known_rows))
        for first, last in pairwise(queries.starts):
            rows = rng.permutation(known_rows[queries.order[first:last]])
            grades, number, counts = np.unique(self.y[rows], return_inverse=True, return_counts=True)
            if len(grades) > 1:
                # a pair of different grades, all equally likely: its first row by the number of its partners
                partners = len(rows) - counts[number]
                one = rng.choice(len(rows), p=partners / partners.sum())
                other = np.flatnonzero(number != number[one])[0]
                rows = np.concatenate([rows[[one, other]], np.delete(rows, [one, other])])
            y[rows[:size]] = self.y[rows[:size]]
        return y

    def run(self, rule: Any, begun: Floats, dice: int) -> tuple[NDArray[np.int64], Floats]:
        """Let a rule choose; the number of judged rows and the metric after each step."""
        y, counts, values = begun.copy(), np.empty(self.steps + 1, dtype=np.int64), np.empty(self.steps + 1)
        to_judge = np.flatnonzero(~np.isnan(self.y))
        X, qid = self.X if len(to_judge) == len(y) else self.X[to_judge], self.qid[to_judge]
        X_test, y_test, qid_test = self.measured
        for step in range(self.steps + 1):
            model = fit_with_qid(self.estimator, self.X, y, self.qid)
            found = evaluate(y_test, predict_with_qid(model, X_test, qid_test), qid_test, self.metric)
            counts[step], values[step] = np.count_nonzero(~np.isnan(y)), found[self.metric].mean
            if step < self.steps:
                further = {"similar": self.similar, "random_state": dice + step}
                chosen = to_judge[suggest(model, X, y[to_judge], qid, self.batch, rule, **further)]
                y[chosen] = self.y[chosen]
        return counts, values


def _error(values: Floats) -> Floats:
    """Standard error of the mean over the last axis but one."""
    n = values.shape[-2]
    return values.std(axis=-2, ddof=1) / np.sqrt(n) if n > 1 else np.full_like(values[..., 0, :], np.nan)
