"""Views: ways to see a row, each a choice of columns and a kernel."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corank.core.scaled import ScaledRows
from corank.errors import InputError
from corank.kernels import Gram, Kernel, LinearKernel, PrecomputedKernel, as_kernel


@dataclass(frozen=True, eq=False)
class View:
    """
    One way to see a row.

    Parameters
    ----------
    columns : slice, array-like of int, or None
        The columns it sees, kept as numbers; None sees all.
    kernel : Kernel, str or callable
        How similar two rows look (see `corank.kernels.as_kernel`).
    basis : array-like of int, optional
        Training rows whose similarities stand for a row (see `basis_of`).

    Examples
    --------
    >>> view = View([1, 2], "linear")
    >>> view.columns, view.gram([[9.0, 1.0, 2.0], [9.0, 0.0, 1.0]]).tolist()
    (array([1, 2]), [[5.0, 2.0], [2.0, 1.0]])
    """

    columns: Any = None
    kernel: Any = field(default_factory=LinearKernel)
    basis: Any = None

    def __post_init__(self) -> None:
        # a frozen record is settled once, here
        object.__setattr__(self, "columns", _as_columns(self.columns))
        object.__setattr__(self, "kernel", as_kernel(self.kernel))
        object.__setattr__(self, "basis", None if self.basis is None else _as_numbers(self.basis, "basis", "row"))
        if self.columns is not None and isinstance(self.kernel, PrecomputedKernel):
            raise InputError("a view of a precomputed kernel sees similarities, not columns; leave columns out.")

    def select(self, X: Any) -> Any:
        """
        Choose the view's columns.

        Parameters
        ----------
        X : ndarray or CSR matrix, shape (n, d)
            Rows.

        Returns
        -------
        ndarray or CSR matrix
            X itself where the view sees all columns, a window on it where they are neighbours in a dense X.
        """
        if self.columns is None:
            return X
        X = X if hasattr(X, "shape") else np.asarray(X)
        self.require_columns(X.shape[1])
        first, last = self.columns[0], self.columns[-1]
        are_neighbours = (np.diff(self.columns) == 1).all()
        chosen = slice(first, last + 1) if are_neighbours else self.columns
        return X.select(chosen) if isinstance(X, ScaledRows) else X[:, chosen]

    def gram(self, X: Any, Z: Any = None) -> Gram:
        """
        Compute similarities as this view sees them.

        Parameters
        ----------
        X, Z : ndarray or CSR matrix
            Rows with all columns; Z is X by default.

        Returns
        -------
        ndarray, shape (len(X), len(Z))
            The Gram matrix.
        """
        return self.kernel(self.select(X), self._against(Z))  # type: ignore[no-any-return]

    def blocks(self, X: Any, Z: Any = None, rows: int = 1024) -> Iterator[tuple[slice, Gram]]:
        """
        Compute `gram` a few rows of X at a time.

        Parameters
        ----------
        X, Z : ndarray or CSR matrix
            Rows with all columns; Z is X by default.
        rows : int
            Rows of X in a block.

        Yields
        ------
        slice, ndarray
            Which rows of X, and their rows of the Gram matrix.
        """
        yield from self.kernel.blocks(self.select(X), self._against(Z), rows)

    def diag(self, X: Any) -> Gram:
        """
        Compute the similarity of each row with itself.

        Parameters
        ----------
        X : ndarray or CSR matrix
            Rows with all columns.

        Returns
        -------
        ndarray, shape (len(X),)
            The diagonal of ``gram(X)``.
        """
        return self.kernel.diag(self.select(X))  # type: ignore[no-any-return]

    def basis_of(self, X: Any) -> Any:
        """
        Take the basis from the training rows, in the form that `gram` wants as Z.

        Parameters
        ----------
        X : ndarray or CSR matrix
            Training rows with all columns.

        Returns
        -------
        ndarray or CSR matrix
            The basis rows; all of X where the view has no basis, row numbers for a precomputed kernel.
        """
        if self.basis is None:
            return X
        X = X if hasattr(X, "shape") else np.asarray(X)
        if self.basis.max() >= X.shape[0]:
            raise InputError(f"basis names row {self.basis.max()}, but X has rows 0 to {X.shape[0] - 1}.")
        return self.basis if isinstance(self.kernel, PrecomputedKernel) else X[self.basis]

    def fit(self, X: Any, rng: np.random.Generator) -> View:
        """
        Resolve what depends on data: the kernel's parameters.

        Parameters
        ----------
        X : ndarray or CSR matrix
            Training rows with all columns.
        rng : numpy.random.Generator
            Chooses rows to look at.

        Returns
        -------
        View
            The view with numbers only.
        """
        return replace(self, kernel=self.kernel.fit(self.select(X), rng))

    def require_columns(self, n_features: int) -> None:
        """
        Raise one sentence where the view sees a column that X lacks.

        Parameters
        ----------
        n_features : int
            Number of columns of X.
        """
        if self.columns is None:
            return
        last = int(self.columns.max())
        if last >= n_features:
            raise InputError(f"a view sees column {last}, but X has columns 0 to {n_features - 1}.")

    def _against(self, Z: Any) -> Any:
        return Z if Z is None or isinstance(self.kernel, PrecomputedKernel) else self.select(Z)


def split_columns(n_features: int, n_views: int, rng: np.random.Generator) -> list[NDArray[np.int64]]:
    """
    Deal the columns at random into parts of about equal size.

    Parameters
    ----------
    n_features : int
        Number of columns.
    n_views : int
        Number of parts.
    rng : numpy.random.Generator
        Shuffles the columns.

    Returns
    -------
    list of array of int64
        Ascending columns of each part; every column is in exactly one.
    """
    if not 1 <= n_views <= n_features:
        raise InputError(f"cannot deal {n_features} columns into {n_views} views; ask for 1 to {n_features} views.")
    return [np.sort(part) for part in np.array_split(rng.permutation(n_features), n_views)]


def as_views(
    views: int | Sequence[Any], n_features: int, rng: np.random.Generator | None = None, kernel: Any = "linear"
) -> list[View]:
    """
    Make views from what a user may write.

    Parameters
    ----------
    views : int or sequence
        A number deals the columns at random into so many views; else one entry per view: a `View`, a column, a
        slice, a list of columns, or a `Kernel` that sees all columns.
    n_features : int
        Number of columns of X.
    rng : numpy.random.Generator, optional
        Deals the columns; needed where `views` is a number.
    kernel : Kernel, str or callable
        The kernel of entries that name columns only.

    Returns
    -------
    list of View
        One or more views.

    Examples
    --------
    >>> [view.columns.tolist() for view in as_views([slice(2), [2, 4], 3], 5)]
    [[0, 1], [2, 4], [3]]
    """
    if isinstance(views, int | np.integer):
        if rng is None:
            raise InputError(f"views is {views}, to be dealt at random; pass rng, or the columns of each view.")
        views = split_columns(n_features, int(views), rng)
    if isinstance(views, str | View | Kernel) or not len(views):
        raise InputError(f"views is {views!r}; pass a number of views, or a list with one entry per view.")
    made = [_as_view(entry, n_features, kernel) for entry in views]
    for view in made:
        view.require_columns(n_features)
    return made


def kernels_of(views: int | Sequence[Any], kernel: Any) -> list[Any]:
    """
    Return the kernels that a user named, whatever else the views are.

    Parameters
    ----------
    views : int or sequence
        As in `as_views`.
    kernel : Kernel, str or callable
        That of views that name none.

    Returns
    -------
    list
        One for each entry; the one kernel where `views` is a number.
    """
    if isinstance(views, int | np.integer):
        return [kernel]
    return [
        entry.kernel if isinstance(entry, View) else entry if isinstance(entry, Kernel) else kernel for entry in views
    ]


def _as_view(entry: Any, n_features: int, kernel: Any) -> View:
    if isinstance(entry, View):
        return entry
    if isinstance(entry, Kernel):
        return View(None, entry)
    if isinstance(entry, slice):
        chosen = range(n_features)[entry]
        if not len(chosen):
            raise InputError(f"a view's {entry} holds none of the {n_features} columns; pass columns that exist.")
        return View(np.array(chosen), kernel)
    return View([entry] if np.ndim(entry) == 0 else entry, kernel)


def _as_columns(columns: Any) -> NDArray[np.int64] | None:
    if columns is None:
        return None
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
        raise InputError(f"{name} names {what} {numbers.min()}; pass {what} numbers from 0.")
    distinct, counts = np.unique(numbers, return_counts=True)
    if len(distinct) < len(numbers):
        raise InputError(f"{name} names {what} {distinct[counts > 1][0]} twice; pass each {what} once.")
    return numbers.astype(np.int64)
