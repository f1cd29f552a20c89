"""Clicks as preferences, each weighed by how unlikely it was to be seen."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corank.clicks.position_bias import PositionBias
from corank.data.formats.click_log import ClickLog
from corank.data.problem.queries import Queries
from corank.errors import InputError
from corank.parameters import check_values, number, one_of

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ClickPairs:
    """
    Preferences for ``fit(X, pairs=..., pair_weight=...)``.

    Attributes
    ----------
    pairs : array of shape (n_pairs, 2)
        Rows of X: the clicked one, and one of its query that it is preferred to.
    pair_weight : array of shape (n_pairs,)
        Sum of 1 / propensity over the clicks.
    n_clicks : int
        Clicks that were used.
    n_clipped : int
        Those whose propensity was below `clip`.
    n_missing : int
        Clicks on documents that are no rows of X.
    """

    pairs: NDArray[np.int64]
    pair_weight: Floats
    n_clicks: int
    n_clipped: int
    n_missing: int


def propensities(log: ClickLog, bias: PositionBias | None) -> Floats:
    """
    Say how likely each row of a log was to be looked at: by its place, or as the log says.

    Parameters
    ----------
    log : ClickLog
        What was shown.
    bias : PositionBias or None
        Propensity of each place; None takes the log's own.

    Returns
    -------
    array of float64
        One for each row of the log.
    """
    if bias is not None:
        return bias.at(log.position)
    if log.propensity is None:
        raise InputError(
            "the log has no propensities; pass bias=corank.position_bias(log), or PositionBias.power(1.0, k) to guess."
        )
    return log.propensity


def click_pairs(
    log: ClickLog,
    qid: ArrayLike,
    docids: ArrayLike,
    *,
    bias: PositionBias | None = None,
    clip: float = 0.05,
    against: str = "shown",
) -> ClickPairs:
    """
    Make preferences from logged clicks that favour no place: each click counts 1 / propensity.

    The loss of clicks weighed so is, on average over who looked where, that of the documents which people want
    (Joachims, Swaminathan and Schnabel, 2017), for any ranker that learns from pairs: with ``SPD(loss="hinge")`` or
    ``RankSVM`` it is their propensity-weighted ranking SVM.

    Parameters
    ----------
    log : ClickLog
        What was shown and clicked.
    qid, docids : arrays of shape (n_rows,)
        Query and document of each row of X.
    bias : PositionBias, optional
        Propensity of each place; by default the log's own propensities are taken.
    clip : float
        Smallest propensity: rarer looks count as if they were so likely, which trades variance for a bias.
    against : {"shown", "query"}
        What a clicked document is preferred to: the others of its list, or all other rows of its query, as if nobody
        wanted what no list showed.

    Returns
    -------
    ClickPairs
        Pairs and their weights.

    Examples
    --------
    >>> log = ClickLog.of(["a", "a"], ["x", "y"], [1, 2], [0, 1])
    >>> made = click_pairs(log, ["a", "a", "a"], ["x", "y", "z"], bias=PositionBias.power(1.0, 2))
    >>> made.pairs.tolist(), made.pair_weight.tolist()
    ([[1, 0]], [2.0])
    """
    rules = {"clip": number(0, 1, inside="(]"), "against": one_of("shown", "query")}
    check_values({"clip": clip, "against": against}, rules)
    chance, rows = propensities(log, bias), log.find(qid, docids)
    used = np.flatnonzero(log.clicked & (rows >= 0))
    n_missing = int(np.count_nonzero(log.clicked)) - len(used)
    if not log.clicked.any():
        raise InputError(f"nothing was clicked in {log.n_impressions} lists; learning needs clicks.")
    if not len(used):
        raise InputError(
            f"none of {n_missing} clicks in the log is on a row of X, so there is nothing to learn from; compare the "
            "query and document ids of both."
        )
    weight = 1.0 / np.maximum(chance[used], clip)
    groups = Queries.of(qid, len(np.asarray(qid))) if against == "query" else _lists(log, rows)
    pairs, weights = _against(rows[used], weight, groups, log.impression[used] if against == "shown" else None)
    return ClickPairs(pairs, weights, len(used), int(np.count_nonzero(chance[used] < clip)), n_missing)


@dataclass(frozen=True, eq=False)
class _Lists:
    """Rows of X of each list of a log, as `Queries` has those of a query."""

    order: NDArray[np.int64]
    starts: NDArray[np.int64]


def _lists(log: ClickLog, rows: NDArray[np.int64]) -> _Lists:
    known = np.flatnonzero(rows >= 0)
    order = known[np.argsort(log.impression[known], kind="stable")]
    sizes = np.bincount(log.impression[known], minlength=log.n_impressions)
    return _Lists(rows[order], np.concatenate([[0], np.cumsum(sizes)]))


def _against(
    clicked: NDArray[np.int64], weight: Floats, groups: Queries | _Lists, lists: NDArray[np.int64] | None
) -> tuple[NDArray[np.int64], Floats]:
    """Pair each clicked row with the others of its group; equal pairs are added up."""
    if lists is None:
        clicked, inverse = np.unique(clicked, return_inverse=True)
        weight = np.asarray(np.bincount(inverse, weights=weight), np.float64)
        lists = groups.codes[clicked]  # type: ignore[union-attr]
    sizes = np.diff(groups.starts)[lists]
    worse = groups.order[np.repeat(groups.starts[lists], sizes) + _count(sizes)]
    better = np.repeat(clicked, sizes)
    kept = better != worse
    pairs = np.column_stack([better, worse])[kept]
    distinct, inverse = np.unique(pairs, axis=0, return_inverse=True)
    weights = np.bincount(inverse.ravel(), weights=np.repeat(weight, sizes)[kept], minlength=len(distinct))
    return distinct, np.asarray(weights, np.float64)


def _count(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """0, 1, 2, ... inside each of consecutive groups."""
    return np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
