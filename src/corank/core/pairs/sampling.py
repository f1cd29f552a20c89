"""Draw comparable pairs in O(1), or in O(log n_q) with weights."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from corank.core.jit import jit
from corank.core.random import draw_alias, high_product, next_u64, random_uniform

GRADES = 0
"""Alias table over groups of equally likely rows; a partner is any row of the group's partner slots."""
BLOCKS = 1
"""Alias table over blocks of equally likely unjudged rows; a partner is any other row of the block."""
WEIGHTED_GRADES = 2
"""Alias table over slots; a partner is drawn from the group's partner slots ∝ its weight."""
WEIGHTED_BLOCKS = 3
"""Alias table over unjudged slots; a partner is drawn from the other slots of the block ∝ its weight."""
LISTED = 4
"""Alias table over given pairs."""

LOWER, START, STOP, HIGHER = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(3)
LEVEL, MASS, MOMENT = np.uint64(0), np.uint64(1), np.uint64(2)

_FIRST, _SECOND, _THIRD = np.uint64(0), np.uint64(1), np.uint64(2)
_ONE = np.uint64(1)
_CHUNK = 256


class PairIndex(NamedTuple):
    """
    Index for drawing pairs; arrays that a kind does not use are empty.

    table (n_entries, 2): alias table over groups, slots or pairs (see `corank.core.random.alias_table`).
    spans (n_groups, 4): slots of a group and of its partners: members ``START:STOP``, partners ``LOWER:START`` and
        ``STOP:HIGHER``.
    rows: row number at each slot, sorted by (query, score); for LISTED winner and loser of each pair in turn.
    sums (n_slots, 3): LEVEL of each slot, and the sums of w (MASS) and of w·level (MOMENT) over the slots of its query
        before it (weighted kinds). Partners i..j-1 of slot a weigh ``|level_a (mass_j − mass_i) − (moment_j −
        moment_i)|``: with levels = scores that is Σ_b w_b |y_a − y_b|, with level 1 and moment 0 it is Σ_b w_b.
    """

    kind: int  # one of GRADES, BLOCKS, WEIGHTED_GRADES, WEIGHTED_BLOCKS, LISTED
    table: NDArray[np.uint64]
    spans: NDArray[np.uint32]
    rows: NDArray[np.uint32]
    groups: NDArray[np.uint32]  # group of each slot (weighted kinds)
    sums: NDArray[np.float64]


@jit
def draw_pairs(state, index, out):  # type: ignore[no-untyped-def]
    """
    Fill `out` (n, 2) with pairs of row numbers, winner first; two unjudged rows are in random order.

    A pair uses a fixed number of random words, so that the sequence of pairs does not depend on how it is split into
    calls. Training kernels fill a short buffer per call: they can then prefetch the rows of later steps.
    """
    if index.kind == LISTED:
        _draw_listed(state, index.table, index.rows, out)
    elif index.kind == GRADES or index.kind == BLOCKS:
        _draw_counted(state, index.kind == BLOCKS, index.table, index.spans, index.rows, out)
    else:
        blocks = index.kind == WEIGHTED_BLOCKS
        _draw_weighted(state, blocks, index.table, index.spans, index.rows, index.groups, index.sums, out)


@jit
def _draw_listed(state, table, rows, out):  # type: ignore[no-untyped-def]
    for i in range(np.uint64(len(out))):
        entry = draw_alias(next_u64(state), table)
        out[i, _FIRST] = rows[entry + entry]
        out[i, _SECOND] = rows[entry + entry + _ONE]


@jit
def _draw_counted(state, blocks, table, spans, rows, out):  # type: ignore[no-untyped-def]
    """
    Draw a group, a member a and a partner b with one word each: x·n / 2⁶⁴ is uniform up to n·2⁻⁶⁴.

    Each stage processes a chunk of pairs before the next, so that its cache misses overlap.
    """
    n = np.uint64(len(out))
    words = np.empty((_CHUNK, 3), dtype=np.uint64)
    done = np.uint64(0)
    while done < n:
        m = min(np.uint64(_CHUNK), n - done)
        for i in range(m):
            words[i, _FIRST] = next_u64(state)
            words[i, _SECOND] = next_u64(state)
            words[i, _THIRD] = next_u64(state)
        for i in range(m):
            words[i, _FIRST] = draw_alias(words[i, _FIRST], table)
        for i in range(m):
            entry = words[i, _FIRST]
            lower, start = np.uint64(spans[entry, LOWER]), np.uint64(spans[entry, START])
            stop, higher = np.uint64(spans[entry, STOP]), np.uint64(spans[entry, HIGHER])
            a = start + high_product(words[i, _SECOND], stop - start)
            if blocks:
                start, stop = a, a + _ONE
            b = lower + high_product(words[i, _THIRD], (start - lower) + (higher - stop))
            b += np.uint64(b >= start) * (stop - start)
            # slots are sorted by score: the later one wins
            words[i, _FIRST] = a if blocks else max(a, b)
            words[i, _SECOND] = b if blocks else min(a, b)
        for i in range(m):
            out[done + i, _FIRST] = rows[words[i, _FIRST]]
            out[done + i, _SECOND] = rows[words[i, _SECOND]]
        done += m


@jit
def _draw_weighted(state, blocks, table, spans, rows, groups, sums, out):  # type: ignore[no-untyped-def]
    for i in range(np.uint64(len(out))):
        a = draw_alias(next_u64(state), table)
        lower, start, stop, higher = _partners(spans, groups, a, blocks)
        b = _weighted_partner(random_uniform(state), sums, a, lower, start, stop, higher)
        out[i, _FIRST] = rows[a if blocks else max(a, b)]
        out[i, _SECOND] = rows[b if blocks else min(a, b)]


@jit
def _partners(spans, groups, a, blocks):  # type: ignore[no-untyped-def]
    """Return LOWER, START, STOP and HIGHER of slot a; in a block of unjudged rows, a is its own group."""
    group = groups[a]
    lower, higher = np.uint64(spans[group, LOWER]), np.uint64(spans[group, HIGHER])
    if blocks:
        return lower, a, a + _ONE, higher
    return lower, np.uint64(spans[group, START]), np.uint64(spans[group, STOP]), higher


@jit
def _weighted_partner(u, sums, a, lower, start, stop, higher):  # type: ignore[no-untyped-def]
    """Return the partner of slot a at quantile u of its partners' weights, by binary search."""
    before, after = _weight(sums, a, lower, start), _weight(sums, a, stop, higher)
    target = u * (before + after)
    # rounding must not select an empty side
    is_after = np.uint64((target >= before and higher > stop) or start == lower)
    first = lower + is_after * (stop - lower)
    n = (start - lower) + is_after * ((higher - stop) - (start - lower))
    target -= is_after * before
    # the first slot whose running sum exceeds the target, without unpredictable branches
    slot = first
    while n > _ONE:
        half = n >> _ONE
        slot += half * np.uint64(_weight(sums, a, first, slot + half) <= target)
        n -= half
    return slot


@jit
def _weight(sums, a, i, j):  # type: ignore[no-untyped-def]
    """Return the weight of the partners i..j-1 of slot a (see `PairIndex`)."""
    return abs(sums[a, LEVEL] * (sums[j, MASS] - sums[i, MASS]) - (sums[j, MOMENT] - sums[i, MOMENT]))


@jit
def partner_weights(index, slots, out):  # type: ignore[no-untyped-def]
    """Write the total weight of the partners of some slots."""
    blocks = index.kind == WEIGHTED_BLOCKS
    for k in range(np.uint64(len(slots))):
        a = slots[k]
        lower, start, stop, higher = _partners(index.spans, index.groups, a, blocks)
        out[k] = _weight(index.sums, a, lower, start) + _weight(index.sums, a, stop, higher)


@jit
def running_sums(values, starts, out):  # type: ignore[no-untyped-def]
    """Write the sum of the preceding values of the block for each slot."""
    for block in range(len(starts) - 1):
        total = 0.0
        for slot in range(starts[block], starts[block + 1]):
            out[slot] = total
            total += values[slot]
