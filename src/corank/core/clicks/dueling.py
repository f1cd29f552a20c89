# mypy: disable-error-code="no-untyped-call"
"""
Dueling bandits: a linear ranker goes towards those of its neighbours that users seem to prefer.

For each list, directions u_j of length 1 are drawn; w and the candidates w + δ u_j each rank the rows, the rankings
are blended into one list by chance (`corank.core.clicks.interleaving.blend_by_chance`), and

    w ← w + η mean {u_j: E sign(clicks of candidate j − clicks of w) > 0}.

One candidate: dueling bandit gradient descent (Yue and Joachims, 2009); several: multileave gradient descent (Schuth et
al., 2016), mean-winner. The expectation is over who contributed the clicked rows, and exact.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from corank.core.clicks.interleaving import blend_by_chance, expected_sign, share_clicks
from corank.core.clicks.policies import best_first, shuffle
from corank.core.jit import jit
from corank.core.random import random_uniform
from corank.core.rows.access import dot


class DuelPlan(NamedTuple):
    """
    The numbers that stay fixed during duels.

    eta0, decay: the step after n lists is eta0 · decay^n.
    delta: how far candidates are away.
    tau: chances fall as rank^−τ.
    """

    eta0: float
    decay: float
    delta: float
    tau: float


class DuelRoom(NamedTuple):
    """
    Room for one list of k of n rows, drawn from m rankings.

    directions (m − 1, d): u_j.
    ranks (m, n): of each row, 0 for the best; the first line is that of w.
    worth (n,): rank^−τ.
    known (n,): scores of w.
    scores (n,), order (n,), left (n,), won (m,), shares (k, m), law, new (2 k + 1,): scratch.
    shown, log_chances, grades, clicks (k,): the list.
    """

    directions: NDArray[np.float64]
    ranks: NDArray[np.int64]
    scores: NDArray[np.float64]
    known: NDArray[np.float64]
    worth: NDArray[np.float64]
    order: NDArray[np.int64]
    left: NDArray[np.bool_]
    won: NDArray[np.bool_]
    shares: NDArray[np.float64]
    law: NDArray[np.float64]
    new: NDArray[np.float64]
    shown: NDArray[np.int64]
    log_chances: NDArray[np.float64]
    grades: NDArray[np.int64]
    clicks: NDArray[np.bool_]


def room_for_duel(n: int, k: int, n_candidates: int, d: int, tau: float) -> DuelRoom:
    """Make room for lists of up to k of n rows."""
    k, m = min(n, k), n_candidates + 1
    whole, flags = np.int64, np.bool_
    return DuelRoom(
        np.zeros((n_candidates, d)), np.zeros((m, n), dtype=whole), np.zeros(n), np.zeros(n),
        np.arange(1, n + 1, dtype=np.float64) ** -tau, np.zeros(n, dtype=whole), np.zeros(n, dtype=flags),
        np.zeros(m, dtype=flags), np.zeros((k, m)), np.zeros(2 * k + 1), np.zeros(2 * k + 1),
        np.zeros(k, dtype=whole), np.zeros(k), np.zeros(k, dtype=whole), np.zeros(k, dtype=flags),
    )  # fmt: skip


@jit
def draw_directions(rng_state, U):  # type: ignore[no-untyped-def]
    """Write directions, all alike: Gaussian numbers (Marsaglia's polar method), brought to length 1."""
    for j in range(len(U)):
        squares = 0.0
        for i in range(0, U.shape[1], 2):
            r = 2.0
            x, y = 0.0, 0.0
            while r >= 1.0 or r == 0.0:
                x, y = 2.0 * random_uniform(rng_state) - 1.0, 2.0 * random_uniform(rng_state) - 1.0
                r = x * x + y * y
            size = math.sqrt(-2.0 * math.log(r) / r)
            U[j, i] = size * x
            squares += U[j, i] * U[j, i]
            if i + 1 < U.shape[1]:
                U[j, i + 1] = size * y
                squares += U[j, i + 1] * U[j, i + 1]
        U[j] /= math.sqrt(squares)


@jit
def show_duel(rows, members, prior, w, plan, rng_state, k, room):  # type: ignore[no-untyped-def]
    """Draw candidates and the list that compares them with w, and return its length."""
    n = len(members)
    scores, known, order, ranks = room.scores[:n], room.known[:n], room.order[:n], room.ranks[:, :n]
    draw_directions(rng_state, room.directions)
    for i in range(n):
        known[i] = dot(rows, np.uint64(members[i]), w) + (prior[members[i]] if len(prior) > 0 else 0.0)
        order[i] = i
    # rows that a ranking does not tell apart stand in one random order, the same for all rankings
    shuffle(order, rng_state)
    tied = order.copy()
    for j in range(len(ranks)):
        for i in range(n):
            scores[i] = known[i]
            if j > 0:
                scores[i] += plan.delta * dot(rows, np.uint64(members[i]), room.directions[j - 1])
        order[:] = tied
        best_first(scores, order, n)
        for rank in range(n):
            ranks[j, order[rank]] = rank
    length = min(n, k)
    blend_by_chance(ranks, room.worth, rng_state, room.shown[:length], room.log_chances[:length], room.left[:n])
    return length


@jit
def learn_duel(w, plan, n_learnt, n, length, room):  # type: ignore[no-untyped-def]
    """
    Go towards the candidates that won.

    n_learnt: lists learnt from when this one was drawn.
    n, length: rows of the query, and ranks of the list.
    """
    ranks, shown, clicks = room.ranks[:, :n], room.shown[:length], room.clicks[:length]
    n_clicks = share_clicks(ranks, room.worth, shown, clicks, room.left[:n], room.shares)
    if n_clicks == 0:
        return
    n_winners = 0
    for j in range(1, len(ranks)):
        room.won[j] = expected_sign(room.shares, n_clicks, j, 0, room.law, room.new) > 0.0
        n_winners += room.won[j]
    if n_winners == 0:
        return
    eta = plan.eta0 * plan.decay**n_learnt / n_winners
    for j in range(1, len(ranks)):
        if room.won[j]:
            for i in range(len(w)):
                w[i] += eta * room.directions[j - 1, i]
