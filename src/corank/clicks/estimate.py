"""Offline evaluation of a ranker from logged clicks on lists of another one."""

from __future__ import annotations

import re
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corank.clicks.click_pairs import propensities
from corank.clicks.position_bias import PositionBias
from corank.data.formats.click_log import ClickLog
from corank.data.problem.inputs import as_numbers
from corank.data.problem.queries import Queries
from corank.errors import InputError
from corank.parameters import check_values, number, one_of

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
FOLDS = 5
"""Folds of lists: the expected relevance of documents in one fold is estimated from the others."""


@dataclass(frozen=True)
class ClickEstimate:
    """
    Offline estimate of a metric from logged clicks.

    Attributes
    ----------
    value : float
        The estimate.
    low, high : float
        Confidence interval: normal approximation of the mean over lists, with the propensities taken as known.
    level : float
        Confidence level.
    metric, method : str
        The metric and the estimator.
    n_impressions, n_clicks : int
        Number of lists of the rows' queries, and of clicks on rows, that were used.
    n_effective : float
        Effective sample size of the clicks: (Σ w)² / Σ w².
    unseen : float
        Share of the rows of logged queries that no list showed, and that clicks therefore cannot judge.
    """

    value: float
    low: float
    high: float
    level: float
    metric: str
    method: str
    n_impressions: int
    n_clicks: int
    n_effective: float
    unseen: float


def estimate_from_clicks(
    log: ClickLog,
    scores: ArrayLike,
    qid: ArrayLike,
    docids: ArrayLike,
    *,
    metric: str = "DCG@10",
    method: str = "ips",
    bias: PositionBias | None = None,
    relevance: ArrayLike | None = None,
    clip: float = 0.05,
    level: float = 0.95,
) -> ClickEstimate:
    """
    Estimate a metric of new scores from clicks on old lists.

    The metric is V = mean over lists of Σ_d λ(d) r(d): r is the probability that the document is relevant, λ the weight
    of its new rank ρ: 1/log2(1 + ρ) for DCG, 1/k up to rank k for P, the position bias θ_ρ for ``"clicks"``, where V is
    the number of clicks on a list. With p the propensity and c the click of a document shown,

    - ``"ips"``: Σ λ c / p, unbiased if every document with a positive weight was shown;
    - ``"self_normalised"``: Σ λ c / p over Σ c / p, the mean weight of a relevant document: less variance, and the
      number of relevant documents need not be known; its scale is that of λ, not of V;
    - ``"doubly_robust"``: Σ λ (r' + (c - p r') / p for documents shown), r' the expected relevance: unbiased if either
      p or r' is right, with less variance; r' stands in for documents that were never shown.

    Parameters
    ----------
    log : ClickLog
        The log; lists are assumed to be independent, and those of queries without rows are ignored.
    scores : array of shape (n_rows,)
        Scores of the new ranker, for all documents that it would rank; ties keep the order of rows.
    qid, docids : arrays of shape (n_rows,)
        Query and document of each score.
    metric : str
        ``"DCG@k"``, ``"P@k"`` or ``"clicks"``; DCG and clicks without ``@k`` count the whole list.
    method : {"ips", "self_normalised", "doubly_robust"}
        The estimator.
    bias : PositionBias, optional
        Propensity of each position; by default the propensities stored in the log.
    relevance : array of shape (n_rows,), optional
        r', a probability for each row; by default clicks per examination in the other four fifths of the lists, shrunk
        towards the mean by one more examination.
    clip : float
        Lower bound of propensities.
    level : float
        Confidence level.

    Returns
    -------
    ClickEstimate
        Value and confidence interval.

    Examples
    --------
    >>> log = ClickLog.of(["a", "a"] * 3, ["x", "y"] * 3, [1, 2] * 3, [0, 1, 1, 0, 0, 1])
    >>> bias = PositionBias.power(1.0, 2)
    >>> estimate = estimate_from_clicks(log, [1.0, 2.0], ["a", "a"], ["x", "y"], bias=bias, metric="P@1")
    >>> round(estimate.value, 3)
    1.333
    """
    rules = {
        "method": one_of("ips", "self_normalised", "doubly_robust"),
        "clip": number(0, 1, inside="(]"),
        "level": number(0, 1, inside="()"),
    }
    check_values({"method": method, "clip": clip, "level": level}, rules)
    if method == "doubly_robust" and log.complete is not None:
        raise InputError(
            "method is 'doubly_robust', which needs all documents shown, but the log has incomplete lists; pass "
            "method='ips'."
        )
    s = as_numbers(scores, "scores", "score")
    queries = Queries.of(qid, len(s))
    if not np.isfinite(s).all():
        raise InputError(
            f"scores are not finite at row {int(np.flatnonzero(~np.isfinite(s))[0])}; pass one finite score per row."
        )
    rows, p = log.find(qid, docids), np.maximum(propensities(log, bias), clip)
    known = rows >= 0
    if not known.any():
        raise InputError(
            "no document of the log is among the rows; check that both use the same query and document ids."
        )
    rank_weight = _rank_weights(metric, queries.ranks(s), bias)
    r = None if relevance is None else _probabilities(relevance, len(s))
    query_of = _queries_of_lists(log, queries)
    counted = np.flatnonzero(query_of >= 0)
    n = len(counted)
    weighted_clicks = np.where(known, log.clicked / p, 0.0)
    credit = np.where(known, rank_weight[rows], 0.0)
    if method == "doubly_robust":
        gain = _doubly_robust(log, rows, known, p, rank_weight, queries, query_of, r)[counted]
    else:
        gains = np.bincount(log.impression, weights=weighted_clicks * credit, minlength=log.n_impressions)
        gain = np.asarray(gains[counted], np.float64)
    value = float(gain.mean())
    terms = gain - value
    if method == "self_normalised":
        total = np.bincount(log.impression, weights=weighted_clicks, minlength=log.n_impressions)[counted]
        if not total.sum() > 0.0:
            raise InputError(
                "no row was clicked, but the self-normalised estimate needs a click; pass more lists or method='ips'."
            )
        value = float(gain.sum() / total.sum())
        terms = (gain - value * total) / total.mean()
    margin = NormalDist().inv_cdf(0.5 + level / 2) * float(np.sqrt(terms @ terms / max(n - 1, 1) / n))
    weights = weighted_clicks[log.clicked & known]
    is_shown = np.zeros(len(s), dtype=bool)
    is_shown[rows[known]] = True
    is_logged = np.zeros(len(queries), dtype=bool)
    is_logged[query_of[counted]] = True
    return ClickEstimate(
        value=value,
        low=value - margin,
        high=value + margin,
        level=level,
        metric=metric,
        method=method,
        n_impressions=n,
        n_clicks=len(weights),
        n_effective=float(weights.sum() ** 2 / (weights @ weights)) if len(weights) else 0.0,
        unseen=float(np.mean(~is_shown[is_logged[queries.codes]])),
    )


def _doubly_robust(
    log: ClickLog,
    rows: Integers,
    known: NDArray[np.bool_],
    p: Floats,
    rank_weight: Floats,
    queries: Queries,
    query_of: Integers,
    relevance: Floats | None,
) -> Floats:
    """Return V of each list: Σ λ r' over the rows of its query, plus the correction by clicks on the rows shown."""
    n, gain = log.n_impressions, np.empty(log.n_impressions)
    # any split that does not depend on clicks will do; lists of one query are spread over the folds
    part_of = np.arange(n) % FOLDS
    for part in range(FOLDS):
        shown = (part_of == part)[log.impression] & known
        if relevance is None:
            r = _expected(rows, log.clicked, p, known & ~(part_of == part)[log.impression], len(rank_weight))
        else:
            r = relevance
        base = np.bincount(queries.codes, weights=rank_weight * r, minlength=len(queries))
        shown_rows = rows[shown]
        correction = rank_weight[shown_rows] * (log.clicked[shown] - p[shown] * r[shown_rows]) / p[shown]
        lists = np.flatnonzero(part_of == part)
        added = np.bincount(log.impression[shown], weights=correction, minlength=n)
        gain[lists] = np.where(query_of[lists] >= 0, base[query_of[lists]], 0.0) + added[lists]
    return gain


def _queries_of_lists(log: ClickLog, queries: Queries) -> Integers:
    """Return the number of each list's query, -1 if it has no rows."""
    number = {str(name): code for code, name in enumerate(queries.ids.tolist())}
    of_query = np.full(int(log.query_codes.max()) + 1, -1, dtype=np.int64)
    codes, first = np.unique(log.query_codes, return_index=True)
    of_query[codes] = [number.get(name, -1) for name in log.qid[first].tolist()]
    query_of = np.empty(log.n_impressions, dtype=np.int64)
    query_of[log.impression] = of_query[log.query_codes]
    return query_of


def _expected(rows: Integers, clicked: NDArray[np.bool_], p: Floats, used: NDArray[np.bool_], n_rows: int) -> Floats:
    """Return clicks per examination of each row, shrunk to the mean by one examination."""
    clicks = np.bincount(rows[used], weights=clicked[used], minlength=n_rows)
    examinations = np.bincount(rows[used], weights=p[used], minlength=n_rows)
    mean = clicks.sum() / examinations.sum() if examinations.sum() > 0.0 else 0.0
    expected: Floats = np.minimum((clicks + mean) / (examinations + 1.0), 1.0)
    return expected


def _rank_weights(metric: str, rank: Integers, bias: PositionBias | None) -> Floats:
    match = re.fullmatch(r"(DCG|P|clicks)(?:@([1-9]\d*))?", metric)
    if match is None or metric == "P":
        raise InputError(f"metric is {metric!r}; pass 'DCG@k', 'P@k' or 'clicks'.")
    k = int(match[2]) if match[2] else int(rank.max())
    if match[1] == "P":
        rank_weight = np.full(len(rank), 1.0 / k)
    elif match[1] == "DCG":
        rank_weight = 1.0 / np.log2(1.0 + rank)
    elif bias is None:
        raise InputError("metric 'clicks' needs the position bias; pass bias=.")
    else:
        # positions beyond the last one of the log are assumed not to be examined
        rank_weight = np.where(rank <= len(bias.examined), bias.examined[np.minimum(rank, len(bias.examined)) - 1], 0.0)
    return np.where(rank <= k, rank_weight, 0.0)


def _probabilities(relevance: ArrayLike, n_rows: int) -> Floats:
    r = as_numbers(relevance, "relevance", "probability")
    if len(r) != n_rows:
        raise InputError(f"relevance has {len(r)} values for {n_rows} scores; pass one for each.")
    bad = np.flatnonzero(~((r >= 0) & (r <= 1)))
    if len(bad):
        raise InputError(f"relevance is {r[bad[0]]:g} at row {bad[0]}; pass a probability.")
    return r
