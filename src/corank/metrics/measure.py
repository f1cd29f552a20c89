"""Measure: a kind of metric, made from the function that computes it for every query; called, it gives the mean."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corank.errors import InputError
from corank.metrics.conventions import Convention, find_convention
from corank.metrics.judgements import Judgements, PerQuery


class Measure:
    """
    A kind of metric; calling it gives the mean over queries.

    What may follow its name is read off `compute`: a parameter ``k`` is the depth of ``@k`` (needed where it has
    no default), and all others are parameters in parentheses.

    Parameters
    ----------
    compute : callable
        Takes `Judgements`, ``k`` where a depth is allowed, and the parameters; returns `PerQuery`.
    name : str
        Its canonical name.
    aliases : tuple of str
        Other names; the name of the function is one in any case.
    larger_is_better : bool
        Direction.
    fills_empty : bool
        Whether the convention says what a query scores where the metric is not defined; pairs and rows do not
        ask, and leave such a query out.

    Attributes
    ----------
    cut : {"none", "optional", "needed"}
        Whether ``@k`` may or must follow.
    params : tuple of (str, float or None)
        Parameters and their defaults.
    """

    def __init__(
        self,
        compute: Callable[..., PerQuery],
        name: str,
        aliases: tuple[str, ...] = (),
        *,
        larger_is_better: bool = True,
        fills_empty: bool = True,
    ) -> None:
        self.compute = compute
        self.name = name
        self.spellings = (name, compute.__name__, *aliases)
        self.larger_is_better = larger_is_better
        self.fills_empty = fills_empty
        options = dict(list(inspect.signature(compute).parameters.items())[1:])
        depth = options.pop("k", None)
        self.cut: Literal["none", "optional", "needed"] = (
            "none" if depth is None else "needed" if depth.default is depth.empty else "optional"
        )
        self.params: tuple[tuple[str, float | None], ...] = tuple((key, one.default) for key, one in options.items())
        # it stands where the function stood
        self.__name__, self.__module__, self.__doc__ = compute.__name__, compute.__module__, compute.__doc__

    def __call__(
        self,
        y: ArrayLike,
        scores: ArrayLike,
        qid: ArrayLike | None = None,
        *,
        k: int | None = None,
        convention: str | Convention = "corank",
        rel: float | None = None,
        max_grade: float | None = None,
        alpha: float | None = None,
        p: float | None = None,
    ) -> float:
        """
        Return the mean over queries.

        Parameters
        ----------
        y, scores, qid : array-like of shape (n_rows,)
            Grades, predicted scores and query ids, as in `evaluate`.
        k : int, optional
            How many rows count, where the metric has a depth; all of them by default.
        convention : str or Convention
            How the name is read.
        rel, max_grade, alpha, p : float, optional
            Parameters, of the metrics that have them.

        Returns
        -------
        float
            The mean over the queries for which the metric is defined.
        """
        if k is None and self.cut == "needed":
            raise InputError(f"{self.__name__} needs a depth; pass k=10, for example.")
        params = {"rel": rel, "max_grade": max_grade, "alpha": alpha, "p": p}
        metric = self.metric(k, {key: value for key, value in params.items() if value is not None}, self.__name__)
        return metric.result(Judgements.of(y, scores, qid, find_convention(convention))).mean

    def __repr__(self) -> str:
        return f"<{self.__module__}.{self.__name__}: {self.name}>"

    def __reduce__(self) -> str:
        return self.__name__

    def metric(self, k: int | None, given: Mapping[str, float], text: str) -> Metric:
        """
        Fix depth and parameters.

        Parameters
        ----------
        k : int or None
            The depth.
        given : mapping of str to float
            Parameters; the others keep their defaults.
        text : str
            What the user wrote, for messages.

        Returns
        -------
        Metric
            What to compute.
        """
        if k is not None and self.cut == "none":
            raise InputError(f"{text!r} has a depth, but {self.name} reads whole lists; drop the depth {k}.")
        if k is None and self.cut == "needed":
            raise InputError(f"{text!r} needs a depth; ask for {self.name}@10, for example.")
        if k is not None and (k < 1 or k != int(k)):
            raise InputError(f"{text!r} has the depth {k}; pass a whole number of rows, 1 or more.")
        params = dict(self.params)
        for key, value in given.items():
            if key not in params:
                allowed = f"it takes {', '.join(params)}" if params else "it takes none"
                raise InputError(f"{text!r} has the parameter {key!r}, which {self.name} does not know; {allowed}.")
            if not math.isfinite(value):
                raise InputError(f"{text!r} has {key}={value!r}; pass a finite number, such as {key}=2.")
            params[key] = float(value)
        return Metric(self, None if k is None else int(k), tuple(params.items()))


def measure(
    name: str, *aliases: str, larger_is_better: bool = True, fills_empty: bool = True
) -> Callable[[Callable[..., PerQuery]], Measure]:
    """
    Make a `Measure` of the function below.

    name, *aliases: how users type it.
    larger_is_better, fills_empty: see `Measure`.
    """
    return lambda compute: Measure(compute, name, aliases, larger_is_better=larger_is_better, fills_empty=fills_empty)


@dataclass(frozen=True)
class Metric:
    """
    One metric to compute: a measure, its depth and its parameters; `str` gives its canonical name.

    Attributes
    ----------
    measure : Measure
        The kind.
    cut : int or None
        The k of ``@k``.
    params : tuple of (str, float or None)
        All parameters, the defaults filled in.
    """

    measure: Measure
    cut: int | None
    params: tuple[tuple[str, float | None], ...]

    def __str__(self) -> str:
        changed = [pair for pair in self.params if pair not in self.measure.params]
        inside = ",".join(f"{key}={value!r}".removesuffix(".0") for key, value in changed)
        return self.measure.name + (f"({inside})" if inside else "") + ("" if self.cut is None else f"@{self.cut}")

    def result(self, judged: Judgements) -> Result:
        """
        Compute the metric for every query, and its means.

        Parameters
        ----------
        judged : Judgements
            Grades and scores.

        Returns
        -------
        Result
            Values per query, means and counts.
        """
        depth = {} if self.measure.cut == "none" else {"k": self.cut}
        values, weights = self.measure.compute(judged, **depth, **dict(self.params))
        undefined = np.isnan(values) & (judged.sizes > 0)
        micro = None
        if weights is not None:
            defined = ~np.isnan(values)
            total = float(weights[defined].sum())
            micro = float(weights[defined] @ values[defined]) / total if total > 0 else float("nan")
        if self.measure.fills_empty and judged.convention.empty != "skip":
            values = np.where(undefined, 0.0 if judged.convention.empty == "zero" else 1.0, values)
        used = ~np.isnan(values)
        n_used = int(np.count_nonzero(used))
        mean = float(values[used].mean()) if n_used else float("nan")
        values.setflags(write=False)
        return Result(self, values, mean, micro, n_used, int(np.count_nonzero(undefined)))


@dataclass(frozen=True, eq=False)
class Result:
    """
    One metric of an evaluation.

    Attributes
    ----------
    metric : Metric
        What was computed.
    values : array of float64, shape (n_queries,)
        One value per query, in the order of the evaluation's `query_ids`; NaN where the query is left out.
    mean : float
        Mean over the queries that are not left out; NaN if there is none.
    micro : float or None
        Mean weighted by pairs (measures of pairs) or rows (MSE, MAE); None for the others.
    n_used : int
        Queries in the mean.
    n_empty : int
        Queries with judged rows for which the metric is not defined: no relevant row, no pair. They are left
        out, or score what the convention says.
    """

    metric: Metric
    values: NDArray[np.float64]
    mean: float
    micro: float | None
    n_used: int
    n_empty: int
