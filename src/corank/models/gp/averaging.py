"""
Average over hyper-parameters: a few answers determine neither the kernel nor the noise, so all plausible ones count.

    k = h k_γ / v(k_γ) + (1 − h) δ,    P(γ, h, sigma | answers) ∝ P(answers | γ, h, sigma) P(γ) P(h) P(sigma)

δ is a Gaussian kernel so narrow that only equal rows are similar. It gives each row a value of its own, which its
features do not explain; h is the share of the features, and γ the width of a Gaussian kernel. v(k) is the mean of
½ Var(f(a) − f(b)) over pairs of different rows, so that f has variance 1 over the rows for every γ and h, and sigma is
the ratio of noise and signal. log γ has a wide prior around its start, log sigma is normal, and h = 0 (features without
use) and h = 1 have probabilities of their own.

The evidence P(answers | ...) is evaluated on a grid, outwards from the best point found so far, as long as points have
at least `_MIN_RATIO` of its posterior. So few answers need most of the grid, and many answers a few points. If a single
point then has most of the posterior, the search continues on a grid with smaller steps. Kernels with two to eight
parameters, such as one width per column, are averaged over points around the maximum of the evidence
(`corank.models.gp.hyper.nodes`), with a grid of h and sigma for each. With more parameters, and with more than
`MANY` answers, the kernel's parameters maximise the evidence, and the average is over h and sigma. The default averages
over two kinds of kernels, one width and one width per column, both weighted by their evidence, so that few answers
leave the latter out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from scipy.special import logsumexp

from corank.base.kernels import GaussianKernel, Kernel, SumKernel
from corank.base.kernels.views import View
from corank.data.ranking import RankingData
from corank.models.gp.hyper import Evidence, EvidenceOf, maximise, nodes
from corank.models.gp.prior import DistinctRows, exact_columns, graph_columns
from corank.models.gp.propagation import RANK_WHILE_LEARNING, Approximation, resume
from corank.models.gp.sites import Sites

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Start = tuple[Floats, Floats]
"""τ and ν of all sites."""
Point = tuple[float, float, float]
"""Coordinates of γ, h and sigma on the grid; that of sigma is relative to `Grid.centre`: sums with it are not exact."""

# γ: powers of the ratio, relative to the start, and their prior
_WIDTHS, _RATIO, _WIDTH_PRIOR = (-1.0, 0.0, 1.0, 2.0, 3.0), 5.0, (0.3, 0.25, 0.25, 0.15, 0.05)
# h, and its prior
_SHARES, _SHARE_PRIOR = (0.0, 0.5, 0.85, 1.0), (0.4, 0.1, 0.1, 0.4)
# parameter of δ, relative to the start of γ: rows at a hundredth of the median distance are not similar
_NARROW = 1e6
# sigma: powers of 2, relative to the median of its prior; standard deviation of log sigma
_NOISES, _SIGMA, _SIGMA_SPREAD = (-2.0, 2.0), 0.4, 0.7
# smallest ratio of a point's posterior to the best one's
_MIN_RATIO = 0.03
# share of the posterior in one point above which steps are shortened, and the shorter steps
_PEAK, _SHORT = 0.8, 0.5
# rows from which v is computed, if there are more
_SAMPLE = 300
# initial sigma
_START = 0.3
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


def start_of(approximation: Approximation) -> Start | None:
    """τ and ν to start a similar problem from; None if they did not converge."""
    return (approximation.tau, approximation.nu) if approximation.gap <= _TOLERANCE else None


@dataclass
class Preferences:
    """Preferences among some items, and their evidence."""

    view: View
    sites: Sites
    L: Any = None  # Laplacian over the items, or None
    tol: float = _TOLERANCE
    start: Start | None = None  # τ and ν of the last evaluation, used as a warm start

    def __call__(self, K: Floats, sigma: float, free: Floats) -> Evidence:
        """The evidence of items with the Gram matrix K, as accurately as learning needs."""
        sites = replace(self.sites, noise=np.full(len(self.sites), 2.0 * sigma**2))
        precision = None
        if self.L is None:
            R, sites, _ = exact_columns(K, self.view, sites, RANK_WHILE_LEARNING)
        else:
            R, precision, _ = graph_columns(K, self.L)
        result = resume(R, sites, self.start, precision=precision, tol=self.tol, warm_sweeps=_WARM_SWEEPS, quiet=True)
        self.start = start_of(result)
        of_sigma = 2.0 * float(result.noise_gradient @ sites.noise)
        return Evidence(
            result.log_evidence, lambda: self._gram_gradient(R, precision, result, len(K)), of_sigma, np.empty(0)
        )

    def _gram_gradient(self, R: Floats, precision: Floats | None, approximation: Approximation, n: int) -> Floats:
        """∂ log Z/∂K over the n items."""
        alpha, M = approximation.posterior_weights(R)
        if approximation.sites.left is not self.sites.left:  # the features are those of answers
            m = len(self.sites)
            signs = np.concatenate([np.ones(m), -np.ones(m)])
            places = (np.tile(np.arange(m), 2), np.concatenate([self.sites.left, self.sites.right]))
            B = sparse.csr_array((signs, places), shape=(m, n))
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
    start = theta if sigma is not None else np.append(theta, np.log(_START))
    preferences = Preferences(view, sites, L, _FINE if len(theta) > 1 else _TOLERANCE)
    evidence = EvidenceOf(view, len(theta), items, item_numbers, preferences, sigma)
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


@dataclass(frozen=True, eq=False)
class Candidate:
    """One choice of the hyper-parameters."""

    view: View  # view, sigma: kernel and noise; candidates with the same kernel share the view
    sigma: float
    log_prior: float = 0.0  # logarithm of its probability before the answers
    log_posterior: float = 0.0  # logarithm of its probability after them, up to a constant
    start: Start | None = None  # sites to start from


@dataclass(eq=False)
class Grid:
    """The hyper-parameters to average over."""

    view: View  # the kernel k_γ at its start
    has_widths: bool  # has_widths, has_shares: whether γ and h vary; otherwise they are at the start, and 1
    has_shares: bool
    sigma: float | None  # the noise; None if it varies
    is_scaled: bool  # whether the kernel is divided by v; otherwise sigma is multiplied by √v
    items: DistinctRows  # items, sample: the items, and numbers of those from which v is computed
    sample: Integers
    centre: float = 0.0  # where the search for sigma begins, in powers of 2
    row_kernel: Kernel | None = None  # δ; None if h does not vary
    _spreads: dict[float, float] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        view: View,
        items: DistinctRows,
        sigma: float | None,
        *,
        learn: bool,
        has_own: bool,
        best: float | None,
        rng: np.random.Generator,
    ) -> Grid:
        """Choose what varies."""
        kernel, n = view.kernel, len(items)
        is_scaled = learn and not kernel.is_precomputed
        has_shares = is_scaled and has_own and items.rows.ndim == 2
        sample = np.arange(n) if n <= _SAMPLE else np.sort(rng.choice(n, _SAMPLE, replace=False))
        has_widths = learn and best is None and isinstance(kernel, GaussianKernel)
        grid = cls(view, has_widths, has_shares, sigma, is_scaled, items, sample)
        if has_shares:
            grid.row_kernel = GaussianKernel(_NARROW * float(GaussianKernel().fit(items.rows, rng).gamma))
        if best is not None:
            grid.centre = float(np.log2(best / (_SIGMA * np.sqrt(grid.spread(0.0)))))
        return grid

    def spread(self, width: float) -> float:
        """v(k_γ); 1 if it is 0."""
        if width not in self._spreads:
            K = self.items.gram(self.base(width), self.sample)
            n, total = len(K), float(np.trace(K))
            self._spreads[width] = (total / n - (float(K.sum()) - total) / (n * (n - 1))) if n > 1 else 1.0
        return self._spreads[width] if self._spreads[width] > 0.0 else 1.0

    def start(self) -> Point:
        """The point where the search begins."""
        return 0.0, float(len(_SHARES) - 1), 0.0

    def neighbours(self, point: Point, step: float) -> Iterator[Point]:
        """Points at a distance of one step; h has the steps of `_SHARES`."""
        width, share, noise = point
        if self.has_widths and share > 0.0:
            yield from ((i, share, noise) for i in _near(width, step, _WIDTHS[0], _WIDTHS[-1]))
        if self.has_shares:
            # γ has no effect for h = 0: only one point has it
            yield from ((width if i else 0.0, i, noise) for i in _near(share, 1.0, 0.0, len(_SHARES) - 1.0))
        if self.sigma is None:
            yield from ((width, share, i) for i in _near(noise, step, *_NOISES))

    def log_prior(self, point: Point, step: float) -> float:
        """Logarithm of the prior probability of a point."""
        width, share, noise = point
        log_p = 0.0
        if self.has_widths and share > 0.0:
            log_p += np.log(step * np.interp(width, _WIDTHS, _WIDTH_PRIOR))
        if self.has_shares:
            log_p += np.log(_SHARE_PRIOR[int(share)])
        if self.sigma is None:
            every = np.arange(_NOISES[0], _NOISES[1] + step, step)
            log_p += _log_density(self.centre + noise) - float(logsumexp(_log_density(self.centre + every)))
        return float(log_p)

    def base(self, width: float) -> View:
        """The view with the kernel k_γ."""
        if not width:
            return self.view
        kernel = self.view.kernel
        return replace(self.view, kernel=kernel.with_theta(kernel.theta + width * np.log(_RATIO)))

    def kernel_weights(self, width: float, share: float) -> tuple[float, float]:
        """Weights of k_γ and of δ in the kernel."""
        h = _SHARES[int(share)]
        return (h / self.spread(width) if h and self.is_scaled else h), 1.0 - h

    def mixed(self, width: float, share: float) -> View:
        """The view with the kernel k."""
        view, weights = self.base(width), self.kernel_weights(width, share)
        if not self.is_scaled:
            return view
        both = zip((view.kernel, self.row_kernel), weights, strict=True)
        parts = [(kernel, weight) for kernel, weight in both if kernel is not None and weight > 0.0]
        return replace(view, kernel=SumKernel(*zip(*parts, strict=True)))

    def noise(self, point: Point) -> float:
        """Sigma of a point."""
        if self.sigma is not None:
            return self.sigma
        return float(_SIGMA * 2.0 ** (self.centre + point[2]) * (1.0 if self.is_scaled else np.sqrt(self.spread(0.0))))


def candidates(grid: Grid, answers: Sites, L: Any) -> tuple[list[Candidate], int]:
    """Find the hyper-parameters with most of the posterior."""
    items = grid.items
    item_numbers, named = named_items(items, answers, L)

    @lru_cache(1)
    def gram(width: float) -> Floats:
        return items.gram(grid.base(width), item_numbers)

    @lru_cache(2)
    def columns(width: float, share: float) -> tuple[Any, ...]:
        of_base, of_delta = grid.kernel_weights(width, share)
        K = of_base * gram(width) if of_base else np.zeros((len(item_numbers),) * 2)
        K[np.diag_indices_from(K)] += of_delta
        return (
            (*exact_columns(K, grid.view, named, RANK_WHILE_LEARNING)[:2], None)
            if L is None
            else _with_graph(K, L, named)
        )

    def evidence(point: Point, start: Start | None) -> Approximation:
        R, sites, precision = columns(*point[:2])
        sites = replace(sites, noise=np.full(len(sites), 2.0 * grid.noise(point) ** 2))
        return resume(R, sites, start, precision=precision, tol=_TOLERANCE, warm_sweeps=_WARM_SWEEPS, quiet=True)

    n_calls, i, step = 0, grid.start(), 1.0
    while True:
        result = _explored(grid, evidence, i, step)
        n_calls += len(result)
        log_posterior = np.array([value for value, _ in result.values()])
        weights = np.exp(log_posterior - logsumexp(log_posterior))
        if step < 1.0 or weights.max() < _PEAK or not grid.has_widths:
            break
        i, step = list(result)[int(weights.argmax())], _SHORT
    probable = [point for point, weight in zip(result, weights, strict=True) if weight >= _MIN_RATIO * weights.max()]
    views = {kernel: grid.mixed(*kernel) for kernel in sorted({point[:2] for point in probable})}
    return [
        Candidate(views[point[:2]], grid.noise(point), grid.log_prior(point, step), *result[point])
        for point in sorted(probable)
    ], n_calls


def most_probable(families: list[tuple[list[Candidate], float]]) -> list[Candidate]:
    """Join candidates of different kinds of kernels, and leave out improbable ones."""
    joined = [
        replace(item, log_prior=item.log_prior + factor, log_posterior=item.log_posterior + factor)
        for result, factor in families
        for item in result
    ]
    best = max(item.log_posterior for item in joined)
    return [item for item in joined if item.log_posterior >= best + np.log(_MIN_RATIO)]


def _explored(
    grid: Grid, evidence: Callable[[Point, Start | None], Approximation], at: Point, step: float
) -> dict[Point, tuple[float, Start | None]]:
    """Log posterior (up to a constant) and sites of the points that were reached from `at`."""
    result: dict[Point, tuple[float, Start | None]] = {}
    waiting: list[Point] = []

    def visit(point: Point, start: Start | None) -> None:
        if point not in result:
            approximation = evidence(point, start)
            result[point] = approximation.log_evidence + grid.log_prior(point, step), start_of(approximation)
            waiting.append(point)

    visit(at, None)
    while waiting:
        point = max(waiting, key=lambda each: result[each][0])
        if result[point][0] < max(value for value, _ in result.values()) + np.log(_MIN_RATIO):
            break
        waiting.remove(point)
        for neighbour in grid.neighbours(point, step):
            visit(neighbour, result[point][1])
    return result


def _with_graph(K: Floats, L: Any, sites: Any) -> tuple[Any, ...]:
    R, precision, _ = graph_columns(K, L)
    return R, sites, precision


def _log_density(noise: Any) -> Any:
    """Logarithm of the prior of log sigma, up to a constant, at coordinates of the grid."""
    return -0.5 * (np.asarray(noise) * np.log(2.0) / _SIGMA_SPREAD) ** 2


def _near(value: float, step: float, least: float, most: float) -> list[float]:
    return [i for i in (value - step, value + step) if least <= i <= most]
