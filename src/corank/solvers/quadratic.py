"""A quadratic in the weights, as its matrix, vector and constant."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from corank.solvers.solution import Floats


@dataclass(frozen=True, eq=False)
class Quadratic:
    """
    The function ½ wᵀAw − bᵀw + ½ c of the weights.

    x_mean (d,): mean of the rows; 0 where no intercept is learnt.
    y_mean: mean of the scores; 0 where no intercept is learnt.
    """

    A: Floats
    b: Floats
    c: float
    x_mean: Floats
    y_mean: float

    @classmethod
    def zero(cls, d: int) -> Quadratic:
        """
        Return the zero function.

        d: number of weights.
        """
        return cls(np.zeros((d, d)), np.zeros(d), 0.0, np.zeros(d), 0.0)

    def plus(self, sums: Floats, scale: float) -> Quadratic:
        """
        Add ``scale`` times ½ Σ (y − w·x)², given by its sums.

        sums (d + 1, d + 1): ``[X y]ᵀ [X y]``.
        """
        A, b, c = sums[:-1, :-1], sums[:-1, -1], float(sums[-1, -1])
        return replace(self, A=self.A + scale * A, b=self.b + scale * b, c=self.c + scale * c)
