"""Presumed negatives: a few unscored rows taken, with little trust, for rows that nobody wants."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corank.data.problem.inputs import as_numbers
from corank.data.problem.queries import Queries
from corank.errors import InputError
from corank.parameters import Rules, check_values, number, rng_of, seed, whole

_RULES: Rules = {"n": whole(1), "weight": number(0, inside="()"), "score": number(), "random_state": seed}


def presumed_negatives(
    y: ArrayLike,
    qid: ArrayLike | None = None,
    *,
    n: int = 100,
    weight: float = 0.1,
    score: float = 0.0,
    random_state: int | None = None,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """
    Presume some unscored rows to be negative, so that a ranker learns where all judged rows agree.

    With five relevant rows and no other judgement no pair differs, and a pairwise ranker learns nothing. Among the
    unjudged rows of such a search nearly all are irrelevant: some of them, drawn at random and weighing little, stand
    for that. A pair weighs the product of its rows: a judged one counts 1 / `weight` times one with a presumed row.

    Parameters
    ----------
    y : array-like of shape (n_rows,)
        Scores; NaN marks an unscored row.
    qid : array-like of shape (n_rows,), optional
        One query id per row; None is one query.
    n : int
        Number of presumed negatives in each query that has a scored row, all its unscored rows where they are fewer.
        Queries without any score are left alone.
    weight : float
        What a presumed negative weighs beside a judged row.
    score : float
        The score it is given.
    random_state : int, optional
        Seed.

    Returns
    -------
    y : array of shape (n_rows,)
        The scores, with those that were presumed.
    sample_weight : array of shape (n_rows,)
        What to hand to ``fit`` beside them: `weight` for presumed negatives, 1 for all others.

    Examples
    --------
    >>> import numpy as np
    >>> from corank import RankRLS, presumed_negatives
    >>> X, y = np.array([[3.0], [2.0], [0.0], [1.0]]), np.array([1, 1, np.nan, np.nan])
    >>> scores, weights = presumed_negatives(y, n=1, random_state=0)
    >>> scores.tolist(), weights.tolist()
    ([1.0, 1.0, 0.0, nan], [1.0, 1.0, 0.1, 1.0])
    >>> bool(RankRLS().fit(X, scores, sample_weight=weights).coef_[0] > 0)
    True
    """
    check_values({"n": n, "weight": weight, "score": score, "random_state": random_state}, _RULES)
    scores = as_numbers(y, "y", "score").copy()
    scored = ~np.isnan(scores)
    if not (scores[scored] > score).any():
        raise InputError(
            f"no judged row has a score above {score:g}, which presumed negatives are given; judge a relevant row, or "
            "pass a lower score."
        )
    queries, rng, weights = Queries.of(qid, len(scores)), rng_of(random_state), np.ones(len(scores))
    has_score = np.bincount(queries.codes[scored], minlength=len(queries)) > 0
    # rows in random order, then by query: the first n of each are drawn
    free = rng.permutation(np.flatnonzero(~scored & has_score[queries.codes]))
    free = free[np.argsort(queries.codes[free], kind="stable")]
    codes = queries.codes[free]
    drawn = free[np.arange(len(free)) - np.searchsorted(codes, codes) < n]
    scores[drawn], weights[drawn] = score, weight
    return scores, weights
