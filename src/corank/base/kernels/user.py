"""Kernels of the user: a function, precomputed similarities, or the name of a kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from corank.base.kernels.kernel import Floats, Gram, Kernel
from corank.base.kernels.products import CosineKernel, LinearKernel, PolynomialKernel
from corank.base.kernels.radial import ARDKernel, ChiSquareKernel, GaussianKernel, LaplacianKernel
from corank.errors import InputError


@dataclass(frozen=True)
class CallableKernel(Kernel):
    """
    A kernel function of the user, or a kernel of scikit-learn.

    function: Takes X (n × d) and Z (m × d), or two arrays of n and m objects, and returns their n × m Gram matrix;
        integers become float64.
    """

    function: Any

    is_user_function: ClassVar[bool] = True
    is_positive_definite: ClassVar[bool] = False
    scales_columns: ClassVar[bool] = False
    takes_objects: ClassVar[bool] = True

    @property
    def theta(self) -> Floats:
        """The `theta` of a kernel of scikit-learn; other functions have nothing to learn."""
        return np.asarray(self.function.theta if self._is_sklearn else (), dtype=np.float64)

    def theta_gradient(self, rows: Any, K: Floats, Q: Floats) -> Floats:
        """Compute Σ_ij Q_ij ∂K_ij/∂θ with the derivatives of scikit-learn's kernel."""
        if not self._is_sklearn:
            return np.empty(0)
        _, of_theta = self.function(rows, eval_gradient=True)
        return np.asarray(np.einsum("ij,ijk->k", Q, of_theta))

    @property
    def _is_sklearn(self) -> bool:
        return hasattr(self.function, "clone_with_theta")

    def _with_theta(self, theta: Floats) -> Kernel:
        return CallableKernel(self.function.clone_with_theta(theta))

    def _rows(self, X: Any) -> Any:
        return X if isinstance(X, np.ndarray) and X.dtype.kind == "O" and X.ndim == 1 else super()._rows(X)

    def _gram(self, X: Any, Z: Any) -> Gram:
        gram = np.asarray(self.function(X, Z))
        if gram.shape != (X.shape[0], Z.shape[0]):
            raise InputError(
                f"the kernel function returned shape {gram.shape} for {X.shape[0]} and {Z.shape[0]} rows; "
                f"return a Gram matrix of shape {(X.shape[0], Z.shape[0])}."
            )
        if gram.dtype.kind not in "biuf":
            raise InputError(f"the kernel function returned values of type {gram.dtype}; return real numbers.")
        return gram if gram.dtype.kind == "f" else gram.astype(np.float64)


@dataclass(frozen=True)
class PrecomputedKernel(Kernel):
    """
    Precomputed similarities: X[i, j] is the similarity of row i to training row j.

    ``kernel(X)`` and ``kernel(X, Z)`` return X. If Z is a vector of training row numbers (a basis), ``kernel(X, Z)``
    returns these columns of X.
    """

    is_precomputed: ClassVar[bool] = True
    is_positive_definite: ClassVar[bool] = False
    takes_sparse: ClassVar[bool] = False
    scales_columns: ClassVar[bool] = False

    def __call__(self, X: Any, Z: Any = None) -> Gram:
        """Return X, or its columns Z."""
        rows = self._rows(X)
        if Z is not None and np.ndim(Z) == 1:
            return self._gram(rows, np.asarray(Z))
        if Z is not None and np.shape(Z)[0] != rows.shape[1]:
            raise InputError(
                f"X holds similarities to {rows.shape[1]} rows, but Z has {np.shape(Z)[0]}; pass the training rows "
                "or their numbers."
            )
        return np.asarray(rows)

    def diag(self, X: Any) -> Gram:
        """Return the diagonal of a square X."""
        rows = np.asarray(self._rows(X))
        if rows.shape[0] != rows.shape[1]:
            raise InputError(f"X has shape {rows.shape}; pass the square Gram matrix of the training rows.")
        return np.diagonal(rows)

    def _gram(self, X: Any, Z: Any) -> Gram:
        return np.asarray(X[:, Z])


KERNELS: dict[str, type[Kernel]] = {
    "linear": LinearKernel,
    "polynomial": PolynomialKernel,
    "gaussian": GaussianKernel,
    "rbf": GaussianKernel,
    "ard": ARDKernel,
    "laplacian": LaplacianKernel,
    "chi-square": ChiSquareKernel,
    "cosine": CosineKernel,
    "precomputed": PrecomputedKernel,
}


def as_kernel(kernel: Any) -> Kernel:
    """Make a kernel from a name, a function, or a kernel."""
    if isinstance(kernel, Kernel):
        return kernel
    if isinstance(kernel, str) and kernel in KERNELS:
        return KERNELS[kernel]()
    if callable(kernel) and not isinstance(kernel, type):
        return CallableKernel(kernel)
    raise InputError(f"kernel is {kernel!r}; choose one of {', '.join(KERNELS)}, or pass a Kernel or a function.")
