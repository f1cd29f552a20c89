"""
Candidates: weight vectors of simple fusions, and how probable each is before any judgement.

A candidate is a family, a mixture of transforms that is the same for all retrievers, and a weight p_j ≥ 0 of each
retriever: w[j, t] = p_j a_t. The weights are equal, those of one retriever alone, or drawn from Dirichlet
distributions. All candidates are scaled so that their scores have the same mean variance inside queries, so that an
average of candidates is an average of weights on one scale.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from corank.models.fusion.definition import Term
from corank.models.fusion.lists import TRANSFORMS, Floats, RetrievedLists

CONCENTRATIONS = (0.3, 1.0, 3.0)
N_DRAWS = 40
EQUAL_WEIGHTS, ONE_RETRIEVER, DRAWN_WEIGHTS = 0, 1, 2
WINDOW = 50
"""Rank down to which shared documents are counted."""


@dataclass(frozen=True)
class Prior:
    """
    How probable candidates are before any judgement, and how much judgements count.

    Lists that share few documents agree rarely, and what both return is good: then flat reciprocal ranks and presence,
    which count agreement, lose little to min-max scores at most and may gain much. The logarithm of their prior odds
    is `agreement` times the gain that is expected, 0.3 (0.3 − share of common documents) and at most 0.05.

    equal, alone: probability of equal weights, and of one retriever alone; the others are Dirichlet weights.
    learnt: probability of all least-squares solutions together.
    agreement: odds of the families that count agreement, see above.
    evidence, noise, noise_queries: β σ², σ₀ and ν of `corank.models.fusion.posterior`.
    """

    equal: float = 0.6
    alone: float = 0.25
    learnt: float = 0.25
    agreement: float = 150.0
    evidence: float = 0.05
    noise: float = 0.12
    noise_queries: float = 2.0

    def log(self, kinds: NDArray[np.int64], family: NDArray[np.int64], shared: float) -> Floats:
        """
        Return logarithms of probabilities of candidates; those of families that are no rules are as if they were.

        kinds: whether weights are equal, of one retriever, or drawn.
        shared: mean share of documents that two lists have in common.
        """
        mass = np.array([self.equal, self.alone, 1.0 - self.equal - self.alone])
        n = np.bincount(kinds[family == 0], minlength=3)
        gain = min(max(0.3 * (0.3 - shared), 0.0), 0.05)
        bonus = np.array([self.agreement * gain * item.counts_agreement for item in FAMILIES])
        bonus -= np.log(np.exp(bonus[[item.is_rule for item in FAMILIES]]).sum())
        return np.asarray(np.log(mass / np.maximum(n, 1))[kinds] + bonus[family])


@dataclass(frozen=True)
class Family:
    """
    One mixture of transforms.

    name: in words.
    mixture: weights of the transforms, in units of their deviation; keys are those of `Features.columns`.
    form: name and normalizer of the engine form that has exactly these fusions; None if engines have none.
    is_rule: whether it may be chosen; the others only serve as engine forms.
    counts_agreement: whether the second list that returns a document matters about as much as the first.
    """

    name: str
    mixture: dict[str, float]
    form: tuple[str, str | None] | None = None
    is_rule: bool = True
    counts_agreement: bool = False


FAMILIES = (
    Family("reciprocal ranks", {"flat": 1.0}, ("rrf", None), counts_agreement=True),
    Family("steep reciprocal ranks", {"steep": 1.0}, ("rrf", None)),
    Family("min-max scores", {"minmax": 1.0}, ("linear", "minmax")),
    Family("min-max scores and steep reciprocal ranks", {"minmax": 1.0, "steep": 1.0}),
    Family("min-max scores, reciprocal ranks and presence", {"minmax": 1.0, "flat": 1.0, "presence": 1.0}),
    Family("reciprocal ranks and presence", {"flat": 1.0, "presence": 1.0}, counts_agreement=True),
    Family("scores of unit length", {"l2": 1.0}, ("linear", "l2"), is_rule=False),
    Family("positive z-scores", {"positive_zscore": 1.0}, ("linear", "zscore"), is_rule=False),
)


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
            "presence": ("presence", None), "l2": ("l2", None), "positive_zscore": ("positive_zscore", None),
        }  # fmt: skip
        values = np.hstack([TRANSFORMS[name].compute(lists, constant or 0.0) for name, constant in columns.values()])
        queries = lists.queries
        grouped = values[queries.order]
        means = np.add.reduceat(grouped, queries.starts[:-1], axis=0) / queries.sizes[:, None]
        centred = (values - means[queries.codes]) / np.sqrt(queries.sizes[queries.codes])[:, None]
        return cls(values, columns, centred.T @ centred / len(queries), lists.X.shape[1])

    def places(self, name: str) -> NDArray[np.int64]:
        """Return the positions of the columns of one transform."""
        return list(self.columns).index(name) * self.m + np.arange(self.m)

    def deviation(self, name: str) -> float:
        """Return the mean deviation of a transform inside queries; 1 if it does not vary."""
        scale = float(np.sqrt(self.covariance[self.places(name), self.places(name)].mean()))
        return scale if scale > 0 else 1.0

    def unit(self, w: Floats) -> Floats:
        """Scale weights (n_columns · m,) or (n_columns · m, C) so that scores have mean variance 1 inside queries."""
        variance = np.einsum("i...,ij,j...->...", w, self.covariance, w)
        return w / np.where(variance > 0, np.sqrt(np.maximum(variance, 0.0)), 1.0)

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
    kinds (C,): whether weights are equal, of one retriever, or drawn.
    family (C,): position in `FAMILIES`.
    log_prior (C,): logarithms of prior probabilities; those of families that are no rules are as if they were.
    """

    W: Floats
    p: Floats
    kinds: NDArray[np.int64]
    family: NDArray[np.int64]
    log_prior: Floats
    is_rule: NDArray[np.bool_] = field(init=False)

    def __post_init__(self) -> None:
        rules = np.array([family.is_rule for family in FAMILIES])
        object.__setattr__(self, "is_rule", rules[self.family])

    @classmethod
    def of(cls, features: Features, shared: float, prior: Prior, rng: np.random.Generator) -> Candidates:
        """
        Draw candidates.

        shared: mean share of documents that two lists have in common.
        """
        m = features.m
        p = [np.full((1, m), 1.0 / m), np.eye(m), *(rng.dirichlet(np.full(m, a), N_DRAWS) for a in CONCENTRATIONS)]
        kinds = np.repeat([EQUAL_WEIGHTS, ONE_RETRIEVER, DRAWN_WEIGHTS], [1, m, len(CONCENTRATIONS) * N_DRAWS])
        weights = np.vstack(p)
        W = []
        for family in FAMILIES:
            part = np.zeros((len(features.covariance), len(weights)))
            for name, share in family.mixture.items():
                part[features.places(name)] = share / features.deviation(name) * weights.T
            W.append(part)
        number, kinds = np.repeat(np.arange(len(FAMILIES)), len(weights)), np.tile(kinds, len(FAMILIES))
        log_prior = prior.log(kinds, number, shared)
        return cls(features.unit(np.hstack(W)), np.tile(weights, (len(FAMILIES), 1)), kinds, number, log_prior)


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
