"""Offline evaluation of a ranker from logged clicks on lists of another one."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corank.clicks.bias import PositionBias, propensities
from corank.data.inputs import as_numbers
from corank.data.io.clicks import ClickLog
from corank.data.queries import Queries
from corank.errors import InputError
from corank.metrics.significance import sign_flip
from corank.parameters import check_values, number, one_of

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
FOLDS = 5
"""Folds of lists: the expected relevance of documents in one fold is estimated from the others."""


@dataclass(frozen=True)
class ClickEstimate:
    """
    Offline estimate of a metric from logged clicks.

    low, high: Confidence interval of the mean over lists (`corank.metrics.sign_flip`), with the propensities taken as
        known.
    n_impressions, n_clicks: Number of lists of the rows' queries, and of clicks on rows, that were used.
    """

    value: float  # the estimate
    low: float
    high: float
    level: float  # confidence level
    metric: str  # metric, method: the metric and the estimator
    method: str
    n_impressions: int
    n_clicks: int
    n_effective: float  # effective sample size of the clicks: (Σ w)² / Σ w²
    unseen: float  # share of the rows of logged queries that no list showed, and that clicks therefore cannot judge


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

    If lists were drawn at random and the log has their `log_propensity`, each document shown counts b times, such that
    the sums over documents shown are unbiased for sums over all documents, shown or not: with π_k the probability of
    the document at position k given those above, the means of Σ_{j<k} y_j + y_k / π_k and of Σ_d y_d are equal for
    every k (Des Raj, 1956), hence b_k = a_k / π_k + Σ_{j>k} a_j for weights a that sum to 1; here a_k ∝ p_k.
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
    joined = JoinedLog.of(log, scores, qid, docids, metric, bias, clip)
    r = None if relevance is None else _probabilities(relevance, len(joined.rank))
    gain, total = joined.gains(method, r), joined.weighted_clicks if method == "self_normalised" else None
    return joined.estimate(gain, total, metric, method, level)


@dataclass(frozen=True)
class Interval:
    """A value with its confidence interval."""

    value: float  # value, low, high: the value and its interval
    low: float
    high: float

    @classmethod
    def of_lists(cls, gain: Floats, total: Floats | None, level: float) -> Interval:
        """Return the mean of the gains of lists, or Σ gain / Σ total (the delta method)."""
        n = len(gain)
        value = float(gain.mean())
        terms = gain - value
        if total is not None:
            if not total.sum() > 0.0:
                raise InputError(
                    "no row was clicked, but the self-normalised estimate needs a click; pass more lists or "
                    "method='ips'."
                )
            value = float(gain.sum() / total.sum())
            terms = (gain - value * total) / total.mean()
        return cls.of_terms(value, terms, n, level)

    @classmethod
    def of_terms(cls, value: float, terms: Floats, n: int, level: float) -> Interval:
        """Return a value with the interval of a mean of n terms by sign flips (`corank.metrics.sign_flip`)."""
        all_terms = np.zeros(n)
        all_terms[: len(terms)] = terms
        low, high, _ = sign_flip(all_terms, level=level)
        return cls(value, value + low, value + high)


@dataclass(frozen=True, eq=False)
class JoinedLog:
    """A log joined with the rows of a new ranker, under the position-based model."""

    log: ClickLog
    rows: Integers  # rows, known: row of each document shown, and whether there is one
    known: NDArray[np.bool_]
    p: Floats  # propensity of each document shown, at least `clip`; factor: b, how often it counts
    factor: Floats
    queries: Queries
    rank: Integers  # rank, rank_weight: rank of each row, and λ
    rank_weight: Floats
    query_of: Integers  # number of the query of each list, -1 without rows; counted: lists with a query
    counted: Integers

    @classmethod
    def of(
        cls,
        log: ClickLog,
        scores: ArrayLike,
        qid: ArrayLike,
        docids: ArrayLike,
        metric: str,
        bias: PositionBias | None,
        clip: float,
    ) -> JoinedLog:
        """Check the input and join."""
        queries, rank = ranks_of(scores, qid)
        rows, p = join_rows(log, qid, docids), np.maximum(propensities(log, bias), clip)
        query_of = queries_of_lists(log, queries)
        factor = _raj_factors(log, p) if log.log_propensity is not None else np.ones(len(log))
        rank_weight = rank_weights(metric, rank, bias, int(rank.max()))
        counted = np.flatnonzero(query_of >= 0)
        return cls(log, rows, rows >= 0, p, factor, queries, rank, rank_weight, query_of, counted)

    @property
    def click_weights(self) -> Floats:
        """b c / p of each document shown that has a row, else 0."""
        return np.where(self.known, self.factor * self.log.clicked / self.p, 0.0)

    @property
    def weighted_clicks(self) -> Floats:
        """Σ b c / p of each counted list."""
        return self.sum_lists(self.click_weights)

    @property
    def is_shown(self) -> NDArray[np.bool_]:
        """Whether each row was shown."""
        shown = np.zeros(len(self.rank), dtype=bool)
        shown[self.rows[self.known]] = True
        return shown

    def sum_lists(self, values: Floats) -> Floats:
        """Sum over the documents of each counted list."""
        sums = np.bincount(self.log.impression, weights=values, minlength=self.log.n_impressions)
        return np.asarray(sums[self.counted], np.float64)

    def gains(self, method: str, relevance: Floats | None = None) -> Floats:
        """Return V of each counted list."""
        if method == "doubly_robust":
            return _doubly_robust(self, relevance)[self.counted]
        return self.sum_lists(self.click_weights * np.where(self.known, self.rank_weight[self.rows], 0.0))

    def estimate(self, gain: Floats, total: Floats | None, metric: str, method: str, level: float) -> ClickEstimate:
        """Return the estimate of the gains of the counted lists."""
        result = Interval.of_lists(gain, total, level)
        weights = self.click_weights[self.log.clicked & self.known]
        is_logged = np.zeros(len(self.queries), dtype=bool)
        is_logged[self.query_of[self.counted]] = True
        return ClickEstimate(
            value=result.value,
            low=result.low,
            high=result.high,
            level=level,
            metric=metric,
            method=method,
            n_impressions=len(self.counted),
            n_clicks=len(weights),
            n_effective=effective_size(weights),
            unseen=float(np.mean(~self.is_shown[is_logged[self.queries.codes]])),
        )


def ranks_of(scores: ArrayLike, qid: ArrayLike) -> tuple[Queries, Integers]:
    """Return the queries, and the rank of each row by falling score, from 1."""
    s = as_numbers(scores, "scores", "score")
    queries = Queries.of(qid, len(s))
    if not np.isfinite(s).all():
        raise InputError(
            f"scores are not finite at row {int(np.flatnonzero(~np.isfinite(s))[0])}; pass one finite score per row."
        )
    return queries, queries.ranks(s)


def join_rows(log: ClickLog, qid: ArrayLike, docids: ArrayLike) -> Integers:
    """Return the row of each document shown, -1 if there is none; raise if all are."""
    rows = log.find(qid, docids)
    if not (rows >= 0).any():
        raise InputError(
            "no document of the log is among the rows; check that both use the same query and document ids."
        )
    return rows


def effective_size(weights: Floats) -> float:
    """Return (Σ w)² / Σ w²."""
    return float(weights.sum() ** 2 / (weights @ weights)) if weights.any() else 0.0


def in_order(log: ClickLog) -> tuple[Integers, Integers]:
    """
    Return the rows of a log of random lists by list and position, and where each list starts.

    Raises for lists with gaps: the probabilities of lists need all positions from the first.
    """
    order = np.lexsort((log.position, log.impression))
    sizes = np.bincount(log.impression)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    expected = np.arange(len(log)) - np.repeat(starts[:-1], sizes) + 1
    if log.complete is not None or not np.array_equal(log.position[order], expected):
        raise InputError(
            "lists of the log have gaps or are incomplete, but their probabilities need every position from the "
            "first; leave these lists out."
        )
    return order, starts


def _raj_factors(log: ClickLog, p: Floats) -> Floats:
    """Return b_k = a_k / π_k + Σ_{j>k} a_j of each document shown, a_k ∝ p_k."""
    order, starts = in_order(log)
    per_list = np.add.reduceat(p[order], starts[:-1])
    a = p[order] / np.repeat(per_list, np.diff(starts))
    until = np.cumsum(a)
    through = until - np.repeat(until[starts[:-1]] - a[starts[:-1]], np.diff(starts))
    b = np.empty(len(log))
    b[order] = a * np.exp(-log.log_propensity[order]) + np.maximum(1.0 - through, 0.0)  # type: ignore[index]
    return b


def _doubly_robust(joined: JoinedLog, relevance: Floats | None) -> Floats:
    """Return V of each list: Σ λ r' over the rows of its query, plus the correction by clicks on the rows shown."""
    log, rows, known, p, rank_weight = joined.log, joined.rows, joined.known, joined.p, joined.rank_weight
    n, gain = log.n_impressions, np.empty(log.n_impressions)
    part_of = folds_of(n)
    for part in range(FOLDS):
        shown = (part_of == part)[log.impression] & known
        if relevance is None:
            r = _expected(rows, log.clicked, p, known & ~(part_of == part)[log.impression], len(rank_weight))
        else:
            r = relevance
        base = np.bincount(joined.queries.codes, weights=rank_weight * r, minlength=len(joined.queries))
        i = rows[shown]
        correction = rank_weight[i] * joined.factor[shown] * (log.clicked[shown] - p[shown] * r[i]) / p[shown]
        lists = np.flatnonzero(part_of == part)
        added = np.bincount(log.impression[shown], weights=correction, minlength=n)
        query = joined.query_of[lists]
        gain[lists] = np.where(query >= 0, base[query], 0.0) + added[lists]
    return gain


def folds_of(n_lists: int) -> Integers:
    """Return the fold of each list; any split that does not depend on clicks will do."""
    return np.arange(n_lists) % FOLDS


def queries_of_lists(log: ClickLog, queries: Queries) -> Integers:
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


def rank_weights(metric: str, rank: Integers, bias: PositionBias | None, longest: int) -> Floats:
    """Return λ of ranks or positions; a metric without k counts those up to `longest`."""
    match = re.fullmatch(r"(DCG|P|clicks)(?:@([1-9]\d*))?", metric)
    if match is None or metric == "P":
        raise InputError(f"metric is {metric!r}; pass 'DCG@k', 'P@k' or 'clicks'.")
    k = int(match[2]) if match[2] else longest
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
