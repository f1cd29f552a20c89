"""
Smooth losses over pairs and rows, minimised by the truncated Newton method.

The squared hinge counts its active pairs by sorting inside queries, O(n log n) a product, so a query may hold any
number of rows. Other losses visit every pair, up to `MAX_PAIRS` of them. Conjugate gradients are preconditioned by the
Hessian of the squared loss, which is an upper bound up to a factor.
"""

from __future__ import annotations

import numpy as np
from scipy import linalg

from corank.base.pairs import Moments
from corank.base.pairs.losses import Loss, weigh_queries
from corank.base.solvers.comparisons import Comparisons, scored_comparisons
from corank.base.solvers.conjugate import MatVec
from corank.base.solvers.newton import Affine, Derivatives, Evaluate, ScoreObjective, minimise
from corank.base.solvers.solution import Floats, Solution, ordered, require, require_products
from corank.core.pairs.losses import (
    GradedBlock,
    all_pairs_hessian_product,
    all_pairs_loss,
    squared_hinge_hessian_product,
    squared_hinge_loss,
)
from corank.core.threads import cut, parallel_map, threads_for
from corank.data.ranking import RankingData
from corank.errors import InputError
from corank.progress import progress

MAX_PAIRS = 100_000_000
"""Largest number of pairs that are visited one by one; each Newton step visits them about ten times."""

# a fixed number of pieces, so that sums do not depend on the number of threads
_PIECES = 16
# columns up to which the preconditioner is a full matrix: above, building it costs more than it saves
_MAX_FULL = 256


def pair_loss(data: RankingData, loss: Loss, scale: float) -> Evaluate:
    """Return ``scale`` times the mean over pairs of a loss, as a function of scores."""
    if data.pairs is not None:
        return _listed(data, loss, scale)
    block, total = block_of(data)
    return _sorted(block, scale / total) if loss.exact == "sorted" else _visited(block, loss.code, scale / total)


def row_loss(y: Floats, w: Floats, loss: Loss, scale: float) -> Evaluate:
    """Return ``scale`` times the mean over rows, with weights w, of a loss, as a function of scores."""
    share = scale * w / w.sum()

    def evaluate(u: Floats) -> Derivatives:
        value, descent, curvature = loss.costs(y, u)
        return Derivatives(float(share @ value), -share * descent, lambda z: share * curvature * z)

    return evaluate


def block_of(data: RankingData) -> tuple[GradedBlock, float]:
    """Return the scored rows in the order of ``data.order`` (by query and score), and the weight of their pairs."""
    assert data.y is not None
    order = data.order[data.is_scored[data.order]]
    w = data.weight_of(order)
    starts = np.append(0, np.cumsum(data.scored_stops - data.starts[:-1]))
    sizes = data.grade_stops - data.grade_starts
    grade = np.repeat(np.arange(len(sizes)), sizes)
    lowest = np.repeat(data.query_grades[:-1], np.diff(starts))
    W_q, W_g = np.bincount(data.queries.codes[order], weights=w), np.bincount(grade, weights=w)
    return GradedBlock(starts, grade - lowest, data.y[order], w), 0.5 * float(W_q @ W_q - W_g @ W_g)


def _sorted(block: GradedBlock, factor: float) -> Evaluate:
    runs = cut(block.starts, _PIECES)
    n = len(block.weight)
    # sorting a row costs about as much as reading this many numbers
    n_jobs = threads_for(16 * n)

    def evaluate(u: Floats) -> Derivatives:
        order, gradient, degree = np.empty(n, dtype=np.int64), np.empty(n), np.empty(n)
        losses = parallel_map(
            lambda first, last: squared_hinge_loss(block, u, first, last, order, gradient, degree), runs, n_jobs
        )

        def hessian_product(z: Floats) -> Floats:
            out = np.empty(n)
            parallel_map(
                lambda first, last: squared_hinge_hessian_product(block, u, z, first, last, order, degree, out),
                runs,
                n_jobs,
            )
            return factor * out

        return Derivatives(factor * sum(losses), factor * gradient, hessian_product)

    return evaluate


def _visited(block: GradedBlock, code: int, factor: float) -> Evaluate:
    runs = cut(block.starts, _PIECES)
    n, n_jobs = len(block.weight), threads_for(int(np.sum(np.diff(block.starts) ** 2)))

    def evaluate(u: Floats) -> Derivatives:
        gradient = np.empty(n)
        losses = parallel_map(lambda first, last: all_pairs_loss(code, block, u, first, last, gradient), runs, n_jobs)

        def hessian_product(z: Floats) -> Floats:
            out = np.empty(n)
            parallel_map(
                lambda first, last: all_pairs_hessian_product(code, block, u, z, first, last, out), runs, n_jobs
            )
            return factor * out

        return Derivatives(factor * sum(losses), factor * gradient, hessian_product)

    return evaluate


def _listed(data: RankingData, loss: Loss, scale: float) -> Evaluate:
    """Return the loss of preference pairs, whose scores should differ by 1."""
    assert data.pairs is not None
    n, (winners, losers) = data.n_rows, data.pairs.T
    evaluate_pairs = row_loss(loss.pair_target(np.ones(len(winners))), data.pair_weight, loss, scale)

    def to_rows(h: Floats) -> Floats:
        return np.asarray(np.bincount(winners, h, n) - np.bincount(losers, h, n))

    def evaluate(u: Floats) -> Derivatives:
        of_pairs = evaluate_pairs(u[winners] - u[losers])

        def hessian_product(z: Floats) -> Floats:
            return to_rows(of_pairs.hessian_product(z[winners] - z[losers]))

        return Derivatives(of_pairs.value, to_rows(of_pairs.gradient), hessian_product)

    return evaluate


def smooth_loss(
    data: RankingData,
    name: str,
    *,
    mix: float = 0.0,
    alpha: float,
    fit_intercept: bool = False,
    query_weight: str = "pairs",
    tol: float = 1e-10,
    max_iter: int = 100,
    verbose: bool = False,
) -> Solution:
    """
    Minimise mix · mean_D ℓ(y, w·x + b) + (1 − mix) · mean_P ℓ(t(y_a − y_b), w·(a − b)) + alpha/2 ‖w‖².

    For rows with a prior s₀, w·x is replaced by s₀ + w·x. The squared hinge with mix = 0 is the linear RankSVM; the
    logistic loss with mix = 1 is logistic regression.
    """
    loss = Loss.of(name)
    if loss.exact is None:
        raise InputError(f"the {name} loss has no exact solver; choose loss='squared_hinge', or solver='sgd'.")
    require(data, mix, alpha, "above zero")
    if mix < 1.0 and loss.exact != "sorted" and data.n_pairs > MAX_PAIRS:
        raise InputError(
            f"the problem has {data.n_pairs} pairs, but the exact {name} solver visits at most {MAX_PAIRS}; "
            "use solver='sgd', or loss='squared'."
        )
    if loss.scores == "signs" and mix == 0.0:
        data = ordered(data)
    comparisons = scored_comparisons(data, mix, False, query_weight)
    order = comparisons.rows.order
    parts: list[Evaluate] = []
    if data.y is not None:
        loss.require_scores(data.y[order], data.queries.codes[order], mix > 0.0)
    if mix < 1.0:
        parts.append(pair_loss(weigh_queries(data, query_weight), loss, 1.0 - mix))
    if data.y is not None and mix > 0.0:
        parts.append(row_loss(data.y[order], data.weight_of(order), loss, mix))
    learns_b = fit_intercept and mix > 0.0
    precondition = _preconditioner(data, comparisons, mix, alpha, loss.curvature, learns_b, query_weight)
    scores = Affine(comparisons.rows, learns_b)
    objective = ScoreObjective(_sum(parts), scores, data.prior_of(order), alpha)
    with progress(max_iter, "Newton steps", verbose) as advance:
        return minimise(objective, precondition, tol, max_iter, advance)


def _sum(parts: list[Evaluate]) -> Evaluate:
    if len(parts) == 1:
        return parts[0]

    def evaluate(u: Floats) -> Derivatives:
        item, other = (part(u) for part in parts)
        return Derivatives(
            item.value + other.value,
            item.gradient + other.gradient,
            lambda z: item.hessian_product(z) + other.hessian_product(z),
        )

    return evaluate


def _preconditioner(
    data: RankingData, comparisons: Comparisons, mix: float, alpha: float, curvature: float, learns_b: bool,
    query_weight: str,
) -> MatVec:  # fmt: skip
    """
    Return products with P⁻¹, P = curvature · XᵀKX + alpha I or, for many columns, an approximation of its diagonal.

    K is that of the squared loss; `curvature` bounds the second derivative of the loss in the margin.
    """
    if data.n_features > _MAX_FULL:
        with np.errstate(over="ignore"):
            diagonal = alpha + curvature * comparisons.rows.gather_squares(comparisons.diagonal)
        require_products(diagonal)
        inverse = 1.0 / (np.append(diagonal, curvature * mix) if learns_b else diagonal)
        return lambda r: inverse * r
    with np.errstate(over="ignore", invalid="ignore"):
        sums = Moments.of(data, plain=mix > 0.0, query_weight=query_weight)
    require_products(sums.pair)
    d = sums.n_features
    P = np.zeros((d + 1, d + 1))
    if mix < 1.0:
        P[:d, :d] += (1.0 - mix) * curvature / sums.pair_weight * sums.pair[:d, :d]
    if sums.plain is not None and mix > 0.0:
        kept = np.r_[:d, d + 1]
        P += mix * curvature / sums.plain[-1, -1] * sums.plain[np.ix_(kept, kept)]
    P = P if learns_b else P[:d, :d]
    P[np.diag_indices(d)] += alpha
    # rounding may have made eigenvalues negative; a preconditioner need not be exact
    P[np.diag_indices_from(P)] *= 1.0 + 1e-10
    factor = linalg.cho_factor(P)
    return lambda r: np.asarray(linalg.cho_solve(factor, r))
