"""
Least squares with weights shrunk towards equal ones, without each query in turn.

In query q, rows have weights ω with sum 1 that fall with the best rank of the document, since only the top of the
fused list counts. With features F and grades y, both centred by ω, A_q = Fᵀ diag(ω) F and b_q = Fᵀ diag(ω) y; A and b
are means over queries. Features are scaled to unit deviation, and w minimises

    ½ wᵀ A w − bᵀ w + α/2 ‖w − c 1‖²,   c = max(0, bᵀ1 / 1ᵀA1),

by default over w ≥ 0. c is the best multiple of equal weights, so that few queries give weights near c. Leaving out
query q only changes the sums A and b.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from corank.models.fusion.candidates import Features
from corank.models.fusion.lists import Floats, RetrievedLists
from corank.models.fusion.values import JudgedQueries

EXPERTS: dict[tuple[str, ...], float] = {
    ("minmax", "flat"): 0.3, ("minmax", "flat", "steep"): 0.1, ("flat", "presence"): 0.3
}  # fmt: skip
"""Columns of the solutions that take part in the average, and their α."""
FORM_ALPHA = 0.3
"""α of solutions with the one column of an engine form."""


@dataclass(frozen=True, eq=False)
class Squares:
    """
    Sums of least squares of each judged query.

    A (n_judged, d, d), b (n_judged, d): with features in units of their deviations.
    unit (d,): the deviations.
    """

    A: Floats
    b: Floats
    unit: Floats

    @classmethod
    def of(
        cls, features: Features, lists: RetrievedLists, y: Floats, weights: Floats, judged: JudgedQueries
    ) -> Squares:
        """Compute the sums of the judged rows of each judged query; y is NaN where a row does not count."""
        unit = np.sqrt(np.diag(features.covariance))
        unit = np.where(unit > 0, unit, 1.0)
        top = np.where(lists.ranks > 0, 11.0 / (10.0 + np.maximum(lists.ranks, 1)), 0.0).max(axis=1)
        omega = np.where(np.isnan(y), 0.0, top * weights)
        A, b = [], []
        for rows in judged.rows:
            F, o = features.values[rows] / unit, omega[rows]
            o = o / max(float(o.sum()), 1e-300)
            grades = np.nan_to_num(y[rows])
            F, grades = F - o @ F, grades - o @ grades
            A.append((F * o[:, None]).T @ F)
            b.append(F.T @ (o * grades))
        return cls(np.array(A), np.array(b), unit)

    def solve(self, columns: NDArray[np.int64], alpha: float, nonnegative: bool) -> tuple[Floats, Floats]:
        """Return weights (d,) learnt from all queries, and without each of them (n_judged, d)."""
        n, d = self.b.shape
        A, b = self.A[:, columns[:, None], columns], self.b[:, columns]
        total_A, total_b = A.sum(axis=0), b.sum(axis=0)
        out = np.zeros((n + 1, d))
        for q in range(n):
            out[q, columns] = _solution((total_A - A[q]) / (n - 1), (total_b - b[q]) / (n - 1), alpha, nonnegative)
        out[n, columns] = _solution(total_A / n, total_b / n, alpha, nonnegative)
        return out[n] / self.unit, out[:n] / self.unit


def _solution(A: Floats, b: Floats, alpha: float, nonnegative: bool) -> Floats:
    """Return the minimiser; equal weights if it is 0."""
    ones = np.ones(len(b))
    c = max(0.0, float(b @ ones) / max(float(ones @ A @ ones), 1e-300))
    M, r = A + alpha * np.eye(len(b)), b + alpha * c
    w = np.linalg.solve(M, r)
    if nonnegative and (w < 0).any():
        from scipy.optimize import nnls

        L = np.linalg.cholesky(M)
        w = nnls(L.T, np.linalg.solve(L, r))[0]
    return np.asarray(w if w.any() else ones)
