"""Replays with a simulated judge: how fast the ranking becomes right, for a strategy and for random questions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.data import Items
from corank.errors import InputError
from corank.metrics import disagreement_error
from corank_lab.preferences.session import STRATEGY, TOL, PreferenceSession

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class PreferenceReplay:
    """
    One replay of a session.

    start: Random seed.
    disagreement: Share of all pairs in the wrong order, after each question.
    expected_disagreement: The model's estimate of this share.
    """

    start: int
    disagreement: Floats
    expected_disagreement: Floats

    def __len__(self) -> int:
        return len(self.disagreement)


def simulate(
    items: Items,
    y: NDArray[Any],
    starts: int = 5,
    *,
    strategy: str = STRATEGY,
    tol: float = TOL,
    n_questions: int = 200,
    advance: Callable[[int], Any] | None = None,
) -> list[PreferenceReplay]:
    """Replay sessions with a judge who answers by a column of grades, ties included."""
    y = np.asarray(y, dtype=np.float64)
    if len(np.unique(y)) < 2:
        raise InputError("all items have the same grade; a replay needs a column of at least two different grades.")
    done = advance or (lambda n: None)
    return [_replay(items, y, start, strategy, tol, n_questions, done) for start in range(starts)]


def _replay(
    items: Items, y: Floats, start: int, strategy: str, tol: float, n_questions: int, advance: Callable[[int], Any]
) -> PreferenceReplay:
    session = PreferenceSession(items, strategy=strategy, repeat=0.0, tol=tol, random_state=start)
    curve: list[tuple[float, float]] = []
    while len(curve) < n_questions and (question := session.next()) is not None:
        left, right = y[question.left], y[question.right]
        session.answer(question, "equal" if left == right else "left" if left > right else "right")
        ranking = session.ranking()
        assert ranking is not None
        curve.append((float(disagreement_error(y, ranking.score)), ranking.expected_disagreement))
        advance(1)
    disagreement, expected_disagreement = np.array(curve).T
    return PreferenceReplay(start, disagreement, expected_disagreement)
