"""
Landmarks: φ(x) = (k(x, x_1), ..., k(x, x_r)) for r rows chosen from the data; non-linear ranking by a linear ranker.

Costs O(n r d) for dense rows, O(r · non-zeros) for CSR, and n·r numbers of memory for the result.
"""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from corank.core.rows.scaled import ScaledRows
from corank.data.problem.column_scales import column_factors
from corank.data.problem.queries import Queries
from corank.data.problem.ranking import RankingData
from corank.data.problem.rows import as_objects, as_rows, columns_of, is_table
from corank.errors import InputError
from corank.kernels import Basis, Kernel, as_kernel, choose_basis, require_choice
from corank.kernels.views import View
from corank.parameters import Rules, boolean, check_values, kernel, listing, rng_of, seed, text, whole


class Landmarks(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """
    Describe each row by its similarity to a few landmark rows.

    Parameters
    ----------
    n_basis : int
        Number of landmarks; all rows where there are fewer.
    kernel : str, Kernel or callable
        The similarity (see `corank.kernels.as_kernel`); CSR rows need a kernel that takes them.
    basis : {"random", "kmeans++"} or array-like of int
        Rows drawn without replacement; one after the other with probability proportional to the squared distance to the
        nearest chosen so far: spread out, at O(n) distances a landmark; or these rows.
    scale : bool
        Whether columns are divided by their deviation before rows are compared.
    random_state : int, RandomState or None
        Chooses the landmarks and, for a median bandwidth, the rows it is taken from.

    Attributes
    ----------
    basis_ : Basis
        The landmarks.
    kernel_ : Kernel
        The kernel with its parameters resolved.
    column_scale_ : array of shape (n_features,)
        What columns are multiplied by; only with `scale`, and a kernel that may see columns so.

    Examples
    --------
    >>> X = [[0.0], [1.0], [5.0]]
    >>> Landmarks(2, "linear", random_state=0).fit(X).transform([[2.0]]).shape
    (1, 2)
    """

    _rules: ClassVar[Rules] = {
        "n_basis": whole(1),
        "kernel": kernel,
        "basis": text | listing,
        "scale": boolean,
        "random_state": seed,
    }

    basis_: Basis
    kernel_: Kernel

    def __init__(
        self,
        n_basis: int = 100,
        kernel: Any = "gaussian",
        *,
        basis: Any = "random",
        scale: bool = True,
        random_state: Any = None,
    ) -> None:
        self.n_basis = n_basis
        self.kernel = kernel
        self.basis = basis
        self.scale = scale
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """
        Choose the landmarks and resolve the kernel.

        Parameters
        ----------
        X : array-like, CSR matrix or DataFrame, shape (n_rows, n_features)
            The rows; any objects for a kernel function that understands them.
        y : object, optional
            Ignored.

        Returns
        -------
        self
            The fitted transformer.
        """
        kernel = self._checked()
        rows = as_objects(X) if kernel.takes_objects and not is_table(X) else as_rows(X)
        n, factors, seen = rows.shape[0], None, rows
        if self.scale and kernel.scales_columns:
            factors = column_factors(RankingData.of_checked(rows, np.zeros(n), Queries.of(None, n)))
            seen = ScaledRows(rows, factors)
        self._choose(kernel, seen, factors)
        if rows.ndim == 2:
            validate_data(self, columns_of(X, rows), skip_check_array=True)
        return self

    def _checked(self) -> Kernel:
        """Check the parameters; return the kernel as it was given."""
        check_values({name: getattr(self, name) for name in self._rules}, self._rules)
        require_choice(self.basis)
        kernel = as_kernel(self.kernel)
        if kernel.is_precomputed:
            raise InputError("landmarks are rows, but a precomputed kernel holds similarities; choose another kernel.")
        return kernel

    def _choose(self, kernel: Kernel, seen: Any, factors: NDArray[np.float64] | None) -> None:
        """Choose among rows, whose columns were multiplied by factors, and forget what was learnt before."""
        if seen.shape[0] < 2:
            raise InputError("X has 1 sample, which has nothing to be similar to; pass at least two rows.")
        for_kernel, for_basis = rng_of(self.random_state).spawn(2)
        view, every = View(None, kernel).fit(seen, for_kernel), np.arange(seen.shape[0])
        basis = Basis.of(view, seen, choose_basis(view, seen, every, self.n_basis, self.basis, for_basis))
        basis.gram(seen)
        for name in ("column_scale_", "n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)
        self.basis_, self.kernel_ = basis, view.kernel
        if factors is not None:
            self.column_scale_ = factors

    def transform(self, X: Any) -> NDArray[Any]:
        """
        Compute the similarities of rows to the landmarks.

        Parameters
        ----------
        X : array-like, CSR matrix or DataFrame, shape (n_rows, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_rows, r)
            φ(x) for each row, dense; float32 for float32 rows.
        """
        check_is_fitted(self)
        sees_columns = hasattr(self, "n_features_in_")
        rows = as_rows(X) if sees_columns else as_objects(X)
        if sees_columns:
            validate_data(self, columns_of(X, rows), skip_check_array=True, reset=False)
        seen = ScaledRows(rows, self.column_scale_) if hasattr(self, "column_scale_") else rows
        out = np.empty((rows.shape[0], self._n_features_out), dtype=rows.dtype if sees_columns else np.float64)
        for piece, K in self.basis_.blocks(seen):
            out[piece] = K
        return out

    @property
    def _n_features_out(self) -> int:
        return len(self.basis_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
