"""
RankSVM with the squared hinge loss, linear or with a kernel, solved exactly.

Minimises  mean_P ½ max(0, 1 − (f(a) − f(b)))² + alpha/2 ‖f‖²  over the pairs P of rows of one query, a with the
higher score, or over given preferences of a to b. Linear: f(x) = w·x, by truncated Newton on w, O(n d + n log n) a
product for any number of pairs. With a kernel: f(x) = Σ_j c_j k(x, z_j) over r basis rows z, where ‖f‖² = cᵀK̂c,
K̂ the Gram matrix of the basis. With K̂ = VΛVᵀ and Φ = K̄VΛ^(−½), this is the linear problem on the rows of Φ:
O(n r² + r³) once, then the same Newton method. With all scored rows as the basis it is exact (representer theorem).

For the plain hinge loss use ``SPD(loss="hinge")``.

References: Herbrich, Graepel and Obermayer, Large margin rank boundaries for ordinal regression, 2000; Lee and Lin,
Large-scale linear RankSVM, 2014.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from corank.base import solvers as exact
from corank.base.base import Ranker
from corank.base.docs import shared_parameters
from corank.base.held_out import HeldOut
from corank.base.kernels import Kernel, as_kernel
from corank.base.kernels.basis import Basis, FeatureMap, choose_basis, require_choice
from corank.base.kernels.kernel import require_square
from corank.base.kernels.views import View
from corank.base.solvers.penalty import default_alpha
from corank.base.solvers.smooth_losses import block_of
from corank.core.pairs.losses import squared_hinge_loss
from corank.core.rows.access import factors_of
from corank.core.threads import cut, n_threads, parallel_map
from corank.data.ranking import RankingData
from corank.data.scoring import score_columns
from corank.errors import InputError
from corank.fitted import Relations, Shapes
from corank.parameters import (
    Missing,
    QueryWeight,
    Rules,
    boolean,
    integer,
    kernel,
    listing,
    none,
    number,
    seed,
    text,
)

Floats = NDArray[np.float64]


def active_partners(data: RankingData, scores: Floats) -> NDArray[np.int64]:
    """Count for each row the rows it is compared with at a margin below 1, in O(n log n)."""
    out = np.zeros(data.n_rows, dtype=np.int64)
    if data.pairs is not None:
        winners, losers = data.pairs.T
        active = (scores[winners] - scores[losers] < 1.0) & (data.pair_weight > 0.0)
        np.add.at(out, data.pairs[active].ravel(), 1)
        return out
    # with weights 0 and 1, the weight of the partners is their number
    counted = data if data.weights is None else replace(data, weights=(data.weights > 0.0).astype(np.float64))
    rows, (block, _) = data.order[data.is_scored[data.order]], block_of(counted)
    order, gradient, degree = np.empty(len(rows), dtype=np.int64), np.empty(len(rows)), np.empty(len(rows))
    s, runs = scores[rows], cut(block.starts, n_threads())
    parallel_map(lambda first, last: squared_hinge_loss(block, s, first, last, order, gradient, degree), runs)
    out[rows] = np.rint(degree).astype(np.int64)
    return out


@dataclass(frozen=True, eq=False)
class RankSVMModel:
    """A fitted model; see the attributes of `RankSVM`."""

    alpha: float
    alpha_from: str
    kernel: Kernel
    coef: Floats | None
    dual_coef: Floats | None
    basis: Basis | None
    support: NDArray[np.int64]
    n_support_pairs: int
    objective: float
    n_iter: int


@shared_parameters
@dataclass(eq=False, repr=False)
class RankSVM(Ranker):
    """
    Large-margin ranker.

    Parameters
    ----------
    alpha : float, optional
        Weight of ½‖f‖², above zero. None chooses it from the size and number of the differences of rows, see
        `corank.base.solvers.penalty`. The C of the papers, a weight of the summed loss, is 1 / (alpha · number of
        pairs).
    kernel : str, Kernel or callable
        ``"linear"`` learns weights of columns; any other kernel learns coefficients of basis rows. A callable takes
        two sequences of rows, which may be any objects, and returns their Gram matrix.
    {query_weight}
    n_basis : int, optional
        Number of basis rows of a kernel. None takes all scored rows, which is exact.
    {basis}
    {scale}
    {missing}
    tol, max_iter
        As in `corank.SPD`.
    {random_state}
    {verbose}

    Attributes
    ----------
    alpha_ : float
        Weight of the penalty.
    alpha_from_ : str
        How alpha was chosen: "given" or "pair differences".
    coef_ : array of shape (n_features,)
        Weights; linear kernel only.
    dual_coef_ : array of shape (r,)
        Coefficients of the basis rows; other kernels only.
    basis_ : Basis
        The basis rows; other kernels only.
    kernel_ : Kernel
        The kernel with its chosen parameters.
    support_ : array of int64
        Rows of at least one pair inside the margin. The other rows do not affect the model, except through the number
        of pairs over which the loss is averaged.
    n_support_pairs_ : int
        Number of pairs inside the margin.
    objective_ : float
        Value of the objective.
    n_iter_ : int
        Newton steps.

    Examples
    --------
    >>> from corank import RankSVM, make_ranking
    >>> problem = make_ranking(40, 10, random_state=0)
    >>> model = RankSVM().fit(problem.X, problem.y, qid=problem.qid)
    >>> model.score(problem.X, problem.y, qid=problem.qid) > 0.75
    True
    """

    _rules: ClassVar[Rules] = {
        "alpha": number(0, inside="()") | none,
        "kernel": kernel,
        "n_basis": integer(1) | none,
        "basis": text | listing,
        "scale": boolean,
        "tol": number(0, 1, inside="()"),
        "max_iter": integer(1),
        "random_state": seed,
        "verbose": boolean,
    }

    _shapes: ClassVar[Shapes] = {"support_": ("support",)}
    _relations: ClassVar[Relations] = {
        "coef_ or dual_coef_ has the right length": lambda m: (
            hasattr(m, "coef_") or m.dual_coef_.shape == (len(m.basis_),)
        ),
    }

    _learns_sizes = False

    coef_: Floats = field(init=False)
    dual_coef_: Floats = field(init=False)
    basis_: Basis = field(init=False)

    alpha: float | None = None
    kernel: Any = "linear"
    _: KW_ONLY
    query_weight: QueryWeight = "pairs"
    n_basis: int | None = None
    basis: Any = "random"
    scale: bool = True
    missing: Missing = "mean"
    tol: float = 1e-10
    max_iter: int = 100
    random_state: Any = None
    verbose: bool = False

    def _check_combinations(self) -> None:
        require_choice(self.basis)
        if not as_kernel(self.kernel).is_linear:
            return
        for name, value in (("n_basis", self.n_basis), ("basis", None if isinstance(self.basis, str) else self.basis)):
            if value is not None:
                raise InputError(f"{name} is {value}, but a linear kernel has no basis; remove {name}.")

    def _fit(self, data: RankingData, held: HeldOut | None, rng: np.random.Generator) -> RankSVMModel:
        kernel, problem, phi = as_kernel(self.kernel), data, None
        if not kernel.is_linear:
            phi = self._features(kernel, data, rng)
            problem, kernel = _on_features(phi, data), phi.view.kernel
        alpha = self.alpha
        if alpha is None:
            alpha = default_alpha(problem, self.query_weight, n_columns=None if phi is None else 0)
        solution = exact.smooth_loss(
            problem,
            "squared_hinge",
            alpha=float(alpha),
            query_weight=self.query_weight,
            tol=self.tol,
            max_iter=self.max_iter,
            verbose=self.verbose,
        )
        scores = data.prior_of(np.arange(data.n_rows)) + np.asarray(problem.X @ solution.coef, dtype=np.float64)
        partners = active_partners(data, scores)
        factors = factors_of(problem.X)
        return RankSVMModel(
            alpha=float(alpha), alpha_from="pair differences" if self.alpha is None else "given", kernel=kernel,
            coef=None if phi is not None else solution.coef if factors is None else factors * solution.coef,
            dual_coef=None if phi is None else phi.coefficients(solution.coef),
            basis=None if phi is None else phi.basis,
            support=np.flatnonzero(partners > 0), n_support_pairs=int(partners.sum()) // 2,
            objective=solution.objective, n_iter=solution.n_iter,
        )  # fmt: skip

    def _features(self, kernel: Kernel, data: RankingData, rng: np.random.Generator) -> FeatureMap:
        for_kernel, for_rows = rng.spawn(2)
        view = View(None, kernel).fit(data.X, for_kernel, data.weights)
        numbers = choose_basis(view, data.X, data.scored_rows, self.n_basis, self.basis, for_rows)
        basis = Basis.of(view, data.X, numbers)
        # features of all rows, while the features of the basis are built
        require_square(len(basis), 3 + data.n_rows / max(len(basis), 1))
        return FeatureMap.on_basis(basis, data.X)

    def _score_rows(self, X: Any) -> Floats:
        """Return f(x)."""
        rows = self._checked_rows(X)
        # by fitted attributes: parameters may have changed since
        if hasattr(self, "basis_"):
            return self.basis_.score(self._scale_rows(rows), self.dual_coef_)
        return score_columns(rows, self.coef_)


def _on_features(phi: FeatureMap, data: RankingData) -> RankingData:
    """Return the same problem on the rows of Φ; unjudged rows are zero."""
    assert phi.basis is not None
    assert phi.T is not None
    features, numbers = np.zeros((data.n_rows, phi.n_features)), data.scored_rows
    for piece, K in phi.basis.blocks(data.X, numbers):
        features[numbers[piece]] = K @ phi.T
    return replace(data, X=features)
