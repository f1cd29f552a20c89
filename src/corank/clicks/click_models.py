"""
Click models: simulated users who click on a list of rows with known grades.

`CLICK_MODELS` is the registry: it maps each name that `simulate_clicks` accepts to a function from the number of grades
to a click model. Add a model there, or pass an object with a `clicks` method to `simulate_clicks`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corank.core.clicks.sessions import ClickProbabilities, draw_clicks
from corank.core.random import seed_state
from corank.errors import InputError, suggest_names

Probabilities = tuple[float, ...]

TABLES: dict[int, dict[str, tuple[Probabilities, Probabilities]]] = {
    3: {
        "perfect": ((0.0, 0.5, 1.0), (0.0, 0.0, 0.0)),
        "navigational": ((0.05, 0.5, 0.95), (0.2, 0.5, 0.9)),
        "informational": ((0.4, 0.7, 0.9), (0.1, 0.3, 0.5)),
        "almost_random": ((0.4, 0.5, 0.6), (0.5, 0.5, 0.5)),
    },
    5: {
        "perfect": ((0.0, 0.2, 0.4, 0.8, 1.0), (0.0, 0.0, 0.0, 0.0, 0.0)),
        "navigational": ((0.05, 0.3, 0.5, 0.7, 0.95), (0.2, 0.3, 0.5, 0.7, 0.9)),
        "informational": ((0.4, 0.6, 0.7, 0.8, 0.9), (0.1, 0.2, 0.3, 0.4, 0.5)),
        "almost_random": ((0.4, 0.45, 0.5, 0.55, 0.6), (0.5, 0.5, 0.5, 0.5, 0.5)),
    },
}
"""Probabilities of a click and of stopping for grades 0, 1, ..., by number of grades and kind of user (Hofmann et al.,
2013; Oosterhuis and de Rijke, 2018)."""


class ClickModel(ABC):
    """Base class of click models; `simulate_clicks` accepts any object with this `clicks` method."""

    @abstractmethod
    def clicks(self, grades: ArrayLike, rng: np.random.Generator) -> NDArray[np.bool_]:
        """Draw clicks on a list."""


class TabulatedClicks(ClickModel):
    """Base class of click models given by probabilities per grade, which `simulate_clicks` runs in compiled code."""

    @property
    def probabilities(self) -> ClickProbabilities:
        """The probabilities, as compiled code reads them."""
        raise NotImplementedError

    def clicks(self, grades: ArrayLike, rng: np.random.Generator) -> NDArray[np.bool_]:
        """Draw clicks on a list."""
        checked = as_grades(grades, len(self.probabilities.click))
        clicks = np.zeros(len(checked), dtype=np.bool_)
        draw_clicks(self.probabilities, checked, seed_state(rng), clicks)
        return clicks


@dataclass(frozen=True)
class CascadeClicks(TabulatedClicks):
    """
    Cascade model: a user examines rows from the top, clicks by grade, and may be satisfied and stop.

    kind: Table of probabilities; for five grades, "almost_random" is spaced evenly between the values for three.
    stop_after: Whether only a clicked row may end the session, as in the papers, or any examined row, as in the code
        behind the figures published in 2018. The perfect user never stops, so both are the same.
    click, stop: Your own tables, one probability per grade, instead of those of `kind`.
    """

    kind: str = "perfect"
    grades: int = 3  # number of grades, 0 for the worst
    stop_after: str = "click"
    click: Sequence[float] | None = None
    stop: Sequence[float] | None = None

    def __post_init__(self) -> None:
        table = _table(self.kind, self.grades, self.click, self.stop)
        if self.stop_after not in ("click", "any"):
            raise InputError(f"stop_after is {self.stop_after!r}; pass 'click' or 'any'.")
        for name, values in zip(("click", "stop"), table, strict=True):
            object.__setattr__(self, name, values)
        object.__setattr__(self, "grades", len(table[0]))

    @property
    def probabilities(self) -> ClickProbabilities:
        """The probabilities, as compiled code reads them."""
        return ClickProbabilities(np.array(self.click), np.array(self.stop), 0.0, self.stop_after == "click")


@dataclass(frozen=True)
class PositionClicks(TabulatedClicks):
    """
    Position-based model: a user examines rank r with probability r^−eta, independently of other ranks, and clicks by
    grade.
    """

    eta: float = 1.0  # strength of the position bias; 0 examines every rank
    kind: str = "perfect"  # table of click probabilities
    grades: int = 3  # number of grades, 0 for the worst
    click: Sequence[float] | None = None  # your own table, one probability per grade, instead of that of `kind`

    def __post_init__(self) -> None:
        if not np.isfinite(self.eta) or self.eta < 0.0:
            raise InputError(f"eta is {self.eta}; pass a finite number of at least 0.")
        table = _table(self.kind, self.grades, self.click, None if self.click is None else [0.0] * len(self.click))
        object.__setattr__(self, "click", table[0])
        object.__setattr__(self, "grades", len(table[0]))

    @property
    def probabilities(self) -> ClickProbabilities:
        """The probabilities, as compiled code reads them."""
        click = np.array(self.click)
        return ClickProbabilities(click, np.zeros(len(click)), float(self.eta), True)


CLICK_MODELS: dict[str, Callable[[int], ClickModel]] = {
    "perfect": partial(CascadeClicks, "perfect"),
    "navigational": partial(CascadeClicks, "navigational"),
    "informational": partial(CascadeClicks, "informational"),
    "almost_random": partial(CascadeClicks, "almost_random"),
}
"""Registry of click models: a name, and a function from the number of grades to the model."""


def as_click_model(user: Any, highest: int) -> ClickModel:
    """Return a click model by name, or the object passed."""
    if not isinstance(user, str):
        if not callable(getattr(user, "clicks", None)):
            names = ", ".join(CLICK_MODELS)
            raise InputError(f"user is {user!r}; pass one of {names}, or an object with a method clicks(grades, rng).")
        model: ClickModel = user
        return model
    if user not in CLICK_MODELS:
        raise InputError(f"unknown click model {user!r}; {suggest_names(user, list(CLICK_MODELS))}.")
    return CLICK_MODELS[user](3 if highest < 3 else 5)


def is_compiled(user: Any) -> bool:
    """Whether a click model has the built-in `clicks` method, so that compiled code may replace it."""
    return isinstance(user, TabulatedClicks) and type(user).clicks is TabulatedClicks.clicks


def as_grades(y: ArrayLike, n_grades: int | None = None) -> NDArray[np.int64]:
    """Check grades: whole numbers from 0, below `n_grades` if the click model has probabilities for so many only."""
    values = np.asarray(y, dtype=np.float64)
    highest = np.inf if n_grades is None else n_grades - 1
    bad = ~((values >= 0.0) & (values <= highest) & np.isfinite(values) & (values == np.floor(values)))
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        wanted = "are whole numbers from 0" if n_grades is None else f"of this click model are 0 to {n_grades - 1}"
        raise InputError(
            f"the grade of row {row} is {values.flat[row]:g}, but grades {wanted}; pass whole grades for every row, or "
            "a click model with your own tables."
        )
    return values.astype(np.int64)


def _table(kind: str, grades: int, click: Any, stop: Any) -> tuple[Probabilities, Probabilities]:
    """The user's own tables, or those of a kind of user."""
    if (click is None) != (stop is None):
        raise InputError("click and stop are two columns of one table; pass both or neither.")
    if click is None:
        kinds = list(TABLES[3])
        if kind not in kinds:
            raise InputError(f"unknown kind of user {kind!r}; {suggest_names(str(kind), kinds)}.")
        if grades not in TABLES:
            raise InputError(f"grades is {grades!r}, but there are tables for 3 and 5; pass click and stop.")
        return TABLES[grades][kind]
    table = np.array([click, stop], dtype=np.float64) if len(click) == len(stop) else np.empty(0)
    if table.ndim != 2 or table.shape[1] < 1 or not ((table >= 0.0) & (table <= 1.0)).all():
        raise InputError(f"click is {click} and stop is {stop}; pass a probability between 0 and 1 for each grade.")
    return tuple(map(float, table[0])), tuple(map(float, table[1]))
