"""How reliable judges are: their own repetitions, and their agreement with other judges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import sqrt

from corank_lab.preferences.answers import PreferenceAnswers

ENOUGH = 10
"""Number of comparisons from which a judge may be flagged."""
_Z = 1.959964


@dataclass(frozen=True)
class JudgeReliability:
    """
    How often a judge's answers agree with earlier answers of the same judge, and with those of other judges.

    Ties are left out. Questions are chosen to be hard, so agreement is lower than on random pairs.

    judge: name.
    answered: number of answers.
    repeated, same: number of repeated questions, and of those answered as before.
    shared, agreed: number of comparisons with an answer of another judge to the same pair, and of equal answers.
    low, high: 95 % interval (Wilson) of the share of equal answers, repetitions and other judges together.
    is_near_chance: whether at least ten comparisons do not distinguish the judge from a coin.
    """

    judge: str
    answered: int
    repeated: int
    same: int
    shared: int
    agreed: int
    low: float
    high: float
    is_near_chance: bool


def judge_reliability(judges: Mapping[str, PreferenceAnswers]) -> list[JudgeReliability]:
    """Return the reliability of each judge, in the order of the mapping."""
    last = {judge: _last(answers) for judge, answers in judges.items()}
    found = []
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
        found.append(
            JudgeReliability(
                judge, len(answers.pairwise), len(repeats), sum(repeats), len(others), sum(others), low, high,
                n >= ENOUGH and low <= 0.5,
            )
        )  # fmt: skip
    return found


def wilson(k: int, n: int) -> tuple[float, float]:
    """
    Return Wilson's 95 % interval of a share of k in n.

    >>> tuple(round(end, 3) for end in wilson(8, 10))
    (0.49, 0.943)
    """
    if n == 0:
        return 0.0, 1.0
    share, z2 = k / n, _Z * _Z
    middle, half = share + z2 / (2 * n), _Z * sqrt(share * (1 - share) / n + z2 / (4 * n * n))
    return (middle - half) / (1 + z2 / n), (middle + half) / (1 + z2 / n)


def _last(answers: PreferenceAnswers) -> dict[frozenset[int], int]:
    """The better item of each pair by the judge's last answer, without ties."""
    last = {frozenset(answer[:2]): None if answer.is_equal else answer.better for answer in answers.pairwise}
    return {pair: better for pair, better in last.items() if better is not None}
