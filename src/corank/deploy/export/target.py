"""Export: the files of one target, and how its engine scores rows; the options that the targets share."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from corank.deploy.export.scorers import (
    CalibratedScorer,
    KernelScorer,
    LinearScorer,
    Scorer,
    SumScorer,
    TreeScorer,
)
from corank.errors import InputError

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]

# unit roundoff and least positive number of float32
UNIT = 2.0**-24
TINY = 2.0**-149
LARGEST = float(np.finfo(np.float32).max)
# relative error that float64 engines and corank may have, far above both
DOUBLE = 2.0**-36


def floor32(values: Any) -> Singles:
    """
    Return the largest float32 at or below each number: x ≤ t is then the same for every float32 x.

    >>> float(floor32(0.1)) < 0.1, float(floor32(0.5)), float(floor32(1e300))
    (True, 0.5, 3.4028234663852886e+38)
    """
    exact = np.asarray(values, dtype=np.float64)
    with np.errstate(over="ignore"):
        near = exact.astype(np.float32)
        below = np.where(near.astype(np.float64) > exact, np.nextafter(near, np.float32(-np.inf)), near)
    return np.asarray(np.minimum(below, np.float32(LARGEST)), dtype=np.float32)


def above32(values: Any) -> Singles:
    """
    Return the least float32 above each number: x < it is then x ≤ t for every float32 x.

    >>> float(above32(0.5)) > 0.5, float(above32(0.1)) == float(np.float32(0.1))
    (True, True)
    """
    with np.errstate(over="ignore"):
        next_one = np.nextafter(floor32(values), np.float32(np.inf))
    return np.asarray(np.minimum(next_one, np.float32(LARGEST)))


def to_single(rows: Floats) -> Singles:
    """Round rows to float32; numbers beyond its range become its largest."""
    with np.errstate(over="ignore"):
        return np.asarray(np.clip(rows, -LARGEST, LARGEST).astype(np.float32))


def single_text(value: Any) -> str:
    """Return the shortest decimal number that reads back as the nearest float32."""
    with np.errstate(over="ignore"):
        near = np.float32(value)
    if not np.isfinite(near):
        raise InputError(f"the model holds {float(value):g}, beyond the range of float32; rescale the features.")
    return str(near)


def gamma(n: int, unit: float = UNIT) -> float:
    """Return n u / (1 − n u), the relative error of n roundings; infinity if n u reaches 1."""
    return n * unit / (1.0 - n * unit) if n * unit < 1.0 else np.inf


def rescored_models(scorer: Scorer) -> list[LinearScorer | TreeScorer] | None:
    """Return a linear model or trees, or both of a sum, in which trees have the intercept; None for other scorers."""
    if isinstance(scorer, LinearScorer | TreeScorer):
        return [scorer]
    if not isinstance(scorer, SumScorer):
        return None
    match [part for weight, part in scorer.parts if weight == 1.0], len(scorer.parts):
        case [LinearScorer() as linear, TreeScorer() as trees], 2:
            level = scorer.intercept + linear.intercept + trees.intercept
            return [LinearScorer(linear.weights), TreeScorer(trees.trees, level)]
    return None


def single_bound(scorer: Scorer, rows: Floats, shift: float) -> Floats:
    """Bound the error of a score that is summed in float32, to which (or to each part of which) a constant is added."""
    with np.errstate(over="ignore", invalid="ignore"):
        if isinstance(scorer, SumScorer):
            models = rescored_models(scorer) or []
            sums = np.sum([np.abs(model.score(np.nan_to_num(rows))) for model in models], axis=0)
            error = np.sum([single_bound(model, rows, shift) for model in models], axis=0)
            return np.asarray(error + 2.0**-23 * (sums + len(models) * abs(shift)))
        if isinstance(scorer, LinearScorer):
            filled = np.abs(np.nan_to_num(rows))
            n, size = rows.shape[1], filled @ np.abs(scorer.weights) + abs(scorer.intercept)
            error = gamma(n + 3) * size + TINY * (2 * n + 2 + filled.sum(axis=1))
        else:
            assert isinstance(scorer, TreeScorer)
            size = scorer.size(rows)
            error = gamma(scorer.trees.n_trees + 2) * size + TINY * (scorer.trees.n_trees + 2)
        error = error + 2.0**-23 * (abs(shift) + np.abs(scorer.score(np.nan_to_num(rows))))
        return np.where(size < 0.25 * LARGEST, error, np.inf)


def double_bound(scorer: Scorer, rows: Floats, single_output: bool = False) -> Floats:
    """Bound the difference of two float64 evaluations of a score, far above both errors."""
    with np.errstate(over="ignore", invalid="ignore"):
        error = DOUBLE * scorer.size(rows) + 1e-290
        if single_output:
            scores = np.abs(scorer.score(rows))
            error = error + np.where(scores < LARGEST, UNIT * (scores + error) + TINY, np.inf)
    return np.where(np.isfinite(error), error, np.inf)


CONSTANT = "corank_constant"
"""Feature of search engines that is 1 for every document; its weight is the shift of a linear model."""


@dataclass(frozen=True, eq=False)
class Target:
    """An engine or a format: `write` makes the files of a described model."""

    name: str
    label: str  # name of the engine
    takes: str  # which models it can run
    write: Callable[[Any, ExportOptions], Export]

    def __call__(self, described: Any, options: ExportOptions) -> Export:
        """Write the files."""
        return self.write(described, options)


TARGETS: dict[str, Target] = {}
"""All targets by name."""


W = TypeVar("W", bound=Callable[..., Any])


def target(name: str, label: str, takes: str) -> Callable[[W], W]:
    """Register the writer of a target; modules of `corank.deploy.export.targets` are found by themselves."""

    def register(write: W) -> W:
        TARGETS[name] = Target(name, label, takes, write)
        return write

    return register


@dataclass(frozen=True, kw_only=True)
class ExportOptions:
    """
    Options of an export.

    name: of the model in the engine; letters, digits, underscores and hyphens.
    shift: constant added to every score, for engines that refuse negative ones; None for no shift.
    dialect: of SQL.
    double: whether ONNX takes and returns float64 instead of float32.
    """

    name: str = "corank"
    shift: float | None = None
    dialect: str = "sqlite"
    double: bool = False

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_-]*", self.name):
            raise InputError(
                f"name is {self.name!r}; pass letters, digits, underscores and hyphens, such as name='my_model'."
            )
        if self.shift is not None and not np.isfinite(self.shift):
            raise InputError(f"shift is {self.shift}; pass a finite number.")


@dataclass(frozen=True, eq=False, kw_only=True)
class Export:
    """
    The files of one target.

    target: its name.
    files: content by suffix that is appended to the name of the main file, whose own suffix is "".
    remarks: what was assumed or left out, one sentence each.
    offset: engine score minus model score, a constant: shift, or an intercept that the engine has no place for.
    single: whether the engine reads features as float32.
    evaluate: returns the engine's scores of rows (float64, NaN for missing values).
    engine: what `evaluate` runs, for reports.
    bound: returns for rows the largest error that the engine's arithmetic explains.
    """

    target: str
    files: dict[str, bytes]
    evaluate: Callable[[Floats], Floats]
    bound: Callable[[Floats], Floats]
    engine: str
    remarks: tuple[str, ...] = ()
    offset: float = 0.0
    single: bool = True


def require_no_constant(names: tuple[str, ...]) -> None:
    """Raise `InputError` if a feature has the name of the constant one."""
    if CONSTANT in names:
        raise InputError(f"a feature is called {CONSTANT!r}, which the export uses; rename it.")


def linear_weights(scorer: LinearScorer, names: tuple[str, ...], shift: float) -> dict[str, float]:
    """Return weights by name in float32; a shift is the weight of a feature that is 1."""
    weights = {name: float(single_text(weight)) for name, weight in zip(names, scorer.weights, strict=True)}
    return weights | {CONSTANT: float(single_text(shift))} if shift else weights


def as_json(value: Any) -> bytes:
    """Return readable JSON; numbers are the shortest that read back."""
    return (json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()


def refuse(name: str, scorer: Scorer, nearest: str) -> InputError:
    """Return the error for a scorer that a target does not support."""
    if isinstance(scorer, CalibratedScorer):
        nearest = "export without calibration (calibrated=False), which keeps the order of rows"
    elif isinstance(scorer, SumScorer | KernelScorer):
        nearest = f"fit again with --for {name} (AutoRanker(deploy={name!r})), or {nearest}"
    own = TARGETS[name]
    return InputError(f"{own.label} takes {own.takes}, but this is {scorer.kind[1]}; {nearest}.")


def walk_tree(node: Any, rows: NDArray[np.int64], leaves: NDArray[Any], look: Callable[[Any, Any], Any]) -> None:
    """
    Write the leaf that each row reaches in a tree of an engine's form.

    look: returns the value of a leaf; or which of the rows go left at a node, and its children.
    """
    result = look(node, rows)
    if not isinstance(result, tuple):
        leaves[rows] = result
        return
    goes_left, left, right = result
    walk_tree(left, rows[goes_left], leaves, look)
    walk_tree(right, rows[~goes_left], leaves, look)
