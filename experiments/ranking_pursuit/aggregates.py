"""
Ways to aggregate several sparse solutions into one ranking, as methods of the experiment.

* mean: the mean of the scores, which is a model again;
* vote: each solution ranks the items, and an item's score is its mean rank (Borda's count: the number of items that it
  beats, summed over the solutions);
* stacking: weights w ≥ 0 of the first, second, ... disjoint solution, by least squares on the users to choose
  parameters on: Σ over users ‖y − Σ_m w_m f_m‖², y and f_m minus their means;
* frequency of terms: see `experiments.ranking_pursuit.solutions.frequent`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from scipy.optimize import nnls
from scipy.stats import rankdata

from experiments.ranking_pursuit.grams import Grams
from experiments.ranking_pursuit.methods import METHODS, Floats, Method, Scoring, one_by_one, pursuit
from experiments.ranking_pursuit.solutions import (
    BAG_LENGTHS,
    COUNTED,
    KEPT,
    LENGTHS,
    N_BAGS,
    N_DISJOINT,
    STEPS_PER_ITEM,
    disjoint,
    frequent,
    resampled,
)
from experiments.ranking_pursuit.users import Users

Aggregate = Callable[[Grams, Users, Floats, int], Floats]
"""Takes Gram matrices, users, scores of the solutions (n_test, M) and the number of their terms; returns (n_test,)."""

SIZES = (2, 3, 5)
"""Numbers of disjoint solutions to aggregate."""
FEW = 8
"""Largest number of terms of all solutions together, in the table of very sparse models."""


@lru_cache(maxsize=4)
def _disjoint(grams: Grams, users: Users) -> tuple[Floats, Floats]:
    scores, shares = one_by_one(disjoint)(grams, users)
    return (
        scores.reshape(len(scores), len(LENGTHS), N_DISJOINT),
        shares.reshape(len(shares), len(LENGTHS), N_DISJOINT),
    )


@lru_cache(maxsize=4)
def _resampled(grams: Grams, users: Users) -> tuple[Floats, Floats]:
    scores, shares = one_by_one(resampled)(grams, users)
    return scores.reshape(len(scores), len(BAG_LENGTHS), N_BAGS), shares[:, ::N_BAGS]


@lru_cache(maxsize=4)
def _frequent(grams: Grams, users: Users) -> tuple[Floats, Floats]:
    return one_by_one(frequent)(grams, users)


def by_mean(grams: Grams, users: Users, scores: Floats, length: int) -> Floats:
    """Return the mean of the scores."""
    return np.asarray(scores.mean(axis=1))


def by_vote(grams: Grams, users: Users, scores: Floats, length: int) -> Floats:
    """Return the mean rank among the user's test items."""
    ranks = np.empty(len(scores))
    for b in range(len(users)):
        own = slice(users.test_starts[b], users.test_starts[b + 1])
        ranks[own] = rankdata(scores[own], axis=0).mean(axis=1)
    return ranks


def by_stacking(grams: Grams, users: Users, scores: Floats, length: int) -> Floats:
    """Return the sum of the scores, weighted by least squares on the held-out users."""
    held_out = grams.drawn.held_out
    members = _disjoint(grams, held_out)[0][:, LENGTHS.index(length), : scores.shape[1]]
    return np.asarray(scores @ stacking_weights(members, held_out))


def stacking_weights(scores: Floats, users: Users) -> Floats:
    """
    Minimise Σ over users ‖y − Σ_m w_m f_m‖² over w ≥ 0, y and f_m minus their means over the user's test items.

    scores (n_test, M): f_m.
    Returns: w, divided by its sum if that is positive, otherwise equal weights: a common factor changes no order.
    """
    table = np.column_stack([scores, users.y_test])
    sums = np.add.reduceat(table, users.test_starts[:-1], axis=0)
    table = table - (sums / np.diff(users.test_starts)[:, None])[users.test_user]
    size = np.abs(table[:, :-1]).max()
    w = nnls(table[:, :-1] / size, table[:, -1])[0] if size > 0.0 else np.zeros(scores.shape[1])
    return np.asarray(w / w.sum() if w.sum() > 0.0 else np.full(len(w), 1.0 / len(w)))


def of_disjoint(aggregate: Aggregate, grid: tuple[tuple[int, int], ...]) -> Scoring:
    """
    Return an aggregate of disjoint solutions as a method.

    grid: numbers of solutions, and of terms of each.
    """

    def scoring(grams: Grams, users: Users) -> tuple[Floats, Floats]:
        members, used = _disjoint(grams, users)
        points = [(size, LENGTHS.index(length), length) for size, length in grid]
        scores = [aggregate(grams, users, members[:, position, :size], length) for size, position, length in points]
        return np.column_stack(scores), np.column_stack(
            [used[:, position, :size].sum(axis=1) for size, position, _ in points]
        )

    return scoring


def of_resampled(aggregate: Aggregate) -> Scoring:
    """Return an aggregate of resampled solutions as a method."""

    def scoring(grams: Grams, users: Users) -> tuple[Floats, Floats]:
        members, used = _resampled(grams, users)
        scores = [aggregate(grams, users, members[:, position], length) for position, length in enumerate(BAG_LENGTHS)]
        return np.column_stack(scores), used

    return scoring


def of_frequent(most: int) -> Scoring:
    """Return the pursuit over the most frequent items as a method, with at most so many items."""

    def scoring(grams: Grams, users: Users) -> tuple[Floats, Floats]:
        scores, shares = _frequent(grams, users)
        few = [position for position, (_, kept, _) in enumerate(_FREQUENT) if kept <= most]
        return scores[:, few], shares[:, few]

    return scoring


def few_terms(scoring: Scoring) -> Scoring:
    """Return the method with the first `FEW` columns of its grid."""

    def limited(grams: Grams, users: Users) -> tuple[Floats, Floats]:
        scores, shares = scoring(grams, users)
        return scores[:, :FEW], shares[:, :FEW]

    return limited


_GRID = tuple((size, length) for size in SIZES for length in LENGTHS)
_FEW_GRID = tuple((size, length) for size, length in _GRID if size * length <= FEW)
_FREQUENT = tuple((counted, kept, steps) for counted in COUNTED for kept in KEPT for steps in STEPS_PER_ITEM)
SINGLE, FEW_SINGLE = "Single solution", f"Single solution, {FEW} terms"


def _disjoint_methods(few: bool) -> list[Method]:
    grid, after = (_FEW_GRID, f", {FEW} terms") if few else (_GRID, "")
    words = tuple(f"{size} solutions, {length} terms" for size, length in grid)
    # solutions are cached by their users, so that these must be the same object in all methods
    return [
        Method(f"Disjoint, {name}{after}", words, of_disjoint(aggregate, grid), sees_unscored=True)
        for name, aggregate in (("mean", by_mean), ("vote", by_vote), ("stacking", by_stacking))
    ]


def _frequent_method(name: str, most: int) -> Method:
    words = tuple(
        f"{kept} items of {counted} terms, {steps * kept} steps" for counted, kept, steps in _FREQUENT if kept <= most
    )
    return Method(name, words, of_frequent(most), sees_unscored=True)


_BAG_WORDS = tuple(f"{length} terms" for length in BAG_LENGTHS)
AGGREGATES = {
    method.name: method
    for method in (
        Method(SINGLE, METHODS["Ranking pursuit"].grid, pursuit(0.0)),
        *_disjoint_methods(few=False),
        Method("Resampled, mean", _BAG_WORDS, of_resampled(by_mean), sees_unscored=True),
        Method("Resampled, vote", _BAG_WORDS, of_resampled(by_vote), sees_unscored=True),
        _frequent_method("Resampled, frequency of terms", max(KEPT)),
        Method(FEW_SINGLE, METHODS["Ranking pursuit"].grid[:FEW], few_terms(pursuit(0.0))),
        *_disjoint_methods(few=True),
        _frequent_method(f"Resampled, frequency of terms, {FEW} terms", FEW),
        METHODS["RankRLS"],
        METHODS["Item mean"],
    )
}
"""Single solution, aggregates and baselines by name."""
