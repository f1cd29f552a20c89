"""
Landmarks: φ(x) = (k(x, x_1), ..., k(x, x_s)) for s rows chosen from the data; non-linear ranking by a linear ranker.

Costs O(n s d) for dense rows, O(s · non-zeros) for CSR, and n·s numbers of memory for the result.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.cluster import kmeans_plusplus
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from corank.data.rows import as_rows
from corank.errors import InputError
from corank.kernels import Kernel, PrecomputedKernel, as_kernel

_BLOCK = 4096


class Landmarks(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """
    Describe each row by its similarity to a few landmark rows.

    Parameters
    ----------
    n : int
        Number of landmarks; all rows where there are fewer.
    kernel : str, Kernel or callable
        The similarity (see `corank.kernels.as_kernel`); CSR rows need a kernel that takes them.
    selection : {"random", "kmeans++"}
        Rows drawn without replacement, or one after the other with probability proportional to the squared distance
        to the nearest chosen so far: spread out, at O(n) distances a landmark.
    random_state : int, RandomState or None
        Chooses the landmarks and, for a median bandwidth, the rows it is taken from.

    Attributes
    ----------
    landmarks_ : ndarray or CSR matrix, shape (n, n_features)
        The chosen rows.
    landmark_rows_ : array of int64, shape (n,)
        Their numbers in the rows given to ``fit``, ascending.
    kernel_ : Kernel
        The kernel with its parameters resolved.

    Examples
    --------
    >>> X = [[0.0], [1.0], [5.0]]
    >>> Landmarks(2, "linear", random_state=0).fit(X).transform([[2.0]]).shape
    (1, 2)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n": [Interval(Integral, 1, None, closed="left")],
        "kernel": [str, Kernel, callable],
        "selection": [StrOptions({"random", "kmeans++"})],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n: int = 100,
        kernel: Any = "gaussian",
        selection: Literal["random", "kmeans++"] = "random",
        random_state: Any = None,
    ) -> None:
        self.n = n
        self.kernel = kernel
        self.selection = selection
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """
        Choose the landmarks and resolve the kernel.

        Parameters
        ----------
        X : array-like, CSR matrix or DataFrame, shape (n_rows, n_features)
            The rows.
        y : object, optional
            Ignored.

        Returns
        -------
        self
            The fitted transformer.
        """
        self._validate_params()
        kernel = as_kernel(self.kernel)
        if isinstance(kernel, PrecomputedKernel):
            raise InputError("landmarks are rows, but a precomputed kernel holds similarities; choose another kernel.")
        rows = as_rows(X)
        validate_data(self, X if hasattr(X, "columns") else rows, skip_check_array=True)
        if rows.shape[0] < 2:
            raise InputError("X has 1 sample, which has nothing to be similar to; pass at least two rows.")
        random = check_random_state(self.random_state)
        self.kernel_ = kernel.fit(rows, np.random.default_rng(random.randint(2**32, size=4, dtype=np.uint32)))
        n = min(self.n, rows.shape[0])
        if self.selection == "random":
            chosen = random.choice(rows.shape[0], n, replace=False)
        else:
            chosen = kmeans_plusplus(rows, n, random_state=random)[1]
        self.landmark_rows_ = np.sort(chosen).astype(np.int64)
        self.landmarks_ = rows[self.landmark_rows_]
        return self

    def transform(self, X: Any) -> NDArray[Any]:
        """
        Compute the similarities of rows to the landmarks.

        Parameters
        ----------
        X : array-like, CSR matrix or DataFrame, shape (n_rows, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_rows, n)
            φ(x) for each row, dense; float32 for float32 rows.
        """
        check_is_fitted(self)
        rows = as_rows(X)
        validate_data(self, X if hasattr(X, "columns") else rows, skip_check_array=True, reset=False)
        out = np.empty((rows.shape[0], self._n_features_out), dtype=rows.dtype)
        # where rows and landmarks differ in type a kernel would convert all rows at once: block by block instead
        for piece, block in self.kernel_.blocks(rows, self.landmarks_.astype(rows.dtype), _BLOCK):
            out[piece] = block
        return out

    @property
    def _n_features_out(self) -> int:
        return int(self.landmarks_.shape[0])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
