"""Terms: what a score is a sum of, columns of a row or its similarities to basis rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Terms:
    """
    Scores of rows as sums: Σ_t weights[t] values[row, t], beside what is the same for all rows.

    Attributes
    ----------
    kind : {"column", "row", "prior"}
        What terms stand for: columns of X, similarities to training rows, or scores known before learning.
    numbers : array of int64, shape (n_terms,)
        Which columns or training rows.
    weights : array of shape (n_terms,)
        Weights of columns, or coefficients of training rows.
    values : array of shape (n_rows, n_terms)
        What is weighted.
    view : int or None
        The view in which training rows are seen, where there are several.

    Examples
    --------
    >>> terms = Terms.of_columns(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([0.5, 1.0]))
    >>> (terms.values @ terms.weights).tolist()
    [2.5, 5.5]
    """

    kind: Literal["column", "row", "prior"]
    numbers: NDArray[np.int64]
    weights: Floats
    values: Floats
    view: int | None = None

    @classmethod
    def of_columns(cls, rows: Any, weights: Floats) -> Terms:
        """
        Take every column as a term.

        Parameters
        ----------
        rows : ndarray or CSR matrix, shape (n_rows, n_columns)
            A few rows.
        weights : array of shape (n_columns,)
            Weights of the columns.

        Returns
        -------
        Terms
            One for each column.
        """
        values = np.asarray(rows.toarray() if sparse.issparse(rows) else rows, dtype=np.float64)
        return cls("column", np.arange(len(weights)), np.asarray(weights, dtype=np.float64), values)

    @classmethod
    def of_prior(cls, scores: Floats) -> Terms:
        """
        Take scores known before learning as one term.

        Parameters
        ----------
        scores : array of shape (n_rows,)
            The scores.

        Returns
        -------
        Terms
            One term of weight 1.
        """
        return cls("prior", np.zeros(1, dtype=np.int64), np.ones(1), np.asarray(scores, dtype=np.float64)[:, None])
