"""Export: the files of one target, and how its engine scores rows; the options that the targets share."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

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


def refuse(target: str, scorer: Scorer, takes: str, nearest: str) -> InputError:
    """Return the error for a scorer that a target does not support."""
    if isinstance(scorer, CalibratedScorer):
        nearest = "export without calibration (calibrated=False), which keeps the order of rows"
    elif isinstance(scorer, SumScorer | KernelScorer):
        nearest = f"fit again with --for {target.lower()} (AutoRanker(deploy={target.lower()!r})), or {nearest}"
    return InputError(f"{target} takes {takes}, but this is {kind_of(scorer)}; {nearest}.")
