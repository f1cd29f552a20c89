"""Discounted gains: gains of grades weighted by rank, for the first k rows or the whole list."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from corank.core.lists.ranked import EXPECTED, EXPONENTIAL, GIVEN, LINEAR, RELEVANT, ranked_gains, top_gains
from corank.errors import InputError
from corank.metrics.judgements import Judgements

# beyond this depth, selecting the k best rows is slower than sorting all
SELECT_AT_MOST = 64
# 2^y is finite below this grade
_GRADE_LIMIT = 1024.0


def discounted_gains(
    judged: Judgements, gain: int, discounts: NDArray[np.float64], threshold: float = 0.0
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Sum discount(i) · gain(row of rank i) over the first ``len(discounts)`` ranks of each query."""
    ties = tie_code(judged)
    if len(discounts) <= SELECT_AT_MOST:
        grades = gradable(judged, judged.grades, gain) if gain in (EXPONENTIAL, LINEAR) else judged.grades
        starts, out = judged.starts.view(np.uint64), np.empty((len(judged.ids), 2))
        judged.run(
            lambda first, last: top_gains(
                grades, judged.scores, starts, first, last, discounts, gain, threshold, ties, out
            )
        )
    else:
        gains = ranked_gain_values(judged, gain, threshold)
        out = judged.walk(ranked_gains, gains, discounts, ties, columns=(2,))
    return out[:, 0], out[:, 1]


def ranked_gain_values(judged: Judgements, gain: int, threshold: float = 0.0) -> NDArray[np.float64]:
    """Return the gains of the rows of ``judged.ranked``, in order of falling score."""
    if gain == RELEVANT:
        return (judged.ranked.grades >= threshold).astype(np.float64)
    grades = gradable(judged, judged.ranked.grades, gain)
    return grades if gain == LINEAR else np.exp2(grades) - 1.0


def gradable(judged: Judgements, grades: NDArray[np.float64], gain: int) -> NDArray[np.float64]:
    """
    Return grades ≥ 0; raise `InputError` for negative grades, unless the convention allows them, and for overflow.
    """
    lowest, highest = judged.extremes
    ids = judged.ids[judged.sizes > 0]
    if gain == EXPONENTIAL and (highest >= _GRADE_LIMIT).any():
        i = int(np.argmax(highest))
        raise InputError(
            f"y has grade {highest[i]:g} in query {ids[i]}, whose gain 2^y - 1 is not finite; rescale the grades."
        )
    if not (lowest < 0).any():
        return grades
    if judged.convention.negative == "zero":
        return np.maximum(grades, 0.0)
    i = int(np.argmin(lowest))
    raise InputError(
        f"y has the negative grade {lowest[i]:g} in query {ids[i]}, but gains need grades >= 0; "
        "shift the grades, or use NaN for unjudged rows."
    )


def discounts_of(judged: Judgements, cut: int | None) -> NDArray[np.float64]:
    """Return the weights of rank 1, 2, ... up to `cut` or the longest list, under the convention."""
    ranks = np.arange(1, depth(judged, cut) + 1, dtype=np.float64)
    if judged.convention.discount == "letor":
        return 1.0 / np.log2(np.maximum(ranks, 2.0))
    return 1.0 / np.log2(ranks + 1.0)


def depth(judged: Judgements, cut: int | None) -> int:
    """Return the last rank to visit: `cut`, or the length of the longest list if that is smaller; at least 1."""
    longest = max(int(judged.sizes.max(initial=1)), 1)
    return longest if cut is None else min(cut, longest)


def tie_code(judged: Judgements) -> int:
    """Return the tie code of `corank.core.lists.ranked`; rows are already sorted by docid if ties need it."""
    return EXPECTED if judged.convention.ties == "expectation" else GIVEN
