"""
All constraints at once, without a list of them: Newton's method for smooth losses, stochastic descent for all.

Minimises  Σ_i v_i Σ_{(r,s) ∈ C_i} ℓ(u_r(x_i) − u_s(x_i)) / Σ_i v_i |C_i| + alpha/2 ‖W‖² + l1 ‖W‖₁  with u = Wx + b and
u_0 = 0 for the zero point; b has no penalty. Constraints are made anew whenever they are looked at: memory is
O(n_rows · d + n_features · d) for Newton's method and O(n_features · d) for the descent, beside X; the descent centres
a copy of dense rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy import optimize
from sklearn.exceptions import ConvergenceWarning

from corank.core.labels.constraints import Conversion, LabelTargets
from corank.core.labels.descent import MASS, N_ENTRIES, DescentPlan, DescentState, descend_labels, last_weights
from corank.core.labels.margins import label_bends, label_costs
from corank.core.random import alias_table, seed_state
from corank.core.rows.access import as_core_rows
from corank.core.rows.scaled import ScaledRows
from corank.core.threads import spread, threads_for
from corank.errors import warn
from corank.label_ranking.seen import SeenRows
from corank.pairwise.losses import Loss
from corank.progress import progress

Floats = NDArray[np.float64]

# examples are passed over in a fixed number of pieces, so that sums do not depend on the number of threads
_PIECES = 8
# share of the objective that rounding does not explain where Newton's method finds no better place
_FAR = 1e-6
# steps between two looks at the keyboard
_STEPS_AT_ONCE = 1 << 14


@dataclass(frozen=True, eq=False)
class Constraint:
    """
    What is minimised.

    rows: the rows as they are seen.
    weights (n,): v, divided by Σ v_i |C_i|.
    counts (n,): |C_i|.
    fit_intercept: whether b is learnt.
    """

    rows: SeenRows
    targets: LabelTargets
    conversion: Conversion
    loss: Loss
    weights: Floats
    counts: NDArray[np.int64]
    alpha: float
    l1: float
    fit_intercept: bool

    @property
    def n_labels(self) -> int:
        """Number of labels d."""
        return int(self.targets.levels.shape[1])

    def costs(self, U: Floats) -> tuple[float, Floats]:
        """Return the mean loss at utilities U (n, d), and its slope there."""
        slopes = np.empty_like(U)

        def piece(first: int, last: int) -> float:
            code = self.loss.code
            return float(label_costs(self.targets, self.conversion, code, U, self.weights, slopes, first, last))

        return sum(spread(piece, self._pieces, self._n_jobs)), slopes

    def bends(self, U: Floats, V: Floats) -> Floats:
        """Return the second derivative at U times V."""
        bends = np.empty_like(U)

        def piece(first: int, last: int) -> None:
            label_bends(self.targets, self.conversion, self.loss.code, U, self.weights, V, bends, first, last)

        spread(piece, self._pieces, self._n_jobs)
        return bends

    def objective(self, W: Floats, b: Floats) -> float:
        """Return the whole objective."""
        return (
            self.costs(self.rows.scores(W, b))[0]
            + 0.5 * self.alpha * float(np.sum(W**2))
            + self.l1 * float(np.abs(W).sum())
        )

    @property
    def _pieces(self) -> list[tuple[int, int]]:
        ends = np.linspace(0, len(self.weights), min(_PIECES, len(self.weights)) + 1).astype(int).tolist()
        return list(pairwise(ends))

    @property
    def _n_jobs(self) -> int:
        return threads_for(int(self.counts.sum()))


@dataclass(frozen=True, eq=False)
class Found:
    """
    Weights and intercepts in the columns as they are seen, and the steps that led there.

    W (d, n_features), b (d,).
    """

    W: Floats
    b: Floats
    n_iter: int


def newton(problem: Constraint, tol: float, max_iter: int) -> Found:
    """
    Minimise a smooth loss without L1 penalty by a trust region and conjugate gradients.

    tol: stops where ‖gradient‖²/(2 alpha), which bounds what is left to gain, is this share of the objective at 0.
    max_iter: most steps; a `ConvergenceWarning` says where they did not suffice.
    """
    d, p = problem.n_labels, problem.rows.X.shape[1]

    def parts(theta: Floats) -> tuple[Floats, Floats]:
        return theta[: d * p].reshape(d, p), theta[d * p :] if problem.fit_intercept else np.zeros(d)

    def joined(slopes: Floats, W: Floats) -> Floats:
        gradient = (problem.rows.gather(slopes) + problem.alpha * W).ravel()
        return np.append(gradient, slopes.sum(axis=0)) if problem.fit_intercept else gradient

    start = np.zeros(d * p + d * problem.fit_intercept)
    last = start, np.zeros((len(problem.weights), d))

    def utilities(theta: Floats) -> Floats:
        """Utilities at θ; conjugate gradients ask for many products at one place."""
        nonlocal last
        if not np.array_equal(theta, last[0]):
            last = theta.copy(), problem.rows.scores(*parts(theta))
        return last[1]

    def value_and_slope(theta: Floats) -> tuple[float, Floats]:
        W, _ = parts(theta)
        value, slopes = problem.costs(utilities(theta))
        return value + 0.5 * problem.alpha * float(np.sum(W**2)), joined(slopes, W)

    def bend(theta: Floats, direction: Floats) -> Floats:
        V, c = parts(direction)
        return joined(problem.bends(utilities(theta), problem.rows.scores(V, c)), V)

    first = value_and_slope(start)[0]
    small = np.sqrt(2.0 * problem.alpha * tol * first)
    options = {"gtol": small, "maxiter": max_iter, "initial_trust_radius": 10.0, "max_trust_radius": 1e6}
    found = optimize.minimize(value_and_slope, start, jac=True, hessp=bend, method="trust-ncg", options=options)
    gap = float(np.linalg.norm(found.jac)) ** 2 / (2.0 * problem.alpha) / first
    if gap > tol and (found.nit >= max_iter or gap > _FAR):
        warn(
            f"Newton's method stopped after {found.nit} steps, up to {gap:.1e} of the first objective above its "
            f"minimum, where tol={tol:g} asks for less; raise alpha, tol or max_iter.",
            ConvergenceWarning,
        )
    W, b = parts(found.x)
    return Found(W, b, int(found.nit))


def descend(problem: Constraint, n_steps: int, rng: np.random.Generator, verbose: bool) -> Found:
    """
    Take stochastic steps, an example each; the mean of the second half of them is what is found, or the last with L1.

    n_steps: number of steps.
    rng: dice.
    verbose: whether to show a progress bar.
    """
    rows = problem.rows
    d, p = problem.n_labels, rows.X.shape[1]
    law = problem.weights * problem.counts
    # a step of this rate moves a margin by about one where it is pulled by one
    eta0 = 1.0 / (problem.alpha + 2.0 * rows.mean_square(law) + 2.0 * problem.fit_intercept)
    plan = DescentPlan(problem.conversion, problem.loss.code, problem.alpha, problem.l1, eta0, problem.fit_intercept)
    state = DescentState(
        np.zeros((d, p)), np.zeros((d, p)), np.zeros(d), np.zeros(d), np.zeros(N_ENTRIES), seed_state(rng)
    )
    seen = (rows.X - rows.mean) * rows.factors if rows.mean.any() else ScaledRows(rows.X, rows.factors)
    core, table = as_core_rows(seen), alias_table(law)
    with progress(n_steps, "steps", verbose) as advance:
        for half in (n_steps // 2, n_steps - n_steps // 2):
            state.ledger[MASS] = 0.0
            state.sums[:] = 0.0
            state.bias_sums[:] = 0.0
            for start in range(0, half, _STEPS_AT_ONCE):
                steps = min(_STEPS_AT_ONCE, half - start)
                descend_labels(core, table, problem.targets, plan, state, steps)
                advance(steps)
    last = max(n_steps - n_steps // 2, 1)
    W = (state.ledger[MASS] * state.pulls + state.sums) / last
    if problem.l1 > 0.0:
        last_weights(state, plan, W)
    return Found(W, state.bias_sums / last, n_steps)
