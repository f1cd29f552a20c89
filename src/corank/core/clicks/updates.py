# mypy: disable-error-code="no-untyped-call"
"""
What one list with its clicks teaches linear rankers of one or more views.

Every clicked row a is preferred to every row b that was passed over: not clicked, at or above the rank after the last
click. With f the scores the list was drawn by and m_v = f_v(a) − f_v(b) the margin of view v,

    PDGD           w_v ← w_v + η Σ_ab ρ_ab σ(m_v) σ(−m_v) (a − b)_v,    ρ_ab = P(R*) / (P(R) + P(R*)),

R the list, R* the list with a and b exchanged (equations 9 and 10 of Oosterhuis and de Rijke, 2018). Between ranks
i < j of the two, both chances have the same numerators, so that with D_r the sum of e^f over the rows not above rank r

    log P(R*)/P(R) = Σ_{r = i+1..j} log D_r − log D*_r,    D*_r = D_r − e^{f of rank j} + e^{f of rank i},

a sum without the row of rank j, never a difference: all in logarithms. m_v and ρ are those of the moment when the list
was drawn, so that a step depends on its impression alone, and steps may come in any order.

    pairs          w_v ← w_v + η Σ_ab g(m_v) (a − b)_v,    g = −ℓ', at the weights of today,

and, for either, agreement of M views on the rows U without a click, over all pairs p of them:

    w_v ← w_v − 4 coupling η mean_p Σ_{u≠v} (m_v − m_u) p_v,

as in `corank.core.pairs.coupled_descent`, at the weights after the step of the clicks. It needs no pair, since
mean_p (g_a − g_b)(a − b) = 2/(n − 1) Σ_a (g_a − ḡ) a; a step beyond 1/(M mean_p ‖p‖²), which would overshoot, is cut.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from corank.core.clicks.policies import PLACKETT_LUCE, draw_list, log_add, log_rest
from corank.core.jit import inline, jit
from corank.core.pairs.losses import negative_gradient
from corank.core.rows.access import add_scaled, dot


class ClickPlan(NamedTuple):
    """
    The numbers that stay fixed while a linear ranker learns from clicks.

    policy, loss: codes of `corank.core.clicks.policies` and `corank.core.pairs.losses`; a loss is read with ε-greedy
    lists only. epsilon: share of exploration.
    eta0, decay: the step after n lists is eta0 · decay^n.
    coupling: weight of the views' agreement.
    """

    policy: int
    loss: int
    epsilon: float
    eta0: float
    decay: float
    coupling: float


class Room(NamedTuple):
    """
    Room for one list: of n rows, k of them shown, M views.

    of_views (n, M): f_v of each row, on top of the prior.
    scores (n,): their mean.
    noisy (n + 1,), order (n,), change, own (d,): scratch.
    shown, log_chances, grades, clicks (k,): the list.
    pulls (n, M): what each row's features are added with.
    """

    of_views: NDArray[np.float64]
    scores: NDArray[np.float64]
    noisy: NDArray[np.float64]
    order: NDArray[np.int64]
    shown: NDArray[np.int64]
    log_chances: NDArray[np.float64]
    grades: NDArray[np.int64]
    clicks: NDArray[np.bool_]
    pulls: NDArray[np.float64]
    change: NDArray[np.float64]
    own: NDArray[np.float64]


def room_for(n: int, k: int, n_views: int, d: int) -> Room:
    """Make room for lists of up to k of n rows."""
    k = min(n, k)
    ints = [np.zeros(size, dtype=np.int64) for size in (n, k, k)]
    return Room(
        np.zeros((n, n_views)), np.zeros(n), np.zeros(n + 1), ints[0], ints[1], np.zeros(k), ints[2],
        np.zeros(k, dtype=np.bool_), np.zeros((n, n_views)), np.zeros(d), np.zeros(d),
    )  # fmt: skip


@jit
def score_rows(rows, members, prior, W, of_views, scores):  # type: ignore[no-untyped-def]
    """Write f_v of each member on top of its prior (empty: none), and the mean over views."""
    M = len(W)
    for i in range(len(members)):
        row = np.uint64(members[i])
        known = prior[members[i]] if len(prior) > 0 else 0.0
        total = 0.0
        for v in range(M):
            of_views[i, v] = dot(rows, row, W[v]) + known
            total += of_views[i, v]
        scores[i] = total / M


@jit
def show_list(rows, members, prior, W, plan, rng_state, k, room):  # type: ignore[no-untyped-def]
    """Score the members of a query, draw a list of up to k of them, and return its length."""
    n = len(members)
    score_rows(rows, members, prior, W, room.of_views, room.scores)
    length = min(n, k)
    draw_list(
        plan.policy, plan.epsilon, room.scores[:n], rng_state, room.shown[:length], room.log_chances[:length],
        room.noisy, room.order[:n],
    )  # fmt: skip
    return length


@jit
def passed_over(clicks):  # type: ignore[no-untyped-def]
    """Return how many ranks, from the top, count as seen: those down to the one after the last click; 0 without any."""
    for rank in range(len(clicks) - 1, -1, -1):
        if clicks[rank]:
            return min(rank + 2, len(clicks))
    return 0


@inline
def _logistic_slope(margin):  # type: ignore[no-untyped-def]
    """Return σ(m) σ(−m)."""
    e = math.exp(-abs(margin))
    return e / ((1.0 + e) * (1.0 + e))


@jit
def flipped_share(scores, log_tails, i, j):  # type: ignore[no-untyped-def]
    """
    Return P(R*) / (P(R) + P(R*)) for the list and the list with ranks i < j exchanged.

    scores (k,): f of the rows shown, by rank.
    log_tails (k + 1,): log D_r; the last is that of the rows not shown.
    """
    log_ratio = 0.0
    # log of the sum over rows from rank r on, without rank j and with rank i
    log_left = log_add(log_tails[j + 1], scores[i])
    for r in range(j, i, -1):
        if r < j:
            log_left = log_add(log_left, scores[r])
        log_ratio += log_tails[r] - log_left
    e = math.exp(-abs(log_ratio))
    return 1.0 / (1.0 + e) if log_ratio >= 0.0 else e / (1.0 + e)


@jit
def pull_pdgd(scores, of_views, shown, log_unshown, clicks, log_tails, pulls):  # type: ignore[no-untyped-def]
    """
    Write, for each rank and view, what its row is added with in a step of PDGD of rate 1; return whether any is.

    scores (n,), of_views (n, M): f and f_v of the rows of the query.
    log_unshown: log Σ e^f over the rows that were not shown.
    log_tails (k + 1 or more,): scratch.
    """
    k, seen = len(shown), passed_over(clicks)
    pulls[:k] = 0.0
    if seen == 0:
        return False
    f = scores[shown]
    log_tails[k] = log_unshown
    for r in range(k - 1, -1, -1):
        log_tails[r] = log_add(log_tails[r + 1], f[r])
    any_pull = False
    for a in range(seen):
        if not clicks[a]:
            continue
        for b in range(seen):
            if clicks[b]:
                continue
            any_pull = True
            share = flipped_share(f, log_tails, min(a, b), max(a, b))
            for v in range(of_views.shape[1]):
                g = share * _logistic_slope(of_views[shown[a], v] - of_views[shown[b], v])
                pulls[a, v] += g
                pulls[b, v] -= g
    return any_pull


@jit
def pull_pairs(loss, of_views, shown, clicks, pulls):  # type: ignore[no-untyped-def]
    """Write, for each rank and view, what its row is added with in a step of rate 1 on all pairs; whether any is."""
    k, seen = len(shown), passed_over(clicks)
    pulls[:k] = 0.0
    any_pull = False
    for a in range(seen):
        if not clicks[a]:
            continue
        for b in range(seen):
            if clicks[b]:
                continue
            for v in range(of_views.shape[1]):
                g = negative_gradient(loss, 1.0, of_views[shown[a], v] - of_views[shown[b], v])
                any_pull |= g != 0.0
                pulls[a, v] += g
                pulls[b, v] -= g
    return any_pull


@jit
def learn_list(rows, members, prior, W, sees, plan, n_learnt, length, room):  # type: ignore[no-untyped-def]
    """
    Take the step that the list in `room` and its clicks ask for.

    rows, members, prior: as in `show_list`.
    W (M, d): changed in place.
    sees (M, d): 1 where a view sees a column, else 0; (1, 0) for a single view of all columns.
    n_learnt: lists learnt from when this one was drawn, which decides the rate.
    length: ranks of the list.
    """
    n = len(members)
    shown, clicks, pulls = room.shown[:length], room.clicks[:length], room.pulls
    eta = plan.eta0 * plan.decay**n_learnt
    if plan.policy == PLACKETT_LUCE:
        _unshown_last(shown, n, room.order)
        unshown = log_rest(room.scores, room.order[:n], length)
        moves = pull_pdgd(room.scores, room.of_views, shown, unshown, clicks, room.noisy, pulls)
    else:
        score_rows(rows, members, prior, W, room.of_views, room.scores)
        moves = pull_pairs(plan.loss, room.of_views, shown, clicks, pulls)
    if moves:
        for v in range(len(W)):
            _add(rows, members, shown, eta, pulls, v, W, sees, room.change)
    if plan.coupling > 0.0 and len(W) > 1:
        _agree(rows, members, W, sees, 4.0 * plan.coupling * eta, shown, clicks, room)


@jit
def _unshown_last(shown, n, order):  # type: ignore[no-untyped-def]
    """Write the rows shown, then the others."""
    k = len(shown)
    order[:k] = shown
    at = k
    for row in range(n):
        is_shown = False
        for rank in range(k):
            is_shown |= shown[rank] == row
        if not is_shown:
            order[at] = row
            at += 1


@jit
def _add(rows, members, some, eta, pulls, v, W, sees, change):  # type: ignore[no-untyped-def]
    """Add η Σ_i pulls[i, v] x_i, i over `some` members, to the columns that view v sees."""
    if sees.shape[1] == 0:
        for i in range(len(some)):
            if pulls[i, v] != 0.0:
                add_scaled(rows, np.uint64(members[some[i]]), eta * pulls[i, v], W[v])
        return
    change[:] = 0.0
    for i in range(len(some)):
        if pulls[i, v] != 0.0:
            add_scaled(rows, np.uint64(members[some[i]]), eta * pulls[i, v], change)
    for j in range(len(change)):
        W[v, j] += change[j] * sees[v, j]


@jit
def _agree(rows, members, W, sees, weight, shown, clicks, room):  # type: ignore[no-untyped-def]
    """Bring views nearer to each other on the rows without a click."""
    n, M, others = len(members), len(W), room.order
    m = 0
    for i in range(n):
        is_clicked = False
        for rank in range(len(shown)):
            is_clicked |= clicks[rank] and shown[rank] == i
        if not is_clicked:
            others[m] = i
            m += 1
    if m < 2:
        return
    of_views, gaps, change, own = room.of_views, room.pulls, room.change, room.own
    # mean_p ‖p‖² = 2/(m − 1) (Σ ‖x‖² − m ‖x̄‖²), of all columns: an upper bound for every view
    change[:] = 0.0
    squares = 0.0
    for i in range(m):
        row = np.uint64(members[others[i]])
        add_scaled(rows, row, 1.0 / m, change)
        # own stays zero between rows: x − x is exact
        add_scaled(rows, row, 1.0, own)
        squares += dot(rows, row, own)
        add_scaled(rows, row, -1.0, own)
        for v in range(M):
            of_views[i, v] = dot(rows, row, W[v])
    mean_square = 0.0
    for j in range(len(change)):
        mean_square += change[j] * change[j]
    spread = 2.0 / (m - 1) * (squares - m * mean_square)
    if not spread > 0.0:
        return
    weight = min(weight, 1.0 / (M * spread))
    for v in range(M):
        mean = of_views[:m, v].sum() / m
        for i in range(m):
            of_views[i, v] -= mean
    for i in range(m):
        total = of_views[i].sum()
        for v in range(M):
            gaps[i, v] = -2.0 / (m - 1) * (M * of_views[i, v] - total)
    for v in range(M):
        _add(rows, members, others[:m], weight, gaps, v, W, sees, change)
