"""
Model: a Gaussian process over the things, which learns every answer.

A thing is its numbers and itself: rows are [z, √(s d) e_i], z the d columns divided by their deviations, and e_i a
column of its own, so that a Gaussian kernel of them is

    k(i, j) = exp(−gamma |z_i − z_j|²) · exp(−2 gamma s d)   (i ≠ j),   k(i, i) = 1:

what is alike in its columns is probably about as good, and yet two things of equal columns may differ. Without columns
k is the identity. A tie is half an answer each way.

The noise and the width gamma maximise the evidence, anew whenever a third more has been answered; where the identity
has more evidence than the columns, these are noise, and are left out. Between, answers are added to what is there. The
model is a function of the list of answers alone, however it was come by.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from corank.errors import UsageWarning
from corank.gp import PreferenceGP
from corank.judging.preferences.answers import Told

Floats = NDArray[np.float64]

# s: how far two things of equal columns are apart, as a share of the distance of two random ones
OWN = 0.3
# noise until there are answers to learn it from: as many as things, no fewer and no more than these
SIGMA, FEWEST, ENOUGH = 0.3, 6, 20
# how soon it is learnt anew
FURTHER = 4 / 3


class Model:
    """
    What answers say of all things.

    X (n, n_columns): their numbers.
    """

    def __init__(self, X: Floats) -> None:
        n = len(X)
        deviation = X.std(axis=0)
        varies = deviation > 1e-12 * np.abs(X).max(axis=0, initial=0.0)
        z = (X[:, varies] - X[:, varies].mean(axis=0)) / deviation[varies]
        d = z.shape[1]
        own = sparse.eye_array(n, format="csr")
        self._ways: list[tuple[str, Any]] = [("linear", sparse.csr_matrix(own))]
        if d:
            self._ways.insert(0, ("gaussian", sparse.csr_matrix(sparse.hstack([z, np.sqrt(OWN * d) * own]))))
        self._first = min(max(n, FEWEST), ENOUGH)
        self._told: list[Told] = []
        self._gp: PreferenceGP | None = None

    def learn(self, told: Sequence[Told]) -> PreferenceGP:
        """
        Learn answers; cheap where they begin as in the last call.

        told: at least one.
        """
        old, n_learnt = len(self._told), self._learnt_from(len(told))
        is_further = self._gp is not None and list(told[:old]) == self._told and n_learnt == self._learnt_from(old)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UsageWarning)  # few answers are what this is for
            if self._gp is None or not is_further:
                self._gp = self._fitted(told[: n_learnt or len(told)], is_learnt=n_learnt > 0)
                old = n_learnt or len(told)
            if len(told) > old:
                pairs, weight = _pairs(told[old:])
                self._gp.partial_fit(pairs=pairs, pair_weight=weight)
        self._told = list(told)
        return self._gp

    def _learnt_from(self, n_told: int) -> int:
        """The number of first answers that noise and width are learnt from; 0 where there are too few."""
        found, at = 0, self._first
        while at <= n_told:
            found, at = at, int(np.ceil(at * FURTHER))
        return found

    def _fitted(self, told: Sequence[Told], *, is_learnt: bool) -> PreferenceGP:
        pairs, weight = _pairs(told)
        sigma = None if is_learnt else SIGMA
        fitted = [
            PreferenceGP(kernel, sigma, learn=is_learnt, scale=False, random_state=0).fit(
                rows, pairs=pairs, pair_weight=weight
            )
            for kernel, rows in (self._ways if is_learnt else self._ways[:1])
        ]
        return max(fitted, key=lambda gp: gp.log_evidence_)


def _pairs(told: Sequence[Told]) -> tuple[Any, Floats]:
    """Preferences, and their weights."""
    pairs, weight = [], []
    for better, worse, is_equal in told:
        pairs += [(better, worse), (worse, better)] if is_equal else [(better, worse)]
        weight += [0.5, 0.5] if is_equal else [1.0]
    return np.array(pairs), np.array(weight)
