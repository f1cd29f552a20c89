"""Position bias: the probability that users examine each position of a list; click pairs weighted by its inverse."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corank.data.io.clicks import ClickLog
from corank.data.queries import Queries, take_blocks
from corank.data.rows import as_rows
from corank.errors import InputError
from corank.parameters import check_values, integer, number, one_of

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class PositionBias:
    """Probability that users examine each position of a list, relative to the first."""

    examined: Floats  # θ of positions 1, 2, ...; the first is 1
    method: str  # how it was obtained: ``"moved"``, ``"regression"`` or ``"power"``

    @classmethod
    def power(cls, eta: float, n_positions: int) -> PositionBias:
        """Return a position bias that falls as a power, θ_k = k^-η."""
        check_values({"eta": eta, "n_positions": n_positions}, {"eta": number(0), "n_positions": integer(1)})
        return cls(np.arange(1.0, n_positions + 1) ** -eta, "power")

    def at(self, position: ArrayLike) -> Floats:
        """Return θ of positions."""
        positions = np.asarray(position, dtype=np.int64)
        if len(positions) and positions.min() < 1:
            raise InputError(
                f"position is {positions.min()}, but the first position of a list is 1; pass positions from 1 on."
            )
        if len(positions) and positions.max() > len(self.examined):
            raise InputError(
                f"the log has position {positions.max()}, but the bias is known up to position {len(self.examined)}; "
                "estimate it from this log, or cut the lists."
            )
        return self.examined[positions - 1]


@dataclass(frozen=True, eq=False)
class PositionCounts:
    """Counts of a log: how often each document of a query was shown and clicked at each position."""

    item: Integers  # item, position: number of the document, and its position from 0, of each count
    position: Integers
    shown: Floats
    clicks: Floats
    n_positions: int

    @classmethod
    def of(cls, log: ClickLog) -> PositionCounts:
        """Count a log."""
        n_positions = int(log.position.max())
        cells, inverse = np.unique(log.items * n_positions + log.position - 1, return_inverse=True)
        clicks = np.bincount(inverse, weights=log.clicked.astype(np.float64))
        shown = np.bincount(inverse).astype(np.float64)
        return cls(cells // n_positions, cells % n_positions, shown, np.asarray(clicks, np.float64), n_positions)


def position_bias(
    log: ClickLog,
    *,
    X: Any = None,
    qid: ArrayLike | None = None,
    docids: ArrayLike | None = None,
) -> PositionBias:
    """
    Estimate the probability that users examine each position.

    A click needs examination of the position and a relevant document: P(click) = θ_k r, θ_k of the position, r of the
    document and query. If documents were moved, by randomised swaps or because rankers changed, clicks c and
    impressions n of one document at several positions identify θ without r: of a document's clicks C = Σ_k c_k, each
    fell on position k with probability n_k θ_k / Σ_j n_j θ_j, so θ minimises the convex

        Σ_documents C log Σ_k n_k θ_k - Σ_k c_k log θ_k ,

    whose gradient has mean zero at the true θ for any r, however rarely a document was shown. Documents shown at one
    position only are not used.

    If nothing was moved, pass rows of features: r = 1 / (1 + exp(-w·x - b)) on columns of deviation 1, and θ, w, b
    maximise the likelihood less ½‖w‖². This assumes that r is a function of the features, and that the position is not
    one of them.

    Joachims, Swaminathan and Schnabel, Unbiased Learning-to-Rank with Biased Feedback, 2017 (swaps); Agarwal et al.,
    Estimating Position Bias without Intrusive Interventions, 2019 (rankers that changed); Wang et al., Position Bias
    Estimation for Unbiased Learning to Rank in Personal Search, 2018 (regression).
    """
    if not log.clicked.any():
        raise InputError(f"the log has no click in {log.n_impressions} lists; pass a log with clicks.")
    if log.complete is not None:
        if not (log.complete & log.clicked).any():
            raise InputError(
                "no complete list of the log has a click, and documents that were shown but not clicked are needed to "
                "estimate the bias; log them, or assume PositionBias.power."
            )
        n_positions = int(log.position.max())
        bias = position_bias(log.part(log.complete), X=X, qid=qid, docids=docids)
        if len(bias.examined) < n_positions:
            raise InputError(
                f"complete lists end at position {len(bias.examined)}, but the log has position {n_positions}; leave "
                "out longer incomplete lists, or assume PositionBias.power."
            )
        return bias
    if X is None:
        return _from_moved_documents(PositionCounts.of(log))
    if qid is None or docids is None:
        raise InputError("X was given without qid or docids; pass both, so that rows can be matched with the log.")
    features, rows = as_rows(X), log.find(qid, docids)
    if features.shape[0] != len(np.asarray(qid)):
        raise InputError(f"X has {features.shape[0]} rows for {len(np.asarray(qid))} query ids; pass one for each.")
    if (rows < 0).any():
        first = int(np.flatnonzero(rows < 0)[0])
        raise InputError(
            f"document {log.docids[first]!r} of query {log.qid[first]!r} was shown, but is not a row of X; pass a "
            "row for every document shown."
        )
    return _by_regression(log, features, rows)


def _from_moved_documents(counts: PositionCounts) -> PositionBias:
    from scipy.optimize import minimize

    total = np.bincount(counts.item, weights=counts.clicks)
    n_moved = np.bincount(counts.item)
    used = (total > 0)[counts.item] & (n_moved > 1)[counts.item]
    item, position = np.unique(counts.item[used], return_inverse=True)[1], counts.position[used]
    shown, clicks = counts.shown[used], counts.clicks[used]
    n_positions = counts.n_positions
    if n_positions == 1:  # nothing to compare, and maybe no document to use
        return PositionBias(np.ones(1), "moved")
    _require_compared(item, position, clicks, n_positions)
    C, c = np.bincount(item, weights=clicks), np.bincount(position, weights=clicks, minlength=n_positions)

    def cost(log_theta: Floats) -> tuple[float, Floats]:
        expected = shown * np.exp(log_theta)[position]
        S = np.bincount(item, weights=expected)
        gradient = np.bincount(position, weights=expected * (C / S)[item], minlength=n_positions) - c
        return float(C @ np.log(S) - c @ log_theta) / C.sum(), gradient / C.sum()

    log_theta = minimize(
        cost, np.zeros(n_positions), jac=True, method="L-BFGS-B", options={"gtol": 1e-10, "ftol": 1e-15}
    ).x
    return PositionBias(np.exp(log_theta - log_theta[0]), "moved")


def _require_compared(item: Integers, position: Integers, clicks: Floats, n_positions: int) -> None:
    """Raise if θ is not identified: it is finite and unique only if clicks connect every position with every other."""
    from scipy import sparse
    from scipy.sparse.csgraph import connected_components

    n_items = int(item.max()) + 1 if len(item) else 0
    shown = sparse.csr_array((np.ones(len(item)), (position, item)), shape=(n_positions, n_items))
    clicked = sparse.csr_array((clicks, (position, item)), shape=(n_positions, n_items))
    groups = connected_components(clicked @ shown.T, directed=True, connection="strong")[1]
    unconnected = np.flatnonzero(groups != groups[0]) + 1
    if len(unconnected):
        raise InputError(
            f"clicks do not determine the bias of position {unconnected[0]} relative to position 1: too few documents "
            "with clicks were shown at both, or at positions between; swap documents at random, cut the lists, "
            "estimate from features (X=), or assume PositionBias.power."
        )


def _by_regression(log: ClickLog, X: Any, rows: Integers) -> PositionBias:
    from scipy import sparse
    from scipy.optimize import minimize
    from scipy.special import expit
    from sklearn.preprocessing import StandardScaler

    counts = PositionCounts.of(log)
    row_of = np.zeros(int(log.items.max()) + 1, dtype=np.int64)
    row_of[log.items] = rows
    items = X[row_of]
    items = StandardScaler(with_mean=not sparse.issparse(items)).fit_transform(items)
    item, position, n, c = counts.item, counts.position, counts.shown, counts.clicks
    k = counts.n_positions

    def cost(free: Floats) -> tuple[float, Floats]:
        """Return the negative log-likelihood and its gradient; θ = 1 / (1 + exp(-a))."""
        a, b, w = free[:k], free[k], free[k + 1 :]
        theta, r = expit(a), expit(items @ w + b)
        p = theta[position] * r[item]
        missed = np.maximum(1.0 - p, 1e-12)
        value = -(c @ np.log(np.maximum(p, 1e-300)) + (n - c) @ np.log(missed))
        by_log_p = (n - c) * p / missed - c  # derivative by log p
        by_a = np.bincount(position, weights=by_log_p, minlength=k) * (1.0 - theta)
        by_score = np.bincount(item, weights=by_log_p) * (1.0 - r)
        gradient = np.concatenate([by_a, [by_score.sum()], items.T @ by_score + w])
        return (value + 0.5 * w @ w) / n.sum(), gradient / n.sum()

    start = np.concatenate([np.full(k, 2.0), np.zeros(1 + items.shape[1])])
    options = {"maxiter": 5000, "maxfun": 10_000, "gtol": 1e-8, "ftol": 1e-13}
    a = minimize(cost, start, jac=True, method="L-BFGS-B", options=options).x[:k]
    return PositionBias(expit(a) / expit(a[0]), "regression")


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
