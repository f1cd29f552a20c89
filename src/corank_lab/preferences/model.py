"""
The ranking of items by pairwise answers, with uncertainties, and how judges agree.

The model is a Gaussian process: a `PreferenceGP` over the standardised features of the items.

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
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import ndtr

from corank.base import as_doubles
from corank.errors import UsageWarning
from corank.models import JudgeModel, Posterior, PreferenceGP, fit_judges
from corank_lab.preferences.answers import PairwiseAnswer, PreferenceAnswers

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
        return self.values

    def answered(self) -> NDArray[np.int64]:
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
        d, indicators = z.shape[1], sparse.eye_array(len(X), format="csr")
        self._has_features = d > 0
        self._rows = sparse.csr_matrix(sparse.hstack([z, np.sqrt(OWN * d) * indicators]) if d else indicators)
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


MIN_COMPARISONS = 10
"""Number of comparisons from which a judge may be flagged."""


@dataclass(frozen=True, eq=False)
class Ranking:
    """
    Items in order, with scores and their uncertainty.

    order: Numbers of the items, the best first.
    score, std: Posterior mean of each item's value and its standard deviation, both relative to the mean value of all
        items, which pairwise answers do not determine.
    expected_disagreement: Expected share of all pairs in the wrong order; ½ without any information.
    """

    order: NDArray[np.intp]
    score: Floats
    std: Floats
    expected_disagreement: float

    @classmethod
    def of(cls, posterior: Posterior) -> Ranking:
        """Rank by the posterior mean."""
        n = len(posterior)
        score = posterior.mean - posterior.mean.mean()
        mean, var = posterior.differences(np.column_stack(np.triu_indices(n, 1)))
        with np.errstate(divide="ignore", invalid="ignore"):
            wrong = np.where(var > 0.0, ndtr(-np.abs(mean) / np.sqrt(var)), np.where(mean == 0.0, 0.5, 0.0))
        return cls(np.argsort(-score, kind="stable"), score, posterior.std, float(wrong.mean()))


def agreement(judges: Mapping[str, Sequence[PairwiseAnswer]]) -> tuple[int, int]:
    """Compare the last answers of all pairs of judges."""
    last = [_better_items(answers) for answers in judges.values()]
    agrees = [first[pair] == second[pair] for first, second in combinations(last, 2) for pair in first.keys() & second]
    return sum(agrees), len(agrees)


@dataclass(frozen=True)
class JudgeReliability:
    """
    How often a judge's answers agree with earlier answers of the same judge, and with those of other judges.

    Ties are left out. Questions are chosen to be hard, so agreement is lower than on random pairs.
    """

    compared: int  # number of repeated questions, and of answers to a pair that another judge answered too
    same: int  # number of equal answers among them
    low: float  # low, high: 95 % interval (Wilson) of their share
    high: float
    is_near_chance: bool  # whether at least ten comparisons do not distinguish the judge from a coin


def judge_reliability(judges: Mapping[str, PreferenceAnswers]) -> dict[str, JudgeReliability]:
    """Return the reliability of each judge."""
    from scipy.stats import binomtest

    last = {judge: _better_items(answers.pairwise) for judge, answers in judges.items()}
    result = {}
    for judge, answers in judges.items():
        equal = answers.repeats + [
            better == theirs[pair]
            for other, theirs in last.items()
            for pair, better in last[judge].items()
            if other != judge and better is not None and theirs.get(pair) is not None
        ]
        n, k = len(equal), sum(equal)
        low, high = binomtest(k, n).proportion_ci(method="wilson") if n else (0.0, 1.0)
        result[judge] = JudgeReliability(n, k, float(low), float(high), n >= MIN_COMPARISONS and low <= 0.5)
    return result


def _better_items(answers: Sequence[PairwiseAnswer]) -> dict[frozenset[int], int | None]:
    """Return the better item of each pair by the judge's last answer; None for a tie."""
    return {frozenset(answer[:2]): None if answer.is_equal else answer.better for answer in answers}
