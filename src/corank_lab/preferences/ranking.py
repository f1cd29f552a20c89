"""The ranking of items by pairwise answers, with uncertainties; how judges agree; the ranking as a CSV file."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from corank.data import Items, csv_text, write_text
from corank.models import Posterior
from corank_lab.preferences.answers import PairwiseAnswer

Floats = NDArray[np.float64]


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
        scores = (ranking.score[item], ranking.std[item], *(one.score[item] for one in judges.values()))
        rows.append([rank, items.names[item], *(f"{score:.6g}" for score in scores)])
    with write_text(path, overwrite=overwrite) as stream:
        stream.write(csv_text(rows, keep_formulas=keep_formulas).encode())
