"""
agreement_with_gold: base rates, confusion, kappa and alpha of a judge against gold grades, with intervals over
queries.

All figures are functions of the confusion matrix M (gold grade, judge's grade). Intervals are percentiles of 999
resamples of queries, whose documents are not independent: the matrices of drawn queries are added.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corank.data.inputs import as_numbers
from corank.data.queries import Queries
from corank.errors import InputError
from corank.tables import Cell, ReportTable

Floats = NDArray[np.float64]
N_RESAMPLES = 999


class Figure(NamedTuple):
    """A value with its 95 % interval."""

    value: float
    low: float
    high: float


class GoldAgreement(NamedTuple):
    """
    Agreement of a judge with gold grades.

    n_documents, n_queries: documents with both grades, and their queries. kappa: Cohen's kappa; weighted: with
    quadratic weights;
    alpha: Krippendorff's ordinal alpha. saved: share of the variance of gold grades that the judge's explain, r²:
    what it saves in human grades of single documents. confusion: counts, with the share of each grade for both
    (base rates).
    """

    n_documents: int
    n_queries: int
    gold_mean: Figure
    judge_mean: Figure
    kappa: Figure
    weighted: Figure
    alpha: Figure
    saved: Figure
    confusion: ReportTable


def agreement_with_gold(gold: ArrayLike, judge: ArrayLike, qid: ArrayLike, *, seed: int = 0) -> GoldAgreement:
    """
    Compare the grades of a judge with gold grades of the same documents; NaN marks a missing grade.

    >>> found = agreement_with_gold([0, 1, 2, 2, 0, 1], [0, 1, 2, 1, 0, 2], [1, 1, 1, 2, 2, 2])
    >>> found.n_documents, round(found.kappa.value, 3), found.confusion.rows[0]
    (6, 0.5, ('0', 2, 0, 0, 0.3333333333333333, 0.3333333333333333))
    """
    a, b = as_numbers(gold, "gold", "grade"), as_numbers(judge, "judge", "grade")
    if len(a) != len(b):
        raise InputError(f"judge has {len(b)} grades and gold {len(a)}; pass one of each per document.")
    both = ~(np.isnan(a) | np.isnan(b))
    if not both.any():
        raise InputError("no document has a gold grade and one of the judge; check that their ids agree.")
    query = Queries.of(qid, len(a)).codes[both]
    a, b = a[both], b[both]
    values, codes = np.unique(np.concatenate([a, b]), return_inverse=True)
    if len(values) > 50:
        raise InputError(f"there are {len(values)} different grades; map scores to a few grades first.")
    K, first, second = len(values), codes[: len(a)], codes[len(a) :]
    numbers = np.unique(query, return_inverse=True)[1]
    Q = int(numbers.max()) + 1
    tables = np.bincount(numbers * K * K + first * K + second, minlength=Q * K * K).reshape(Q, K, K).astype(float)
    draws = np.random.default_rng(seed).multinomial(Q, np.full(Q, 1.0 / Q), size=N_RESAMPLES).astype(float)
    resampled = np.tensordot(draws, tables, axes=1)
    M = tables.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        whole, parts = _figures(M[None], values), _figures(resampled, values)
    figures = []
    for value, column in zip(whole[0].tolist(), parts.T, strict=True):
        known = column[np.isfinite(column)]
        low, high = np.quantile(known, [0.025, 0.975]).tolist() if len(known) else (float("nan"),) * 2
        figures.append(Figure(value, low, high))
    n = float(M.sum())
    rows: list[tuple[Cell, ...]] = [
        (f"{value:g}", *map(int, M[i]), float(M[i].sum() / n), float(M[:, i].sum() / n))
        for i, value in enumerate(values)
    ]
    columns = ("gold \\ judge", *(f"{value:g}" for value in values), "share, gold", "share, judge")
    gold_mean, judge_mean, kappa, weighted, alpha, saved = figures
    table = ReportTable("Confusion", columns, tuple(rows), digits=3)
    return GoldAgreement(int(n), Q, gold_mean, judge_mean, kappa, weighted, alpha, saved, table)


def _figures(M: Floats, values: Floats) -> Floats:
    """Return both means, kappa, weighted kappa, ordinal alpha and r² of matrices (m, K, K), shape (m, 6)."""
    n = M.sum(axis=(1, 2))
    p, q = M.sum(axis=2) / n[:, None], M.sum(axis=1) / n[:, None]
    mean_p, mean_q = p @ values, q @ values
    observed, expected = np.trace(M, axis1=1, axis2=2) / n, (p * q).sum(axis=1)
    kappa = (observed - expected) / (1.0 - expected)
    D = (values[:, None] - values) ** 2
    far = np.einsum("mij,ij->m", M, D) / n
    weighted = 1.0 - far / np.einsum("mi,mj,ij->m", p, q, D)
    counts = M.sum(axis=2) + M.sum(axis=1)
    v = np.cumsum(counts, axis=1) - counts / 2.0  # mid-ranks: the ordinal distance of Krippendorff
    V = (v[:, :, None] - v[:, None]) ** 2
    seen = 2.0 * np.einsum("mij,mij->m", M, V)
    alpha = 1.0 - (2.0 * n - 1.0) * seen / np.einsum("mi,mj,mij->m", counts, counts, V)
    var_p, var_q = p @ values**2 - mean_p**2, q @ values**2 - mean_q**2
    cov = np.einsum("mij,i,j->m", M, values, values) / n - mean_p * mean_q
    saved = np.where(
        var_q > 1e-12 * (q @ values**2), cov**2 / (var_p * var_q), 0.0
    )  # a constant judge explains nothing
    saved[var_p <= 1e-12 * (p @ values**2)] = np.nan
    return np.stack([mean_p, mean_q, kappa, weighted, alpha, saved], axis=1)
