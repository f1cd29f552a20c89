"""The ranking of items by pairwise answers, with uncertainties; how judges agree and how reliable they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from corank.models import Posterior
from corank_lab.preferences.answers import PairwiseAnswer, PreferenceAnswers

Floats = NDArray[np.float64]
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
