"""How well another ranker would do, from the clicks on lists of the old one."""

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
Ints = NDArray[np.int64]
FOLDS = 5
"""Parts of the lists: what is expected of a document in one is learnt from the others."""


@dataclass(frozen=True)
class ClickEstimate:
    """
    What a ranker would reach, from logged clicks.

    Attributes
    ----------
    value : float
        The estimate.
    low, high : float
        Its interval, by the normal law of means over lists; the propensities are taken as given.
    level : float
        Level of the interval.
    metric, method : str
        What was estimated, and how.
    n_impressions, n_clicks : int
        Lists of the rows' queries, and clicks on rows, that it rests on.
    n_effective : float
        Number of equally weighed clicks that would be as good: (Σ w)² / Σ w².
    unseen : float
        Share of the rows of logged queries that no list showed: clicks say nothing of them.
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
    Estimate from clicks on old lists what lists by other scores would reach.

    The new lists are worth V = mean over lists of Σ_d λ(d) r(d): r is the probability that the document is wanted, λ
    what its new rank ρ is worth: 1/log2(1 + ρ) for DCG, 1 up to k for P (times 1/k), the bias θ_ρ for ``"clicks"``,
    where V is the number of clicks on a list. With p the propensity and c the click of a document shown,

    - ``"ips"``: Σ λ c / p, right on average where everything with a worth was shown;
    - ``"self_normalised"``: Σ λ c / p over Σ c / p, the worth of a wanted document's rank: steadier, and what the
      total of wanted documents is need not be known; its scale is that of λ, not of V;
    - ``"doubly_robust"``: Σ λ (r' + (c - p r') / p for what was shown), r' what is expected of a document: right where
      either p or r' is, with less variance, and r' speaks for what was never shown.

    Parameters
    ----------
    log : ClickLog
        What was shown and clicked; lists are taken to be independent, and those of queries that no row has are passed
        over.
    scores : array of shape (n_rows,)
        Scores of the ranker in question, for all documents that it would choose from; ties keep the rows' order.
    qid, docids : arrays of shape (n_rows,)
        Query and document of each score.
    metric : str
        ``"DCG@k"``, ``"P@k"`` or ``"clicks"``; of DCG and clicks the whole list counts without ``@k``.
    method : {"ips", "self_normalised", "doubly_robust"}
        The estimator.
    bias : PositionBias, optional
        Propensity of each place; by default the log's own propensities are taken.
    relevance : array of shape (n_rows,), optional
        r', a probability for each row; by default clicks over looks of the other four fifths of the lists, drawn
        towards the mean as by one more look.
    clip : float
        Smallest propensity.
    level : float
        Level of the interval.

    Returns
    -------
    ClickEstimate
        Value and interval.

    Examples
    --------
    >>> log = ClickLog.of(["a", "a"] * 3, ["x", "y"] * 3, [1, 2] * 3, [0, 1, 1, 0, 0, 1])
    >>> bias = PositionBias.power(1.0, 2)
    >>> found = estimate_from_clicks(log, [1.0, 2.0], ["a", "a"], ["x", "y"], bias=bias, metric="P@1")
    >>> round(found.value, 3)
    1.333
    """
    rules = {
        "method": one_of("ips", "self_normalised", "doubly_robust"),
        "clip": number(0, 1, inside="(]"),
        "level": number(0, 1, inside="()"),
    }
    check_values({"method": method, "clip": clip, "level": level}, rules)
    s = as_numbers(scores, "scores", "score")
    queries = Queries.of(qid, len(s))
    if not np.isfinite(s).all():
        raise InputError(f"scores are not finite at row {int(np.flatnonzero(~np.isfinite(s))[0])}; pass a score a row.")
    rows, p = log.find(qid, docids), np.maximum(propensities(log, bias), clip)
    known = rows >= 0
    if not known.any():
        raise InputError("nothing that the log shows is among the rows; compare the query and document ids of both.")
    worth = _worth(metric, queries.ranks(s), bias)
    r = None if relevance is None else _probabilities(relevance, len(s))
    query_of = _queries_of_lists(log, queries)
    counted = np.flatnonzero(query_of >= 0)
    n = len(counted)
    wanted = np.where(known, log.clicked / p, 0.0)
    credit = np.where(known, worth[rows], 0.0)
    if method == "doubly_robust":
        gain = _doubly_robust(log, rows, known, p, worth, queries, query_of, r)[counted]
    else:
        gains = np.bincount(log.impression, weights=wanted * credit, minlength=log.n_impressions)
        gain = np.asarray(gains[counted], np.float64)
    value = float(gain.mean())
    terms = gain - value
    if method == "self_normalised":
        total = np.bincount(log.impression, weights=wanted, minlength=log.n_impressions)[counted]
        if not total.sum() > 0.0:
            raise InputError("nothing among the rows was clicked; a self-normalised estimate needs a click.")
        value = float(gain.sum() / total.sum())
        terms = (gain - value * total) / total.mean()
    margin = NormalDist().inv_cdf(0.5 + level / 2) * float(np.sqrt(terms @ terms / max(n - 1, 1) / n))
    weights = wanted[log.clicked & known]
    seen = np.zeros(len(s), dtype=bool)
    seen[rows[known]] = True
    asked = np.zeros(len(queries), dtype=bool)
    asked[query_of[counted]] = True
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
        unseen=float(np.mean(~seen[asked[queries.codes]])),
    )


def _doubly_robust(
    log: ClickLog,
    rows: Ints,
    known: NDArray[np.bool_],
    p: Floats,
    worth: Floats,
    queries: Queries,
    query_of: Ints,
    relevance: Floats | None,
) -> Floats:
    """Worth of each list: that of all its query's rows by r', and what clicks on the rows shown say beside it."""
    n, gain = log.n_impressions, np.empty(log.n_impressions)
    # any law that does not look at clicks will do; lists of one query are spread over the parts
    part_of = np.arange(n) % FOLDS
    for part in range(FOLDS):
        here = (part_of == part)[log.impression] & known
        if relevance is None:
            r = _expected(rows, log.clicked, p, known & ~(part_of == part)[log.impression], len(worth))
        else:
            r = relevance
        base = np.bincount(queries.codes, weights=worth * r, minlength=len(queries))
        at = rows[here]
        beside = worth[at] * (log.clicked[here] - p[here] * r[at]) / p[here]
        mine = np.flatnonzero(part_of == part)
        added = np.bincount(log.impression[here], weights=beside, minlength=n)
        gain[mine] = np.where(query_of[mine] >= 0, base[query_of[mine]], 0.0) + added[mine]
    return gain


def _queries_of_lists(log: ClickLog, queries: Queries) -> Ints:
    """Number of the query of each list, -1 where it is not among the rows."""
    number = {str(name): code for code, name in enumerate(queries.ids.tolist())}
    of_query = np.full(int(log.query_codes.max()) + 1, -1, dtype=np.int64)
    codes, first = np.unique(log.query_codes, return_index=True)
    of_query[codes] = [number.get(name, -1) for name in log.qid[first].tolist()]
    query_of = np.empty(log.n_impressions, dtype=np.int64)
    query_of[log.impression] = of_query[log.query_codes]
    return query_of


def _expected(rows: Ints, clicked: NDArray[np.bool_], p: Floats, used: NDArray[np.bool_], n_rows: int) -> Floats:
    """Clicks over looks of each row, with one more look of the mean."""
    clicks = np.bincount(rows[used], weights=clicked[used], minlength=n_rows)
    looks = np.bincount(rows[used], weights=p[used], minlength=n_rows)
    mean = clicks.sum() / looks.sum() if looks.sum() > 0.0 else 0.0
    expected: Floats = np.minimum((clicks + mean) / (looks + 1.0), 1.0)
    return expected


def _worth(metric: str, rank: Ints, bias: PositionBias | None) -> Floats:
    named = re.fullmatch(r"(DCG|P|clicks)(?:@([1-9]\d*))?", metric)
    if named is None or metric == "P":
        raise InputError(f"metric is {metric!r}; pass 'DCG@10', 'P@10' or 'clicks', with any cut.")
    k = int(named[2]) if named[2] else int(rank.max())
    if named[1] == "P":
        worth = np.full(len(rank), 1.0 / k)
    elif named[1] == "DCG":
        worth = 1.0 / np.log2(1.0 + rank)
    elif bias is None:
        raise InputError("metric 'clicks' needs to know how likely people look at a place; pass bias=.")
    else:
        # nobody is known to look beyond the last place of the log
        worth = np.where(rank <= len(bias.examined), bias.examined[np.minimum(rank, len(bias.examined)) - 1], 0.0)
    return np.where(rank <= k, worth, 0.0)


def _probabilities(relevance: ArrayLike, n_rows: int) -> Floats:
    r = as_numbers(relevance, "relevance", "probability")
    if len(r) != n_rows:
        raise InputError(f"relevance has {len(r)} values for {n_rows} scores; pass one for each.")
    bad = np.flatnonzero(~((r >= 0) & (r <= 1)))
    if len(bad):
        raise InputError(f"relevance is {r[bad[0]]:g} at row {bad[0]}; pass a probability.")
    return r
