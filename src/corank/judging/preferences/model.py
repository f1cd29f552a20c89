"""
The Gaussian process that learns from pairwise answers.

An item is represented by its features and by its identity: rows are [z, √(s d) e_i], where z holds the d standardised
columns and e_i is an indicator of item i. A Gaussian kernel of these rows is

    k(i, j) = exp(−gamma |z_i − z_j|²) · exp(−2 gamma s d)   (i ≠ j),   k(i, i) = 1:

items with similar features have similar values, and items with equal features may still differ. Without features k is
the identity. A tie is half an answer in each direction.

The noise and gamma maximise the evidence. They are learnt again whenever the number of answers has grown by a third.
If the identity kernel has more evidence than the features, the features are dropped. Between these updates, answers are
added to the fitted process. The model depends only on the list of answers, not on the calls that led to it.
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
from corank.judging.preferences.answers import PairwiseAnswer

Floats = NDArray[np.float64]

# s: distance of two items with equal features, as a share of the distance of two random items
OWN = 0.3
# noise before it is learnt; it is learnt from as many answers as there are items, within these bounds
SIGMA, FEWEST, ENOUGH = 0.3, 6, 20
# growth of the number of answers after which noise and gamma are learnt again
GROWTH = 4 / 3


class PreferenceModel:
    """
    Gaussian process over the items, updated with every answer.

    X (n, n_columns): features of the items.
    """

    def __init__(self, X: Floats) -> None:
        n = len(X)
        deviation = X.std(axis=0)
        varies = deviation > 1e-12 * np.abs(X).max(axis=0, initial=0.0)
        z = (X[:, varies] - X[:, varies].mean(axis=0)) / deviation[varies]
        d = z.shape[1]
        own = sparse.eye_array(n, format="csr")
        self._candidates: list[tuple[str, Any]] = [("linear", sparse.csr_matrix(own))]
        if d:
            self._candidates.insert(0, ("gaussian", sparse.csr_matrix(sparse.hstack([z, np.sqrt(OWN * d) * own]))))
        self._first = min(max(n, FEWEST), ENOUGH)
        self._answers: list[PairwiseAnswer] = []
        self._gp: PreferenceGP | None = None

    def learn(self, answers: Sequence[PairwiseAnswer]) -> PreferenceGP:
        """
        Fit the process to answers; fast if they extend those of the last call.

        answers: at least one.
        """
        old, n_used = len(self._answers), self._n_for_evidence(len(answers))
        is_extension = (
            self._gp is not None and list(answers[:old]) == self._answers and n_used == self._n_for_evidence(old)
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UsageWarning)  # few answers are expected here
            if self._gp is None or not is_extension:
                self._gp = self._fitted(answers[: n_used or len(answers)], learn=n_used > 0)
                old = n_used or len(answers)
            if len(answers) > old:
                pairs, weight = _weighted_pairs(answers[old:])
                self._gp.partial_fit(pairs=pairs, pair_weight=weight)
        self._answers = list(answers)
        return self._gp

    def _n_for_evidence(self, n_answers: int) -> int:
        """Number of first answers from which noise and gamma are learnt; 0 if there are too few."""
        used, at = 0, self._first
        while at <= n_answers:
            used, at = at, int(np.ceil(at * GROWTH))
        return used

    def _fitted(self, answers: Sequence[PairwiseAnswer], *, learn: bool) -> PreferenceGP:
        pairs, weight = _weighted_pairs(answers)
        sigma = None if learn else SIGMA
        fitted = [
            PreferenceGP(kernel, sigma, learn=learn, scale=False, random_state=0).fit(
                rows, pairs=pairs, pair_weight=weight
            )
            for kernel, rows in (self._candidates if learn else self._candidates[:1])
        ]
        return max(fitted, key=lambda gp: gp.log_evidence_)


def _weighted_pairs(answers: Sequence[PairwiseAnswer]) -> tuple[Any, Floats]:
    pairs, weight = [], []
    for better, worse, is_equal in answers:
        pairs += [(better, worse), (worse, better)] if is_equal else [(better, worse)]
        weight += [0.5, 0.5] if is_equal else [1.0]
    return np.array(pairs), np.array(weight)
