"""Posterior: a Gaussian over items, and what it says of two of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Posterior:
    """
    A Gaussian over the values of items.

    Attributes
    ----------
    mean : array of shape (n,)
        Expected values.
    covariance : array of shape (n, n)
        Covariances.

    Examples
    --------
    >>> posterior = Posterior(np.array([1.0, 0.0]), np.array([[1.0, 0.9], [0.9, 1.0]]))
    >>> mean, var = posterior.differences([[0, 1]])
    >>> mean.tolist(), var.round(2).tolist(), posterior.std.tolist()
    ([1.0], [0.2], [1.0, 1.0])
    """

    mean: Floats
    covariance: Floats

    def __len__(self) -> int:
        return len(self.mean)

    @property
    def std(self) -> Floats:
        """Standard deviation of each item's value."""
        return np.asarray(np.sqrt(np.maximum(np.diagonal(self.covariance), 0.0)))

    def differences(self, pairs: ArrayLike) -> tuple[Floats, Floats]:
        """
        Return mean and variance of the difference of two values, the first less the second.

        Parameters
        ----------
        pairs : array-like of int, shape (m, 2)
            Items.

        Returns
        -------
        mean, var : arrays of shape (m,)
            Of each pair.
        """
        i, j = np.asarray(pairs).T
        A = self.covariance
        return self.mean[i] - self.mean[j], np.maximum(A[i, i] + A[j, j] - 2.0 * A[i, j], 0.0)
