"""
The Gaussian process that learns from pairwise answers: a `PreferenceGP` over the standardised features of the items.

The process averages over the width of the kernel, the noise, and the share of an item's value that its features do not
explain (`corank.models.gp.averaging`). Rows are [z, √(s d) e_i], where z holds the d standardised columns
and e_i is an indicator of item i: with a small s, it keeps items with equal features apart. Without features, rows are
e_i with the linear kernel, and all of the value is the item's own. A tie is half an answer in each direction.

The hyper-parameters to average over are found again whenever the number of answers has grown by a third. Between these
updates, answers are added to the fitted processes, whose weights change. The model depends only on the list of answers,
not on the calls that led to it.

Answers of several judges have a noise per judge and values per judge (`corank.models.gp.fit_judges`). The prior of the
overall values is the average kernel of the process that learnt from all answers.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from corank.base import as_doubles
from corank.errors import UsageWarning
from corank.models import JudgeModel, Posterior, PreferenceGP, fit_judges
from corank_lab.preferences.answers import PairwiseAnswer

Floats = NDArray[np.float64]

# growth of the number of answers after which hyper-parameters are found again
GROWTH = 4 / 3
# s: squared distance of two items with equal features, as a share of that of two random items
OWN = 1e-4


@dataclass(frozen=True, eq=False)
class ItemPosterior:
    """What answers say about the items; `suggest_pairs` takes it like a model."""

    values: Posterior  # the joint Gaussian of all items
    sigma_: float  # standard deviation of the noise
    pairs: NDArray[np.int64]  # (m, 2): the distinct answers

    def posterior(self, X: None = None, *, prior: None = None) -> Posterior:
        """The joint Gaussian of all items."""
        return self.values

    def answered(self) -> NDArray[np.int64]:
        """The distinct answers."""
        return self.pairs


class PreferenceModel:
    """
    Gaussian process over the items, updated with every answer.

    X (n, n_columns): features of the items.
    """

    def __init__(self, X: Floats) -> None:
        deviation = X.std(axis=0)
        varies = deviation > 1e-12 * np.abs(X).max(axis=0, initial=0.0)
        z = (X[:, varies] - X[:, varies].mean(axis=0)) / deviation[varies]
        d, own = z.shape[1], sparse.eye_array(len(X), format="csr")
        self._has_features = d > 0
        self._rows = sparse.csr_matrix(sparse.hstack([z, np.sqrt(OWN * d) * own]) if d else own)
        self._answers: list[PairwiseAnswer] = []
        self._gp: PreferenceGP | None = None
        self._posterior: ItemPosterior | None = None

    def learn(self, answers: Sequence[PairwiseAnswer]) -> ItemPosterior:
        """Fit the process to answers; fast if they extend those of the last call."""
        if self._posterior is not None and list(answers) == self._answers:
            return self._posterior
        old, n_used = len(self._answers), _n_for_evidence(len(answers))
        is_extension = self._gp is not None and list(answers[:old]) == self._answers and n_used == _n_for_evidence(old)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UsageWarning)  # few answers are expected here
            if self._gp is None or not is_extension:
                self._gp, old = self._fitted(answers[:n_used]), n_used
            if len(answers) > old:
                pairs, weight = _weighted_pairs(answers[old:])
                self._gp.partial_fit(pairs=pairs, pair_weight=weight)
        self._answers = list(answers)
        self._posterior = ItemPosterior(self._gp.posterior(), self._gp.sigma_, self._gp.answered())
        return self._posterior

    def learn_judges(self, judges: Mapping[str, Sequence[PairwiseAnswer]]) -> JudgeModel:
        """Learn what each judge prefers, what they prefer overall, and how noisy each one is."""
        self.learn([answer for answers in judges.values() for answer in answers])
        assert self._gp is not None
        mixture, rows = self._gp.process_, as_doubles(self._rows)
        share = np.bincount(mixture.map_numbers, mixture.weights, len(mixture.maps))
        K = sum(w * np.asarray(phi.view.kernel(rows)) for w, phi in zip(share, mixture.maps, strict=True))
        return fit_judges(K, [_weighted_pairs(answers) for answers in judges.values()])

    def _fitted(self, answers: Sequence[PairwiseAnswer]) -> PreferenceGP:
        pairs, weight = _weighted_pairs(answers)
        kernel = "gaussian" if self._has_features else "linear"
        model = PreferenceGP(kernel, learn=self._has_features, scale=False, random_state=0)
        return model.fit(self._rows, pairs=pairs, pair_weight=weight)


def _n_for_evidence(n_answers: int) -> int:
    """Number of first answers from which the hyper-parameters are found."""
    used, i = 0, 1
    while i <= n_answers:
        used, i = i, int(np.ceil(i * GROWTH))
    return used


def _weighted_pairs(answers: Sequence[PairwiseAnswer]) -> tuple[Any, Floats]:
    pairs, weight = [], []
    for better, worse, is_equal in answers:
        pairs += [(better, worse), (worse, better)] if is_equal else [(better, worse)]
        weight += [0.5, 0.5] if is_equal else [1.0]
    return np.array(pairs), np.array(weight)
