"""Kernel: what every similarity of rows promises."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from corank.data.problem.rows import as_rows
from corank.errors import InputError

Gram = NDArray[Any]

# rows of a block when only the diagonal is wanted
_DIAGONAL_BLOCK = 64


@dataclass(frozen=True)
class Kernel(ABC):
    """
    A similarity of rows; ``kernel(X, Z)`` is the Gram matrix, kernel(X) that of X with itself.

    float32 rows give a float32 Gram matrix. Kernels are compared by value, and can be saved (see
    `corank.persist`) unless they hold a function.
    """

    takes_sparse: ClassVar[bool] = True
    # whether columns may be brought to one size first, or their values mean something as they are
    scales_columns: ClassVar[bool] = True
    # whether rows may be anything but numbers
    takes_objects: ClassVar[bool] = False

    def __call__(self, X: Any, Z: Any = None) -> Gram:
        """Return the Gram matrix of the rows of X and Z (of X with itself by default)."""
        left = self._rows(X)
        right = left if Z is None else self._rows(Z)
        if left.shape[1:] != right.shape[1:]:
            raise InputError(f"X has {left.shape[1]} columns and Z {right.shape[1]}; pass rows with the same columns.")
        return self._gram(left, right)

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
        rows = self._rows(X)
        blocks = (rows[start : start + _DIAGONAL_BLOCK] for start in range(0, rows.shape[0], _DIAGONAL_BLOCK))
        return np.concatenate([np.diagonal(self(block)) for block in blocks])

    def fit(self, X: Any, rng: np.random.Generator, weights: NDArray[np.float64] | None = None) -> Kernel:
        """
        Resolve parameters that depend on data.

        Parameters
        ----------
        X : ndarray or CSR matrix
            Rows.
        rng : numpy.random.Generator
            Chooses rows to look at, where they are many.
        weights : array of shape (n,), optional
            Row weights; rows of weight zero are not looked at.

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


def require_positive(value: Any, name: str, otherwise: str = "") -> None:
    """
    Raise one sentence unless a parameter is a positive number.

    value: what came.
    otherwise: what else may come, for the message.
    """
    if not isinstance(value, Real) or not 0 < float(value) < np.inf:
        raise InputError(f"{name} is {value!r}; pass a positive number{otherwise}.")
