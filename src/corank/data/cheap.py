"""
CheapPolicy: grades and weights from few human grades and many cheap ones, before `fit`.

Cheap grades (of an LLM, say) of another scale are mapped to that of the human grades by equal percentiles. With d^h and
d^j the deviations of human grades and of those of judge j from their means in a query, on documents with both, the
worth of a judge is r²_j = (Σ d^h d^j)²/(Σ d^h² Σ d^j²), less (1 − r²)/(n − 1) for its noise and at least 0; 0 if the
sum is negative. It is the share of the variance of human grades that the judge explains, and the weight of a row with
its grade, relative to a human one. Several judges are averaged with weights r²/(1 − r²), and their mean is weighed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corank.data.inputs import as_numbers
from corank.data.pools import PooledRows
from corank.data.queries import Queries
from corank.errors import InputError
from corank.parameters import Rules, check_values, none, number

Floats = NDArray[np.float64]
MIN_COMMON = 10
"""Number of documents with both grades from which a judge is weighed."""
UNKNOWN_WORTH = 0.5
_RULES: Rules = {"weight": number(0, 1) | none}


@dataclass(frozen=True)
class CheapPolicy:
    """
    How cheap grades are learnt from, beside human ones.

    Parameters
    ----------
    weight : float, optional
        Weight of a row with a cheap grade; human grades weigh 1. None measures it on documents with both grades, and
        takes 0.5 if there are fewer than 10.

    Examples
    --------
    >>> y = [2, 1, 0, 0, np.nan, np.nan]
    >>> rows = CheapPolicy(weight=0.25).apply(y, [90, 60, 10, 20, 95, 15], qid=[1, 1, 1, 1, 2, 2])
    >>> rows.y.tolist(), rows.weights.tolist()
    ([2.0, 1.0, 0.0, 0.0, 2.0, 0.0], [1.0, 1.0, 1.0, 1.0, 0.25, 0.25])
    """

    weight: float | None = None

    def __post_init__(self) -> None:
        check_values({"weight": self.weight}, _RULES)

    def apply(
        self, y: ArrayLike, cheap: Mapping[str, ArrayLike] | ArrayLike, *, qid: ArrayLike | None = None
    ) -> PooledRows:
        """
        Return grades and weights.

        Parameters
        ----------
        y : array-like of shape (n_rows,)
            Human grades; NaN marks a row without one.
        cheap : array-like of shape (n_rows,), or mapping of names to such
            Grades of one or more cheap judges, NaN for none.
        qid : array-like of shape (n_rows,), optional
            One query id per row; None puts all rows in one query.

        Returns
        -------
        PooledRows
            Grades, weights (0 for judges that order against the human grades) and a sentence on what was measured.
        """
        human = as_numbers(y, "y", "grade").copy()
        judges: Mapping[str, Any] = cheap if isinstance(cheap, Mapping) else {"the cheap judge": cheap}
        if not judges:
            raise InputError("cheap has no judge; pass the grades of one or more.")
        codes = Queries.of(qid, len(human)).codes
        columns, worths, sentences = [], [], []
        for name, grades in judges.items():
            c = as_numbers(grades, name, "grade").copy()
            if len(c) != len(human):
                raise InputError(f"{name} has {len(c)} grades for {len(human)} rows of y; pass one per row, or NaN.")
            given, both = ~np.isnan(c), ~(np.isnan(c) | np.isnan(human))
            if not given.any():
                raise InputError(f"{name} has no grade; leave it out.")
            known = human[~np.isnan(human)]
            mapped = ""
            if len(known) and not is_same_scale(known, c[given]):
                if not both.any():
                    raise InputError(
                        f"{name} has grades from {c[given].min():g} to {c[given].max():g}, human ones go from "
                        f"{known.min():g} to {known.max():g}, and no document has both; use one scale, or grade some "
                        "documents by both."
                    )
                c[given] = map_grades(human[both], c[both], c[given])
                mapped = ", mapped to the human scale"
            worth = _worth(human[both], c[both], codes[both])
            worths.append(UNKNOWN_WORTH if worth is None else worth)
            columns.append(c)
            measured = "too few to measure its worth" if worth is None else f"worth {worth:.2f} of a human grade"
            sentences.append(f"{name}: {int(both.sum())} documents with both grades, {measured}{mapped}")
        table, odds = np.stack(columns), np.array(worths) / np.maximum(1.0 - np.array(worths), 0.05)
        given = ~np.isnan(table) & (odds > 0.0)[:, None]
        total = (given * odds[:, None]).sum(axis=0)
        mean = np.where(given, table * odds[:, None], 0.0).sum(axis=0) / np.where(total > 0.0, total, 1.0)
        mean = np.round(mean, 12)  # agreeing judges give their grade, whatever the last bits of their weights
        is_cheap = np.isnan(human) & (total > 0.0)
        both = ~np.isnan(human) & (total > 0.0)
        worth = _worth(human[both], mean[both], codes[both])
        weight = self.weight if self.weight is not None else max(worths) if worth is None else worth
        weights = np.where(is_cheap, weight, 1.0)
        human[is_cheap] = mean[is_cheap]
        sentence = (
            f"{'; '.join(sentences)}. {int(is_cheap.sum())} rows have a cheap grade only, with weight {weight:.2f}."
        )
        return PooledRows(human, weights, None, sentence)


def _worth(human: Floats, cheap: Floats, codes: NDArray[np.int64]) -> float | None:
    """Return the share of the variance of human grades within queries that cheap ones explain; None for few grades."""
    if len(human) < MIN_COMMON:
        return None
    numbers, size = np.unique(codes, return_inverse=True)[1], np.bincount(np.unique(codes, return_inverse=True)[1])
    h, c = (x - (np.bincount(numbers, x) / size)[numbers] for x in (human, cheap))
    products, free = float(h @ c), len(h) - len(size)
    spread = float(h @ h) * float(c @ c)
    if products <= 0.0 or spread <= 0.0 or free < 2:
        return 0.0
    r2 = products**2 / spread
    return max(0.0, r2 - (1.0 - r2) / (free - 1))


def is_same_scale(gold: Floats, cheap: Floats) -> bool:
    """Return whether the cheap grades are grades of the gold scale: whole numbers between its ends."""
    whole = bool((cheap == np.round(cheap)).all())
    return whole and float(cheap.max()) <= float(gold.max()) and float(cheap.min()) >= min(float(gold.min()), 0.0)


def map_grades(gold: Floats, cheap: Floats, grades: Floats) -> Floats:
    """
    Map grades of another scale to the gold scale, by equal percentiles.

    The thresholds between mapped grades are those quantiles of the cheap grades at which the gold grades change, on
    documents that both judges graded: monotone, and with the base rates of the gold judge as far as ties allow.

    gold, cheap (n,): grades of the same documents. grades: cheap grades to map.
    """
    levels, counts = np.unique(gold, return_counts=True)
    shares = np.cumsum(counts)[:-1] / len(gold)
    values, sizes = np.unique(cheap, return_counts=True)
    below = (np.cumsum(sizes) - sizes / 2) / len(cheap)  # mid-ranks, as ties have no order
    i = np.searchsorted(shares, np.interp(grades, values, below), side="right")
    return np.asarray(levels[i])
