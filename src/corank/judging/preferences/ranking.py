"""Ranking: things in order, each with a score and how unsure it is, and how much of the order is in doubt."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from corank.gp import Posterior

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Ranking:
    """
    What is known of the order.

    Attributes
    ----------
    order : array of int
        Numbers of the things, the best first.
    score, std : arrays of float
        Expected value of each thing, and its standard deviation, less the mean value of all: what all have in common,
        answers do not tell.
    doubt : float
        Share of all pairs that are expected to stand in the wrong order: ½ where nothing is known.
    """

    order: NDArray[np.intp]
    score: Floats
    std: Floats
    doubt: float

    @classmethod
    def of(cls, posterior: Posterior) -> Ranking:
        """
        Rank by the expected value.

        Parameters
        ----------
        posterior : Posterior
            Of the values of all things.

        Returns
        -------
        Ranking
            Equal ones stay in the order of their numbers.
        """
        n, A = len(posterior), posterior.covariance
        score = posterior.mean - posterior.mean.mean()
        level = A.mean(axis=0)
        std = np.sqrt(np.maximum(np.diagonal(A) - 2.0 * level + level.mean(), 0.0))
        mean, var = posterior.differences(np.column_stack(np.triu_indices(n, 1)))
        with np.errstate(divide="ignore", invalid="ignore"):
            wrong = np.where(var > 0.0, ndtr(-np.abs(mean) / np.sqrt(var)), np.where(mean == 0.0, 0.5, 0.0))
        return cls(np.argsort(-score, kind="stable"), score, std, float(wrong.mean()))
