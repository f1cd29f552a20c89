"""
FusionReport: a fusion beside each retriever and the usual rules, on queries that it has not seen.

The judged queries are divided into folds, and the fusion of a fold is learnt from the others. Its values are paired by
query with those of RRF, of the mean of min-max scores and of each retriever. The weight of retriever j is the share of
the range of its terms, max − min of Σ_t w[j, t] φ_t, averaged over queries; its interval is that of the jackknife that
leaves out one fold at a time, s² = (K − 1)/K Σ_k (w_k − w̄)² with K − 1 degrees of freedom.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.comparison.winner import SURE, Expectation
from corank.data.io.runs import Runs
from corank.data.io.trec import Qrels
from corank.data.queries import Queries
from corank.data.rows import with_names
from corank.metrics.significance import few_note, sign_flip
from corank.models.fusion import Fusion, FusionDefinition, Term
from corank.models.fusion.lists import RetrievedLists
from corank.models.fusion.values import JudgedQueries, top_rows
from corank.tables import ReportTable

Floats = NDArray[np.float64]
RRF, MEAN, FUSION = "RRF (k = 60)", "mean of min-max scores", "fusion"
MAX_FOLDS = 5


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
            f"{self.n_queries} judged queries with a relevant document; linear gains, unjudged documents count 0. "
            f"Values of the fusion are of queries that were left out when it was learnt.{few_note(self.n_queries)}"
        )
        return ReportTable("", ("rule", self.metric, "low", "high", f"judged@{self.k}"), tuple(rows), 3, note)

    def weight_table(self) -> ReportTable:
        """Return the weights as a table."""
        rows = tuple((item.retriever, item.weight, item.low, item.high) for item in self.weights)
        return ReportTable("", ("retriever", "weight", "low", "high"), rows, 2)

    def sentences(self) -> list[str]:
        """Return what the values say: leads, and what more judgements would settle."""
        said = []
        for lead in self.leads:
            interval = f" ({lead.low:+.3f} to {lead.high:+.3f})" if np.isfinite(lead.low) else ""
            said.append(
                f"Fusion minus {lead.over}: {lead.difference:+.3f}{interval}; it is better with probability "
                f"{lead.probability:.2f}."
            )
        return [*said, self.advice()]

    def advice(self) -> str:
        """Return what more judgements would settle."""
        rrf = self.leads[0]
        top = f"{self.n_unjudged} documents among the first {self.k} of the fusion are unjudged in these queries"
        advice = f" {top}; `corank suggest` lists those to judge first." if self.n_unjudged else ""
        if rrf.probability >= SURE:
            return f"More judgements are not needed to prefer the fusion to RRF.{advice}"
        if rrf.probability <= 1.0 - SURE:
            return f"The fusion is worse than RRF on these queries: use RRF, or judge more queries.{advice}"
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


def report_fusion(
    fusion: Fusion, runs: Runs, y: Floats, missed: Qrels, sample_weight: Floats | None = None, random_state: int = 0
) -> FusionReport:
    """Compare a fusion that was fitted to all judged queries with simpler rules, out of fold."""
    lists = RetrievedLists.of(runs.X, runs.qid)
    queries, k = lists.queries, fusion._cutoff
    codes = {query: code for code, query in enumerate(queries.ids.tolist())}
    missed_codes = np.array([codes[query] for query in missed.qid.tolist()], dtype=np.int64)
    judged = JudgedQueries.of(y, queries, k, (missed_codes, missed.y))
    names = runs.names
    rules = {f"{name} alone": alone(names, name) for name in names}
    rules |= {RRF: FusionDefinition.rrf(names), MEAN: mean_of_scores(names)}
    scores = {name: rule.score_lists(lists) for name, rule in rules.items()}
    n_folds = min(MAX_FOLDS, len(judged))
    fold = np.random.default_rng(random_state).permutation(len(judged)) % max(n_folds, 1)
    own = fusion.definition_.score_lists(lists)
    out_of_fold, parts = np.array(own), []
    for number in range(n_folds) if n_folds > 1 else ():
        left_out = judged.codes[fold == number]
        part = _fit_without(fusion, runs, y, missed, sample_weight, queries, missed_codes, left_out)
        rows = np.isin(queries.codes, left_out)
        out_of_fold[rows] = part.score_lists(lists)[rows]
        parts.append(shares(part, lists))
    columns = np.column_stack([*scores.values(), out_of_fold])
    values = dict(zip((*rules, FUSION), judged.ndcg(columns).T, strict=True))
    shown = {name: _judged_share(score, y, judged) for name, score in {**scores, FUSION: own}.items()}
    best = max((f"{name} alone" for name in names), key=lambda name: float(values[name].mean()))
    leads = tuple(_lead(values, other) for other in (RRF, best))
    return FusionReport(
        fusion.metric, values, {name: share for name, (share, _) in shown.items()},
        _weights(names, shares(fusion.definition_, lists), parts), leads, shown[FUSION][1], k,
    )  # fmt: skip


def _fit_without(
    fusion: Fusion, runs: Runs, y: Floats, missed: Qrels, weight: Floats | None, queries: Queries,
    missed_codes: NDArray[np.int64], left_out: NDArray[np.int64],
) -> FusionDefinition:  # fmt: skip
    """Fit the same fusion to the other judged queries."""
    from sklearn.base import clone

    rows, others = ~np.isin(queries.codes, left_out), ~np.isin(missed_codes, left_out)
    part: Fusion = clone(fusion)
    part.fit(
        with_names(runs.X[rows], runs.names), y[rows], qid=runs.qid[rows],
        missed=(missed.qid[others], missed.y[others]), sample_weight=None if weight is None else weight[rows],
    )  # fmt: skip
    return part.definition_


def _lead(values: Mapping[str, Floats], other: str) -> Lead:
    test = sign_flip(values[FUSION] - values[other])
    expected = Expectation.of({FUSION: values[FUSION], other: values[other]}, {}, np.random.default_rng(0))
    return Lead(
        other, float((values[FUSION] - values[other]).mean()), test.low, test.high, expected.p_above(FUSION, other),
        expected.n_needed(FUSION, other),
    )  # fmt: skip


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
