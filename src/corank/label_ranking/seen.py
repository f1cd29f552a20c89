"""SeenRows: rows in columns of one size around their mean, as products that never copy them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from corank.data.problem.column_scales import column_factors
from corank.data.problem.queries import Queries
from corank.data.problem.ranking import RankingData

Floats = NDArray[np.float64]

# rows that are copied at a time
_ROWS = 4096


@dataclass(frozen=True, eq=False)
class SeenRows:
    """
    The matrix (X − 1 meanᵀ) diag(factors), of which only products with it are taken; X may be sparse.

    With free intercepts the mean changes nothing but how fast the optimum is found.

    X: the rows as they were given.
    mean, factors (n_features,): zeros and ones where columns are taken as they are.
    """

    X: Any
    mean: Floats
    factors: Floats

    @classmethod
    def of(cls, X: Any, weights: Floats, *, scale: bool, centre: bool) -> SeenRows:
        """Measure the columns of weighted rows."""
        n, p = X.shape
        ones = np.ones(p)
        data = RankingData.of_checked(X, np.zeros(n), Queries.of(None, n), weights)
        factors = column_factors(data) if scale else ones
        mean = np.asarray(X.T @ weights, dtype=np.float64) / weights.sum() if centre else 0.0 * ones
        return cls(X, mean, factors)

    def scores(self, W: Floats, b: Floats) -> Floats:
        """
        Return the utilities.

        W (d, n_features), b (d,): weights and intercepts for these columns.
        Returns: utilities (n, d).
        """
        coef, intercept = self.plain(W, b)
        return np.asarray(self.X @ coef.T, dtype=np.float64) + intercept

    def gather(self, G: Floats) -> Floats:
        """
        Return Gᵀ times the matrix.

        G (n, d): numbers of rows and labels.
        Returns: (d, n_features).
        """
        sums = np.asarray(self.X.T @ G, dtype=np.float64).T - np.outer(G.sum(axis=0), self.mean)
        return np.asarray(sums * self.factors)

    def plain(self, W: Floats, b: Floats) -> tuple[Floats, Floats]:
        """Return weights and intercepts for the columns as they were given."""
        coef = W * self.factors
        return coef, b - coef @ self.mean

    def mean_square(self, weights: Floats) -> float:
        """Return the weighted mean of the squared lengths of the rows."""
        if sparse.issparse(self.X):
            second = np.asarray(self.X.power(2).T @ weights, dtype=np.float64) / weights.sum()
            first = np.asarray(self.X.T @ weights, dtype=np.float64) / weights.sum()
            moments = np.maximum(second - 2.0 * first * self.mean + self.mean**2, 0.0)
            return float(np.sum(moments * self.factors**2))
        total = 0.0
        for start in range(0, len(weights), _ROWS):
            rows = (self.X[start : start + _ROWS] - self.mean) * self.factors
            total += float(weights[start : start + _ROWS] @ np.einsum("ij,ij->i", rows, rows))
        return total / float(weights.sum())
