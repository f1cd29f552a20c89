"""Simulated users, who read a list from the top and click: what they would do with rows of known grades."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corank.core.clicks.click_models import Habits, read_list
from corank.core.random import seed_state
from corank.errors import InputError, suggest_names

Chances = tuple[float, ...]

TABLES: dict[int, dict[str, tuple[Chances, Chances]]] = {
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
"""Chances of a click and of stopping for grades 0, 1, ..., by number of grades and kind of user (Hofmann et al., 2013;
Oosterhuis and de Rijke, 2018)."""

KINDS = tuple(TABLES[3])


class User(Protocol):
    """Somebody who clicks."""

    @property
    def habits(self) -> Habits:
        """The chances, as kernels see them."""
        ...

    def clicks(self, grades: ArrayLike, rng: np.random.Generator) -> NDArray[np.bool_]:
        """Click on rows of these grades."""
        ...


class _Reader:
    """Reads lists by its habits, as every user here does."""

    @property
    def habits(self) -> Habits:
        """The chances, as kernels see them."""
        raise NotImplementedError

    def clicks(self, grades: ArrayLike, rng: np.random.Generator) -> NDArray[np.bool_]:
        """
        Read a list.

        Parameters
        ----------
        grades : array-like of int
            Grades of the rows, from the top.
        rng : numpy.random.Generator
            Dice.

        Returns
        -------
        array of bool
            Which ranks were clicked.
        """
        given = as_grades(grades, self.habits)
        clicks = np.zeros(len(given), dtype=np.bool_)
        read_list(self.habits, given, seed_state(rng), clicks)
        return clicks


@dataclass(frozen=True)
class CascadeClicks(_Reader):
    """
    A user who reads from the top, row by row, clicks by grade, and may be content and stop.

    Parameters
    ----------
    kind : {"perfect", "navigational", "informational", "almost_random"}
        Which table of chances; for five grades, "almost_random" lies evenly between that of three.
    grades : {3, 5}
        Number of grades, 0 for the worst.
    stop_after : {"click", "any"}
        Whether only a clicked row may end the reading, as papers say, or any row that was looked at, as the code behind
        the published figures of 2018 has it. The perfect user never stops, so that it is the same.
    click, stop : sequence of float, optional
        Tables of one's own, one chance for each grade, in the place of those of `kind`.

    Examples
    --------
    >>> CascadeClicks("perfect").clicks([2, 0, 2], np.random.default_rng(0)).tolist()
    [True, False, True]
    """

    kind: str = "perfect"
    grades: int = 3
    stop_after: str = "click"
    click: Sequence[float] | None = None
    stop: Sequence[float] | None = None

    def __post_init__(self) -> None:
        table = _table(self.kind, self.grades, self.click, self.stop)
        if self.stop_after not in ("click", "any"):
            raise InputError(f"stop_after is {self.stop_after!r}; pass 'click' or 'any'.")
        for name, chances in zip(("click", "stop"), table, strict=True):
            object.__setattr__(self, name, chances)
        object.__setattr__(self, "grades", len(table[0]))

    @property
    def habits(self) -> Habits:
        """The chances, as kernels see them."""
        return Habits(np.array(self.click), np.array(self.stop), 0.0, self.stop_after == "click")


@dataclass(frozen=True)
class PositionClicks(_Reader):
    """
    A user who looks at rank r with chance r^−eta, whatever stands above it, and clicks by grade.

    Parameters
    ----------
    eta : float
        How fast attention fades; 0 looks at everything.
    kind : {"perfect", "navigational", "informational", "almost_random"}
        Which table of clicks.
    grades : {3, 5}
        Number of grades, 0 for the worst.
    click : sequence of float, optional
        A table of one's own, one chance for each grade, in the place of that of `kind`.

    Examples
    --------
    >>> PositionClicks(0.0).clicks([2, 0, 2], np.random.default_rng(0)).tolist()
    [True, False, True]
    """

    eta: float = 1.0
    kind: str = "perfect"
    grades: int = 3
    click: Sequence[float] | None = None

    def __post_init__(self) -> None:
        if not np.isfinite(self.eta) or self.eta < 0.0:
            raise InputError(f"eta is {self.eta}; pass a finite number of at least 0.")
        table = _table(self.kind, self.grades, self.click, None if self.click is None else [0.0] * len(self.click))
        object.__setattr__(self, "click", table[0])
        object.__setattr__(self, "grades", len(table[0]))

    @property
    def habits(self) -> Habits:
        """The chances, as kernels see them."""
        click = np.array(self.click)
        return Habits(click, np.zeros(len(click)), float(self.eta), True)


def as_user(user: Any, highest: int) -> User:
    """
    Return a user by name, or the user that came.

    user: one of `KINDS`, or a `User`.
    highest: the highest grade there is, which chooses between tables of three and five grades.
    """
    if not isinstance(user, str):
        if not hasattr(user, "habits"):
            raise InputError(f"user is {user!r}; pass CascadeClicks, PositionClicks, or one of {', '.join(KINDS)}.")
        found: User = user
        return found
    if user not in KINDS:
        raise InputError(f"there is no user {user!r}; {suggest_names(user, KINDS)}.")
    return CascadeClicks(user, 3 if highest < 3 else 5)


def as_grades(y: ArrayLike, habits: Habits) -> NDArray[np.int64]:
    """Check grades: whole numbers from 0, for each of which the user has a chance of clicking."""
    given = np.asarray(y, dtype=np.float64)
    n_grades = len(habits.click)
    bad = ~((given >= 0.0) & (given < n_grades) & (given == np.floor(given)))
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise InputError(
            f"the grade of row {row} is {given.flat[row]:g}, but this user knows grades 0 to {n_grades - 1}; pass "
            "whole grades, of every row, or a user with a table of your own."
        )
    return given.astype(np.int64)


def _table(kind: str, grades: int, click: Any, stop: Any) -> tuple[Chances, Chances]:
    """Tables of one's own, or those of a kind of user."""
    if (click is None) != (stop is None):
        raise InputError("click and stop are two columns of one table; pass both, or neither.")
    if click is None:
        if kind not in KINDS:
            raise InputError(f"there is no user {kind!r}; {suggest_names(str(kind), KINDS)}.")
        if grades not in TABLES:
            raise InputError(f"grades is {grades!r}, but there are tables for 3 and 5; pass click and stop.")
        return TABLES[grades][kind]
    table = np.array([click, stop], dtype=np.float64) if len(click) == len(stop) else np.empty(0)
    if table.ndim != 2 or table.shape[1] < 1 or not ((table >= 0.0) & (table <= 1.0)).all():
        raise InputError(f"click is {click} and stop is {stop}; pass a chance between 0 and 1 for each grade.")
    return tuple(map(float, table[0])), tuple(map(float, table[1]))
