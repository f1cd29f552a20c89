# mypy: disable-error-code="no-untyped-call"
"""
One list out of several rankings, and whose rows the clicks on it speak for.

A ranking is a line of row numbers, best first; ranks are the same turned around, 0 for the best. m rankings, n rows,
k ranks of the list.
"""

from __future__ import annotations

import numpy as np

from corank.core.clicks.policies import shuffle
from corank.core.clicks.updates import passed_over
from corank.core.jit import jit
from corank.core.random import random_below, random_uniform

NO_TEAM = -1


@jit
def invert(rankings, ranks):  # type: ignore[no-untyped-def]
    """Write the rank of each row in each ranking."""
    for j in range(len(rankings)):
        for rank in range(rankings.shape[1]):
            ranks[j, rankings[j, rank]] = rank


@jit
def _is_among(row, rows, n):  # type: ignore[no-untyped-def]
    found = False
    for i in range(n):
        found |= rows[i] == row
    return found


@jit
def draft_teams(rankings, rng_state, shown, teams):  # type: ignore[no-untyped-def]
    """
    Let rankings choose in turns, in a new order each round, and write whose choice each row was.

    What all rankings begin with is nobody's choice: a click there says nothing of any of them.
    """
    m, n = rankings.shape
    k, at = len(shown), 0
    while at < k:
        row = rankings[0, at]
        shared = True
        for j in range(1, m):
            shared &= rankings[j, at] == row
        if not shared:
            break
        shown[at], teams[at] = row, NO_TEAM
        at += 1
    turns = np.arange(m)
    turn = m
    while at < k:
        if turn == m:
            shuffle(turns, rng_state)
            turn = 0
        j = turns[turn]
        for rank in range(n):
            if not _is_among(rankings[j, rank], shown, at):
                shown[at], teams[at] = rankings[j, rank], j
                break
        at += 1
        turn += 1


@jit
def merge_two(rankings, rng_state, shown):  # type: ignore[no-untyped-def]
    """Merge two rankings so that any beginning of the list holds as many of the best of one as of the other, or one
    more; a coin decides which is ahead."""
    k, at = len(shown), 0
    ahead = np.int64(random_below(rng_state, 2))
    places = np.zeros(2, dtype=np.int64)
    while at < k:
        j = ahead if places[ahead] <= places[1 - ahead] else 1 - ahead
        row = rankings[j, places[j]]
        places[j] += 1
        if not _is_among(row, shown, at):
            shown[at] = row
            at += 1


@jit
def credit_two(rankings, shown, clicks, out):  # type: ignore[no-untyped-def]
    """
    Count the clicked rows among the best κ of each of two rankings (Joachims, 2003).

    κ is where the lowest clicked row stands in the ranking that has it higher.
    """
    out[:] = 0.0
    lowest = -1
    for rank in range(len(clicks)):
        if clicks[rank]:
            lowest = rank
    if lowest < 0:
        return
    depth = 0
    while rankings[0, depth] != shown[lowest] and rankings[1, depth] != shown[lowest]:
        depth += 1
    for j in range(2):
        for rank in range(len(clicks)):
            if clicks[rank] and _is_among(shown[rank], rankings[j], depth + 1):
                out[j] += 1.0


@jit
def blend_by_chance(ranks, worth, rng_state, shown, log_chances, left):  # type: ignore[no-untyped-def]
    """
    Draw each row from a ranking chosen at random, with chances in proportion to worth[rank] over the rows left.

    worth (n,): (rank + 1)^−τ.
    left (n,): scratch.
    """
    m, n = ranks.shape
    left[:] = True
    for at in range(len(shown)):
        j = np.int64(random_below(rng_state, m))
        total = 0.0
        for row in range(n):
            if left[row]:
                total += worth[ranks[j, row]]
        aim = random_uniform(rng_state) * total
        chosen = -1
        for row in range(n):
            if left[row]:
                chosen = row
                aim -= worth[ranks[j, row]]
                if aim < 0.0:
                    break
        shown[at] = chosen
        left[chosen] = False
    log_chances[:] = 0.0
    for of_ranking in ranks:
        of_left = _worth_left(of_ranking, worth, left)
        for at in range(len(shown) - 1, -1, -1):
            own = worth[of_ranking[shown[at]]]
            of_left += own
            log_chances[at] += own / of_left
    log_chances[:] = np.log(log_chances / m)


@jit
def _worth_left(ranks, worth, left):  # type: ignore[no-untyped-def]
    """
    Return Σ worth over the rows that are left.

    Sums grow from the end of a list to its beginning; from the other end, differences would cancel.
    """
    total = 0.0
    for row in range(len(ranks)):
        if left[row]:
            total += worth[ranks[row]]
    return total


@jit
def share_clicks(ranks, worth, shown, clicks, left, shares):  # type: ignore[no-untyped-def]
    """
    Write, for each click, the chance that its row came from each ranking; return the number of clicks.

    left (n,): scratch.
    shares (k, m): one line a click.
    """
    n_clicks = 0
    for at in range(len(shown)):
        n_clicks += clicks[at]
    if n_clicks == 0:
        return 0
    left[:] = True
    for at in range(len(shown)):
        left[shown[at]] = False
    for j in range(len(ranks)):
        of_left = _worth_left(ranks[j], worth, left)
        line = n_clicks
        for at in range(len(shown) - 1, -1, -1):
            own = worth[ranks[j, shown[at]]]
            of_left += own
            if clicks[at]:
                line -= 1
                shares[line, j] = own / of_left
    for line in range(n_clicks):
        total = 0.0
        for j in range(len(ranks)):
            total += shares[line, j]
        for j in range(len(ranks)):
            shares[line, j] /= total
    return n_clicks


@jit
def expected_sign(shares, n_clicks, i, j, law, new):  # type: ignore[no-untyped-def]
    """
    Return E sign(clicks of ranking i − clicks of ranking j), each click given to one ranking by its shares.

    The difference is a walk of n_clicks steps of −1, 0 or 1, whose law is carried along exactly.

    law, new (2 k + 1,): scratch.
    """
    c = n_clicks
    law[: 2 * c + 1] = 0.0
    law[c] = 1.0
    for click in range(n_clicks):
        up, down = shares[click, i], shares[click, j]
        stay = 1.0 - up - down
        for at in range(c - click - 1, c + click + 2):
            moved = 0.0
            if at > 0:
                moved = up * law[at - 1]
            if at < 2 * c:
                moved += down * law[at + 1]
            # in this order the law of two that share alike is symmetric to the last bit, and the sign exactly 0
            new[at] = stay * law[at] + moved
        for at in range(c - click - 1, c + click + 2):
            law[at] = new[at]
    value = 0.0
    for at in range(1, c + 1):
        value += law[c + at] - law[c - at]
    return value


@jit
def blend_by_union(rankings, rng_state, shown):  # type: ignore[no-untyped-def]
    """Draw rank r from the rows that some ranking has among its best r, and that are not shown yet, all alike."""
    m = len(rankings)
    choices = np.empty(m * len(shown), dtype=np.int64)
    for at in range(len(shown)):
        n_choices = list_choices(rankings, shown, at, choices)
        shown[at] = choices[np.int64(random_below(rng_state, n_choices))]


@jit
def list_choices(rankings, shown, at, choices):  # type: ignore[no-untyped-def]
    """Write the rows that may stand at rank `at` of such a list, and return how many they are."""
    n_choices = 0
    for rank in range(at + 1):
        for j in range(len(rankings)):
            row = rankings[j, rank]
            if not _is_among(row, shown, at) and not _is_among(row, choices, n_choices):
                choices[n_choices] = row
                n_choices += 1
    return n_choices


@jit
def credit_pairs(rankings, ranks, shown, clicks, out):  # type: ignore[no-untyped-def]
    """
    Give each ranking, for every clicked row that it prefers to one passed over, or the other way round, ± a weight.

    A pair counts where both rows could have stood at the higher of their two ranks, and so in either order, alike. The
    weight is the inverse of the chance that the row that could be chosen earlier was not, before both could (Oosterhuis
    and de Rijke, 2017).
    """
    m, k = len(rankings), len(shown)
    out[:] = 0.0
    seen = passed_over(clicks)
    if seen == 0:
        return
    choices = np.empty(m * k, dtype=np.int64)
    stays, first = np.empty(k), np.empty(k, dtype=np.int64)
    for at in range(k):
        stays[at] = 1.0 - 1.0 / list_choices(rankings, shown, at, choices)
        first[at] = k
        for j in range(m):
            first[at] = min(first[at], ranks[j, shown[at]])
    for a in range(seen):
        if not clicks[a]:
            continue
        for b in range(seen):
            if clicks[b]:
                continue
            early, late = min(first[a], first[b]), max(first[a], first[b])
            if late > min(a, b):
                continue
            chance = 1.0
            for at in range(early, late):
                chance *= stays[at]
            for j in range(m):
                out[j] += 1.0 / chance if ranks[j, shown[a]] < ranks[j, shown[b]] else -1.0 / chance
