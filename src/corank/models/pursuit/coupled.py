"""
The steps of a pursuit in several views that must agree on unjudged rows.

For columns γ = (γ_1..γ_M) of the views the best coefficients solve (B + C) a = e, where e_v = k_vᵀLr_v,
B = diag(k_vᵀLk_v), C_vv = 2ν(M − 1) k̄_vᵀL̂k̄_v and C_vu = −2ν k̄_vᵀL̂k̄_u, k̄ the column over the unjudged rows. If whole
views must agree, not steps, e_v = k_vᵀLr_v − 2ν k̄_vᵀL̂ Σ_u (f̄_v − f̄_u), f̄ the view so far over the unjudged rows. The
objective then falls by eᵀ(B + C)⁻¹e, which a search over γ maximises:

* two views, joint: all N_1 N_2 pairs, in closed form; the cross terms are computed once;
* shared: γ_v equal in all views, N systems of size M × M;
* any number of views, joint: coordinate ascent over the views, started from each view's own best column and from the
  best shared one. The Schur complement evaluates all columns of a view in one product. The result is a local optimum,
  not worse than the shared choice.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from corank.base.kernels.basis import Basis
from corank.base.pairs import Laplacian
from corank.core.models.pursuit import joint_best
from corank.core.threads import parallel_map
from corank.data.queries import Queries
from corank.data.ranking import RankingData
from corank.models.pursuit.dictionary import Dictionary, Floats, InnerProduct, Target, kernel_columns

SEARCHES = ("joint", "shared")

# largest number of rounds of coordinate ascent
_SWEEPS = 20
# largest ratio of agreement to scores, which keeps half the digits of the scores
_MAX_RATIO = 1e8
# a fixed number of parts, so that ties do not depend on the number of threads
_PIECES = 8


class JointStep(NamedTuple):
    """A column of each view, their coefficients, and the decrease of the objective."""

    columns: NDArray[np.int64]
    coefs: Floats
    gain: float  # eᵀ(B + C)⁻¹e; 0 if no column can be chosen


@dataclass(frozen=True, eq=False)
class CoupledViews:
    """The views of a problem, and the search for the next step."""

    scored: list[Dictionary]  # scored, unscored: dictionaries of the views over the scored and over the unjudged rows
    unscored: list[Dictionary]
    inner: InnerProduct
    agreement: Laplacian  # L̂
    requested: float  # ν as the user passed it

    def __post_init__(self) -> None:
        # a view without a usable column is replaced by a column of zeros, whose coefficient is 0
        for v, norms in enumerate(self._norms):
            if not norms.any():
                norms[0] = 1.0
                self.scored[v], self.unscored[v] = (
                    Dictionary(np.zeros_like(part[v].D)) for part in (self.scored, self.unscored)
                )

    def __len__(self) -> int:
        return len(self.scored)

    def correlate(self, v: list[Floats], so_far: list[Floats] | None = None) -> list[Floats]:
        """
        Return e_γ of all columns of each view.

        so_far (l,): f̄ of each view, if whole views must agree.
        """
        e = [dictionary.correlate(residual) for dictionary, residual in zip(self.scored, v, strict=True)]
        if so_far is None or not self._couples:
            return e
        disagreements = [self.agreement @ (len(self) * f - np.sum(so_far, axis=0)) for f in so_far]
        return [
            item - 2.0 * self.coupling * dictionary.correlate(gap)
            for item, dictionary, gap in zip(e, self.unscored, disagreements, strict=True)
        ]

    def search(self, e: list[Floats], how: str) -> JointStep:
        """Choose a column in each view."""
        if how == "shared":
            return self._shared(e)
        return self._joint_two(e) if len(self) == 2 and self._couples else self._joint_any(e)

    @property
    def _couples(self) -> bool:
        return self.requested > 0.0 and len(self) > 1

    @cached_property
    def coupling(self) -> float:
        """ν, limited so that agreement outweighs the scores at most `_MAX_RATIO` times: B must not vanish in B + C."""
        scores, agreement = (
            max(float(item.max()) for item in squares) for squares in (self._norms, self._disagreements)
        )
        return min(self.requested, _MAX_RATIO * scores / agreement) if agreement > 0.0 else self.requested

    @cached_property
    def _disagreements(self) -> list[Floats]:
        """k̄ᵀL̂k̄ of all columns of each view."""
        over = InnerProduct(self.agreement, 0.0, np.ones(self.agreement.n))
        return [np.concatenate([over.squares(block) for _, block in item.blocks()]) for item in self.unscored]

    @cached_property
    def _norms(self) -> list[Floats]:
        return [dictionary.squares(self.inner) for dictionary in self.scored]

    @cached_property
    def _usable(self) -> list[NDArray[np.int64]]:
        return [np.flatnonzero(norms > 0.0) for norms in self._norms]

    @cached_property
    def _diagonals(self) -> list[Floats]:
        """B_vv + C_vv of all columns of each view."""
        if not self._couples:
            return self._norms
        weight = 2.0 * self.coupling * (len(self) - 1)
        return [norms + weight * squares for norms, squares in zip(self._norms, self._disagreements, strict=True)]

    def _joint_two(self, e: list[Floats]) -> JointStep:
        first, second = self._usable
        root1, root2 = self._roots
        e1, e2 = e[0][first] / root1, e[1][second] / root2
        ends = np.linspace(0, len(first), _PIECES + 1).astype(int)
        runs = [(int(a), int(b)) for a, b in pairwise(ends) if b > a]
        bests = parallel_map(lambda begin, end: joint_best(self._cross, e1, e2, begin, end), runs)
        gain, i, j = max(bests, key=lambda best: best[0])
        x = self._cross[i, j]
        a = np.array([(e1[i] - x * e2[j]) / root1[i], (e2[j] - x * e1[i]) / root2[j]]) / (1.0 - x * x)
        return JointStep(np.array([first[i], second[j]]), a, float(gain))

    @cached_property
    def _roots(self) -> list[Floats]:
        """Roots of the diagonal of B + C, for usable columns."""
        return [np.sqrt(d[usable]) for d, usable in zip(self._diagonals, self._usable, strict=True)]

    @cached_property
    def _cross(self) -> Floats:
        """C_12 of all pairs of usable columns, divided by the roots of the diagonal."""
        first, second = self._usable
        left = self.unscored[0].D[:, first].astype(np.float64) / self._roots[0]
        right = self.agreement @ (self.unscored[1].D[:, second].astype(np.float64) / self._roots[1])
        x = np.asarray(-2.0 * self.coupling * (left.T @ right))
        # in exact arithmetic, |x|² is at most the product of C's shares in the diagonal, so 1 − x² is positive
        bounds = [
            np.sqrt(np.maximum(1.0 - norms[usable] / roots**2, 0.0))
            for norms, usable, roots in zip(self._norms, self._usable, self._roots, strict=True)
        ]
        bound = np.minimum(np.outer(*bounds), 1.0 - np.finfo(np.float64).eps)
        return np.asarray(np.clip(x, -bound, bound, out=x))

    def _shared(self, e: list[Floats]) -> JointStep:
        usable = self._usable_in_all
        if not len(usable):
            return JointStep(np.zeros(len(self), dtype=np.int64), np.zeros(len(self)), 0.0)
        right = np.stack([item[usable] for item in e], axis=1)
        a = np.linalg.solve(self._shared_systems[usable], right[:, :, None])[:, :, 0]
        gains = np.einsum("gv,gv->g", right, a)
        best = int(np.argmax(gains))
        return JointStep(np.full(len(self), usable[best]), a[best], float(gains[best]))

    @cached_property
    def _usable_in_all(self) -> NDArray[np.int64]:
        return np.flatnonzero(np.all([norms > 0.0 for norms in self._norms], axis=0))

    @cached_property
    def _shared_systems(self) -> Floats:
        """B + C for every column, chosen in all views; the identity for unusable columns."""
        M, N = len(self), len(self.scored[0])
        A = np.zeros((N, M, M))
        for v in range(M):
            A[:, v, v] = np.where(self._norms[v] > 0.0, self._diagonals[v], 1.0)
            for u in range(v):
                if self._couples:
                    A[:, v, u] = A[:, u, v] = -2.0 * self.coupling * self._products(v, u)
        return A

    def _products(self, v: int, u: int) -> Floats:
        """k̄_vᵀL̂k̄_u, column by column."""
        out = np.empty(len(self.unscored[v]))
        for (piece, left), (_, right) in zip(self.unscored[v].blocks(), self.unscored[u].blocks(), strict=True):
            out[piece] = np.einsum("ij,ij->j", left, self.agreement @ right)
        return out

    def _joint_any(self, e: list[Floats]) -> JointStep:
        alone = [_where(item**2, d, usable) for item, d, usable in zip(e, self._diagonals, self._usable, strict=True)]
        columns = np.array([int(np.argmax(gains)) for gains in alone])
        if not self._couples:
            coefs = np.array([e[v][j] / self._norms[v][j] for v, j in enumerate(columns)])
            return JointStep(columns, coefs, float(sum(gains[j] for gains, j in zip(alone, columns, strict=True))))
        starts = [columns]
        if len({len(item) for item in e}) == 1 and len(self._usable_in_all):
            starts.append(self._shared(e).columns)
        return max((self._climb(e, start) for start in starts), key=lambda choice: choice.gain)

    def _climb(self, e: list[Floats], columns: NDArray[np.int64]) -> JointStep:
        """Coordinate ascent over the views, until no column changes."""
        for _ in range(_SWEEPS):
            before = columns.copy()
            for v in range(len(self)):
                columns[v] = self._best_given_others(e, columns, v)
            if (columns == before).all():
                break
        A, right = self._system(columns), np.array([e[v][j] for v, j in enumerate(columns)])
        a = np.linalg.solve(A, right)
        return JointStep(columns, a, float(right @ a))

    def _best_given_others(self, e: list[Floats], columns: NDArray[np.int64], v: int) -> int:
        """Best column of view v with the other views fixed; the current one in a tie."""
        others = [u for u in range(len(self)) if u != v]
        fixed = np.stack([self.unscored[u].column(columns[u]) for u in others], axis=1)
        crosses = -2.0 * self.coupling * (self.agreement @ fixed)
        x = np.stack([self.unscored[v].correlate(crosses[:, k]) for k in range(len(others))])
        S = self._system(columns)[np.ix_(others, others)]
        e_F = np.array([e[u][columns[u]] for u in others])
        solved = np.linalg.solve(S, np.column_stack([e_F, x]))
        numerator = (e[v] - e_F @ solved[:, 1:]) ** 2
        gains = _where(numerator, self._diagonals[v] - np.einsum("fg,fg->g", x, solved[:, 1:]), self._usable[v])
        best = int(np.argmax(gains))
        return best if gains[best] > gains[columns[v]] else int(columns[v])

    def _system(self, columns: NDArray[np.int64]) -> Floats:
        """B + C of chosen columns."""
        U = np.stack([item.column(j) for item, j in zip(self.unscored, columns, strict=True)], axis=1)
        A = -2.0 * self.coupling * np.asarray(self.agreement.quad(U))
        A[np.diag_indices(len(self))] = [d[j] for d, j in zip(self._diagonals, columns, strict=True)]
        return A


def _where(numerator: Floats, denominator: Floats, usable: NDArray[np.int64]) -> Floats:
    out = np.full(len(numerator), -np.inf)
    out[usable] = numerator[usable] / denominator[usable]
    return out


def couple_views(
    views: list[Basis], data: RankingData, target: Target, query_weight: str, coupling: float
) -> CoupledViews:
    """Build the dictionaries of all views and their agreement."""
    rows = data.unscored_rows
    queries = Queries.of(data.queries.codes[rows], len(rows))
    # queries with a single unjudged row have no pairs
    couples = bool((queries.sizes > 1).any())
    w = None if data.weights is None or not couples else data.weights[rows]
    agreement = Laplacian.per_query(queries, query_weight, weights=w)
    scored, unscored = (_columns(views, data.X, chosen) for chosen in (target.rows, rows))
    return CoupledViews(scored, unscored, target.inner, agreement, float(coupling) if couples else 0.0)


def stacked_views(views: list[Basis], X: Any, rows: NDArray[np.int64]) -> Dictionary:
    """Concatenate the dictionaries of all views, divided by their number, so that sums are means of the views."""
    return Dictionary(np.hstack([part.D / len(views) for part in _columns(views, X, rows)]))


def _columns(views: list[Basis], X: Any, rows: NDArray[np.int64]) -> list[Dictionary]:
    return [kernel_columns(basis, X, rows) for basis in views]


def coupled_steps(coupled: CoupledViews, v: Floats, how: str, residual: str) -> Iterator[JointStep]:
    """
    Yield steps, each after the earlier ones were applied.

    how {"joint", "shared"}: see `CoupledViews.search`.
    residual {"shared", "separate"}: whether all views approximate the residual of their mean and steps must agree, or
        each its own residual and whole views must agree.
    """
    M = len(coupled)
    residuals = [v] * M
    so_far = [np.zeros(coupled.agreement.n)] * M if residual == "separate" else None
    while True:
        choice = coupled.search(coupled.correlate(residuals, so_far), how)
        yield choice
        chosen = list(zip(choice.columns, choice.coefs, strict=True))
        moves = [coupled.inner.apply(a * item.column(j)) for item, (j, a) in zip(coupled.scored, chosen, strict=True)]
        if so_far is None:
            moves = [np.mean(moves, axis=0)] * M
        else:
            so_far = [f + a * item.column(j) for f, item, (j, a) in zip(so_far, coupled.unscored, chosen, strict=True)]
        residuals = [residual_v - move for residual_v, move in zip(residuals, moves, strict=True)]
