"""Metric, a function over queries; BoundMetric, a metric with its depth and parameters; and MetricResult."""

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


class Metric:
    """
    A kind of metric; calling it returns the mean over queries.

    The signature of `compute` defines the syntax of the name: a parameter ``k`` is the depth ``@k`` (required without a
    default), and all others are parameters in parentheses.

    compute: Function of `Judgements`, ``k`` if a depth is allowed, and the parameters; returns `PerQuery`.
    name: Canonical name.
    aliases: Other names, in addition to the name of the function.
    larger_is_better: Direction of the metric.
    fills_empty: Whether undefined queries get the value of the convention (`Convention.empty`); if not, they are left
        out.

    cut: Whether ``@k`` is allowed or required.
    params: Parameters and their defaults.
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
        self.params: tuple[tuple[str, float | None], ...] = tuple((key, item.default) for key, item in options.items())
        # the measure replaces the decorated function
        self.__name__, self.__module__, self.__doc__ = compute.__name__, compute.__module__, compute.__doc__

    def __call__(
        self,
        y: ArrayLike,
        scores: ArrayLike,
        qid: ArrayLike | None = None,
        *,
        k: int | None = None,
        convention: str | Convention = "corank",
        **params: float | None,
    ) -> float:
        """Return the mean over queries; `params` are those of the metric, such as ``rel=2``."""
        if k is None and self.cut == "needed":
            raise InputError(f"{self.__name__} needs a depth; pass k=10, for example.")
        metric = self.metric(k, {key: value for key, value in params.items() if value is not None}, self.__name__)
        return metric.result(Judgements.of(y, scores, qid, find_convention(convention))).mean

    def __repr__(self) -> str:
        return f"<{self.__module__}.{self.__name__}: {self.name}>"

    def __reduce__(self) -> str:
        return self.__name__

    def metric(self, k: int | None, changed: Mapping[str, float], text: str) -> BoundMetric:
        """Return the metric with a depth and parameters."""
        if k is not None and self.cut == "none":
            raise InputError(f"{text!r} has a depth, but {self.name} has none; drop the depth {k}.")
        if k is None and self.cut == "needed":
            raise InputError(f"{text!r} needs a depth; use {self.name}@10, for example.")
        if k is not None and (k < 1 or k != int(k)):
            raise InputError(f"{text!r} has the depth {k}; pass a whole number of rows, 1 or more.")
        params = dict(self.params)
        for key, value in changed.items():
            if key not in params:
                allowed = f"use {', '.join(params)}" if params else "it has no parameters"
                raise InputError(f"{text!r} has the parameter {key!r}, which {self.name} does not have; {allowed}.")
            if not math.isfinite(value):
                raise InputError(f"{text!r} has {key}={value!r}; pass a finite number, such as {key}=2.")
            params[key] = float(value)
        return BoundMetric(self, None if k is None else int(k), tuple(params.items()))


def measure(
    name: str, *aliases: str, larger_is_better: bool = True, fills_empty: bool = True
) -> Callable[[Callable[..., PerQuery]], Metric]:
    """Turn the decorated function into a `Metric`."""
    return lambda compute: Metric(compute, name, aliases, larger_is_better=larger_is_better, fills_empty=fills_empty)


@dataclass(frozen=True)
class BoundMetric:
    """A measure with its depth and parameters; `str` returns its canonical name."""

    measure: Metric  # kind of metric
    cut: int | None  # the k of ``@k``
    params: tuple[tuple[str, float | None], ...]  # all parameters, defaults included

    def __str__(self) -> str:
        changed = [pair for pair in self.params if pair not in self.measure.params]
        inside = ",".join(f"{key}={value!r}".removesuffix(".0") for key, value in changed)
        return self.measure.name + (f"({inside})" if inside else "") + ("" if self.cut is None else f"@{self.cut}")

    def result(self, judged: Judgements) -> MetricResult:
        """Compute the metric for every query and its means."""
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
        return MetricResult(self, values, mean, micro, n_used, int(np.count_nonzero(undefined)))


@dataclass(frozen=True, eq=False)
class MetricResult:
    """
    Result of one metric.

    values: One value per query, in the order of the evaluation's `query_ids`; NaN for queries that are left out.
    n_empty: Queries with judged rows for which the metric is undefined (no relevant row or no pair). They are left out,
        or get the value of the convention.
    """

    metric: BoundMetric  # the metric
    values: NDArray[np.float64]
    mean: float  # mean over the queries that are not left out; NaN if there is none
    micro: float | None  # mean weighted by pairs (pairwise metrics) or rows (MSE, MAE); None for the others
    n_used: int  # queries in the mean
    n_empty: int
