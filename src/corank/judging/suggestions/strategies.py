"""Rules of what to judge next: each values the rows of one query, the highest to be judged first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.errors import InputError, suggest_names

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Pool:
    """
    One query as a rule sees it; a rule is a function of it that returns one value a row, the highest to judge next.

    Values of judged rows are not looked at, and those of two queries are never compared.

    Attributes
    ----------
    X : ndarray or CSR matrix, shape (n_rows, n_features)
        The rows as the model's last step sees them, of norm 1; the columns of a dense table are centred and divided
        by their deviation before.
    y : array of shape (n_rows,)
        Judgements, NaN where there is none.
    scores : array of shape (n_rows,) or None
        What the model predicts; None without a model.
    std : array of shape (n_rows,) or None
        Its standard deviation, where ``predict`` takes ``return_std``.
    rng : numpy.random.Generator
        Dice.
    """

    X: Any
    y: Floats
    scores: Floats | None
    std: Floats | None
    rng: np.random.Generator

    @property
    def is_judged(self) -> NDArray[np.bool_]:
        """Whether each row is judged."""
        return ~np.isnan(self.y)


Rule = Callable[[Pool], Any]


def uncertain(pool: Pool) -> Floats:
    """
    Value rows by −|f − t|, over the standard deviation of f where the model knows it.

    t is halfway between the mean scores of rows judged good and of rows judged bad, which are those above and not above
    the middle of the judged grades. Where all judged grades agree, unjudged rows stand for the other side; where none
    is judged, rows are valued as `representative` does.
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
    """Value rows by their score; where there is neither a model nor a judgement, as `representative` does."""
    if pool.scores is None and not pool.is_judged.any():
        return representative(pool)
    return _scores(pool, "top")


def representative(pool: Pool) -> Floats:
    """Value rows by their mean similarity to all rows of the query, less that to the judged rows."""
    judged = pool.is_judged
    centre = np.asarray(pool.X.mean(axis=0)).ravel()
    if judged.any():
        centre = centre - np.asarray(pool.X[np.flatnonzero(judged)].mean(axis=0)).ravel()
    return np.asarray(pool.X @ centre, dtype=np.float64)


def random(pool: Pool) -> Floats:
    """Value rows by chance."""
    return pool.rng.random(len(pool.y))


RULES: dict[str, Rule] = {"uncertain": uncertain, "top": top, "representative": representative, "random": random}


def find_rule(by: Any) -> tuple[str, Rule]:
    """Return the name of a rule, and the rule; `by` is a name, or a function of a `Pool`."""
    if callable(by):
        return getattr(by, "__name__", type(by).__name__), by
    if not (isinstance(by, str) and by in RULES):
        raise InputError(f"by is {by!r}; {suggest_names(str(by), list(RULES))}, or a function of a Pool.")
    return by, RULES[by]


def values_of(rule: Rule, name: str, pool: Pool) -> Floats:
    """Ask a rule, and check its answer."""
    values = np.asarray(rule(pool), dtype=np.float64)
    if values.shape != pool.y.shape:
        raise InputError(f"{name} gave values of shape {values.shape} for {len(pool.y)} rows; return one value a row.")
    if np.isnan(values[~pool.is_judged]).any():
        raise InputError(f"{name} gave NaN for a row to be judged; return numbers.")
    return values


def _scores(pool: Pool, name: str) -> Floats:
    if pool.scores is None:
        raise InputError(f"by={name!r} needs scores, but model is None; pass a fitted model.")
    return pool.scores
