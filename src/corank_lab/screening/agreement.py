"""How far the judges of a screening agree: Cohen's kappa with intervals, on inclusion and on each reason."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from corank.metrics import cohen_kappa
from corank.tables import ReportTable
from corank_lab.screening.answers import Judges, find_conflicts, independent

DRAWS = 4000
"""Draws of the posterior of kappa."""


class PairAgreement(NamedTuple):
    """Agreement of two judges on one question."""

    first: str  # first, second: the judges
    second: str
    question: str  # "included", or a reason of exclusion: whether a judge gave it, among the records that both excluded
    n_both: int  # number of records that both answered
    n_same: int  # number of these with the same answer
    n_yes: int  # number of these for which both answered yes
    kappa: float  # Cohen's kappa; NaN if it is undefined
    # low, high: 95 % interval of kappa: quantiles of its posterior under a Jeffreys prior of the four shares
    low: float
    high: float


@dataclass(frozen=True)
class ScreeningAgreement:
    """How far the judges of a screening agree."""

    pairs: tuple[PairAgreement, ...]  # for each pair of judges, inclusion first, then each reason
    n_conflicts: int  # number of records on which judges disagree
    n_settled: int  # number of these that an adjudicator settled

    def table(self) -> ReportTable:
        """Return the agreement as a table."""
        rows = tuple(
            (
                f"{pair.first}, {pair.second}",
                pair.question,
                pair.n_both,
                pair.n_same,
                pair.n_yes,
                pair.kappa,
                pair.low,
                pair.high,
            )
            for pair in self.pairs
        )
        conflicts = f"{self.n_conflicts} conflict{'s' * (self.n_conflicts != 1)}"
        note = (
            f"{conflicts}, {self.n_settled} settled. Kappa with 95 % interval; reasons are compared on records that "
            "both judges excluded."
        )
        columns = ("judges", "question", "both read", "same", "both yes", "kappa", "low", "high")
        return ReportTable("Agreement of judges", columns, rows, digits=2, note=note)


def screening_agreement(judges: Judges) -> ScreeningAgreement:
    """Measure how far judges agree, on inclusion and on each reason of exclusion."""
    read = {judge: independent(answers) for judge, answers in judges.items()}
    pairs = []
    for item, other in combinations(judges, 2):
        both = [number for number in read[item] if number in read[other]]
        if not both:
            continue
        a, b = (np.array([read[judge][number] for number in both]) for judge in (item, other))
        pairs.append(_pair(item, other, "included", a, b))
        excluded = [number for number, *verdicts in zip(both, a, b, strict=True) if not any(verdicts)]
        given = [[judges[judge].current[number].reason for number in excluded] for judge in (item, other)]
        for reason in sorted({*given[0], *given[1]} - {""}):
            sides = (np.array([text == reason for text in side]) for side in given)
            pairs.append(_pair(item, other, reason, *sides))
    n_conflicts = len(find_conflicts(judges, settled=True))
    return ScreeningAgreement(tuple(pairs), n_conflicts, n_conflicts - len(find_conflicts(judges)))


def _pair(one: str, other: str, question: str, a: NDArray[np.bool_], b: NDArray[np.bool_]) -> PairAgreement:
    low, high = kappa_interval(a, b)
    kappa = cohen_kappa(a.astype(float), b.astype(float))
    counts = len(a), int((a == b).sum()), int((a & b).sum())
    return PairAgreement(one, other, question, *counts, kappa, float(np.fmin(low, kappa)), float(np.fmax(high, kappa)))


def kappa_interval(a: NDArray[np.bool_], b: NDArray[np.bool_], confidence: float = 0.95) -> tuple[float, float]:
    """
    Return an interval of Cohen's kappa of two judges who answer yes or no.

    The four shares of a table of two judges have a Dirichlet posterior, by Jeffreys' prior of 1/2 each. Unlike the
    usual standard error, the interval has a width if the judges never disagree.
    """
    counts = np.array([(a & b).sum(), (a & ~b).sum(), (~a & b).sum(), (~a & ~b).sum()]) + 0.5
    yes, first, second, no = np.random.default_rng(0).dirichlet(counts, DRAWS).T
    chance = (yes + first) * (yes + second) + (no + first) * (no + second)
    low, high = np.quantile((yes + no - chance) / (1 - chance), [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(low), float(high)
