"""The ranking of items by pairwise answers, with uncertainties; how judges agree and how reliable they are."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from corank.data import Items, csv_text, write_text
from corank.models import Posterior
from corank_lab.preferences.answers import PairwiseAnswer, PreferenceAnswers

Floats = NDArray[np.float64]
MIN_COMPARISONS = 10
"""Number of comparisons from which a judge may be flagged."""
_Z = 1.959964


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
    last = [
        {frozenset(answer[:2]): None if answer.is_equal else answer.better for answer in answers}
        for answers in judges.values()
    ]
    agrees = [first[pair] == second[pair] for first, second in combinations(last, 2) for pair in first.keys() & second]
    return sum(agrees), len(agrees)


def write_ranking(
    path: str | os.PathLike[str],
    items: Items,
    ranking: Ranking,
    judges: Mapping[str, Ranking],
    *,
    overwrite: bool = False,
    keep_formulas: bool = False,
) -> None:
    """Write the items with score and standard deviation, the best first."""
    rows: list[list[object]] = [["rank", "name", "score", "std", *(f"score_{judge}" for judge in judges)]]
    for rank, item in enumerate(ranking.order.tolist(), 1):
        scores = (ranking.score[item], ranking.std[item], *(entry.score[item] for entry in judges.values()))
        rows.append([rank, items.names[item], *(f"{score:.6g}" for score in scores)])
    with write_text(path, overwrite=overwrite) as stream:
        stream.write(csv_text(rows, keep_formulas=keep_formulas).encode())


@dataclass(frozen=True)
class JudgeReliability:
    """
    How often a judge's answers agree with earlier answers of the same judge, and with those of other judges.

    Ties are left out. Questions are chosen to be hard, so agreement is lower than on random pairs.
    """

    judge: str  # name
    answered: int  # number of answers
    repeated: int  # repeated, same: number of repeated questions, and of those answered as before
    same: int
    # shared, agreed: number of comparisons with an answer of another judge to the same pair, and of equal answers
    shared: int
    agreed: int
    low: float  # low, high: 95 % interval (Wilson) of the share of equal answers, repetitions and other judges together
    high: float
    is_near_chance: bool  # whether at least ten comparisons do not distinguish the judge from a coin


def judge_reliability(judges: Mapping[str, PreferenceAnswers]) -> list[JudgeReliability]:
    """Return the reliability of each judge, in the order of the mapping."""
    last = {judge: _last(answers) for judge, answers in judges.items()}
    result = []
    for judge, answers in judges.items():
        repeats = answers.repeats
        others = [
            mine == theirs[pair]
            for other, theirs in last.items()
            for pair, mine in last[judge].items()
            if other != judge and pair in theirs
        ]
        n, k = len(repeats) + len(others), sum(repeats) + sum(others)
        low, high = wilson(k, n)
        result.append(
            JudgeReliability(
                judge, len(answers.pairwise), len(repeats), sum(repeats), len(others), sum(others), low, high,
                n >= MIN_COMPARISONS and low <= 0.5,
            )
        )  # fmt: skip
    return result


def wilson(k: int, n: int) -> tuple[float, float]:
    """Return Wilson's 95 % interval of a share of k in n."""
    if n == 0:
        return 0.0, 1.0
    share, z2 = k / n, _Z * _Z
    middle, half = share + z2 / (2 * n), _Z * sqrt(share * (1 - share) / n + z2 / (4 * n * n))
    return (middle - half) / (1 + z2 / n), (middle + half) / (1 + z2 / n)


def _last(answers: PreferenceAnswers) -> dict[frozenset[int], int]:
    """The better item of each pair by the judge's last answer, without ties."""
    last = {frozenset(answer[:2]): None if answer.is_equal else answer.better for answer in answers.pairwise}
    return {pair: better for pair, better in last.items() if better is not None}
