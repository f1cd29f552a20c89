"""
Documents instead of queries: which documents to grade, and the estimate from their grades, for metrics linear in
gains.

DCG, P and RBP are W_s · g: the weights W_sd of a system are known from its ranks (divided by N, for the mean over
queries), and g is the gain of a document. Document d is drawn with a probability π_d proportional to √Σ_s (W_sd −
W̄_d)², its weight in the differences of systems; documents that all systems rank alike are hardly drawn. With m_d =
a + b c_d the least-squares line of human on cheap gains in the sample, the difference estimator (GREG) is

    θ̂_s = Σ_d W_sd m_d + Σ_{d drawn} W_sd (g_d − m_d)/π_d,

unbiased for every fixed line, whatever the judge's bias. The draw is systematic in random order, of fixed size; its
variance is n/(n − 1) Σ (1 − π_d)(e_d − A)² with e_d = (W_ad − W_bd)(g_d − m_d)/π_d and A = Σ (1 − π_d) e_d/Σ (1 −
π_d) (Hájek). It is the value of the listed queries; documents that no run returns in its first k have no weight.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from corank.errors import InputError
from corank.metrics.cheap.estimate import Floats, Interval
from corank.metrics.cheap.values import GradedRuns
from corank.metrics.conventions import Convention
from corank.metrics.names import parse_metric

LINEAR = ("DCG", "P", "RBP")
"""Metrics that are linear in the gains of documents."""


class SampledDocuments(NamedTuple):
    """Documents to grade, and the probability with which each was drawn."""

    documents: NDArray[np.int64]
    probabilities: Floats


class DocumentEstimate(NamedTuple):
    """Estimates (S,) of the means of systems, and the terms e of the sample, (S, n), with its probabilities."""

    values: Floats
    terms: Floats
    probabilities: Floats

    def interval(self, system: int, base: int | None = None, level: float = 0.95) -> Interval:
        """Return the mean of a system, or its difference from another."""
        from scipy.special import stdtr, stdtrit

        e = self.terms[system] - (0.0 if base is None else self.terms[base])
        value = float(self.values[system] - (0.0 if base is None else self.values[base]))
        n, free = len(e), 1.0 - self.probabilities
        A = float(free @ e) / max(float(free.sum()), 1e-12)
        error = float(np.sqrt(n / (n - 1) * float(free @ (e - A) ** 2)))
        half = float(stdtrit(n - 2, 0.5 + level / 2.0)) * error
        p = 2.0 * float(stdtr(n - 2, -abs(value) / error)) if error > 0.0 else float(value == 0.0)
        return Interval(value, value - half, value + half, error, p)


def document_weights(graded: GradedRuns, metric: str, convention: Convention) -> Floats:
    """Return W, shape (S, n_documents): the weight of each graded document in the mean of each system."""
    parsed = parse_metric(metric)
    name, k, parameters = parsed.measure.name, parsed.cut, dict(parsed.params)
    if name not in LINEAR:
        raise InputError(f"{metric} is not linear in gains; pass DCG@10, P@10 or RBP, or grade whole queries.")
    order = np.lexsort([np.arange(len(graded.score)), -graded.score, graded.query, graded.system])
    system, query = graded.system[order], graded.query[order]
    starts = np.flatnonzero(np.append(True, (np.diff(system) != 0) | (np.diff(query) != 0)))
    rank = np.arange(len(order)) - np.repeat(starts, np.diff(np.append(starts, len(order))))
    if name == "DCG":
        ranks = np.maximum(rank, 1) if convention.discount == "letor" else rank + 1
        weight = 1.0 / np.log2(ranks + 1.0)
    elif name == "P":
        weight = np.full(len(rank), 1.0 / (k or 1))
    else:
        p = float(parameters["p"] or 0.0)
        weight = (1.0 - p) * np.power(p, rank.astype(float))
    document = graded.document[order]
    kept = (document >= 0) & ((rank < k) if k else True)
    W = np.zeros((len(graded.systems), graded.grades.shape[1]))
    W[system[kept], document[kept]] = weight[kept] / len(graded.queries)
    return W


def gains(grades: Floats, metric: str, convention: Convention) -> Floats:
    """Return the gain of each grade in a metric of `LINEAR`; NaN stays."""
    parsed = parse_metric(metric)
    known = np.isnan(grades)
    if parsed.measure.name == "DCG":
        y = np.maximum(grades, 0.0)
        return np.asarray(np.exp2(y) - 1.0 if convention.gain == "exp" else y)
    threshold = dict(parsed.params).get("rel") or convention.relevant_from
    return np.where(known, np.nan, (grades >= threshold).astype(float))


def sample_documents(W: Floats, number: int, rng: np.random.Generator) -> SampledDocuments:
    """Draw documents with probabilities proportional to their weight in differences of systems, at most 1."""
    size = np.sqrt(((W - W.mean(axis=0)) ** 2).sum(axis=0)) if len(W) > 1 else W[0].copy()
    useful = int((size > 0).sum())
    if useful == 0:
        raise InputError("the runs return the same documents at the same ranks, so there is no difference to measure.")
    pi = np.zeros(len(size))
    certain = np.zeros(len(size), dtype=bool)
    number = min(number, useful)
    while True:
        rest = np.where(certain, 0.0, size)
        n_left = number - int(certain.sum())
        pi = np.where(certain, 1.0, n_left * rest / rest.sum() if n_left and rest.sum() > 0 else 0.0)
        if not (over := (pi >= 1.0) & ~certain).any():
            break
        certain |= over
    order = rng.permutation(np.flatnonzero(pi > 0))
    ticks = np.cumsum(pi[order]) - rng.random()
    # a tick between two whole numbers: systematic sampling
    drawn = order[np.diff(np.floor(np.concatenate([[ticks[0] - pi[order[0]]], ticks]))) > 0]
    return SampledDocuments(np.sort(drawn), pi[np.sort(drawn)])


def estimate_documents(W: Floats, cheap: Floats, sampled: SampledDocuments, human: Floats) -> DocumentEstimate:
    """
    Estimate the means of systems from the gains of sampled documents.

    W (S, D): weights. cheap (D,): cheap gains, 0 for none. human (n,): human gains of the sampled documents.
    """
    at, pi = sampled
    if len(at) < 5:
        raise InputError(f"{len(at)} sampled documents have grades; grade at least 5.")
    c = cheap[at]
    centre = np.average(c, weights=1.0 / pi)
    spread = float(((c - centre) ** 2 / pi).sum())
    slope = float(((c - centre) * human / pi).sum()) / spread if spread > 1e-12 else 0.0
    line = np.average(human, weights=1.0 / pi) + slope * (cheap - centre)
    terms = W[:, at] * (human - line[at]) / pi
    return DocumentEstimate(W @ line + terms.sum(axis=1), terms, pi)
