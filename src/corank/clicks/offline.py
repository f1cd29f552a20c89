"""
Replay a log before activating a ranker: its value, that of the lists shown, and their difference, or a refusal.

Two sets of assumptions. With a position bias, clicks follow the position-based model of `estimate_from_clicks`. Without
one, lists drawn at random are reweighted by their logged probabilities. Let the new ranker show o_1, o_2, ..., and
let π_j be the logged probability of the row at position j given those above. If a click depends on the rows at its
position and above (cascade), then

    W_j = [the first j rows are o_1, ..., o_j] / (π_1 ⋯ π_j),    V = E Σ_{j ≤ k} W_j c_j

is the number of clicks on the first k positions (McInerney et al., 2020). Self-normalised: Σ_j E[W_j c_j] / E[W_j].
Doubly robust: Σ_j q_j + E Σ_j W_j (c_j − q_j), with q_j the expected clicks on o_j at position j (Kiyohara et al.,
2022, for a new ranker without randomness). q is the click rate of the position times clicks over expected clicks of
the document, from other folds of lists.

The logged probabilities are tested by what they imply for any users: E[W_j] = 1, and under the position-based model,
where E[1/π_j] is the number of rows left.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corank.clicks.bias import PositionBias
from corank.clicks.estimate import (
    FOLDS,
    ClickEstimate,
    Interval,
    JoinedLog,
    effective_size,
    folds_of,
    in_order,
    join_rows,
    queries_of_lists,
    rank_weights,
    ranks_of,
)
from corank.data.io.clicks import ClickLog
from corank.errors import InputError
from corank.parameters import check_values, number, one_of

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

MIN_CLICKS = 50
"""Clicks that an estimate needs."""
MIN_EFFECTIVE = 100.0
"""Effective sample size that an estimate needs."""
MAX_MISSING = 0.05
"""Share of the new ranker's weight, or of clicks, that may rest on documents about which the log has nothing."""
MAX_ERROR = 0.05
"""Standard error of the mean weight of lists, relative to its expectation, up to which intervals are trusted."""


@dataclass(frozen=True)
class Replay:
    """Value of a new ranker, estimated from logged clicks, next to that of the lists shown."""

    new: ClickEstimate  # the new ranker
    old: Interval  # the lists of the log
    difference: Interval  # new less old, paired by list
    assumes: str  # what the estimate assumes of users


def replay(
    log: ClickLog,
    scores: ArrayLike,
    qid: ArrayLike,
    docids: ArrayLike,
    *,
    metric: str | None = None,
    method: str = "doubly_robust",
    bias: PositionBias | None = None,
    clip: float = 0.01,
    level: float = 0.95,
) -> Replay:
    """Estimate how a new ranker would perform, and raise `InputError` if the log cannot tell."""
    rules = {
        "method": one_of("ips", "self_normalised", "doubly_robust"),
        "clip": number(0, 1, inside="(]"),
        "level": number(0, 1, inside="()"),
    }
    check_values({"method": method, "clip": clip, "level": level}, rules)
    is_random = log.log_propensity is not None and bool((log.log_propensity < -1e-9).any())
    if not is_random:
        log = replace(log, log_propensity=None)  # of lists that were shown with probability 1
    if log.complete is not None:
        raise InputError(
            "the log has incomplete lists: documents that were shown but not clicked are missing, so neither value can "
            "be estimated; pass complete lists."
        )
    if bias is not None or log.propensity is not None:
        joined = JoinedLog.of(log, scores, qid, docids, metric or "DCG@10", bias, clip)
        return _by_position(joined, metric or "DCG@10", method, bias, level)
    if not is_random:
        raise InputError(
            "the log cannot tell: its lists were not drawn at random (no log_propensity below 0) and the position bias "
            "is unknown, so clicks on a document say as much about its position; log random lists, swap documents at "
            "random and pass bias=position_bias(log), or assume a bias, such as PositionBias.power(1.0, 10)."
        )
    return _by_prefix(log, scores, qid, docids, metric or "clicks@3", method, level)


def _by_position(joined: JoinedLog, metric: str, method: str, bias: PositionBias | None, level: float) -> Replay:
    log, counted = joined.log, joined.counted
    _require_rows(log, joined.known)
    if log.log_propensity is not None:
        _require_probabilities(joined)
    else:
        _require_seen(joined, method)
    old_weight = _shown_weights(joined, metric, bias)
    old = joined.sum_lists(old_weight * log.clicked / joined.p)
    new = joined.gains(method)
    total = joined.sum_lists(log.clicked / joined.p) if method == "self_normalised" else None
    new_total = joined.weighted_clicks if method == "self_normalised" else None
    contributions = joined.click_weights * np.where(joined.known, joined.rank_weight[joined.rows], 0.0)
    used = contributions[contributions > 0.0]
    _require_enough(len(used), effective_size(used), len(counted), f"weights of clicks under {metric}")
    if total is None or new_total is None:
        difference = Interval.of_lists(new - old, None, level)
    else:
        of_new, of_old = new.sum() / new_total.sum(), old.sum() / total.sum()
        terms = (new - of_new * new_total) / new_total.mean() - (old - of_old * total) / total.mean()
        difference = Interval.of_terms(float(of_new - of_old), terms, len(counted), level)
    drawn = " and of the logged probabilities of lists" if log.log_propensity is not None else ""
    return Replay(
        joined.estimate(new, new_total, metric, method, level),
        Interval.of_lists(old, total, level),
        difference,
        f"a click depends on the document and on its position only, with the examination given{drawn}",
    )


def _shown_weights(joined: JoinedLog, metric: str, bias: PositionBias | None) -> Floats:
    """Return λ of the position at which each document was shown."""
    return rank_weights(metric, joined.log.position, bias, longest=int(joined.rank.max()))


def _by_prefix(
    log: ClickLog, scores: ArrayLike, qid: ArrayLike, docids: ArrayLike, metric: str, method: str, level: float
) -> Replay:
    match = re.fullmatch(r"clicks@([1-9]\d*)", metric)
    if match is None:
        raise InputError(
            f"metric is {metric!r}, but without a position bias only clicks on the first positions can be estimated; "
            "pass metric='clicks@3' or another number, or bias=."
        )
    k = int(match[1])
    queries, rank = ranks_of(scores, qid)
    rows = join_rows(log, qid, docids)
    query_of = queries_of_lists(log, queries)
    counted = np.flatnonzero(query_of >= 0)
    _require_rows(log, rows >= 0)
    order, starts = in_order(log)
    sizes = np.diff(starts)
    short = counted[sizes[counted] < np.minimum(k, queries.sizes[query_of[counted]])]
    if len(short):
        raise InputError(
            f"metric is {metric!r}, but a list of the log shows {sizes[short[0]]} of "
            f"{queries.sizes[query_of[short[0]]]} documents; pass a smaller number, or leave out shorter lists."
        )
    is_same, logs, c, seen = (np.zeros((log.n_impressions, k)) for _ in range(4))
    top = log.position[order] <= k
    lists, place = log.impression[order][top], log.position[order][top] - 1
    seen[lists, place] = 1.0
    c[lists, place] = log.clicked[order][top]
    shown = rows[order][top]
    is_same[lists, place] = np.where(shown >= 0, rank[shown] == place + 1, False)
    logs[lists, place] = log.log_propensity[order][top]  # type: ignore[index]
    W = np.cumprod(is_same, axis=1) * np.exp(-np.cumsum(logs, axis=1)) * seen
    W, c, seen = W[counted], c[counted], seen[counted]
    n = len(counted)
    _require_overlap(W, seen, k)
    n_used = int(np.count_nonzero(W * c))
    n_effective = min(effective_size(W[:, j]) for j in range(k) if seen[:, j].any())
    _require_enough(n_used, n_effective, n, f"lists that start with the {k} best documents of the new ranker")
    old = c.sum(axis=1)
    if method == "self_normalised":
        weight, reached = np.maximum(W.mean(axis=0), 1e-300), seen.mean(axis=0)  # no list may be as long as k
        rates = (W * c).mean(axis=0) / weight
        value, terms = float(reached @ rates), (reached / weight * W * (c - rates)).sum(axis=1)
    else:
        gain = (W * c).sum(axis=1)
        if method == "doubly_robust":
            best = np.full((len(queries), k), -1, dtype=np.int64)
            top_rows = np.flatnonzero(rank <= k)
            best[queries.codes[top_rows], rank[top_rows] - 1] = top_rows
            gain = _corrected(log, rows, best[query_of[counted]], counted, W, c)
        value, terms = float(gain.mean()), gain - gain.mean()
    new = Interval.of_terms(value, terms, n, level)
    is_shown = np.zeros(len(rank), dtype=bool)
    is_shown[rows[rows >= 0]] = True
    is_logged = np.isin(queries.codes, query_of[counted])
    estimate = ClickEstimate(
        new.value, new.low, new.high, level, metric, method, n, n_used, n_effective,
        float(np.mean(~is_shown[is_logged])),
    )  # fmt: skip
    difference = Interval.of_terms(value - float(old.mean()), terms - (old - old.mean()), n, level)
    assumes = "a click depends on the documents at its position and above only, and the logged probabilities are right"
    return Replay(estimate, Interval.of_lists(old, None, level), difference, assumes)


def _corrected(
    log: ClickLog,
    rows: Integers,
    best: Integers,
    counted: Integers,
    W: Floats,
    c: Floats,
) -> Floats:
    """
    Return Σ_j q_j + Σ_j W_j (c_j − q_j) of each list, with q from the other folds of lists.

    best (n_lists, k): rows o_1, ..., o_k of each list, -1 if its query has fewer.
    """
    k, n_rows = W.shape[1], int(max(best.max(), rows.max())) + 1
    part_of, gain = folds_of(log.n_impressions), np.empty(len(counted))
    for part in range(FOLDS):
        other = (part_of != part)[log.impression] & (rows >= 0)
        position = log.position[other]
        n_shown = np.bincount(position, minlength=k + 1)
        rate = np.bincount(position, weights=log.clicked[other], minlength=k + 1) / np.maximum(n_shown, 1)
        clicks = np.bincount(rows[other], weights=log.clicked[other], minlength=n_rows)
        expected = np.bincount(rows[other], weights=rate[position], minlength=n_rows)
        here = np.flatnonzero(part_of[counted] == part)
        ratio = ((clicks + 1.0) / (expected + 1.0))[best[here]]
        q = np.where(best[here] >= 0, np.minimum(rate[1 : k + 1] * ratio, 1.0), 0.0)
        gain[here] = q.sum(axis=1) + (W[here] * (c[here] - q)).sum(axis=1)
    return gain


def _require_rows(log: ClickLog, known: NDArray[np.bool_]) -> None:
    """Raise if clicks are on documents that the new ranker did not score, or are too few."""
    n_clicks, missing = int(log.clicked.sum()), int((log.clicked & ~known).sum())
    if n_clicks < MIN_CLICKS:
        raise InputError(
            f"the log cannot tell: it has {n_clicks} clicks in {log.n_impressions} lists, and an interval needs at "
            f"least {MIN_CLICKS}; collect more lists."
        )
    if missing > MAX_MISSING * n_clicks:
        raise InputError(
            f"the log cannot tell: {missing} of {n_clicks} clicks are on documents that the new ranker did not score; "
            "pass a row for every document that was shown."
        )


def _require_enough(n_clicks: int, n_effective: float, n_lists: int, what: str) -> None:
    if n_clicks < MIN_CLICKS or n_effective < MIN_EFFECTIVE:
        raise InputError(
            f"the log cannot tell: {n_clicks} clicks of {n_lists} lists count for the new ranker, with an effective "
            f"sample size of {n_effective:.0f} ({what}), and an interval needs {MIN_CLICKS} and {MIN_EFFECTIVE:.0f}; "
            "collect more lists, or compare both rankers by interleaving."
        )


def _require_seen(joined: JoinedLog, method: str) -> None:
    """Raise if much of the new ranker's weight rests on documents that a list did not show."""
    weight = joined.rank_weight
    of_query = np.bincount(joined.queries.codes, weights=weight, minlength=len(joined.queries))
    of_lists = of_query[joined.query_of[joined.counted]]
    if method == "doubly_robust":  # clicks on other lists of the query stand in
        seen = np.bincount(joined.queries.codes, weights=weight * joined.is_shown, minlength=len(joined.queries))
        covered: Floats = np.asarray(seen, np.float64)[joined.query_of[joined.counted]]
        shown = "by no list"
    else:
        covered = joined.sum_lists(np.where(joined.known, weight[joined.rows], 0.0))
        shown = "not by every list of their query"
    missing = 1.0 - covered.sum() / of_lists.sum()
    if missing > MAX_MISSING:
        raise InputError(
            f"the log cannot tell: {missing:.0%} of the weight of the new ranking is on documents shown {shown}, so "
            f"their clicks are unknown (at most {MAX_MISSING:.0%} may be); show them in random lists first, compare "
            "both rankers by interleaving, or choose a metric of fewer positions."
        )


def _require_probabilities(joined: JoinedLog) -> None:
    """Raise unless Σ b over the documents of a list, whose mean is the number of rows, agrees with it."""
    counted = np.bincount(joined.log.impression, weights=joined.factor, minlength=joined.log.n_impressions)
    sizes = joined.queries.sizes[joined.query_of[joined.counted]]
    ratio = counted[joined.counted] / sizes
    _require_mean(ratio, "documents of a query, counted by them, are")
    if _error(ratio) > MAX_ERROR or abs(float(ratio.mean()) - 1.0) > 2.0 * MAX_ERROR:
        raise InputError(
            f"the log cannot tell: its lists are hardly random, so that a few unlikely ones decide (the mean weight "
            f"is {ratio.mean():.2f} ± {_error(ratio):.2f}, expected 1 ± {MAX_ERROR}); show more lists, or more random "
            "ones, or compare both rankers by interleaving."
        )


def _require_overlap(W: Floats, seen: Floats, k: int) -> None:
    for j in range(k):
        lists = seen[:, j] > 0.0
        if not lists.any():
            continue
        if not W[lists, j].any():
            raise InputError(
                f"the log cannot tell: none of {len(W)} lists starts with the {j + 1} best documents of the new "
                "ranker; estimate fewer positions, show more random lists, or compare both rankers by interleaving."
            )
        _require_mean(W[lists, j], f"weights of lists up to position {j + 1} are")


def _require_mean(ratio: Floats, what: str) -> None:
    """Raise if a quantity with expectation 1 differs from it significantly."""
    mean = float(ratio.mean())
    if abs(mean - 1.0) > max(4.0 * _error(ratio), MAX_ERROR):
        raise InputError(
            f"the log cannot tell: {what} {mean:.2f} on average, but logged probabilities imply 1; either lists that "
            "matter are too rare in the log, or log_propensity or the rows do not belong to its lists."
        )


def _error(values: Floats) -> float:
    return float(values.std() / np.sqrt(len(values)))
