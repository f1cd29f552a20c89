# mypy: disable-error-code="no-untyped-call"
"""
Dueling bandit gradient descent for linear rankers.

For each list, directions u_j of length 1 are drawn. w and the candidates w + δ u_j each rank the rows, the rankings are
interleaved (`experiments.clicks.interleaving_kernels.interleave_probabilistic`), and

    w ← w + η mean {u_j: E sign(clicks of candidate j − clicks of w) > 0}.

One candidate: dueling bandit gradient descent (Yue and Joachims, 2009); several: multileave gradient descent (Schuth et
al., 2016), mean-winner. The expectation is over which ranking contributed the clicked rows, and exact.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from corank.core.clicks.sessions import draw_clicks, list_ndcg
from corank.core.clicks.updates import best_first, shuffle
from corank.core.jit import jit
from corank.core.random import random_below, random_uniform
from corank.core.rows.access import dot
from experiments.clicks.interleaving_kernels import assign_clicks, expected_sign, interleave_probabilistic


class DuelSettings(NamedTuple):
    """
    Constants of a dueling bandit.

    eta0, decay: the step length after n lists is eta0 · decay^n.
    delta: distance of the candidates from w.
    tau: a ranking contributes rows in proportion to rank^−τ.
    """

    eta0: float
    decay: float
    delta: float
    tau: float


class DuelScratch(NamedTuple):
    """
    One list of k of n rows, drawn from m rankings, and working memory.

    directions (m − 1, d): u_j.
    ranks (m, n): rank of each row, 0 for the best; the first line is that of w.
    softmax (n,): rank^−τ.
    scores (n,): of w.
    candidate_scores (n,), order (n,), left (n,), won (m,), shares (k, m), law, new (2 k + 1,): working memory.
    shown, log_propensities, grades, clicks (k,): the list.
    """

    directions: NDArray[np.float64]
    ranks: NDArray[np.int64]
    candidate_scores: NDArray[np.float64]
    scores: NDArray[np.float64]
    softmax: NDArray[np.float64]
    order: NDArray[np.int64]
    left: NDArray[np.bool_]
    won: NDArray[np.bool_]
    shares: NDArray[np.float64]
    law: NDArray[np.float64]
    new: NDArray[np.float64]
    shown: NDArray[np.int64]
    log_propensities: NDArray[np.float64]
    grades: NDArray[np.int64]
    clicks: NDArray[np.bool_]


def duel_scratch(n: int, k: int, n_candidates: int, d: int, tau: float) -> DuelScratch:
    """Allocate memory for lists of up to k of n rows."""
    k, m = min(n, k), n_candidates + 1
    integers, flags = np.int64, np.bool_
    return DuelScratch(
        np.zeros((n_candidates, d)), np.zeros((m, n), dtype=integers), np.zeros(n), np.zeros(n),
        np.arange(1, n + 1, dtype=np.float64) ** -tau, np.zeros(n, dtype=integers), np.zeros(n, dtype=flags),
        np.zeros(m, dtype=flags), np.zeros((k, m)), np.zeros(2 * k + 1), np.zeros(2 * k + 1),
        np.zeros(k, dtype=integers), np.zeros(k), np.zeros(k, dtype=integers), np.zeros(k, dtype=flags),
    )  # fmt: skip


@jit
def draw_directions(rng_state, U):  # type: ignore[no-untyped-def]
    """Write uniform directions: Gaussian vectors (Marsaglia's polar method), normalised to length 1."""
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
def show_duel(rows, members, prior, w, settings, rng_state, k, scratch):  # type: ignore[no-untyped-def]
    """Draw candidates and the interleaved list that compares them with w; return its length."""
    n = len(members)
    scores, candidate_scores = scratch.scores[:n], scratch.candidate_scores[:n]
    order, ranks = scratch.order[:n], scratch.ranks[:, :n]
    draw_directions(rng_state, scratch.directions)
    for i in range(n):
        scores[i] = dot(rows, np.uint64(members[i]), w) + (prior[members[i]] if len(prior) > 0 else 0.0)
        order[i] = i
    # tied rows get one random order, the same for all rankings
    shuffle(order, rng_state)
    tied = order.copy()
    for j in range(len(ranks)):
        for i in range(n):
            candidate_scores[i] = scores[i]
            if j > 0:
                candidate_scores[i] += settings.delta * dot(rows, np.uint64(members[i]), scratch.directions[j - 1])
        order[:] = tied
        best_first(candidate_scores, order, n)
        for rank in range(n):
            ranks[j, order[rank]] = rank
    length = min(n, k)
    interleave_probabilistic(
        ranks, scratch.softmax, rng_state, scratch.shown[:length], scratch.log_propensities[:length], scratch.left[:n]
    )
    return length


@jit
def learn_duel(w, settings, n_learnt, n, length, scratch):  # type: ignore[no-untyped-def]
    """
    Move w towards the mean of the winning candidates.

    n_learnt: lists learnt when this one was drawn.
    n, length: rows of the query, and ranks of the list.
    """
    ranks, shown, clicks = scratch.ranks[:, :n], scratch.shown[:length], scratch.clicks[:length]
    n_clicks = assign_clicks(ranks, scratch.softmax, shown, clicks, scratch.left[:n], scratch.shares)
    if n_clicks == 0:
        return
    n_winners = 0
    for j in range(1, len(ranks)):
        scratch.won[j] = expected_sign(scratch.shares, n_clicks, j, 0, scratch.law, scratch.new) > 0.0
        n_winners += scratch.won[j]
    if n_winners == 0:
        return
    eta = settings.eta0 * settings.decay**n_learnt / n_winners
    for j in range(1, len(ranks)):
        if scratch.won[j]:
            for i in range(len(w)):
                w[i] += eta * scratch.directions[j - 1, i]


@jit
def run_duels(rows, queries, user, settings, w, own_rng, rngs, k, n_learnt, ndcg, scratch):  # type: ignore[no-untyped-def]
    """Let a dueling bandit serve and learn from len(ndcg) lists; parameters as in `run_lists` of corank."""
    n_queries = len(queries.ideals)
    for t in range(len(ndcg)):
        q = np.int64(random_below(rngs[0], n_queries))
        first, last = queries.starts[q], queries.starts[q + 1]
        members = queries.order[first:last]
        length = show_duel(rows, members, queries.prior, w, settings, own_rng, k, scratch)
        ndcg[t] = list_ndcg(queries.gains[first:last], scratch.shown[:length], queries.ideals[q])
        for rank in range(length):
            scratch.grades[rank] = queries.grades[first + scratch.shown[rank]]
        draw_clicks(user, scratch.grades[:length], rngs[1], scratch.clicks[:length])
        learn_duel(w, settings, n_learnt + t, last - first, length, scratch)
