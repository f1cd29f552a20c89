"""The preferences of a problem, and their evidence as a function of the kernel's parameters and of sigma."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from corank.base.kernels.views import View
from corank.data.ranking import RankingData
from corank.models.gp.ep.features import exact_columns, graph_columns
from corank.models.gp.ep.hyper import dense, maximise, nodes
from corank.models.gp.ep.items import DistinctRows
from corank.models.gp.ep.propagation import RANK_WHILE_LEARNING, Approximation, Sites, propagate

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Start = tuple[Floats, Floats]
"""τ and ν of all sites."""

# initial sigma
_SIGMA = 0.3
# tolerance of expectation propagation while hyper-parameters are learnt
_TOLERANCE = 1e-3
# tolerance for several parameters of a kernel: the result depends on the order of the answers within the tolerance, and
# small differences of the evidence lead to other widths
_FINE = 1e-8
# number of distinct answers above which the kernel's parameters maximise the evidence
MANY = 300
# number of parameters of a kernel up to which they are averaged over
_MAX_SPREAD = 8
# sweeps from a warm start before a cold start is tried
_WARM_SWEEPS = 20


def preferences_of(data: RankingData, max_pairs: int, rng: np.random.Generator) -> tuple[Integers, Floats]:
    """Return pairs of rows, the preferred row first, and their weights."""
    if data.pairs is not None:
        return data.pairs, data.pair_weight
    sizes = data.pairs_per_query
    total, chosen = int(sizes.sum()), None
    if total > max_pairs:
        chosen = np.sort(rng.choice(total, max_pairs, replace=False))
    starts = np.concatenate([[0], np.cumsum(sizes)])
    parts = []
    for q in np.flatnonzero(sizes):
        if chosen is None:
            numbers = np.arange(sizes[q])
        else:
            first, last = np.searchsorted(chosen, starts[q : q + 2])
            numbers = chosen[first:last] - starts[q]
        parts.append(_pairs_of_query(data, int(q), numbers))
    pairs = np.concatenate(parts)
    weight = data.weight_of(pairs.ravel()).reshape(pairs.shape).prod(axis=1)
    return pairs, weight if chosen is None else weight * (total / max_pairs)


def _pairs_of_query(data: RankingData, q: int, numbers: Integers) -> Integers:
    """Some pairs of rows of one query whose scores differ; all of them are numbered grade by grade."""
    pairs, before = [], 0
    begin = data.starts[q]
    for g in range(data.query_grades[q] + 1, data.query_grades[q + 1]):
        better, worse = data.order[data.grade_starts[g] : data.grade_stops[g]], data.order[begin : data.grade_starts[g]]
        first, last = np.searchsorted(numbers, (before, before + len(better) * len(worse)))
        place = np.divmod(numbers[first:last] - before, len(worse))
        pairs.append(np.column_stack([better[place[0]], worse[place[1]]]))
        before += len(better) * len(worse)
    return np.concatenate(pairs)


def settle(
    R: Floats, sites: Sites, precision: Floats | None, start: Start | None, tol: float = _TOLERANCE
) -> Approximation:
    """Run expectation propagation as accurately as learning needs, from the sites of a similar problem if given."""
    options: dict[str, Any] = {"precision": precision, "tol": tol, "quiet": True}
    if start is not None:
        approximation = propagate(R, sites, start=start, max_sweeps=_WARM_SWEEPS, **options)
        if approximation.gap <= tol:
            return approximation
    return propagate(R, sites, **options)


def start_of(approximation: Approximation) -> Start | None:
    """τ and ν to start a similar problem from; None if they did not converge."""
    return (approximation.tau, approximation.nu) if approximation.gap <= _TOLERANCE else None


@dataclass
class PreferenceEvidence:
    """log Z of preferences as a function of θ, the logarithms of the learnt parameters."""

    view: View
    n_theta: int  # number of learnt parameters of the kernel; 0 if it is fixed
    items: DistinctRows  # items, item_numbers, sites: the items in use, and the preferences among them
    item_numbers: Integers
    sites: Sites
    L: Any  # laplacian over them, or None
    sigma: float | None  # none if its logarithm is the last entry of θ
    start: Start | None = None  # τ and ν of the last evaluation, used as a warm start
    rows: Any = field(init=False)

    def __post_init__(self) -> None:
        self.rows = dense(self.items.rows[self.item_numbers])

    def __call__(self, theta: Floats) -> tuple[float, Floats]:
        """log Z and its gradient."""
        of_kernel = theta[: self.n_theta]
        sigma = self.sigma if self.sigma is not None else float(np.exp(theta[-1]))
        view = replace(self.view, kernel=self.view.kernel.with_theta(of_kernel))
        K = self.items.gram(view, self.item_numbers)
        sites = replace(self.sites, noise=np.full(len(self.sites), 2.0 * sigma**2))
        precision = None
        if self.L is None:
            R, sites, _ = exact_columns(K, view, sites, RANK_WHILE_LEARNING)
        else:
            R, precision, _ = graph_columns(K, self.L)
        approximation = self._propagate(R, sites, precision)
        gradient = np.empty(0)
        if len(of_kernel):
            gradient = view.kernel.theta_gradient(self.rows, K, self._gram_gradient(R, precision, approximation))
        if self.sigma is None:
            gradient = np.append(gradient, 2.0 * float(approximation.noise_gradient @ sites.noise))
        return approximation.log_evidence, gradient

    def _propagate(self, R: Floats, sites: Sites, precision: Floats | None) -> Approximation:
        approximation = settle(R, sites, precision, self.start, _FINE if self.n_theta > 1 else _TOLERANCE)
        self.start = start_of(approximation)
        return approximation

    def _gram_gradient(self, R: Floats, precision: Floats | None, approximation: Approximation) -> Floats:
        """∂ log Z/∂K over the items."""
        alpha, M = approximation.posterior_weights(R)
        if approximation.sites.left is not self.sites.left:  # the features are those of answers
            m = len(self.sites)
            signs = np.concatenate([np.ones(m), -np.ones(m)])
            places = (np.tile(np.arange(m), 2), np.concatenate([self.sites.left, self.sites.right]))
            B = sparse.csr_array((signs, places), shape=(m, len(self.item_numbers)))
            alpha, M = B.T @ alpha, B.T @ (B.T @ M).T
        Q = 0.5 * (np.outer(alpha, alpha) - M)
        if self.L is None:
            return Q
        # P = (K⁻¹ + L)⁻¹ changes by Fᵀ ∂K F, F = (I + LK)⁻¹
        F = np.eye(len(R)) - (self.L @ R) @ linalg.solve(precision, R.T, assume_a="pos", check_finite=False)
        return np.asarray(F @ Q @ F.T)


def fit_hyperparameters(
    view: View,
    items: DistinctRows,
    answers: Sites,
    L: Any,
    sigma: float | None,
    *,
    n_restarts: int,
    rng: np.random.Generator,
) -> tuple[list[tuple[View, float]], float, int]:
    """
    Maximise the evidence over the kernel's parameters and sigma, and choose parameters to average over around them.
    """
    theta = view.kernel.theta
    item_numbers, sites = named_items(items, answers, L)
    start = theta if sigma is not None else np.append(theta, np.log(_SIGMA))
    evidence = PreferenceEvidence(view, len(theta), items, item_numbers, sites, L, sigma)
    learnt, _, calls = maximise(evidence, start, n_restarts, rng)
    best, k = float(np.exp(learnt[-1])) if sigma is None else sigma, len(theta)
    spread = 1 < k <= _MAX_SPREAD and len(sites) <= MANY
    views = [
        (replace(view, kernel=view.kernel.with_theta(point)), log_weight)
        for point, log_weight in nodes(evidence, learnt, theta, spread=spread)
    ]
    return views, best, calls + k + 1


def named_items(items: DistinctRows, answers: Sites, L: Any) -> tuple[Integers, Sites]:
    """Numbers of the items that learning needs (all items with a graph), and answers that name them."""
    return answers.compacted() if L is None else (np.arange(len(items)), answers)
