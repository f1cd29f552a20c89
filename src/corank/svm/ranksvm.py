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

from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from corank import exact
from corank.base import Ranker, as_weights
from corank.data.ranking import RankingData
from corank.errors import InputError
from corank.kernels import KERNELS, LinearKernel, as_kernel
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
        The kernel with numbers only.
    support_ : array of int64
        Rows that take part in a pair inside the margin: the others could go without changing the model.
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
        features = data if self._is_linear else self._features(data, weights)
        solution = exact.squared_hinge(
            features, alpha=float(self.alpha), weights=weights, tol=self.tol, max_iter=self.max_iter
        )
        if self._is_linear:
            self.coef_ = solution.coef
        else:
            self.dual_coef_ = self._root @ solution.coef
            del self._root
        partners = active_partners(data, np.asarray(features.X @ solution.coef, dtype=np.float64), weights)
        self.support_ = np.flatnonzero(partners > 0)
        self.n_support_pairs_ = int(partners.sum()) // 2
        self.objective_, self.n_iter_ = solution.objective, solution.n_iter
        return self

    @property
    def _is_linear(self) -> bool:
        return self.kernel == "linear" or isinstance(self.kernel, LinearKernel)

    def _features(self, data: RankingData, weights: Floats | None) -> RankingData:
        """The same problem on the rows of Φ."""
        seed = self.random_state
        if isinstance(seed, np.random.RandomState):
            seed = seed.randint(0, 2**32, size=4, dtype=np.uint32)
        for_kernel, for_rows = np.random.default_rng(seed).spawn(2)
        useful = np.ones(data.n_rows, dtype=bool) if data.pairs is not None else data.is_scored
        rows = np.flatnonzero(useful if weights is None else useful & (weights > 0.0))
        if self.n_basis is not None and self.n_basis < len(rows):
            rows = np.sort(for_rows.choice(rows, self.n_basis, replace=False))
        self.view_ = View(None, as_kernel(self.kernel), rows).fit(data.X, for_kernel)
        self.basis_rows_, self.basis_ = rows, self.view_.basis_of(data.X)
        self._root = _inverse_root(self.view_.gram(data.X[rows], self.basis_))
        features = np.concatenate([block @ self._root for _, block in self.view_.blocks(data.X, self.basis_)])
        if data.pairs is not None:
            return RankingData.of_pairs(features, data.pairs, data.queries.codes)
        assert data.y is not None
        return RankingData.of_checked(features, data.y, data.queries)

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


def _inverse_root(K: NDArray[Any]) -> Floats:
    """VΛ^(−½) of K = VΛVᵀ, without directions that are rounding errors."""
    values, vectors = linalg.eigh(np.asarray(K, dtype=np.float64))
    rounding = len(K) * np.finfo(K.dtype).eps * max(float(values[-1]), 0.0)
    kept = values > rounding
    if not kept.any():
        raise InputError("the kernel is zero for all basis rows, so there is nothing to learn from; choose another.")
    return np.asarray(vectors[:, kept] / np.sqrt(values[kept]))
