"""
RankSVM with the squared hinge, exactly, linear or with a kernel.

Minimises  mean_P ½ max(0, 1 − (f(a) − f(b)))² + alpha/2 ‖f‖²  over the pairs P of rows of one query, a with the
higher score. Linear: f(x) = w·x, by truncated Newton on w, O(n d + n log n) a product, whatever the number of pairs.
With a kernel: f(x) = Σ_j c_j k(x, z_j) over r basis rows z, where ‖f‖² = cᵀK̂c, K̂ the Gram matrix of the basis. With
K̂ = VΛVᵀ and Φ = K̄VΛ^(−½), that is the linear problem on the rows of Φ: O(n r² + r³) once, then the same Newton. All
scored rows as the basis lose nothing (the representer theorem).

The plain hinge is the descent room's: ``SPD(loss="hinge")``.

References: Herbrich, Graepel and Obermayer, Large margin rank boundaries for ordinal regression, 2000; Lee and Lin,
Large-scale linear RankSVM, 2014.
"""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from corank import exact
from corank.base import Ranker, as_weights, rng_of
from corank.data.ranking import RankingData
from corank.data.weights import require_weight, rows_to_learn_from
from corank.errors import InputError
from corank.kernels import KERNELS, LinearKernel, inverse_root, require_finite, require_square
from corank.svm.support import active_partners
from corank.views import View

Floats = NDArray[np.float64]


class RankSVM(Ranker):
    """
    Large-margin ranker.

    Parameters
    ----------
    alpha : float
        Weight of ½‖f‖², above zero.
    kernel : str, Kernel or callable
        ``"linear"`` learns weights of columns; any other kernel learns coefficients of basis rows.
    n_basis : int, optional
        Number of basis rows of a kernel, drawn at random from the scored rows; all of them by default.
    tol : float
        Size of the gradient to stop at, relative to its first.
    max_iter : int
        Most Newton steps.
    random_state : int, RandomState or None
        Seed of the basis and of the kernel's "median".

    Attributes
    ----------
    coef_ : array of shape (n_features,)
        Weights; linear kernel only.
    dual_coef_ : array of shape (r,)
        Coefficients of the basis rows; other kernels only.
    basis_rows_ : array of int64, shape (r,)
        Row numbers of the basis; other kernels only.
    basis_ : array or CSR matrix
        The basis rows, which predictions compare with; other kernels only.
    view_ : View
        The kernel with numbers only; other kernels only.
    support_ : array of int64
        Rows that take part in a pair inside the margin. The others pull at nothing; without them the same
        model takes a larger `alpha`, since the loss is a mean over pairs.
    n_support_pairs_ : int
        Pairs inside the margin.
    objective_ : float
        Value of the objective.
    n_iter_ : int
        Newton steps.

    Examples
    --------
    >>> from corank import RankSVM, make_ranking
    >>> problem = make_ranking(40, 10, random_state=0)
    >>> model = RankSVM(alpha=0.1).fit(problem.X, problem.y, qid=problem.qid)
    >>> model.score(problem.X, problem.y, qid=problem.qid) > 0.75
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "alpha": [Interval(Real, 0, None, closed="neither")],
        "kernel": [StrOptions(set(KERNELS)), HasMethods(["__call__"])],
        "n_basis": [Interval(Integral, 1, None, closed="left"), None],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        alpha: float = 1e-2,
        kernel: Any = "linear",
        *,
        n_basis: int | None = None,
        tol: float = 1e-8,
        max_iter: int = 100,
        random_state: Any = None,
    ) -> None:
        self.alpha = alpha
        self.kernel = kernel
        self.n_basis = n_basis
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    def fit(
        self, X: Any, y: ArrayLike | None = None, *, qid: ArrayLike | None = None, sample_weight: Any = None
    ) -> Self:
        """
        Find the optimum.

        Parameters
        ----------
        X : array-like, CSR matrix, DataFrame, or RankingData
            The rows, or a whole problem (then y and qid stay None), which may consist of preference pairs.
        y : array-like of shape (n_rows,)
            Scores, higher is better; NaN marks an unscored row, which is not looked at.
        qid : array-like of shape (n_rows,), optional
            One query id per row; None puts all rows in one query.
        sample_weight : array-like of shape (n_rows,), optional
            A weight of 2 means what writing the row twice means: a pair weighs the product of its rows.

        Returns
        -------
        self
            The fitted ranker.
        """
        self._validate_params()
        if self._is_linear and self.n_basis is not None:
            raise InputError(f"n_basis is {self.n_basis}, but a linear kernel has no basis; leave it out.")
        data = self._problem(X, y, qid)
        data.require_pairs()
        weights = as_weights(sample_weight, data.n_rows)
        seen = None if self._is_linear else self._seen(data, weights)
        features = data if seen is None else _features(*seen, data)
        solution = exact.smooth_loss(
            features, "squared_hinge", alpha=float(self.alpha), weights=weights, tol=self.tol, max_iter=self.max_iter
        )
        partners = active_partners(data, np.asarray(features.X @ solution.coef, dtype=np.float64), weights)
        self._forget()
        if seen is None:
            self.coef_ = solution.coef
        else:
            view, root = seen
            self.view_, self.basis_rows_, self.basis_ = view, view.basis, view.basis_of(data.X)
            self.dual_coef_ = root @ solution.coef
        self.support_ = np.flatnonzero(partners > 0)
        self.n_support_pairs_ = int(partners.sum()) // 2
        self.objective_, self.n_iter_ = solution.objective, solution.n_iter
        return self

    @property
    def _is_linear(self) -> bool:
        return self.kernel == "linear" or isinstance(self.kernel, LinearKernel)

    def _seen(self, data: RankingData, weights: Floats | None) -> tuple[View, Floats]:
        """The kernel with its basis, and VΛ^(−½)."""
        for_kernel, for_rows = rng_of(self.random_state).spawn(2)
        rows = rows_to_learn_from(data, weights)
        require_weight(len(rows), "pair")
        if self.n_basis is not None and self.n_basis < len(rows):
            rows = np.sort(for_rows.choice(rows, self.n_basis, replace=False))
        view = View(None, self.kernel, rows)
        require_square(data.X, view.kernel)
        view = view.fit(data.X, for_kernel)
        return view, _inverse_root(view, data.X)

    def predict(self, X: Any) -> Floats:
        """
        Score rows.

        Parameters
        ----------
        X : array-like, CSR matrix or DataFrame, shape (n_rows, n_features)
            The rows.

        Returns
        -------
        array of shape (n_rows,)
            f(x), higher is better.
        """
        rows = self._new_rows(X)
        if self._is_linear:
            return np.asarray(rows @ self.coef_, dtype=np.float64)
        return np.asarray(self.view_.gram(rows, self.basis_) @ self.dual_coef_, dtype=np.float64)


def _inverse_root(view: View, X: Any) -> Floats:
    """VΛ^(−½) of K̂ = VΛVᵀ, without directions that are rounding errors."""
    with np.errstate(over="ignore", invalid="ignore"):
        K = view.gram(X[view.basis], view.basis_of(X))
    require_finite(K)
    root = inverse_root(np.array(K, dtype=np.float64), len(K) * float(np.finfo(K.dtype).eps))
    if not root.shape[1]:
        raise InputError("the kernel is zero for all basis rows, so there is nothing to learn from; choose another.")
    return root


def _features(view: View, root: Floats, data: RankingData) -> RankingData:
    """The same problem on the rows of Φ = K̄VΛ^(−½)."""
    features = np.empty((data.n_rows, root.shape[1]))
    with np.errstate(over="ignore", invalid="ignore"):
        for piece, K in view.blocks(data.X, view.basis_of(data.X)):
            require_finite(K)
            features[piece] = K @ root
    return replace(data, X=features)
