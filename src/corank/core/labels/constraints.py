# mypy: disable-error-code="no-untyped-call, assignment"
"""
Constraints "winner above loser" on the utilities of labels, listed per example when needed, and their losses.

Labels are 0..d−1; the zero point is label d, whose utility is always 0. An example has preferences R (by levels or as
pairs), relevant labels P and irrelevant labels N. Its constraints are R ∪ P×N, each once, P above d, and N below d
(Brinker and Hüllermeier, 2005, section 2). The constraints of all examples are never stored together.

Orders of labels with ties are given by scores. Their distances are those of Fagin, Kumar, Mahdian, Sivakumar and Vee
(Comparing and aggregating rankings with ties, 2004), divided by their largest value: K^(½), where a pair tied in only
one order counts one half, and the footrule on average positions. Spearman's ρ is that of scipy. A label that is NaN in
either order is left out.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from corank.core.jit import inline, jit
from corank.core.pairs.losses import cost

RELEVANT, IRRELEVANT = np.int8(1), np.int8(-1)
UNKNOWN = np.int32(-1)
_ONE = np.uint64(1)


class LabelTargets(NamedTuple):
    """
    Label targets of n examples.

    levels (n, d): 0 for the lowest bucket of an example's order, then 1, 2, ... without gaps; −1 if unknown.
    """

    levels: NDArray[np.int32]
    sides: NDArray[np.int8]  # (n, d): 1 for relevant labels, −1 for irrelevant ones, 0 if unknown
    pairs: NDArray[np.uint32]  # (m, 2): further preferences, the preferred label first
    starts: NDArray[np.uint64]  # (n + 1,): where the pairs of each example begin
    max_constraints: int  # upper bound of the number of constraints of an example, see `bound_constraints`


class Conversion(NamedTuple):
    """Which constraints represent an order."""

    all_pairs: bool  # every pair of different levels, or only those of neighbouring levels
    all_relevant: bool  # every relevant label above the zero point, or only the lowest one


class Constraints(NamedTuple):
    """Buffers for the constraints of one example."""

    winners: NDArray[np.uint64]  # winners, losers: label numbers; d is the zero point
    losers: NDArray[np.uint64]
    order: NDArray[np.uint64]  # order, begins: labels sorted by level, and where each level begins
    begins: NDArray[np.uint64]


@jit
def bound_constraints(levels, sides, starts):  # type: ignore[no-untyped-def]
    """Return an upper bound of the number of constraints of an example, in O(n d)."""
    n, d = levels.shape
    sizes = np.zeros(d + 1, np.int64)
    highest = 0
    for i in range(n):
        sizes[:] = 0
        known, relevant, irrelevant, squares = 0, 0, 0, 0
        for r in range(d):
            if levels[i, r] != UNKNOWN:
                # Σ (2k + 1) for k below the size of a level is its square
                squares += 2 * sizes[levels[i, r]] + 1
                sizes[levels[i, r]] += 1
                known += 1
            relevant += sides[i, r] == RELEVANT
            irrelevant += sides[i, r] == IRRELEVANT
        of_levels = (known * known - squares) // 2
        n_pairs = np.int64(starts[i + 1] - starts[i])
        highest = max(highest, of_levels + n_pairs + relevant * irrelevant + relevant + irrelevant)
    return highest


@jit
def buffers_for(targets):  # type: ignore[no-untyped-def]
    """Return `Constraints` buffers that are large enough for every example."""
    n, d = targets.max_constraints, targets.levels.shape[1]
    return Constraints(
        np.empty(n, np.uint64), np.empty(n, np.uint64), np.empty(d, np.uint64), np.empty(d + 2, np.uint64)
    )


@jit
def list_constraints(targets, conversion, i, out):  # type: ignore[no-untyped-def]
    """Write the constraints of example i to `out` and return their number."""
    levels, sides, pairs = targets.levels[i], targets.sides[i], targets.pairs
    winners, losers, order, begins = out.winners, out.losers, out.order, out.begins
    d = np.uint64(len(levels))
    n = np.uint64(0)
    n_levels = _by_level(levels, order, begins)
    for level in range(_ONE, n_levels):
        first = np.uint64(0) if conversion.all_pairs else begins[level - _ONE]
        middle, last = begins[level], begins[level + _ONE]
        for a in range(middle, last):
            r = order[a]
            for b in range(first, middle):
                winners[n], losers[n] = r, order[b]
                n += _ONE
    for k in range(targets.starts[i], targets.starts[i + 1]):
        r, s = np.uint64(pairs[k, 0]), np.uint64(pairs[k, 1])
        if not (sides[r] == RELEVANT and sides[s] == IRRELEVANT):
            winners[n], losers[n] = r, s
            n += _ONE
    lowest = UNKNOWN if conversion.all_relevant else _lowest(levels, sides)
    # if all levels are known, all pairs of levels include P×N
    has_all = conversion.all_pairs and begins[n_levels] == d
    for r in range(d):
        if sides[r] == RELEVANT:
            for s in range(d if not has_all else np.uint64(0)):
                if sides[s] == IRRELEVANT and not _is_listed(levels[r], levels[s], conversion.all_pairs):
                    winners[n], losers[n] = r, s
                    n += _ONE
            if conversion.all_relevant or levels[r] == UNKNOWN or levels[r] == lowest:
                winners[n], losers[n] = r, d
                n += _ONE
        elif sides[r] == IRRELEVANT:
            winners[n], losers[n] = d, r
            n += _ONE
    return n


@jit
def count_constraints(targets, conversion, counts):  # type: ignore[no-untyped-def]
    """Write the number of constraints of each example."""
    out = buffers_for(targets)
    for i in range(len(counts)):
        counts[i] = list_constraints(targets, conversion, i, out)


@jit
def list_all(targets, conversion, examples, winners, losers):  # type: ignore[no-untyped-def]
    """Write the constraints of all examples."""
    out = buffers_for(targets)
    index = 0
    for i in range(len(targets.levels)):
        n = list_constraints(targets, conversion, i, out)
        for k in range(n):
            examples[index], winners[index], losers[index] = i, out.winners[k], out.losers[k]
            index += 1


@jit
def first_cycle(targets):  # type: ignore[no-untyped-def]
    """
    Return the first example whose constraints between labels contain a cycle; −1 if there is none.

    Labels without a label above them are removed one by one (Kahn, 1962); labels that remain are on a cycle or below
    one.
    """
    d = targets.levels.shape[1]
    conversion = Conversion(True, True)
    out = buffers_for(targets)
    above, is_gone = np.empty(d, np.int64), np.empty(d, np.bool_)
    for i in range(len(targets.levels)):
        n = list_constraints(targets, conversion, i, out)
        above[:] = 0
        is_gone[:] = False
        for k in range(n):
            if out.losers[k] < d and out.winners[k] < d:
                above[out.losers[k]] += 1
        n_gone, moved = 0, True
        while moved:
            moved = False
            for r in range(np.uint64(d)):
                if is_gone[r] or above[r] > 0:
                    continue
                is_gone[r] = moved = True
                n_gone += 1
                for k in range(n):
                    if out.winners[k] == r and out.losers[k] < d:
                        above[out.losers[k]] -= 1
        if n_gone < d:
            return i
    return -1


@jit
def _by_level(levels, order, begins):  # type: ignore[no-untyped-def]
    """Sort the labels of known level by counting, lowest first; return the number of levels."""
    n_levels = np.uint64(0)
    begins[:] = 0
    for r in range(np.uint64(len(levels))):
        if levels[r] != UNKNOWN:
            level = np.uint64(levels[r])
            n_levels = max(n_levels, level + _ONE)
            begins[level + _ONE] += _ONE
    for level in range(_ONE, n_levels + _ONE):
        begins[level] += begins[level - _ONE]
    # filling a level moves its beginning to its end
    for r in range(np.uint64(len(levels))):
        if levels[r] != UNKNOWN:
            level = np.uint64(levels[r])
            order[begins[level]] = r
            begins[level] += _ONE
    for level in range(n_levels, np.uint64(0), -1):
        begins[level] = begins[level - _ONE]
    begins[0] = 0
    return n_levels


@inline
def _is_listed(winner, loser, all_pairs):  # type: ignore[no-untyped-def]
    """Return whether the levels of two labels already gave a constraint."""
    if winner == UNKNOWN or loser == UNKNOWN:
        return False
    return winner > loser if all_pairs else winner == loser + 1


@jit
def _lowest(levels, sides):  # type: ignore[no-untyped-def]
    """Return the lowest level of the relevant labels; −1 if unknown."""
    lowest = UNKNOWN
    for r in range(np.uint64(len(levels))):
        if sides[r] == RELEVANT and levels[r] != UNKNOWN and (lowest == UNKNOWN or levels[r] < lowest):
            lowest = levels[r]
    return lowest


@jit
def label_losses(targets, conversion, loss, U, weights, gradient, first, last):  # type: ignore[no-untyped-def]
    """
    Return Σ_i v_i Σ ℓ(1, u_winner − u_loser) over the examples first..last−1, and write its gradient.

    U, gradient (n, d): utilities of the labels and derivatives; the zero point has no column.
    weights (n,): v.
    """
    out = buffers_for(targets)
    d = U.shape[1]
    u, g = np.zeros(d + 1), np.zeros(d + 1)
    total = 0.0
    for i in range(first, last):
        u[:d] = U[i]
        g[:] = 0.0
        if weights[i] > 0.0:
            for k in range(list_constraints(targets, conversion, i, out)):
                a, b = out.winners[k], out.losers[k]
                value, negative, _ = cost(loss, 1.0, u[a] - u[b])
                total += weights[i] * value
                g[a] -= weights[i] * negative
                g[b] += weights[i] * negative
        gradient[i] = g[:d]
    return total


@jit
def label_hessian_products(targets, conversion, loss, U, weights, V, products, first, last):  # type: ignore[no-untyped-def]
    """Write the Hessian at U times V to `products`, all (n, d), for the examples first..last−1."""
    out = buffers_for(targets)
    d = U.shape[1]
    u, v, h = np.zeros(d + 1), np.zeros(d + 1), np.zeros(d + 1)
    for i in range(first, last):
        u[:d] = U[i]
        v[:d] = V[i]
        h[:] = 0.0
        if weights[i] > 0.0:
            for k in range(list_constraints(targets, conversion, i, out)):
                a, b = out.winners[k], out.losers[k]
                product = weights[i] * cost(loss, 1.0, u[a] - u[b])[2] * (v[a] - v[b])
                h[a] += product
                h[b] -= product
        products[i] = h[:d]


KENDALL, FOOTRULE, RHO = 0, 1, 2


@jit
def kendall(a, b):  # type: ignore[no-untyped-def]
    """Return K^(½) of two orders over the number of pairs."""
    n = np.uint64(len(a))
    wrong = 0.0
    for i in range(n):
        for j in range(i + np.uint64(1), n):
            x, y = np.sign(a[i] - a[j]), np.sign(b[i] - b[j])
            # 1 where the two disagree, ½ where one of them is tied
            wrong += 0.5 * abs(x - y)
    return wrong / (0.5 * n * (n - 1.0))


@jit
def footrule(a, b):  # type: ignore[no-untyped-def]
    """Return Σ |position in a − position in b| over its largest value, ⌊n²/2⌋."""
    n = len(a)
    total = 0.0
    for i in range(np.uint64(n)):
        total += abs(_position(a, i) - _position(b, i))
    return total / (n * n // 2)


@jit
def rho(a, b):  # type: ignore[no-untyped-def]
    """Return Spearman's ρ, the correlation of average positions; NaN where all labels of an order are tied."""
    n = len(a)
    middle = 0.5 * (n + 1.0)
    both, in_a, in_b = 0.0, 0.0, 0.0
    for i in range(np.uint64(n)):
        x, y = _position(a, i) - middle, _position(b, i) - middle
        both += x * y
        in_a += x * x
        in_b += y * y
    return both / math.sqrt(in_a * in_b) if in_a > 0.0 and in_b > 0.0 else math.nan


@jit
def _position(a, i):  # type: ignore[no-untyped-def]
    """Return the average position of label i, 1 for the best."""
    ahead, tied = 0, 0
    for j in range(np.uint64(len(a))):
        ahead += a[j] > a[i]
        tied += a[j] == a[i]
    return ahead + 0.5 * (tied + 1)


@jit
def compare_orders(kind, A, B, out):  # type: ignore[no-untyped-def]
    """Write how each row of A compares with that of B; NaN where fewer than two labels are known in both."""
    d = A.shape[1]
    a, b = np.empty(d), np.empty(d)
    for i in range(len(A)):
        n = 0
        for r in range(d):
            if not (math.isnan(A[i, r]) or math.isnan(B[i, r])):
                a[n], b[n] = A[i, r], B[i, r]
                n += 1
        if n < 2:
            out[i] = math.nan
        elif kind == KENDALL:
            out[i] = kendall(a[:n], b[:n])
        elif kind == FOOTRULE:
            out[i] = footrule(a[:n], b[:n])
        else:
            out[i] = rho(a[:n], b[:n])
