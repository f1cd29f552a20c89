# mypy: disable-error-code="no-untyped-call"
"""
Simulated sessions, in one compiled loop: show a list, draw the user's clicks, learn. Team-draft interleaving of lists.

The loop covers users whose behaviour is a table of probabilities (`ClickProbabilities`); other click models run in
Python, see `corank.clicks.ranker`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from corank.core.clicks.updates import learn_list, show_list, shuffle
from corank.core.jit import jit
from corank.core.random import random_below, random_uniform


class ClickProbabilities(NamedTuple):
    """
    Parameters of a user who examines a list from the top.

    click, stop (n_grades,): probabilities that an examined row of each grade is clicked, and ends the session.
    """

    click: NDArray[np.float64]
    stop: NDArray[np.float64]
    eta: float  # rank r is examined with probability r^−eta, if it is reached
    needs_click: bool  # whether only a clicked row may end the session


class JudgedQueries(NamedTuple):
    """
    Queries with grades.

    order (n_rows,), starts (n_queries + 1,): query q has the rows ``order[starts[q]:starts[q + 1]]``.
    """

    order: NDArray[np.int64]
    starts: NDArray[np.int64]
    grades: NDArray[np.int64]  # (n_rows,): whole numbers from 0, in that order
    gains: NDArray[np.float64]  # (n_rows,): 2^grade − 1, in that order
    ideals: NDArray[np.float64]  # (n_queries,): DCG of the best list of k rows
    prior: NDArray[np.float64]  # (n_rows,) or (0,): scores before learning, by row number


@jit
def draw_clicks(user, grades, rng_state, clicks):  # type: ignore[no-untyped-def]
    """
    Write which of the rows with these grades are clicked, and return how many ranks were reached.

    Two random numbers are drawn for every rank, reached or not, so that those of a rank do not depend on the ranks
    above.
    """
    reached = len(grades)
    for rank in range(len(grades)):
        for_click, for_stop = random_uniform(rng_state), random_uniform(rng_state)
        clicks[rank] = False
        if rank >= reached:
            continue
        grade = grades[rank]
        examined = (rank + 1.0) ** -user.eta
        clicks[rank] = for_click < examined * user.click[grade]
        if (clicks[rank] or not user.needs_click) and for_stop < user.stop[grade]:
            reached = rank + 1
    return reached


@jit
def list_ndcg(gains, shown, ideal):  # type: ignore[no-untyped-def]
    """Return nDCG of a list, Σ gain of rank r / log2(r + 1) over the ideal; 0 for a query without gains."""
    total = 0.0
    for rank in range(len(shown)):
        total += gains[shown[rank]] / np.log2(rank + 2.0)
    return total / ideal if ideal > 0.0 else 0.0


@jit
def _click(user, queries, first, length, rng_state, scratch):  # type: ignore[no-untyped-def]
    for rank in range(length):
        scratch.grades[rank] = queries.grades[first + scratch.shown[rank]]
    draw_clicks(user, scratch.grades[:length], rng_state, scratch.clicks[:length])


@jit
def run_lists(rows, queries, user, settings, w, own_rng, rngs, k, n_learnt, ndcg, scratch):  # type: ignore[no-untyped-def]
    """Let a linear ranker serve and learn from len(ndcg) lists; `ndcg` receives nDCG of each."""
    n_queries = len(queries.ideals)
    for t in range(len(ndcg)):
        q = np.int64(random_below(rngs[0], n_queries))
        first, last = queries.starts[q], queries.starts[q + 1]
        members = queries.order[first:last]
        length = show_list(rows, members, queries.prior, w, settings, own_rng, k, scratch)
        ndcg[t] = list_ndcg(queries.gains[first:last], scratch.shown[:length], queries.ideals[q])
        _click(user, queries, first, length, rngs[1], scratch)
        learn_list(rows, members, queries.prior, w, settings, n_learnt + t, length, scratch)


@jit
def is_among(row, rows, n):  # type: ignore[no-untyped-def]
    """Return whether a row is among the first n rows."""
    result = False
    for i in range(n):
        result |= rows[i] == row
    return result


@jit
def interleave_team_draft(rankings, rng_state, shown, teams):  # type: ignore[no-untyped-def]
    """
    Let rankings choose rows in turns, in a new random order each round, and write which ranking chose each row.

    A common prefix of all rankings belongs to no team: a click there does not distinguish them.
    """
    m, n = rankings.shape
    k, i = len(shown), 0
    while i < k:
        row = rankings[0, i]
        shared = True
        for j in range(1, m):
            shared &= rankings[j, i] == row
        if not shared:
            break
        shown[i], teams[i] = row, -1
        i += 1
    turns = np.arange(m)
    turn = m
    while i < k:
        if turn == m:
            shuffle(turns, rng_state)
            turn = 0
        j = turns[turn]
        for rank in range(n):
            if not is_among(rankings[j, rank], shown, i):
                shown[i], teams[i] = rankings[j, rank], j
                break
        i += 1
        turn += 1
