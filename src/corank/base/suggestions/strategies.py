"""Strategies that choose the rows to judge next: each values the rows of one query, the highest is judged first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.choices import ROW_STRATEGIES
from corank.errors import InputError, suggest_names

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Pool:
    """
    The rows of one query, as a strategy receives them.

    A strategy is a function of a `Pool` that returns one value per row. Values of judged rows are ignored, and values
    of different queries are never compared.

    X: The rows as the model's last step receives them, scaled to norm 1. Columns of a dense table are standardised
        first.
    """

    X: Any
    y: Floats  # judgements; NaN marks an unjudged row
    scores: Floats | None  # predicted scores; None without a model
    std: Floats | None  # standard deviations of the scores, if ``predict`` takes ``return_std``
    rng: np.random.Generator  # random generator

    @property
    def is_judged(self) -> NDArray[np.bool_]:
        """Whether each row is judged."""
        return ~np.isnan(self.y)


Strategy = Callable[[Pool], Any]


def uncertain(pool: Pool) -> Floats:
    """
    Rows whose score is nearest to the border between good and bad.

    The value is −|f − t|, divided by the standard deviation of f if the model returns one. t is halfway between the
    mean scores of rows judged good and bad, i.e. above the middle of the judged grades or not. If all judged grades
    are equal, the unjudged rows take the other side. If no row is judged, rows are valued as by `representative`.
    """
    judged = pool.is_judged
    if not judged.any():
        return representative(pool)
    scores = _scores(pool, "uncertain")
    if judged.all():
        return np.zeros(len(scores))
    grades = pool.y[judged]
    good = judged.copy()
    good[judged] = grades > (grades.min() + grades.max()) / 2.0
    bad = judged & ~good if good.any() else ~judged
    t = (scores[good if good.any() else judged].mean() + scores[bad].mean()) / 2.0
    distance: Floats = np.abs(scores - t)
    return -distance if pool.std is None else -distance / np.maximum(pool.std, np.finfo(np.float64).tiny)


def top(pool: Pool) -> Floats:
    """Rows with the highest score; without a model and judgements, as `representative`."""
    if pool.scores is None and not pool.is_judged.any():
        return representative(pool)
    return _scores(pool, "top")


def representative(pool: Pool) -> Floats:
    """Rows with the highest mean similarity to the rows of the query, minus that to the judged rows."""
    judged = pool.is_judged
    centre = np.asarray(pool.X.mean(axis=0)).ravel()
    if judged.any():
        centre = centre - np.asarray(pool.X[np.flatnonzero(judged)].mean(axis=0)).ravel()
    return np.asarray(pool.X @ centre, dtype=np.float64)


def random(pool: Pool) -> Floats:
    """Random rows."""
    return pool.rng.random(len(pool.y))


STRATEGIES: dict[str, Strategy] = dict(zip(ROW_STRATEGIES, (uncertain, top, representative, random), strict=True))
"""Strategies by name."""


def find_strategy(strategy: Any) -> tuple[str, Strategy]:
    """Return the name of a strategy, and its function; `strategy` is either of them."""
    if callable(strategy):
        return getattr(strategy, "__name__", type(strategy).__name__), strategy
    if not (isinstance(strategy, str) and strategy in STRATEGIES):
        names = suggest_names(str(strategy), list(STRATEGIES))
        raise InputError(f"strategy is {strategy!r}; {names}, or pass a function of a Pool.")
    return strategy, STRATEGIES[strategy]


def values_of(strategy: Strategy, name: str, pool: Pool) -> Floats:
    """Evaluate a strategy, and check the values."""
    values = np.asarray(strategy(pool), dtype=np.float64)
    if values.shape != pool.y.shape:
        raise InputError(
            f"{name} returned values of shape {values.shape} for {len(pool.y)} rows; return one value per row."
        )
    if np.isnan(values[~pool.is_judged]).any():
        raise InputError(f"{name} returned NaN for an unjudged row; return numbers.")
    return values


def _scores(pool: Pool, name: str) -> Floats:
    if pool.scores is None:
        raise InputError(f"strategy={name!r} needs scores, but model is None; pass a fitted model.")
    return pool.scores
