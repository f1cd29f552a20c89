"""Finite populations with known true error: the lists of a data set, or its rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.data.queries import Queries
from corank.metrics import evaluate
from corank.metrics.bounds.cross_validation import list_errors
from experiments.datasets.mq2008 import read_parts
from experiments.gp.active import boston

Floats = NDArray[np.float64]

# number of lists of houses, and their length
N_LISTS, LENGTH = 2000, 10
N_GRADES = 5


def kpartite_errors(y: NDArray[Any], scores: Floats, qid: NDArray[np.int64], power: float) -> Floats:
    """Return the k-partite error of each query, NaN without a pair."""
    (results,) = evaluate(y, scores, qid, f"kpartite(alpha={power})").values()
    return results.values


@dataclass(frozen=True, eq=False)
class Lists:
    """
    A population of judged lists.
    """

    X: Floats
    y: Floats
    queries: Queries

    def draw(self, n: int, rng: np.random.Generator) -> tuple[Floats, Floats, NDArray[np.int64]]:
        """Draw lists with replacement: rows, grades and new query ids; a list drawn twice is two queries."""
        chosen = rng.integers(len(self.queries), size=n)
        starts, sizes = self.queries.starts[chosen], self.queries.sizes[chosen]
        inside = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        rows = self.queries.order[np.repeat(starts, sizes) + inside]
        return self.X[rows], self.y[rows], np.repeat(np.arange(n), sizes)

    def error(self, scores: Floats, power: float) -> float:
        """Return the expected k-partite error of a list with a pair."""
        return float(np.nanmean(kpartite_errors(self.y, scores, self.queries.codes, power)))

    def cv_error(self, scores: Floats) -> float:
        """Return the expected error of a list as `cv_bound` defines it."""
        return float(list_errors(scores, self.y, self.queries.codes)[0].mean())


@dataclass(frozen=True, eq=False)
class Rows:
    """
    A population of judged rows with grades 0, 1, ...
    """

    X: Floats
    y: NDArray[np.int64]

    def draw(self, n: int, rng: np.random.Generator) -> tuple[Floats, NDArray[np.int64]]:
        """Draw rows and their grades with replacement."""
        chosen = rng.integers(len(self.y), size=n)
        return self.X[chosen], self.y[chosen]

    def error(self, scores: Floats, power: float, shares: Floats) -> float:
        """
        Return the expected k-partite error for given shares of grades (definition 2 of Rajaram and Agarwal).

        Σ_{l<m} ρ_l ρ_m (m − l)^power E λ / Σ_{l<m} ρ_l ρ_m.
        """
        of_grade = [np.sort(scores[self.y == grade]) for grade in range(len(shares))]
        total, pairs = 0.0, 0.0
        for low in range(len(shares)):
            for high in range(low + 1, len(shares)):
                a, b = of_grade[low], of_grade[high]
                above = len(a) - 0.5 * (np.searchsorted(a, b, "left") + np.searchsorted(a, b, "right"))
                weight = shares[low] * shares[high]
                total += weight * (high - low) ** power * above.mean() / len(a)
                pairs += weight
        return total / pairs


@cache
def letor() -> Lists:
    """Return the 784 queries of MQ2008, with columns scaled to [0, 1] within each."""
    rows = read_parts()
    return Lists(rows.X, rows.y, Queries.of(rows.qid, len(rows.y)))


@cache
def house_lists() -> Lists:
    """Return 2,000 fixed random lists of 10 houses of Boston and their prices."""
    X, y = boston()
    rows = np.random.default_rng(0).integers(len(y), size=N_LISTS * LENGTH)
    return Lists(X[rows], y[rows], Queries.of(np.repeat(np.arange(N_LISTS), LENGTH), len(rows)))


@cache
def houses() -> Rows:
    """Return the 506 houses of Boston, with prices split into five grades of equal size."""
    X, y = boston()
    cuts = np.quantile(y, np.arange(1, N_GRADES) / N_GRADES)
    return Rows(X, np.searchsorted(cuts, y, side="right"))
