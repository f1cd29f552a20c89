"""
FusionReport: a fusion beside each retriever and the usual rules, on queries that it has not seen.

The values of the fusion are those of queries that were left out when it was learnt, paired with those of RRF, of the
mean of min-max scores and of each retriever. The weight of retriever j is the share of the range of its terms, max −
min of Σ_t w[j, t] φ_t, averaged over queries; its interval is that of the jackknife that leaves out one fold at a time,
s² = (K − 1)/K Σ_k (w_k − w̄)² with K − 1 degrees of freedom.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.data.io.runs import Runs
from corank.data.rows import with_names
from corank.errors import UsageWarning
from corank.metrics.significance import few_note, sign_flip
from corank.models.fusion import Fusion, FusionDefinition, Term
from corank.models.fusion.fusion import FUSION, MEAN, RRF, best_retriever, p_better
from corank.models.fusion.judged import JudgedQueries, top_rows
from corank.models.fusion.lists import RetrievedLists
from corank.tables import ReportTable

Floats = NDArray[np.float64]
MAX_FOLDS = 5
SURE = 0.95
"""Probability from which a lead counts as settled."""


@dataclass(frozen=True)
class Weight:
    """Share of a retriever in the fusion, and its interval; NaN without one."""

    retriever: str
    weight: float
    low: float
    high: float


@dataclass(frozen=True)
class Lead:
    """Lead of the fusion over another rule: mean, interval, probability, and judged queries that would settle it."""

    over: str
    difference: float
    low: float
    high: float
    probability: float
    n_needed: int | None


@dataclass(frozen=True, eq=False)
class FusionReport:
    """Values of a fusion and of simpler rules; made by `report_fusion`."""

    metric: str
    values: Mapping[str, Floats]  # of each judged query, by rule; those of the fusion are out of fold
    judged: Mapping[str, float]  # share of judged documents among the first k, by rule
    weights: tuple[Weight, ...]
    leads: tuple[Lead, ...]  # over RRF, and over the best retriever
    n_unjudged: int  # unjudged documents among the first k of the fusion, in judged queries
    k: int
    is_condensed: bool = False  # unjudged documents that the pool did not reach are left out

    @property
    def n_queries(self) -> int:
        """Number of queries with a relevant document."""
        return len(next(iter(self.values.values())))

    def table(self) -> ReportTable:
        """Return the rules as a table."""
        rows = []
        for name, values in self.values.items():
            test = sign_flip(values)
            bounds = (max(test.low, 0.0), min(test.high, 1.0))
            rows.append((name, float(values.mean()), *bounds, float(self.judged[name])))
        note = (
            f"{self.n_queries} judged queries with a relevant document; linear gains, {self.lists()}. "
            f"Values of the fusion are of queries that were left out when it was learnt.{few_note(self.n_queries)}"
        )
        return ReportTable("", ("rule", self.metric, "low", "high", f"judged@{self.k}"), tuple(rows), 3, note)

    def lists(self) -> str:
        """Return how unjudged documents count in the values."""
        if self.is_condensed:
            return "condensed lists: documents that the pool did not reach are left out"
        return "unjudged documents count 0, as in `corank evaluate --convention trec_eval`"

    def weight_table(self) -> ReportTable:
        """Return the weights as a table."""
        rows = tuple((item.retriever, item.weight, item.low, item.high) for item in self.weights)
        return ReportTable("", ("retriever", "weight", "low", "high"), rows, 2)

    def sentences(self) -> list[str]:
        """Return what the values say: leads, and what more judgements would settle."""
        lines = []
        for lead in self.leads:
            interval = f" ({lead.low:+.3f} to {lead.high:+.3f})" if np.isfinite(lead.low) else ""
            lines.append(
                f"Fusion minus {lead.over}: {lead.difference:+.3f}{interval}; it is better with probability "
                f"{lead.probability:.2f}."
            )
        return [*lines, self.advice()]

    def advice(self) -> str:
        """Return what more judgements would settle."""
        if not self.leads:
            return "One judged query cannot be left out, so that nothing is known about the fusion; judge more queries."
        rrf = self.leads[0]
        top = f"{self.n_unjudged} documents among the first {self.k} of the fusion are unjudged in these queries"
        advice = f" {top}; `corank suggest` lists those to judge first." if self.n_unjudged else ""
        if rrf.probability >= SURE:
            return f"The lead over RRF is probable ({SURE:g}) with the judgements at hand.{advice}"
        if rrf.probability <= 1.0 - SURE:
            return f"The fusion is worse than RRF on these queries: use RRF, or judge more queries.{advice}"
        if rrf.difference == 0.0:
            return f"The fusion orders the judged queries as RRF does.{advice}"
        if rrf.n_needed is None:
            return f"The judged queries show no lead over RRF; more would have to show another difference.{advice}"
        return (
            f"If the lead over RRF stays as it is, about {rrf.n_needed} judged queries would make it probable "
            f"({SURE:g}).{advice}"
        )

    def fields(self) -> dict[str, Any]:
        """Return all figures, for JSON."""
        table, weights = self.table(), self.weight_table()
        return {
            "metric": self.metric,
            "n_queries": self.n_queries,
            "rules": [dict(zip(("rule", "mean", "low", "high", "judged"), row, strict=True)) for row in table.rows],
            "weights": [dict(zip(weights.columns, row, strict=True)) for row in weights.rows],
            "leads": list(self.leads),
            "n_unjudged": self.n_unjudged,
            "advice": self.advice(),
        }


def mean_of_scores(retrievers: tuple[str, ...]) -> FusionDefinition:
    """Return the mean of min-max scores."""
    return FusionDefinition(retrievers, tuple(Term(name, "minmax", 1.0) for name in retrievers), MEAN)


def alone(retrievers: tuple[str, ...], name: str) -> FusionDefinition:
    """Return the list of one retriever; documents that it did not return follow in the order of the rows."""
    return FusionDefinition(retrievers, (Term(name, "reciprocal_rank", 1.0, 60.0),), f"{name} alone")


def shares(definition: FusionDefinition, lists: RetrievedLists) -> Floats:
    """Return the share of each retriever, with absolute sum 1; negative weights give a negative share."""
    m = len(definition.retrievers)
    ranges = np.zeros((len(lists.queries), m))
    for column, name in enumerate(definition.retrievers):
        own = tuple(term for term in definition.terms if term.retriever == name and term.weight)
        if own:
            part = FusionDefinition(definition.retrievers, own, "part").score_lists(lists)[lists.queries.order]
            edges = lists.queries.starts[:-1]
            sign = np.sign(sum(term.weight for term in own)) or 1.0
            ranges[:, column] = sign * (np.maximum.reduceat(part, edges) - np.minimum.reduceat(part, edges))
    total = np.abs(ranges).sum(axis=1, keepdims=True)
    return np.asarray((ranges / np.where(total > 0, total, 1.0)).mean(axis=0))


def report_fusion(fusion: Fusion, runs: Runs, y: Floats, weight: Floats | None = None) -> FusionReport:
    """Compare a fitted fusion with simpler rules, by its values on left-out queries."""
    lists, k = RetrievedLists.of(runs.X, runs.qid), fusion._cutoff
    names, values = runs.names, fusion.left_out_values_
    rules = {name: alone(names, name) for name in names}
    rules |= {RRF: FusionDefinition.rrf(names, fusion.k), MEAN: mean_of_scores(names), FUSION: fusion.definition_}
    judged = JudgedQueries.of(y, lists.queries, k)
    shown = {name: _judged_share(rule.score_lists(lists), y, judged) for name, rule in rules.items()}
    best = best_retriever(values, names)
    leads = tuple(_lead(values[FUSION] - values[other], other) for other in (RRF, best)) if FUSION in values else ()
    return FusionReport(
        fusion.metric, {name: values[name] for name in rules if name in values},
        {name: share for name, (share, _) in shown.items()},
        _weights(names, shares(fusion.definition_, lists), _parts(fusion, runs, y, weight, judged, lists)), leads,
        shown[FUSION][1], k, fusion.is_condensed_,
    )  # fmt: skip


def _parts(
    fusion: Fusion, runs: Runs, y: Floats, weight: Floats | None, judged: JudgedQueries, lists: RetrievedLists
) -> list[Floats]:
    """Return the shares of the retrievers in fusions that are learnt without one fold of the judged queries each."""
    from sklearn.base import clone

    n_folds = min(MAX_FOLDS, len(judged))
    fold = np.random.default_rng(0).permutation(len(judged)) % max(n_folds, 1)
    parts = []
    for number in range(n_folds) if n_folds > 1 else ():
        rows = np.isin(lists.queries.codes, judged.codes[fold != number])
        part = clone(fusion)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UsageWarning)  # which the fit to all queries gave
            part.fit(
                with_names(runs.X[rows], runs.names), y[rows], qid=runs.qid[rows],
                sample_weight=None if weight is None else weight[rows],
            )  # fmt: skip
        parts.append(shares(part.definition_, lists))
    return parts


def _lead(gap: Floats, other: str) -> Lead:
    test, mean = sign_flip(gap), float(gap.mean())
    spread = float(gap.std(ddof=1)) if len(gap) > 1 else 0.0
    # queries for which the lead would be probable, if its mean and spread stay: √N d/s ≥ z
    n_needed = math.ceil((NormalDist().inv_cdf(SURE) * spread / mean) ** 2) if mean > 0.0 else None
    return Lead(other, mean, test.low, test.high, p_better(gap), n_needed)


def _judged_share(scores: Floats, y: Floats, judged: JudgedQueries) -> tuple[float, int]:
    """Return the share of judged documents among the first k of judged queries, and the number of the others."""
    tops = [~np.isnan(y[rows[top_rows(scores[rows][:, None], judged.k)[:, 0]]]) for rows in judged.rows]
    known = np.concatenate(tops) if tops else np.zeros(1, dtype=bool)
    return float(known.mean()), int((~known).sum())


def _weights(names: tuple[str, ...], weights: Floats, parts: list[Floats]) -> tuple[Weight, ...]:
    half = np.full(len(names), np.nan)
    if len(parts) > 1:
        from scipy.stats import t

        n = len(parts)
        spread = np.sqrt((n - 1) / n * ((np.array(parts) - np.mean(parts, axis=0)) ** 2).sum(axis=0))
        half = t.ppf(0.975, n - 1) * spread
    low = np.where(weights >= 0, np.maximum(weights - half, 0.0), weights - half)
    return tuple(map(Weight, names, weights.tolist(), low.tolist(), np.minimum(weights + half, 1.0).tolist()))
