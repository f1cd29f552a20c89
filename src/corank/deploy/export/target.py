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
    PerceptronScorer,
    Scorer,
    SumScorer,
)
from corank.errors import InputError

Floats = NDArray[np.float64]

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


def as_json(value: Any) -> bytes:
    """Return readable JSON; numbers are the shortest that read back."""
    return (json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()


def kind_of(scorer: Scorer) -> str:
    """Return the name of a scorer's kind, for messages."""
    if isinstance(scorer, LinearScorer):
        return "a linear model"
    if isinstance(scorer, PerceptronScorer):
        return "a perceptron"
    if isinstance(scorer, KernelScorer):
        return "a kernel model"
    if isinstance(scorer, CalibratedScorer):
        return "a calibrated model"
    return "a sum of several kinds of models" if isinstance(scorer, SumScorer) else "trees"


def refuse(name: str, scorer: Scorer, nearest: str) -> InputError:
    """Return the error for a scorer that a target does not support."""
    if isinstance(scorer, CalibratedScorer):
        nearest = "export without calibration (calibrated=False), which keeps the order of rows"
    elif isinstance(scorer, SumScorer | KernelScorer):
        nearest = f"fit again with --for {name} (AutoRanker(deploy={name!r})), or {nearest}"
    own = TARGETS[name]
    return InputError(f"{own.label} takes {own.takes}, but this is {kind_of(scorer)}; {nearest}.")


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
