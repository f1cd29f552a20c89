"""
Documents instead of queries: which documents to grade, and the estimate from their grades, for metrics linear in
gains.

DCG, P and RBP are W_s · g: the weights W_sd of a system are known from its ranks (divided by N, for the mean over
queries), and g is the gain of a document.

**Draw.** Documents are drawn one after the other without replacement, each with a probability proportional to its size
z_d = √Σ_s (W_sd − W̄_d)² · √(c_d/max c + 1/6): its weight in the differences of systems, times a guess of the deviation
of human gains, which grows with the cheap gain c. Documents that all systems rank alike are hardly drawn. With
exponential times of rate z_d, the first n documents are drawn before the time T of the next one, and π_d = 1 −
exp(−z_d T) makes Σ y_d/π_d unbiased for Σ y_d (rank conditioning; Rosén 1997; Duffield, Lund and Thorup 2007). The
first documents of the list are themselves such a draw.

**Estimate** (difference estimator, model-assisted): m_d is a ridge regression of human gains on the cheap gains of all
judges and on √ of the share of systems that return the document, with an effect of each query; the variance of these
effects is chosen by the leave-one-out error. Then

    θ̂_s = Σ_d W_sd m_d + Σ_{d drawn} W_sd (g_d − m_d)/π_d,

unbiased for every fixed m, whatever the bias of the judges. The variance is n/(n − 1) Σ (1 − π_d)(e_d − A)² with e_d =
(W_ad − W_bd) r_d/π_d, r_d the leave-one-out residual, so that the cost of learning m is inside, and A = Σ (1 − π_d)
e_d/Σ (1 − π_d) (Hájek). It is the value of the listed queries; documents that no run returns in its first k have no
weight.

**At any time.** Given the documents before it, the i-th one is drawn with the known probability p_i = z_i/Σ z of those
left. For m learnt from earlier documents only, x_i = Σ_{drawn before} W_d g_d + Σ_{others} W_d m_d + W_i (g_i −
m_i)/p_i has the mean θ given the past (Des Raj 1956). A test of such terms may be looked at after every document.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from corank.data.io.trec import Qrels, Run
from corank.errors import InputError
from corank.metrics.cheap.estimate import Floats, Interval
from corank.metrics.cheap.values import GradedRuns, map_to_gold
from corank.metrics.conventions import Convention
from corank.metrics.names import parse_metric
from corank.tables import ReportTable

LINEAR = ("DCG", "P", "RBP")
"""Metrics that are linear in the gains of documents."""
MIN_DOCUMENTS = 10
QUERY_VARIANCES = (0.0, 0.05, 0.1, 0.2, 0.4, 0.8)
"""Variances of the effects of queries that are tried, in units of the variance of residuals."""
_BLOCK = 10  # documents between two fits of the model of the test


class SampledDocuments(NamedTuple):
    """
    Documents in the order of the draw.

    probabilities: Of being among them. shares: Of what was left at their turn. times: Of the draw, in units of T.
    """

    documents: NDArray[np.int64]
    probabilities: Floats
    shares: Floats
    times: Floats

    def graded(self, is_graded: NDArray[np.bool_]) -> tuple[SampledDocuments, str]:
        """Return the documents with grades, as a sample of their own, and what was assumed."""
        n, k = len(is_graded), int(is_graded.sum())
        if k == n:
            return self, ""
        pi = self.probabilities
        if is_graded[:k].all() and (pi < 1.0).any():
            # the first k are those drawn before the time of the next
            remark = f"the first {k} of {n} drawn documents have human grades; they are a smaller draw."
            return SampledDocuments(
                self.documents[:k], 1.0 - (1.0 - pi[:k]) ** self.times[k], self.shares[:k], self.times[:k]
            ), remark
        kept = np.flatnonzero(is_graded)
        remark = (
            f"{k} of {n} drawn documents have human grades; it is assumed that the others lack grades by chance. Grade "
            "them in the order of the file, or all."
        )
        return SampledDocuments(self.documents[kept], pi[kept] * k / n, self.shares[kept], self.times[kept]), remark


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


def with_frame(runs: Mapping[str, Run], judges: Sequence[Any]) -> GradedRuns:
    """Match runs and judgements, so that all documents of the runs are listed, graded or not."""
    rows = dict.fromkeys(
        pair for run in runs.values() for pair in zip(run.qid.tolist(), run.docids.tolist(), strict=True)
    )
    queries, documents = (np.array(column, dtype=object) for column in zip(*rows, strict=True))
    return GradedRuns.of(runs, [*judges, Qrels(queries, documents, np.zeros(len(rows)))])


def document_weights(graded: GradedRuns, metric: str, convention: Convention) -> Floats:
    """Return W, shape (S, n_documents): the weight of each graded document in the mean of each system."""
    parsed = parse_metric(metric)
    name, k, parameters = parsed.measure.name, parsed.cut, dict(parsed.params)
    if name not in LINEAR:
        raise InputError(f"{metric} is not linear in gains; pass DCG@10, P@10 or RBP, or grade whole queries.")
    rank = graded.ranks
    if name == "DCG":
        ranks = np.maximum(rank, 1) if convention.discount == "letor" else rank + 1
        weight = 1.0 / np.log2(ranks + 1.0)
    elif name == "P":
        weight = np.full(len(rank), 1.0 / (k or 1))
    else:
        p = float(parameters["p"] or 0.0)
        weight = (1.0 - p) * np.power(p, rank.astype(float))
    kept = (graded.document >= 0) & ((rank < k) if k else True)
    W = np.zeros((len(graded.systems), graded.grades.shape[1]))
    W[graded.system[kept], graded.document[kept]] = weight[kept] / len(graded.queries)
    return W


def gains(grades: Floats, metric: str, convention: Convention) -> Floats:
    """Return the gain of each grade in a metric of `LINEAR`; NaN stays."""
    parsed = parse_metric(metric)
    if parsed.measure.name == "DCG":
        y = np.maximum(grades, 0.0)
        return np.asarray(np.exp2(y) - 1.0 if convention.gain == "exp" else y)
    threshold = dict(parsed.params).get("rel") or convention.relevant_from
    return np.where(np.isnan(grades), np.nan, (grades >= threshold).astype(float))


def document_sizes(W: Floats, cheap: Floats) -> Floats:
    """Return z (D,): with W (S, D) and the gains (D, J) of the cheap judges, NaN for none."""
    size = np.sqrt(((W - W.mean(axis=0)) ** 2).sum(axis=0)) if len(W) > 1 else W[0].copy()
    c = _features(cheap)
    c = ((c - c.min(axis=0)) / np.maximum(np.ptp(c, axis=0), 1e-12)).sum(axis=1)
    if c.max(initial=0.0) > c.min(initial=0.0):
        size *= np.sqrt((c - c.min()) / (c.max() - c.min()) + 1.0 / 6.0)
    return np.asarray(size)


def sample_documents(W: Floats, cheap: Floats, number: int, rng: np.random.Generator) -> SampledDocuments:
    """
    Draw documents one after the other, with probabilities proportional to their size.

    W (S, D): weights. cheap (D, J): gains by the cheap judges, NaN for none; J may be 0.
    """
    size = document_sizes(W, cheap)
    useful = np.flatnonzero(size > 0)
    if not len(useful):
        raise InputError("the runs return the same documents at the same ranks, so there is no difference to measure.")
    times = rng.exponential(size=len(useful)) / size[useful]
    order = np.argsort(times)
    n = min(number, len(useful))
    drawn = useful[order[:n]]
    left = size[useful].sum() - np.concatenate([[0.0], np.cumsum(size[drawn])[:-1]])
    shares = np.minimum(size[drawn] / left, 1.0)
    if n == len(useful):
        return SampledDocuments(drawn, np.ones(n), shares, np.arange(1.0, n + 1.0) / (n + 1.0))
    T = times[order[n]]
    return SampledDocuments(drawn, 1.0 - np.exp(-size[drawn] * T), shares, times[order[:n]] / T)


def estimate_documents(
    W: Floats, cheap: Floats, query: NDArray[np.int64], sampled: SampledDocuments, human: Floats
) -> DocumentEstimate:
    """
    Estimate the means of systems from the gains of sampled documents.

    W (S, D): weights. cheap (D, J): cheap gains, NaN for none. query (D,): queries of documents. human (n,): human
    gains of the sampled documents.
    """
    i, pi = sampled.documents, sampled.probabilities
    if len(i) < MIN_DOCUMENTS:
        raise InputError(f"{len(i)} sampled documents have grades; grade at least {MIN_DOCUMENTS}.")
    model, residuals = _model(_inputs(W, cheap), query, i, human)
    values = W @ model + (W[:, i] * (human - model[i]) / pi).sum(axis=1)
    return DocumentEstimate(values, W[:, i] * residuals / pi, pi)


def sequential_terms(
    w: Floats,
    cheap: Floats,
    W: Floats,
    size: Floats,
    query: NDArray[np.int64],
    sampled: SampledDocuments,
    human: Floats,
) -> tuple[Floats, float]:
    """
    Return terms x_i, each with the mean w·g given those before it, and a bound of their size.

    w (D,): difference of the weights of two systems. human (n,): gains of the sampled documents in the order of the
    draw. size (D,): sizes for which they were drawn. W, cheap, query: as in `estimate_documents`.
    """
    index, shares = sampled.documents, sampled.shares
    X, top = _inputs(W, cheap), float(max(human.max(initial=0.0), np.nanmax(cheap, initial=0.0)))
    model, terms = np.full(len(w), top / 2.0), np.empty(len(index))
    known = np.zeros(len(w), dtype=bool)
    for i, document in enumerate(index.tolist()):
        if i >= MIN_DOCUMENTS and i % _BLOCK == 0:
            model = np.clip(_model(X, query, index[:i], human[:i])[0], 0.0, top)
            model[index[:i]] = human[:i]
        terms[i] = w @ model + w[document] * (human[i] - model[document]) / shares[i]
        known[document], model[document] = True, human[i]
    # w·m of all grades between 0 and the highest, and the largest |w_d|/p_d of any document at any draw
    drawable = size > 0
    largest = float((np.abs(w[drawable]) / size[drawable]).max()) * float(size.sum())
    bound = top * (max(float(w[w > 0].sum()), -float(w[w < 0].sum())) + largest)
    return terms, bound


@dataclass(frozen=True, eq=False)
class DocumentsEvaluation:
    """
    Result of `evaluate_documents`.

    cheap (S,): means by the cheap grades alone. estimate: corrected estimates. sequential: terms and bound of the test
    of each system against the first, empty if documents were not graded in order.
    """

    metric: str
    systems: tuple[str, ...]
    n_queries: int
    n_drawn: int
    n_graded: int
    cheap: Floats
    estimate: DocumentEstimate
    sequential: tuple[tuple[Floats, float], ...]
    notes: tuple[str, ...]

    def tables(self, level: float = 0.95) -> tuple[ReportTable, ...]:
        """Return the table of means and that of differences from the first system."""
        rows = [
            (system, float(self.cheap[i]), *self.estimate.interval(i, level=level)[:3])
            for i, system in enumerate(self.systems)
        ]
        columns = ("system", "cheap", "corrected", "low", "high")
        means = ReportTable(f"{self.metric}: means", columns, tuple(rows))
        differences = []
        for index, system in enumerate(self.systems[1:], 1):
            item = self.estimate.interval(index, 0, level)
            differences.append((system, float(self.cheap[index] - self.cheap[0]), *item[:3], item.p_value))
        formats = ("", *("+.4f",) * 4, ".2g")
        title = f"{self.metric}: differences from {self.systems[0]}"
        return means, ReportTable(title, (*columns, "p"), tuple(differences), formats=formats)


def evaluate_documents(
    gold: Qrels,
    runs: Mapping[str, Run],
    drawn: Sequence[tuple[str, str, float, float, float]],
    metric: str = "DCG@10",
    *,
    cheap: Mapping[str, Any] | None = None,
    convention: Convention,
) -> DocumentsEvaluation:
    """
    Estimate a metric that is linear in gains from human grades of drawn documents, for the listed queries.

    gold: human grades. drawn: query, document, probability, share and time of each, in any order.
    """
    drawn = sorted(drawn, key=lambda row: row[4])  # the order of the draw
    if len({row[:2] for row in drawn}) < len(drawn):
        raise InputError("drawn has a document of a query twice; pass the file as it was written.")
    judges = dict(cheap or {})
    graded = with_frame(runs, [gold, *judges.values()])
    notes: list[str] = []
    grades = map_to_gold(graded.grades[:-1], list(judges), notes)
    place = {
        (graded.queries[q], name): i
        for i, (q, name) in enumerate(zip(graded.documents[0].tolist(), graded.documents[1], strict=True))
    }
    for row in drawn:
        if row[:2] not in place:
            raise InputError(
                f"document {row[1]!r} of query {row[0]!r} was drawn, but no run returns it; pass the runs for which it "
                "was drawn."
            )
    columns = zip(*((place[row[:2]], *row[2:]) for row in drawn), strict=True)
    index, pi, shares, times = (np.array(column) for column in columns)
    has_grade = ~np.isnan(grades[0, index])
    sampled, remark = SampledDocuments(index, pi, shares, times).graded(has_grade)
    W = document_weights(graded, metric, convention)
    h, c = gains(grades[0], metric, convention)[sampled.documents], gains(grades[1:], metric, convention).T
    query = graded.documents[0]
    size = document_sizes(W, gains(graded.grades[1:-1], metric, convention).T)
    is_known = bool(np.isclose(shares[0], size[index[0]] / size.sum(), rtol=1e-3))
    if not is_known:
        notes.append(
            "the documents were drawn for other runs, metric or cheap grades; the statement at any time needs the same."
        )
    is_prefix = is_known and bool(has_grade[: len(sampled.documents)].all())
    return DocumentsEvaluation(
        str(parse_metric(metric)), graded.systems, len(graded.queries), len(index), len(sampled.documents),
        W @ _features(c).mean(axis=1) if c.size else np.full(len(W), np.nan),
        estimate_documents(W, c, query, sampled, h),
        tuple(sequential_terms(row - W[0], c, W, size, query, sampled, h) for row in W[1:]) if is_prefix else (),
        tuple(note for note in (*notes, remark) if note),
    )  # fmt: skip


def _features(cheap: Floats) -> Floats:
    """Return gains with the judge's mean for documents that it did not grade."""
    known = ~np.isnan(cheap)
    means = np.where(known, cheap, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    return np.where(known, cheap, means)


def _inputs(W: Floats, cheap: Floats) -> Floats:
    return np.column_stack([_features(cheap), np.sqrt((W > 0).mean(axis=0))])


def _model(X: Floats, query: NDArray[np.int64], at: NDArray[np.int64], human: Floats) -> tuple[Floats, Floats]:
    """Return predicted gains of all documents, and leave-one-out residuals of the sampled ones."""
    mean, deviation = X[at].mean(axis=0), X[at].std(axis=0)
    Z = np.column_stack([np.ones(len(X)), (X - mean) / np.where(deviation > 1e-9, deviation, 1.0)])
    penalty = np.eye(Z.shape[1])
    penalty[0, 0] = 1e-9
    numbers = query[at]
    same, K, best = (numbers[:, None] == numbers).astype(float), Z[at], np.inf
    for variance in QUERY_VARIANCES:
        V = np.linalg.inv(np.eye(len(at)) + variance * same)
        beta = np.linalg.solve(K.T @ V @ K + penalty, K.T @ V @ human)
        Q = V - V @ K @ np.linalg.solve(K.T @ V @ K + penalty, K.T @ V)
        left_out = (Q @ human) / np.diag(Q)
        if (error := float(left_out @ left_out)) < best:
            effects = np.bincount(numbers, variance * (V @ (human - K @ beta)), minlength=int(query.max()) + 1)
            best, model, residuals = error, Z @ beta + effects[query], left_out
    return np.asarray(model), np.asarray(residuals)
