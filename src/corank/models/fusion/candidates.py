"""
Candidates: weights of simple fusions, how probable each is before any judgement, and least squares.

A candidate is a family, a mixture of transforms that is the same for all retrievers, and a weight p_j ≥ 0 of each
retriever: w[j, t] = p_j a_t. The weights are equal, drawn from Dirichlet distributions, or those of one retriever
alone. All candidates are scaled so that their scores have the same mean variance inside queries: then an average of
candidates is an average of weights on one scale. A retriever alone ranks in the same way in every family; in averages
it counts by its steep reciprocal ranks, which keep its first documents first.

Least squares learn further weights. In query q, rows have weights ω with sum 1 that fall with the best rank of the
document, since only the top of the fused list counts. With features F and grades y, both centred by ω, A_q is
Fᵀ diag(ω) F and b_q is Fᵀ diag(ω) y; A and b are means over queries. Features have unit deviation, and w minimises

    ½ wᵀ A w − bᵀ w + α/2 ‖w − c 1‖²,   c = max(0, bᵀ1 / 1ᵀA1),

by default over w ≥ 0. c is the best multiple of equal weights, so that few queries give weights near c. Leaving out
query q only changes the sums A and b.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from corank.models.fusion.definition import Term
from corank.models.fusion.judged import JudgedQueries
from corank.models.fusion.lists import TRANSFORMS, Floats, RetrievedLists

CONCENTRATIONS = (0.3, 1.0, 3.0)
N_DRAWS = 40
WINDOW = 50
"""Rank down to which shared documents are counted."""
SQUARES: dict[tuple[str, ...], float] = {
    ("minmax", "flat"): 0.3, ("minmax", "flat", "steep"): 0.1, ("flat", "presence"): 0.3
}  # fmt: skip
"""Columns of the least-squares solutions, and their α."""


@dataclass(frozen=True)
class Family:
    """
    One mixture of transforms.

    name: in words.
    mixture: weights of the transforms, in units of their deviation; keys are those of `Features.columns`.
    form: the engine form that has exactly these fusions; "" if engines have none.
    counts_agreement: whether the second list that returns a document matters about as much as the first. The weights
        are then powers of the drawn ones: the first 20 values of 1/(60 + r) differ by a quarter, those of 1/(10 + r)
        by two thirds, so that slightly unequal weights would put the first ten of one list before those of the other.
    """

    name: str
    mixture: dict[str, float]
    form: str = ""
    counts_agreement: bool = False

    def weights(self, p: Floats) -> Floats:
        """Return the weights (C, m) of the retrievers for drawn ones."""
        w = p**0.3 if self.counts_agreement else p
        return np.asarray(w / w.sum(axis=1, keepdims=True))


FAMILIES = (
    Family("reciprocal ranks", {"flat": 1.0}, "rrf", counts_agreement=True),
    Family("steep reciprocal ranks", {"steep": 1.0}, "rrf"),
    Family("min-max scores", {"minmax": 1.0}, "minmax"),
    Family("min-max scores and steep reciprocal ranks", {"minmax": 1.0, "steep": 1.0}),
    Family("min-max scores, reciprocal ranks and presence", {"minmax": 1.0, "flat": 1.0, "presence": 1.0}),
    Family("reciprocal ranks and presence", {"flat": 1.0, "presence": 1.0}, counts_agreement=True),
)
FORMS = tuple(dict.fromkeys(family.form for family in FAMILIES if family.form))
ALONE = len(FAMILIES)
"""Number of the family of single retrievers."""


@dataclass(frozen=True, eq=False)
class Features:
    """
    Transforms of all rows, side by side.

    values (n_rows, n_columns · m): the columns of each transform, one per retriever.
    columns: transform and k by the name of the column.
    covariance: mean covariance inside queries.
    """

    values: Floats
    columns: dict[str, tuple[str, float | None]]
    covariance: Floats
    m: int

    @classmethod
    def of(cls, lists: RetrievedLists, k: float) -> Features:
        """Compute all transforms; the steep reciprocal ranks have a sixth of k."""
        columns: dict[str, tuple[str, float | None]] = {
            "minmax": ("minmax", None), "flat": ("reciprocal_rank", k), "steep": ("reciprocal_rank", k / 6.0),
            "presence": ("presence", None),
        }  # fmt: skip
        values = np.hstack([TRANSFORMS[name](lists, constant or 0.0) for name, constant in columns.values()])
        queries = lists.queries
        grouped = values[queries.order]
        means = np.add.reduceat(grouped, queries.starts[:-1], axis=0) / queries.sizes[:, None]
        centred = (values - means[queries.codes]) / np.sqrt(queries.sizes[queries.codes])[:, None]
        return cls(values, columns, centred.T @ centred / len(queries), lists.X.shape[1])

    def places(self, *names: str) -> NDArray[np.int64]:
        """Return the positions of the columns of some transforms."""
        at = list(self.columns)
        return np.concatenate([at.index(name) * self.m + np.arange(self.m) for name in names])

    def deviation(self, name: str) -> float:
        """Return the mean deviation of a transform inside queries; 1 if it does not vary."""
        scale = float(np.sqrt(self.covariance[self.places(name), self.places(name)].mean()))
        return scale if scale > 0 else 1.0

    def unit(self, w: Floats) -> Floats:
        """Scale weights (n_columns · m,) or (n_columns · m, C) so that scores have mean variance 1 inside queries."""
        variance = np.einsum("i...,ij,j...->...", w, self.covariance, w)
        return w / np.where(variance > 0, np.sqrt(np.maximum(variance, 0.0)), 1.0)

    def mixed(self, mixture: dict[str, float], p: Floats) -> Floats:
        """Return weights (n_columns · m, C) of mixtures of transforms with the weights p (C, m) of the retrievers."""
        w = np.zeros((len(self.covariance), len(p)))
        for name, share in mixture.items():
            w[self.places(name)] = share / self.deviation(name) * p.T
        return self.unit(w)

    def terms(self, w: Floats, retrievers: Sequence[str]) -> tuple[Term, ...]:
        """
        Return weights as terms, scaled so that a document that is first in all lists has the score 1.

        Terms whose share of the deviation is below half a percent are left out.
        """
        size = np.abs(w) * np.sqrt(np.diag(self.covariance))
        kept = np.where(size >= 0.005 * size.sum(), w, 0.0)
        kept = kept if kept.any() else w
        best = [1.0 / (1.0 + k) if k is not None else 1.0 for _, k in self.columns.values()]
        total = float(np.abs(kept) @ np.repeat(best, self.m))
        return tuple(
            Term(retrievers[j], transform, float(kept[t * self.m + j] / total), k)
            for t, (transform, k) in enumerate(self.columns.values())
            for j in range(self.m)
            if kept[t * self.m + j]
        )


@dataclass(frozen=True, eq=False)
class Candidates:
    """
    The candidates of a problem.

    W (n_columns · m, C): their weights.
    p (C, m): weights of the retrievers, with sum 1.
    both (C,): chance that two draws of drawn weights are different retrievers, in units of that of equal weights.
    family (C,): position in `FAMILIES`, or `ALONE`.
    is_equal (C,): whether the retrievers have equal weights.
    """

    W: Floats
    p: Floats
    both: Floats
    family: NDArray[np.int64]
    is_equal: NDArray[np.bool_]

    @classmethod
    def of(cls, features: Features, rng: np.random.Generator) -> Candidates:
        """Draw candidates."""
        m = features.m
        p = np.vstack([np.full((1, m), 1.0 / m), *(rng.dirichlet(np.full(m, a), N_DRAWS) for a in CONCENTRATIONS)])
        weights = [family.weights(p) for family in FAMILIES]
        W = [features.mixed(family.mixture, w) for family, w in zip(FAMILIES, weights, strict=True)]
        alone = np.eye(m)
        both = np.append(np.tile((1.0 - (p**2).sum(axis=1)) / max(1.0 - 1.0 / m, 1e-9), ALONE), np.zeros(m))
        number = np.append(np.repeat(np.arange(ALONE), len(p)), np.full(m, ALONE))
        is_equal = np.append(np.tile(np.arange(len(p)) == 0, ALONE), np.zeros(m, dtype=bool))
        W.append(features.mixed({"steep": 1.0}, alone))
        return cls(np.hstack(W), np.vstack([*weights, alone]), both, number, is_equal)


@dataclass(frozen=True)
class Prior:
    """
    How probable candidates are before any judgement, and how much judgements count.

    Lists that share few documents agree rarely, and what several return is good: then flat reciprocal ranks and
    presence with about equal weights, which count agreement, lose little to other fusions at most and may gain much.
    The logarithm of their prior odds is `agreement` times (0.3 − share of common documents), if that is positive,
    times `Candidates.both`.

    equal, alone: probability of equal weights, and of one retriever alone; the others are Dirichlet weights.
    learnt: probability of all least-squares solutions together.
    agreement: odds of the fusions that count agreement, see above.
    evidence, noise, noise_queries: β σ², σ₀ and ν of `corank.models.fusion.posterior`.
    """

    equal: float = 0.6
    alone: float = 0.3
    learnt: float = 0.3
    agreement: float = 45.0
    evidence: float = 0.05
    noise: float = 0.12
    noise_queries: float = 2.0

    def log(
        self, candidates: Candidates, n_learnt: int, shared: float, sources: NDArray[np.bool_] | None = None
    ) -> Floats:
        """
        Return logarithms of probabilities of the candidates and of learnt solutions, up to a constant.

        shared: mean share of documents that two lists have in common.
        sources: the retrievers whose lists were judged, if some were not. Candidates must give them at least half their
            equal share: another retriever orders the judged documents of a list well if what both return is good, but
            would bring documents that nobody judged, which condensed lists cannot show.
        """
        p, is_alone = candidates.p, candidates.family == ALONE
        kinds = (candidates.is_equal, is_alone, ~candidates.is_equal & ~is_alone)
        prior = np.zeros(len(p))
        for kind, mass in zip(kinds, (self.equal, self.alone, 1.0 - self.equal - self.alone), strict=True):
            prior[kind] = mass / kind.sum()
        if sources is not None:
            prior[p[:, sources].sum(axis=1) < 0.5 * sources.mean() - 1e-9] = 0.0
        counts = np.array([*(family.counts_agreement for family in FAMILIES), False])[candidates.family]
        with np.errstate(divide="ignore"):
            rules = np.log(prior / prior.sum()) + self.agreement * max(0.3 - shared, 0.0) * counts * candidates.both
        return np.append(rules, np.full(n_learnt, np.log(self.learnt / (1.0 - self.learnt) / max(n_learnt, 1))))


def shared_documents(lists: RetrievedLists) -> float:
    """
    Return the share of the first 50 documents that two lists have in common, mean over queries and pairs of lists.

    >>> shared_documents(RetrievedLists.of([[3.0, np.nan], [1.0, 0.5], [np.nan, 0.9]]))
    0.5
    """
    first, second = np.triu_indices(lists.X.shape[1], 1)
    if not len(first):
        return 1.0
    top = (lists.ranks > 0) & (lists.ranks <= WINDOW)
    n = lists.sums(top.astype(np.float64))
    both = lists.sums((top[:, first] & top[:, second]).astype(np.float64))
    return float((both / np.maximum(np.minimum(n[:, first], n[:, second]), 1.0)).mean())


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

    def solve(self, columns: NDArray[np.int64], alpha: float, nonnegative: bool) -> Floats:
        """Return the weights (n_judged + 1, d) learnt without each query, and from all of them."""
        n, d = self.b.shape
        A, b = self.A[:, columns[:, None], columns], self.b[:, columns]
        total_A, total_b = A.sum(axis=0), b.sum(axis=0)
        out = np.zeros((n + 1, d))
        for q in range(n):
            out[q, columns] = _solution((total_A - A[q]) / (n - 1), (total_b - b[q]) / (n - 1), alpha, nonnegative)
        out[n, columns] = _solution(total_A / n, total_b / n, alpha, nonnegative)
        return out / self.unit


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
