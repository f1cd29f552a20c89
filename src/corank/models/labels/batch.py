"""
A solver over all constraints, Newton's method for smooth losses, and an explicit expansion.

Minimises  Σ_i v_i Σ_{(r,s) ∈ C_i} ℓ(u_r(x_i) − u_s(x_i)) / Σ_i v_i |C_i| + alpha/2 ‖W‖²  with u = Wx + b and
u_0 = 0 for the zero point; b has no penalty. Constraints are listed again at every pass: memory in addition to X is
O(n_rows · d + n_features · d). Newton's method is scipy's trust region with d unpenalised intercepts, which
`corank.base.solvers.newton` (a line search with at most one) does not cover.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, sparse
from sklearn.exceptions import ConvergenceWarning

from corank.base.pairs.losses import Loss
from corank.core.labels.constraints import Conversion, LabelTargets, label_hessian_products, label_losses
from corank.core.threads import parallel_map, threads_for
from corank.data.columns import column_factors
from corank.data.queries import Queries
from corank.data.ranking import RankingData
from corank.errors import warn
from corank.models.labels.preferences import LabelPreferences

Floats = NDArray[np.float64]

# number of rows copied at a time
_ROWS = 4096
# examples are summed in a fixed number of pieces, so that sums do not depend on the number of threads
_PIECES = 8
# relative gap that rounding does not explain if Newton's method makes no further progress
_MAX_GAP = 1e-6


@dataclass(frozen=True, eq=False)
class StandardizedRows:
    """
    The matrix (X − 1 meanᵀ) diag(factors), used in products only; X may be sparse and is not copied.

    With free intercepts, the mean changes only the speed of convergence.
    """

    X: Any  # the rows as given
    mean: Floats  # mean, factors (n_features,): zeros and ones for columns as given
    factors: Floats

    @classmethod
    def of(cls, X: Any, weights: Floats, *, scale: bool, centre: bool) -> StandardizedRows:
        """Compute mean and scale of the columns of weighted rows."""
        n, p = X.shape
        ones = np.ones(p)
        data = RankingData.of_checked(X, np.zeros(n), Queries.of(None, n), weights)
        factors = column_factors(data) if scale else ones
        mean = np.asarray(X.T @ weights, dtype=np.float64) / weights.sum() if centre else 0.0 * ones
        return cls(X, mean, factors)

    def scores(self, W: Floats, b: Floats) -> Floats:
        """Return the utilities (n, d)."""
        coef, intercept = self.for_given_columns(W, b)
        return np.asarray(self.X @ coef.T, dtype=np.float64) + intercept

    def gather(self, G: Floats) -> Floats:
        """
        Return Gᵀ times the matrix, shape (d, n_features).

        G (n, d): one number per row and label.
        """
        sums = np.asarray(self.X.T @ G, dtype=np.float64).T - np.outer(G.sum(axis=0), self.mean)
        return np.asarray(sums * self.factors)

    def for_given_columns(self, W: Floats, b: Floats) -> tuple[Floats, Floats]:
        """Return weights and intercepts for the columns as given."""
        coef = W * self.factors
        return coef, b - coef @ self.mean

    def mean_square(self, weights: Floats) -> float:
        """Return the weighted mean of the squared norms of the rows."""
        if sparse.issparse(self.X):
            second = np.asarray(self.X.power(2).T @ weights, dtype=np.float64) / weights.sum()
            first = np.asarray(self.X.T @ weights, dtype=np.float64) / weights.sum()
            moments = np.maximum(second - 2.0 * first * self.mean + self.mean**2, 0.0)
            return float(np.sum(moments * self.factors**2))
        total = 0.0
        for start in range(0, len(weights), _ROWS):
            rows = (self.X[start : start + _ROWS] - self.mean) * self.factors
            total += float(weights[start : start + _ROWS] @ np.einsum("ij,ij->i", rows, rows))
        return total / float(weights.sum())


@dataclass(frozen=True, eq=False)
class LabelObjective:
    """The objective of a linear label ranker."""

    rows: StandardizedRows  # the standardized rows
    targets: LabelTargets
    conversion: Conversion
    loss: Loss
    weights: Floats  # (n,): v, divided by Σ v_i |C_i|
    counts: NDArray[np.int64]  # (n,): |C_i|
    alpha: float
    fit_intercept: bool  # whether b is learnt

    @property
    def n_labels(self) -> int:
        """Number of labels d."""
        return int(self.targets.levels.shape[1])

    def loss_and_gradient(self, U: Floats) -> tuple[float, Floats]:
        """Return the mean loss at utilities U (n, d) and its gradient."""
        gradient = np.empty_like(U)

        def piece(first: int, last: int) -> float:
            code = self.loss.code
            return float(label_losses(self.targets, self.conversion, code, U, self.weights, gradient, first, last))

        return sum(parallel_map(piece, self._pieces, self._n_jobs)), gradient

    def hessian_product(self, U: Floats, V: Floats) -> Floats:
        """Return the Hessian at U times V."""
        products, code = np.empty_like(U), self.loss.code

        def piece(first: int, last: int) -> None:
            label_hessian_products(self.targets, self.conversion, code, U, self.weights, V, products, first, last)

        parallel_map(piece, self._pieces, self._n_jobs)
        return products

    def objective(self, W: Floats, b: Floats) -> float:
        """Return the loss plus the penalties."""
        return self.loss_and_gradient(self.rows.scores(W, b))[0] + 0.5 * self.alpha * float(np.sum(W**2))

    @property
    def _pieces(self) -> list[tuple[int, int]]:
        ends = np.linspace(0, len(self.weights), min(_PIECES, len(self.weights)) + 1).astype(int).tolist()
        return list(pairwise(ends))

    @property
    def _n_jobs(self) -> int:
        return threads_for(int(self.counts.sum()))


def newton(problem: LabelObjective, tol: float, max_iter: int) -> tuple[Floats, Floats, int]:
    """
    Minimise a smooth loss by a trust region and conjugate gradients.

    Returns: W (d, n_features), b (d,) for the standardized columns, and the number of steps.
    """
    d, p = problem.n_labels, problem.rows.X.shape[1]

    def parts(theta: Floats) -> tuple[Floats, Floats]:
        return theta[: d * p].reshape(d, p), theta[d * p :] if problem.fit_intercept else np.zeros(d)

    def joined(of_utilities: Floats, W: Floats) -> Floats:
        of_weights = (problem.rows.gather(of_utilities) + problem.alpha * W).ravel()
        return np.append(of_weights, of_utilities.sum(axis=0)) if problem.fit_intercept else of_weights

    start = np.zeros(d * p + d * problem.fit_intercept)
    last = start, np.zeros((len(problem.weights), d))

    def utilities(theta: Floats) -> Floats:
        """Return utilities at θ, cached: conjugate gradients need many products at one θ."""
        nonlocal last
        if not np.array_equal(theta, last[0]):
            last = theta.copy(), problem.rows.scores(*parts(theta))
        return last[1]

    def value_and_gradient(theta: Floats) -> tuple[float, Floats]:
        W, _ = parts(theta)
        value, gradient = problem.loss_and_gradient(utilities(theta))
        return value + 0.5 * problem.alpha * float(np.sum(W**2)), joined(gradient, W)

    def hessian_product(theta: Floats, direction: Floats) -> Floats:
        V, c = parts(direction)
        return joined(problem.hessian_product(utilities(theta), problem.rows.scores(V, c)), V)

    first = value_and_gradient(start)[0]
    small = np.sqrt(2.0 * problem.alpha * tol * first)
    options = {"gtol": small, "maxiter": max_iter, "initial_trust_radius": 10.0, "max_trust_radius": 1e6}
    solved = optimize.minimize(
        value_and_gradient, start, jac=True, hessp=hessian_product, method="trust-ncg", options=options
    )
    gap = float(np.linalg.norm(solved.jac)) ** 2 / (2.0 * problem.alpha) / first
    if gap > tol and (solved.nit >= max_iter or gap > _MAX_GAP):
        warn(
            f"Newton's method stopped after {solved.nit} steps, and the objective may be {gap:.1e} of its first value "
            f"above its minimum; tol={tol:g} requires less. Raise alpha, tol or max_iter.",
            ConvergenceWarning,
        )
    return *parts(solved.x), int(solved.nit)


def expand_constraints(
    X: Any, preferences: LabelPreferences, conversion: str = "all", above_zero: str = "all"
) -> tuple[Any, NDArray[np.int64], NDArray[np.int64]]:
    """
    Expand every constraint into a row of n_features · d columns, for any linear classifier without an intercept.

    This is constraint classification (Har-Peled et al., 2002). The row of "r above s" for example x holds x in the
    block of label r and −x in the block of s; the zero point has no block. Blocks have n_features entries (the paper
    prints d). Every second row is negated together with its class, so that both classes occur; a symmetric loss does
    not change. The matrix has up to 2 · n_features entries per constraint; `CalibratedLabelRanker`
    learns the same without storing it.
    """
    examples, winners, losers = preferences.constraints(conversion, above_zero)
    m, d = len(examples), preferences.shape[1]
    signs = np.where(np.arange(m) % 2 == 0, 1, -1)
    # each constraint contributes x to the block of its winner and −x to that of its loser
    both = np.column_stack([winners, losers]).ravel().astype(np.int32)
    signed = sparse.csr_array((np.outer(signs, [1.0, -1.0]).ravel(), both, 2 * np.arange(m + 1)), shape=(m, d + 1))
    rows = sparse.csr_array(X)[examples]
    blocks = [rows.multiply(signed[:, [label]]) for label in range(d)]
    return sparse.csr_array(sparse.hstack(blocks, format="csr")), signs.astype(np.int64), examples
