"""
Landmarks: similarities to r rows, φ(x) = (k(x, x_1), ..., k(x, x_r)), for non-linear ranking by a linear ranker.

Time is O(n r d) for dense rows and O(r · non-zeros) for CSR; the result takes n·r numbers of memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from corank.base.contract import Estimator, check_parameters, checked_rows, install, note_columns
from corank.base.docs import shared_parameters
from corank.base.kernels import Kernel, as_kernel
from corank.base.kernels.basis import Basis, choose_basis, require_choice
from corank.base.kernels.views import View
from corank.core.rows.scaled import ScaledRows
from corank.data.column_scales import column_factors
from corank.data.queries import Queries
from corank.data.ranking import RankingData
from corank.data.rows import as_objects, as_rows, is_table
from corank.data.scoring import repeat_first
from corank.errors import InputError
from corank.fitted import Shapes
from corank.parameters import Rules, boolean, integer, kernel, listing, rng_of, seed, text


@dataclass(frozen=True, eq=False)
class FittedLandmarks:
    """The fitted attributes of `Landmarks`."""

    basis: Basis
    kernel: Kernel
    column_scale: NDArray[np.float64] | None


@shared_parameters
class Landmarks(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Estimator):
    """
    Transform each row to its kernel similarities to a few landmark rows.

    Parameters
    ----------
    n_basis : int
        Number of landmarks; at most the number of rows.
    kernel : str, Kernel or callable
        The similarity (see `corank.base.kernels.as_kernel`); CSR rows need a kernel that supports them.
    basis : {"random", "kmeans++"} or array-like of int
        Landmarks drawn without replacement; drawn one by one with probability proportional to the squared distance to
        the nearest landmark so far, at O(n) distances each; or the numbers of these rows.
    scale : bool
        Whether to divide columns by their standard deviation before rows are compared.
    {random_state}

    Attributes
    ----------
    basis_ : Basis
        The landmarks.
    kernel_ : Kernel
        The kernel with its parameters resolved.
    column_scale_ : array of shape (n_features,)
        Column factors; only with `scale` and a kernel on columns.

    Examples
    --------
    >>> X = [[0.0], [1.0], [5.0]]
    >>> Landmarks(2, "linear", random_state=0).fit(X).transform([[2.0]]).shape
    (1, 2)
    """

    _rules: ClassVar[Rules] = {
        "n_basis": integer(1),
        "kernel": kernel,
        "basis": text | listing,
        "scale": boolean,
        "random_state": seed,
    }

    _shapes: ClassVar[Shapes] = {"column_scale_": ("n_features_in_",)}

    basis_: Basis
    kernel_: Kernel
    column_scale_: NDArray[np.float64]

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
        """Choose the landmarks and resolve the kernel; rows may be any objects for a kernel function, y is ignored."""
        check_parameters(self)
        kernel = as_kernel(self.kernel)
        rows = as_objects(X) if kernel.takes_objects and not is_table(X) else as_rows(X)
        n, factors, scaled = rows.shape[0], None, rows
        if self.scale and kernel.scales_columns:
            factors = column_factors(RankingData.of_checked(rows, np.zeros(n), Queries.of(None, n)))
            scaled = ScaledRows(rows, factors)
        notes = note_columns(X, rows) if rows.ndim == 2 else {}
        return install(self, self.choose(scaled, factors), notes)

    def _check_combinations(self) -> None:
        require_choice(self.basis)
        if as_kernel(self.kernel).is_precomputed:
            raise InputError("landmarks are rows, but a precomputed kernel has similarities; choose another kernel.")

    def choose(self, rows: Any, factors: NDArray[np.float64] | None) -> FittedLandmarks:
        """Choose landmarks from rows that are multiplied by `factors`, without changing the transformer."""
        if rows.shape[0] < 2:
            raise InputError("X has 1 sample, but landmarks need at least two; pass more rows.")
        for_kernel, for_basis = rng_of(self.random_state).spawn(2)
        view, numbers = View(None, as_kernel(self.kernel)).fit(rows, for_kernel), np.arange(rows.shape[0])
        basis = Basis.of(view, rows, choose_basis(view, rows, numbers, self.n_basis, self.basis, for_basis))
        basis.gram(rows)
        return FittedLandmarks(basis, view.kernel, factors)

    def transform(self, X: Any) -> NDArray[Any]:
        """Compute the similarities φ(x) of rows to the landmarks, dense, float32 for float32 rows."""
        check_is_fitted(self)
        has_columns = hasattr(self, "n_features_in_")
        rows = checked_rows(self, X) if has_columns else as_objects(X)
        scaled = ScaledRows(rows, self.column_scale_) if hasattr(self, "column_scale_") else rows
        out = np.empty((rows.shape[0], self._n_features_out), dtype=rows.dtype if has_columns else np.float64)
        for piece, K in self.basis_.blocks(scaled):
            out[piece] = K
        return repeat_first(rows, out)

    @property
    def _n_features_out(self) -> int:
        return len(self.basis_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
