"""Kernels: how similar two rows are, as small frozen records that compute Gram matrices, whole or in blocks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.metrics import pairwise
from sklearn.utils.extmath import row_norms

from corank.data.rows import as_rows
from corank.errors import InputError

Gram = NDArray[Any]

# pairs of rows whose distances give the median, and rows of a block when only the diagonal is wanted
_MEDIAN_PAIRS = 2000
_DIAGONAL_BLOCK = 64


@dataclass(frozen=True)
class Kernel(ABC):
    """
    A similarity of rows; ``kernel(X, Z)`` is the Gram matrix, kernel(X) that of X with itself.

    float32 rows give a float32 Gram matrix. Kernels are compared by value, and can be saved (see
    `corank.persist`) unless they hold a function.
    """

    takes_sparse: ClassVar[bool] = True

    def __call__(self, X: Any, Z: Any = None) -> Gram:
        """Return the Gram matrix of the rows of X and Z (of X with itself by default)."""
        left = self._rows(X)
        right = left if Z is None else self._rows(Z)
        if left.shape[1] != right.shape[1]:
            raise InputError(f"X has {left.shape[1]} columns and Z {right.shape[1]}; pass rows with the same columns.")
        return self._gram(left, right)

    def blocks(self, X: Any, Z: Any = None, rows: int = 1024) -> Iterator[tuple[slice, Gram]]:
        """
        Compute the Gram matrix a few rows of X at a time, in O(rows · len(Z)) memory.

        Parameters
        ----------
        X, Z : ndarray or CSR matrix
            Rows; Z is X by default.
        rows : int
            Rows of X in a block.

        Yields
        ------
        slice, ndarray
            Which rows of X, and their rows of the Gram matrix.
        """
        left = self._rows(X)
        for piece, block in _cut(left, rows):
            yield piece, self(block, left if Z is None else Z)

    def diag(self, X: Any) -> Gram:
        """
        Compute the similarity of each row with itself.

        Parameters
        ----------
        X : ndarray or CSR matrix, shape (n, d)
            Rows.

        Returns
        -------
        ndarray, shape (n,)
            The diagonal of ``kernel(X)``.
        """
        grams = [self(block) for _, block in _cut(self._rows(X), _DIAGONAL_BLOCK)]
        return np.concatenate([np.diagonal(gram) for gram in grams])

    def fit(self, X: Any, rng: np.random.Generator) -> Kernel:
        """
        Resolve parameters that depend on data.

        Parameters
        ----------
        X : ndarray or CSR matrix
            Rows.
        rng : numpy.random.Generator
            Chooses rows to look at.

        Returns
        -------
        Kernel
            A kernel with numbers only; itself where nothing depends on data.
        """
        return self

    @abstractmethod
    def _gram(self, X: Any, Z: Any) -> Gram:
        """Gram matrix of checked rows."""

    def _rows(self, X: Any) -> Any:
        rows = as_rows(X)
        if sparse.issparse(rows) and not self.takes_sparse:
            raise InputError(
                f"X is sparse, but {type(self).__name__} needs dense rows; pass X.toarray(), or use a linear, "
                "polynomial, gaussian or cosine kernel."
            )
        return rows


@dataclass(frozen=True)
class LinearKernel(Kernel):
    """k(x, z) = x·z."""

    def _gram(self, X: Any, Z: Any) -> Gram:
        return np.asarray(pairwise.linear_kernel(X, Z))

    def diag(self, X: Any) -> Gram:
        """Compute ‖x‖² for each row."""
        return np.asarray(row_norms(self._rows(X), squared=True))


@dataclass(frozen=True)
class PolynomialKernel(Kernel):
    """k(x, z) = (gamma x·z + coef0)^degree."""

    degree: int = 2
    gamma: float = 1.0
    coef0: float = 1.0

    def __post_init__(self) -> None:
        if isinstance(self.degree, bool) or int(self.degree) != self.degree or self.degree < 1:
            raise InputError(f"degree is {self.degree}; pass a whole number of at least 1.")
        _require_positive(self.gamma, "gamma")
        if not self.coef0 >= 0:
            raise InputError(f"coef0 is {self.coef0}; pass a number of at least 0, or the kernel is not definite.")

    def _gram(self, X: Any, Z: Any) -> Gram:
        return np.asarray(pairwise.polynomial_kernel(X, Z, degree=self.degree, gamma=self.gamma, coef0=self.coef0))

    def diag(self, X: Any) -> Gram:
        """Compute (gamma ‖x‖² + coef0)^degree for each row."""
        return np.asarray((self.gamma * row_norms(self._rows(X), squared=True) + self.coef0) ** self.degree)


@dataclass(frozen=True)
class CosineKernel(Kernel):
    """k(x, z) = x·z / (‖x‖ ‖z‖), 0 where a row is zero."""

    def _gram(self, X: Any, Z: Any) -> Gram:
        return np.asarray(pairwise.cosine_similarity(X, Z))


@dataclass(frozen=True)
class _Radial(Kernel):
    """k(x, z) = exp(−gamma D(x, z)); "median" gamma makes gamma D equal `at_median` for the median pair of rows."""

    gamma: float | str = "median"

    at_median: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        if self.gamma != "median":
            _require_positive(self.gamma, "gamma", ' or "median"')

    def fit(self, X: Any, rng: np.random.Generator) -> Kernel:
        """Replace "median" by ``at_median`` / the median D of random pairs of rows that differ."""
        if self.gamma != "median":
            return self
        rows = self._rows(X)
        n = rows.shape[0]
        if n < 2:
            raise InputError(f"the median distance of {n} rows is undefined; pass gamma as a number.")
        a = rng.integers(0, n, _MEDIAN_PAIRS)
        b = (a + rng.integers(1, n, _MEDIAN_PAIRS)) % n
        D = self._distances(rows[a], rows[b])
        # rows that are all equal are equally similar at any gamma
        return replace(self, gamma=self.at_median / float(np.median(D[D > 0])) if (D > 0).any() else 1.0)

    def diag(self, X: Any) -> Gram:
        """Return 1 for each row."""
        rows = self._rows(X)
        return np.ones(rows.shape[0], dtype=rows.dtype)

    def _number(self) -> float:
        if isinstance(self.gamma, str):
            raise InputError('gamma is "median", which depends on data; call kernel.fit(X, rng) first.')
        return self.gamma

    @abstractmethod
    def _distances(self, A: Any, B: Any) -> NDArray[np.float64]:
        """D(a_i, b_i) row by row."""


@dataclass(frozen=True)
class GaussianKernel(_Radial):
    """
    k(x, z) = exp(−gamma ‖x − z‖²); "median" gamma is 1 / (2σ²), σ the median distance.

    Examples
    --------
    >>> kernel = GaussianKernel().fit([[0.0], [2.0]], np.random.default_rng(0))
    >>> kernel
    GaussianKernel(gamma=0.125)
    >>> round(float(kernel([[0.0]], [[2.0]])[0, 0]), 4)
    0.6065
    """

    at_median: ClassVar[float] = 0.5

    def _gram(self, X: Any, Z: Any) -> Gram:
        return np.asarray(pairwise.rbf_kernel(X, Z, gamma=self._number()))

    def _distances(self, A: Any, B: Any) -> NDArray[np.float64]:
        return np.asarray(row_norms(A - B, squared=True), dtype=np.float64)


@dataclass(frozen=True)
class LaplacianKernel(_Radial):
    """k(x, z) = exp(−gamma ‖x − z‖₁); "median" gamma is 1 / the median L1 distance."""

    takes_sparse: ClassVar[bool] = False

    def _gram(self, X: Any, Z: Any) -> Gram:
        return np.asarray(pairwise.laplacian_kernel(X, Z, gamma=self._number()), dtype=np.result_type(X, Z))

    def _distances(self, A: Any, B: Any) -> NDArray[np.float64]:
        return np.asarray(np.abs(A - B).sum(axis=1), dtype=np.float64)


@dataclass(frozen=True)
class ChiSquareKernel(_Radial):
    """k(x, z) = exp(−gamma Σ_j (x_j − z_j)²/(x_j + z_j)) of histograms; "median" is 1 / the median of the sum."""

    takes_sparse: ClassVar[bool] = False

    def _gram(self, X: Any, Z: Any) -> Gram:
        return np.asarray(pairwise.chi2_kernel(X, Z, gamma=self._number()), dtype=np.result_type(X, Z))

    def _distances(self, A: Any, B: Any) -> NDArray[np.float64]:
        total = A + B
        return np.asarray(np.divide((A - B) ** 2, total, out=np.zeros_like(total), where=total > 0).sum(axis=1))

    def _rows(self, X: Any) -> Any:
        rows = super()._rows(X)
        if rows.size and rows.min() < 0:
            row, column = np.argwhere(rows < 0)[0]
            raise InputError(
                f"X is {rows[row, column]} at row {row}, column {column}; the chi-square kernel compares histograms: "
                "pass counts or shares of at least 0."
            )
        return rows


@dataclass(frozen=True)
class CallableKernel(Kernel):
    """
    The user's own function.

    Parameters
    ----------
    function : callable
        Takes X (n × d) and Z (m × d) and returns their n × m Gram matrix.
    """

    function: Callable[[Any, Any], Any]

    def _gram(self, X: Any, Z: Any) -> Gram:
        gram = np.asarray(self.function(X, Z))
        if gram.shape != (X.shape[0], Z.shape[0]):
            raise InputError(
                f"the kernel function returned shape {gram.shape} for {X.shape[0]} and {Z.shape[0]} rows; "
                f"return a Gram matrix of shape {(X.shape[0], Z.shape[0])}."
            )
        return gram


@dataclass(frozen=True)
class PrecomputedKernel(Kernel):
    """
    The rows are similarities already: X[i, j] is that of row i to training row j.

    ``kernel(X)`` is X, and so is ``kernel(X, Z)`` for the training rows Z; when Z is a vector of training row
    numbers (a basis), their columns are taken.
    """

    takes_sparse: ClassVar[bool] = False

    def __call__(self, X: Any, Z: Any = None) -> Gram:
        """Return X, or its columns Z."""
        rows = self._rows(X)
        if Z is not None and np.ndim(Z) == 1:
            return self._gram(rows, np.asarray(Z))
        if Z is not None and np.shape(Z)[0] != rows.shape[1]:
            raise InputError(
                f"X holds similarities to {rows.shape[1]} rows, but Z has {np.shape(Z)[0]}; pass the training rows, "
                "or the numbers of those that Z stands for."
            )
        return np.asarray(rows)

    def diag(self, X: Any) -> Gram:
        """Read the diagonal of a square X."""
        rows = np.asarray(self._rows(X))
        if rows.shape[0] != rows.shape[1]:
            raise InputError(f"X has shape {rows.shape}; only a square Gram matrix has a diagonal.")
        return np.diagonal(rows)

    def _gram(self, X: Any, Z: Any) -> Gram:
        return np.asarray(X[:, Z])


KERNELS: dict[str, type[Kernel]] = {
    "linear": LinearKernel,
    "polynomial": PolynomialKernel,
    "gaussian": GaussianKernel,
    "laplacian": LaplacianKernel,
    "chi-square": ChiSquareKernel,
    "cosine": CosineKernel,
    "precomputed": PrecomputedKernel,
}


def as_kernel(kernel: Any) -> Kernel:
    """
    Make a kernel from a name, a function, or a kernel.

    Parameters
    ----------
    kernel : str, callable or Kernel
        A name of `KERNELS` (with default parameters), a function of (X, Z), or a kernel.

    Returns
    -------
    Kernel
        The kernel.

    Examples
    --------
    >>> as_kernel("gaussian")
    GaussianKernel(gamma='median')
    """
    if isinstance(kernel, Kernel):
        return kernel
    if isinstance(kernel, str) and kernel in KERNELS:
        return KERNELS[kernel]()
    if callable(kernel) and not isinstance(kernel, type):
        return CallableKernel(kernel)
    raise InputError(f"kernel is {kernel!r}; choose one of {', '.join(KERNELS)}, or pass a Kernel or a function.")


def _require_positive(value: Any, name: str, otherwise: str = "") -> None:
    if isinstance(value, str) or not (np.isfinite(value) and value > 0):
        raise InputError(f"{name} is {value!r}; pass a positive number{otherwise}.")


def _cut(rows: Any, length: int) -> Iterator[tuple[slice, Any]]:
    for start in range(0, rows.shape[0], length):
        piece = slice(start, min(start + length, rows.shape[0]))
        yield piece, rows[piece]
