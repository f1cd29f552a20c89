"""
FeatureMap: a view as plain columns Φ in which the penalty is ‖w‖².

A linear kernel's features are the view's columns. Any other kernel is seen from r basis rows R: with K̂ = K[R, R] =
U diag(κ) Uᵀ, Φ(x) = k(x, R) U diag(κ)^{-1/2}, so that f = Φ w has the norm ‖w‖ in the space of the kernel, and the
coefficients of the paper's sparse form are a = U diag(κ)^{-1/2} w. Directions with κ below 1e-12 of the largest carry
rounding errors only and are left out: repeated basis rows are no trouble, and the rank that is left is reported.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from corank.basis.basis import Basis, as_doubles
from corank.errors import InputError
from corank.kernels import LinearKernel, inverse_root
from corank.views import View

Floats = NDArray[np.float64]

_RANK_TOLERANCE = 1e-12
# rows whose similarities are held in memory at a time
_BLOCK = 4096


@dataclass(frozen=True, eq=False)
class FeatureMap:
    """
    Rows of X to rows of Φ.

    Attributes
    ----------
    view : View
        Columns and a kernel whose parameters are numbers.
    basis : ndarray, CSR matrix or None
        Basis rows in the view's columns, or their numbers for a precomputed kernel; None where Φ is the view's columns.
    T : array of shape (r, k), or None
        U diag(κ)^{-1/2}; None where Φ is the view's columns.
    n_features : int
        k, the number of columns of Φ.

    Examples
    --------
    >>> rows = np.array([[0.0], [1.0], [1.0]])
    >>> phi = FeatureMap.on_basis(View(None, "gaussian").fit(rows, np.random.default_rng(0)), rows, np.arange(3))
    >>> phi.n_features, bool(np.allclose(phi(rows) @ phi(rows).T, phi.view.gram(rows)))
    (2, True)
    """

    view: View
    basis: Any
    T: Floats | None
    n_features: int

    @classmethod
    def of_columns(cls, view: View, n_columns: int) -> FeatureMap:
        """
        Take the columns of a linear view as they are.

        Parameters
        ----------
        view : View
            A view with a linear kernel.
        n_columns : int
            How many columns it sees.

        Returns
        -------
        FeatureMap
            The map.
        """
        return cls(view, None, None, n_columns)

    @classmethod
    def on_basis(cls, view: View, X: Any, rows: NDArray[np.int64]) -> FeatureMap:
        """
        Look at rows from basis rows, in O(r³).

        Parameters
        ----------
        view : View
            Columns and a kernel whose parameters are numbers.
        X : ndarray or CSR matrix
            All training rows.
        rows : array of int64, shape (r,)
            The basis rows.

        Returns
        -------
        FeatureMap
            The map.
        """
        basis = Basis.of(view, X, rows)
        K = basis.gram(X)
        T = inverse_root((K + K.T) / 2, _RANK_TOLERANCE)
        return cls(view, basis, T, T.shape[1])

    def __call__(self, rows: Any) -> Floats:
        """Return Φ for rows with all columns; columns keep their precision."""
        seen = self.view.select(rows)
        if self.T is None:
            if seen.shape[1] != self.n_features:
                raise InputError(
                    f"X has {seen.shape[1]} columns, but the system is of {self.n_features}; pass as many."
                )
            return np.asarray(seen.toarray() if sparse.issparse(seen) else seen)
        return np.asarray(self.view.kernel(as_doubles(seen), self.basis) @ self.T)

    def is_like(self, other: FeatureMap) -> bool:
        """
        Tell whether another map gives the same features, also when it was made elsewhere.

        Parameters
        ----------
        other : FeatureMap
            Another map.

        Returns
        -------
        bool
            Whether columns, kernel and basis agree.
        """
        if self is other:
            return True
        same_view = self.view.kernel == other.view.kernel and np.array_equal(
            np.atleast_1d(self.view.columns), np.atleast_1d(other.view.columns)
        )
        if not same_view or self.n_features != other.n_features or (self.T is None) != (other.T is None):
            return False
        return self.T is None or (np.array_equal(self.T, other.T) and _equal_rows(self.basis, other.basis))  # type: ignore[arg-type]

    def coefficients(self, w: Floats) -> Floats:
        """
        Turn weights of Φ into coefficients of the columns (linear kernel) or of the basis rows.

        Parameters
        ----------
        w : array of shape (k,) or (k, m)
            Weights, one column for each model.

        Returns
        -------
        array of shape (n_columns,) or (r,), or the same with m columns
            What `scores` takes.
        """
        return w if self.T is None else settled(self.view, self.basis, self.T @ w)


def beside(maps: tuple[FeatureMap, ...]) -> Callable[[Any], Floats]:
    """
    Put the features of several views side by side.

    Parameters
    ----------
    maps : tuple of FeatureMap
        The views.

    Returns
    -------
    callable
        Rows of X to rows of Φ = [Φ_1 … Φ_M].
    """
    return maps[0] if len(maps) == 1 else lambda rows: np.hstack([phi(rows) for phi in maps])


def settled(view: View, basis: Any, a: Floats) -> Floats:
    """
    Return coefficients as `scores` takes them.

    Parameters
    ----------
    view : View
        Columns and kernel.
    basis : ndarray or CSR matrix
        Basis rows in the view's columns.
    a : array of shape (r,) or (r, m)
        Coefficients of the basis rows.

    Returns
    -------
    array of shape (r,) or (n_columns,), or the same with m columns
        `a` itself, or the weights of the columns that it stands for where the kernel is linear.
    """
    return np.asarray(basis.T @ a) if isinstance(view.kernel, LinearKernel) else a


def scores(view: View, basis: Any, coefficients: Floats, rows: Any) -> Floats:
    """
    Score rows with a fitted view, some rows at a time.

    Parameters
    ----------
    view : View
        Columns and kernel.
    basis : ndarray, CSR matrix or None
        Basis rows in the view's columns, or their numbers for a precomputed kernel; a linear kernel needs none.
    coefficients : array of shape (r,) or (r, m)
        Of the basis rows, or of the columns for a linear kernel.
    rows : ndarray or CSR matrix
        Rows with all columns.

    Returns
    -------
    array of shape (n,) or (n, m)
        Scores.
    """
    is_linear, n = isinstance(view.kernel, LinearKernel), rows.shape[0]
    out = np.empty((n, *coefficients.shape[1:]))
    for start in range(0, n, _BLOCK):
        seen = as_doubles(view.select(rows[start : start + _BLOCK]))
        out[start : start + _BLOCK] = (seen if is_linear else view.kernel(seen, basis)) @ coefficients
    return out


def _equal_rows(A: Any, B: Any) -> bool:
    if sparse.issparse(A) and sparse.issparse(B):
        return bool(A.shape == B.shape and (A != B).nnz == 0)
    return not sparse.issparse(A) and not sparse.issparse(B) and np.array_equal(A, B)
