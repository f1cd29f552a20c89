"""Replays with a judged column: how soon the order is right when questions are chosen, and when they are not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.data.formats.items import Choices
from corank.errors import InputError
from corank.judging.preferences.session import TOL, Asking
from corank.metrics import disagreement_error

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Replay:
    """
    One replay.

    Attributes
    ----------
    start : int
        Its seed.
    disagreement : array of float
        Share of all pairs that stand in the wrong order, after each question.
    doubt : array of float
        What the model took it for.
    """

    start: int
    disagreement: Floats
    doubt: Floats

    def __len__(self) -> int:
        return len(self.disagreement)


def simulate(
    choices: Choices,
    y: NDArray[Any],
    starts: int = 5,
    *,
    by: str = "bald",
    tol: float = TOL,
    n_questions: int = 200,
    advance: Callable[[int], Any] | None = None,
) -> list[Replay]:
    """
    Ask a judge who always answers by the judged column, and says of equal ones that they are.

    Parameters
    ----------
    choices : Choices
        What to order.
    y : array of shape (n,)
        How good each is.
    starts : int
        Number of replays, each with a seed of its own.
    by : {"bald", "entropy", "uncertainty", "random"}
        What is worth asking.
    tol : float
        What an answer must be expected to tell; a replay ends where none does.
    n_questions : int
        Most questions of a replay.
    advance : callable, optional
        Told of each question.

    Returns
    -------
    list of Replay
        One for each start.
    """
    y = np.asarray(y, dtype=np.float64)
    if len(np.unique(y)) < 2:
        raise InputError("the judged column says the same of all; a replay needs one that says which are better.")
    return [_replay(choices, y, start, by, tol, n_questions, advance or (lambda done: None)) for start in range(starts)]


def _replay(
    choices: Choices, y: Floats, start: int, by: str, tol: float, most: int, advance: Callable[[int], Any]
) -> Replay:
    asking = Asking(choices, by=by, repeat=0.0, tol=tol, random_state=start)
    found: list[tuple[float, float]] = []
    while len(found) < most and (question := asking.next()) is not None:
        left, right = y[question.left], y[question.right]
        asking.answer(question, "equal" if left == right else "left" if left > right else "right")
        ranking = asking.ranking()
        assert ranking is not None
        found.append((float(disagreement_error(y, ranking.score)), ranking.doubt))
        advance(1)
    disagreement, doubt = np.array(found).T
    return Replay(start, disagreement, doubt)
