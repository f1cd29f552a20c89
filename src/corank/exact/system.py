"""A quadratic in the weights, as its matrix, vector and constant."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from corank.exact.solution import Floats


@dataclass(frozen=True, eq=False)
class System:
    """
    The function ½ wᵀAw − bᵀw + ½ c of the weights.

    Attributes
    ----------
    A : array of shape (d, d)
        The matrix.
    b : array of shape (d,)
        The vector.
    c : float
        The constant.
    x_mean : array of shape (d,)
        Mean of the rows; 0 where no intercept is learnt.
    y_mean : float
        Mean of the scores; 0 where no intercept is learnt.
    """

    A: Floats
    b: Floats
    c: float
    x_mean: Floats
    y_mean: float

    @classmethod
    def zero(cls, d: int) -> System:
        """
        Return the zero function.

        Parameters
        ----------
        d : int
            Number of weights.

        Returns
        -------
        System
            All zeros.
        """
        return cls(np.zeros((d, d)), np.zeros(d), 0.0, np.zeros(d), 0.0)

    def plus(self, sums: Floats, scale: float) -> System:
        """
        Add ``scale`` times ½ Σ (y − w·x)², given by its sums.

        Parameters
        ----------
        sums : array of shape (d + 1, d + 1)
            ``[X y]ᵀ [X y]``.
        scale : float
            The factor.

        Returns
        -------
        System
            The sum.
        """
        return System(
            self.A + scale * sums[:-1, :-1],
            self.b + scale * sums[:-1, -1],
            self.c + scale * float(sums[-1, -1]),
            self.x_mean,
            self.y_mean,
        )
