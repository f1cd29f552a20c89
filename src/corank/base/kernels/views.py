"""Views: subsets of columns with a kernel. Kernels by name, kernel functions and precomputed kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corank.base.kernels.kernel import KERNELS, Floats, Gram, Kernel, LinearKernel
from corank.core.rows.access import ScaledRows
from corank.data.column_roles import column_numbers
from corank.errors import InputError
from corank.fitted import Part, Relations


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
class PrecomputedKernel(Kernel, names=("precomputed",)):
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


def as_kernel(kernel: Any) -> Kernel:
    """Make a kernel from a name, a function, or a kernel."""
    if isinstance(kernel, Kernel):
        return kernel
    if isinstance(kernel, str) and kernel in KERNELS:
        return KERNELS[kernel]()
    if callable(kernel) and not isinstance(kernel, type):
        return CallableKernel(kernel)
    raise InputError(f"kernel is {kernel!r}; choose one of {', '.join(KERNELS)}, or pass a Kernel or a function.")


@dataclass(frozen=True, eq=False)
class View(Part):
    """
    A view of the rows: a choice of columns and a kernel.

    Parameters
    ----------
    columns : slice, array-like of int or str, or None
        Columns of the view: numbers, or names that an estimator replaces by numbers; None for all columns.
    kernel : Kernel, str or callable
        Kernel of the view (see `corank.base.kernels.as_kernel`).
    basis : array-like of int, optional
        Numbers of the basis rows (see `corank.base.kernels.basis.Basis`).

    Examples
    --------
    >>> view = View([1, 2], "linear")
    >>> view.columns, view.select(np.array([[9.0, 1.0, 2.0]])).tolist()
    (array([1, 2]), [[1.0, 2.0]])
    """

    _relations: ClassVar[Relations] = {
        "columns are numbers": lambda v: v.columns is None or (v.columns.dtype.kind == "i" and v.columns.min() >= 0),
    }

    columns: Any = None
    kernel: Any = field(default_factory=LinearKernel)
    basis: Any = None

    def __post_init__(self) -> None:
        # normalise the fields of the frozen dataclass
        object.__setattr__(self, "columns", _as_columns(self.columns))
        object.__setattr__(self, "kernel", as_kernel(self.kernel))
        object.__setattr__(self, "basis", None if self.basis is None else _as_numbers(self.basis, "basis", "row"))
        if self.columns is not None and self.kernel.is_precomputed:
            raise InputError("a view with a precomputed kernel cannot select columns; leave columns out.")

    def select(self, X: Any) -> Any:
        """Select the view's columns: X itself if they are all, without a copy if they are contiguous in a dense X."""
        if self.columns is None:
            return X
        X = X if hasattr(X, "shape") else np.asarray(X)
        self.require_columns(X.shape[1])
        first, last = self.columns[0], self.columns[-1]
        are_neighbours = (np.diff(self.columns) == 1).all()
        chosen = slice(first, last + 1) if are_neighbours else self.columns
        return X.select(chosen) if isinstance(X, ScaledRows) else X[:, chosen]

    def is_like(self, other: View) -> bool:
        """Return whether another view has the same columns and kernel; basis rows may differ."""
        same_columns = np.array_equal(np.atleast_1d(self.columns), np.atleast_1d(other.columns))
        return bool(self.kernel == other.kernel and same_columns)

    def fit(self, X: Any, rng: np.random.Generator, weights: NDArray[np.float64] | None = None) -> View:
        """
        Compute the parameters of the kernel that depend on data.

        Parameters
        ----------
        X : ndarray or CSR matrix
            Training rows with all columns.
        rng : numpy.random.Generator
            Draws a sample of rows if there are many.
        weights : array of shape (n,), optional
            Row weights.

        Returns
        -------
        View
            The view with a fitted kernel.
        """
        return replace(self, kernel=self.kernel.fit(self.select(X), rng, weights))

    def require_columns(self, n_features: int) -> None:
        """Raise `InputError` if X lacks a column of the view."""
        if self.columns is None:
            return
        last = int(self.columns.max())
        if last >= n_features:
            raise InputError(f"a view has column {last}, but X has columns 0 to {n_features - 1}; pass columns of X.")


def split_columns(n_features: int, n_views: int, rng: np.random.Generator) -> list[NDArray[np.int64]]:
    """Split the columns at random into parts of about equal size."""
    if not 1 <= n_views <= n_features:
        raise InputError(
            f"views={n_views} needs one column per view, but X has n_features = {n_features}; pass 1 to {n_features}."
        )
    return [np.sort(part) for part in np.array_split(rng.permutation(n_features), n_views)]


def as_views(
    views: int | Sequence[Any],
    n_features: int | None,
    rng: np.random.Generator | None = None,
    kernel: Any = "linear",
    names: Sequence[str] | None = None,
) -> list[View]:
    """Make views from the argument `views` of an estimator."""
    if n_features is None:
        if isinstance(views, int | np.integer) or any(
            _columns_and_kernel(item, kernel)[0] is not None for item in views
        ):
            raise InputError("X holds objects, which have no columns; give each view a kernel function: View(None, f).")
        return [_as_view(entry, 1, kernel) for entry in views]
    if isinstance(views, int | np.integer):
        if rng is None:
            raise InputError(f"views is {views}, a random split; pass rng, or the columns of each view.")
        views = split_columns(n_features, int(views), rng)
    if isinstance(views, str) or not hasattr(views, "__len__") or not len(views):
        raise InputError(f"views is {views!r}; pass a number of views, or a list with one entry per view.")
    checked = [_numbered(_as_view(entry, n_features, kernel), names) for entry in views]
    for view in checked:
        view.require_columns(n_features)
    return checked


def kernels_of(views: int | Sequence[Any], kernel: Any) -> list[Any]:
    """Return the kernel of each view."""
    if isinstance(views, int | np.integer):
        return [kernel]
    return [_columns_and_kernel(entry, kernel)[1] for entry in views]


def _columns_and_kernel(entry: Any, kernel: Any) -> tuple[Any, Any]:
    """Return the columns that an entry names (None: all) and its kernel."""
    if isinstance(entry, View):
        return entry.columns, entry.kernel
    return (None, entry) if isinstance(entry, Kernel) else (entry, kernel)


def _as_view(entry: Any, n_features: int, kernel: Any) -> View:
    if isinstance(entry, View):
        return entry
    columns, kernel = _columns_and_kernel(entry, kernel)
    if isinstance(columns, slice):
        chosen = range(n_features)[columns]
        if not len(chosen):
            raise InputError(f"a view's {columns} selects none of the {n_features} columns; pass existing columns.")
        columns = np.array(chosen)
    elif columns is not None and np.ndim(columns) == 0:
        columns = [columns]
    return View(columns, kernel)


def _numbered(view: View, names: Sequence[str] | None) -> View:
    if not isinstance(view.columns, tuple):
        return view
    return replace(view, columns=np.array(column_numbers(view.columns, names, "a view"), dtype=np.int64))


def _as_columns(columns: Any) -> NDArray[np.int64] | tuple[Any, ...] | None:
    if columns is None:
        return None
    if not isinstance(columns, slice) and any(isinstance(column, str) for column in columns):
        return tuple(columns)
    if isinstance(columns, slice):
        start, stop, step = columns.start or 0, columns.stop, columns.step or 1
        if stop is None or start < 0 or stop < 0 or step < 1:
            raise InputError(f"columns is {columns}; pass a slice with 0 <= start < stop, or a list of columns.")
        columns = np.arange(start, stop, step)
    return _as_numbers(columns, "columns", "column")


def _as_numbers(values: ArrayLike, name: str, what: str) -> NDArray[np.int64]:
    numbers = np.asarray(values)
    if numbers.ndim != 1 or numbers.dtype.kind not in "iu" or not len(numbers):
        raise InputError(f"{name} is {values!r}; pass one or more {what} numbers.")
    if numbers.min() < 0:
        raise InputError(f"{name} contains {what} {numbers.min()}; pass {what} numbers of at least 0.")
    distinct, counts = np.unique(numbers, return_counts=True)
    if len(distinct) < len(numbers):
        raise InputError(f"{name} contains {what} {distinct[counts > 1][0]} twice; pass each {what} once.")
    return numbers.astype(np.int64)
