"""Preferences from logged clicks, weighted by inverse propensity."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corank.clicks.bias import PositionBias
from corank.data.io.click_log import ClickLog
from corank.data.queries import Queries, take_blocks
from corank.errors import InputError
from corank.parameters import check_values, number, one_of

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ClickPairs:
    """Preferences for ``fit(X, pairs=..., pair_weight=...)``."""

    pairs: NDArray[np.int64]  # rows of X: the clicked row, and a row of the same query that it is preferred to
    pair_weight: Floats  # sum of 1 / propensity over the clicks
    n_clicks: int  # number of clicks used
    n_clipped: int  # number of clicks whose propensity was below `clip`
    n_missing: int  # number of clicks on documents that are not rows of X


def propensities(log: ClickLog, bias: PositionBias | None) -> Floats:
    """Return the examination propensity of each row of a log."""
    if bias is not None:
        return bias.at(log.position)
    if log.propensity is None:
        raise InputError(
            "the log has no propensities; pass bias=position_bias(log), or assume PositionBias.power(1.0, k)."
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
    Make preferences from logged clicks, corrected for position bias: each click has weight 1 / propensity.

    The expectation of the weighted loss over examination is the loss on relevant documents (Joachims, Swaminathan and
    Schnabel, 2017), for any ranker that learns from pairs. With ``SPD(loss="hinge")`` or ``RankSVM`` it is their
    propensity-weighted ranking SVM.
    """
    rules = {"clip": number(0, 1, inside="(]"), "against": one_of("shown", "query")}
    check_values({"clip": clip, "against": against}, rules)
    if against == "shown" and log.complete is not None:
        if not (log.complete & log.clicked).any():
            raise InputError(
                "no complete list of the log has a click, so the documents that a clicked one is preferred to are "
                "unknown; pass against='query', or a log of complete lists."
            )
        log = log.part(log.complete)
    propensity, rows = propensities(log, bias), log.find(qid, docids)
    used = np.flatnonzero(log.clicked & (rows >= 0))
    n_missing = int(np.count_nonzero(log.clicked)) - len(used)
    if not log.clicked.any():
        raise InputError(f"the log has no click in {log.n_impressions} lists; pass a log with clicks.")
    if not len(used):
        raise InputError(
            f"none of the {n_missing} clicks in the log is on a row of X; check that both use the same query and "
            "document ids."
        )
    weight = 1.0 / np.maximum(propensity[used], clip)
    groups = Queries.of(qid, len(np.asarray(qid))) if against == "query" else _lists(log, rows)
    pairs, weights = _against(rows[used], weight, groups, log.impression[used] if against == "shown" else None)
    return ClickPairs(pairs, weights, len(used), int(np.count_nonzero(propensity[used] < clip)), n_missing)


@dataclass(frozen=True, eq=False)
class _Lists:
    """Rows of X of each list of a log, in the layout of `Queries`."""

    order: NDArray[np.int64]
    starts: NDArray[np.int64]


def _lists(log: ClickLog, rows: NDArray[np.int64]) -> _Lists:
    present = np.flatnonzero(rows >= 0)
    order = present[np.argsort(log.impression[present], kind="stable")]
    sizes = np.bincount(log.impression[present], minlength=log.n_impressions)
    return _Lists(rows[order], np.concatenate([[0], np.cumsum(sizes)]))


def _against(
    clicked: NDArray[np.int64], weight: Floats, groups: Queries | _Lists, lists: NDArray[np.int64] | None
) -> tuple[NDArray[np.int64], Floats]:
    """Pair each clicked row with the others of its group; the weights of equal pairs are added."""
    if lists is None:
        clicked, inverse = np.unique(clicked, return_inverse=True)
        weight = np.asarray(np.bincount(inverse, weights=weight), np.float64)
        lists = groups.codes[clicked]  # type: ignore[union-attr]
    positions, ends = take_blocks(groups.starts, lists)
    sizes, worse = np.diff(ends), groups.order[positions]
    better = np.repeat(clicked, sizes)
    kept = better != worse
    pairs = np.column_stack([better, worse])[kept]
    distinct, inverse = np.unique(pairs, axis=0, return_inverse=True)
    weights = np.bincount(inverse.ravel(), weights=np.repeat(weight, sizes)[kept], minlength=len(distinct))
    return distinct, np.asarray(weights, np.float64)
