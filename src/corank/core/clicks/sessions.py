# mypy: disable-error-code="no-untyped-call"
"""Sessions of simulated users, list after list, in one compiled loop: show, click, learn."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from corank.core.clicks.click_models import list_worth, read_list
from corank.core.clicks.dueling import learn_duel, show_duel
from corank.core.clicks.updates import learn_list, show_list
from corank.core.jit import jit
from corank.core.random import random_below


class Collected(NamedTuple):
    """
    Queries with grades, as sessions see them.

    order (n_rows,), starts (n_queries + 1,): query q has the rows ``order[starts[q]:starts[q + 1]]``.
    grades (n_rows,): whole numbers from 0, in that order.
    gains (n_rows,): 2^grade − 1, in that order.
    ideals (n_queries,): Σ gain/discount of the best list of k rows.
    prior (n_rows,) or (0,): scores before learning, by row number.
    """

    order: NDArray[np.int64]
    starts: NDArray[np.int64]
    grades: NDArray[np.int64]
    gains: NDArray[np.float64]
    ideals: NDArray[np.float64]
    prior: NDArray[np.float64]


@jit
def _read(habits, collected, first, length, rng_state, room):  # type: ignore[no-untyped-def]
    for rank in range(length):
        room.grades[rank] = collected.grades[first + room.shown[rank]]
    read_list(habits, room.grades[:length], rng_state, room.clicks[:length])


@jit
def run_lists(rows, collected, habits, plan, W, sees, ranker_state, rng_state, k, n_learnt, worth, room):  # type: ignore[no-untyped-def]
    """
    Let a linear ranker serve and learn from len(worth) lists; `worth` receives nDCG of each.

    ranker_state: random state of the ranker; rng_state (2, 4): that of the choice of queries, and that of the user.
    n_learnt: lists it has learnt from already.
    """
    n_queries = len(collected.ideals)
    for t in range(len(worth)):
        q = np.int64(random_below(rng_state[0], n_queries))
        first, last = collected.starts[q], collected.starts[q + 1]
        members = collected.order[first:last]
        length = show_list(rows, members, collected.prior, W, plan, ranker_state, k, room)
        worth[t] = list_worth(collected.gains[first:last], room.shown[:length], collected.ideals[q])
        _read(habits, collected, first, length, rng_state[1], room)
        learn_list(rows, members, collected.prior, W, sees, plan, n_learnt + t, length, room)


@jit
def run_duels(rows, collected, habits, plan, w, ranker_state, rng_state, k, n_learnt, worth, room):  # type: ignore[no-untyped-def]
    """Let a dueling bandit serve and learn from len(worth) lists; as `run_lists`."""
    n_queries = len(collected.ideals)
    for t in range(len(worth)):
        q = np.int64(random_below(rng_state[0], n_queries))
        first, last = collected.starts[q], collected.starts[q + 1]
        members = collected.order[first:last]
        length = show_duel(rows, members, collected.prior, w, plan, ranker_state, k, room)
        worth[t] = list_worth(collected.gains[first:last], room.shown[:length], collected.ideals[q])
        _read(habits, collected, first, length, rng_state[1], room)
        learn_duel(w, plan, n_learnt + t, last - first, length, room)
