"""Which rows stand for all: random ones, spread ones (k-means++), or chosen ones."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import kmeans_plusplus

from corank.errors import InputError
from corank.kernels.radial import about, centre_of
from corank.kernels.views import View

CHOICES = ("random", "kmeans++")


def choose_basis(
    view: View, X: Any, candidates: NDArray[np.int64], n_basis: int | None, basis: Any, rng: np.random.Generator
) -> NDArray[np.int64]:
    """
    Choose the basis rows of a view.

    Parameters
    ----------
    view : View
        The columns and the kernel; a basis of its own goes before everything else.
    X : ndarray or CSR matrix
        All training rows.
    candidates : array of int64
        Rows to choose from.
    n_basis : int, optional
        How many; None takes all candidates, and so does a number above theirs.
    basis : {"random", "kmeans++"} or array-like of int
        Uniformly without replacement; far from each other in the view's columns; or these rows.
    rng : numpy.random.Generator
        Random generator.

    Returns
    -------
    array of int64
        Ascending row numbers.

    Examples
    --------
    >>> choose_basis(View(), np.eye(4), np.arange(4), 2, [3, 1], np.random.default_rng(0)).tolist()
    [1, 3]
    """
    chosen = view.basis if view.basis is not None else None if isinstance(basis, str) else np.asarray(basis)
    if chosen is not None:
        if chosen.ndim != 1 or chosen.dtype.kind not in "iu" or not len(chosen):
            raise InputError(f"basis is {basis!r}; pass 'random', 'kmeans++' or a list of row numbers.")
        chosen = np.unique(chosen)
        if chosen[0] < 0 or chosen[-1] >= X.shape[0]:
            worst = chosen[0] if chosen[0] < 0 else chosen[-1]
            raise InputError(f"basis names row {worst}, but X has rows 0 to {X.shape[0] - 1}.")
        return chosen.astype(np.int64)
    require_choice(basis)
    if n_basis is None or n_basis >= len(candidates):
        return np.sort(candidates)
    if basis == "random":
        return np.sort(rng.choice(candidates, n_basis, replace=False))
    if view.kernel.is_precomputed or X.ndim != 2:
        raise InputError("basis='kmeans++' measures distances of columns, and these rows have none; use 'random'.")
    seed, rows = int(rng.integers(2**31)), view.select(X[candidates])
    _, at = kmeans_plusplus(about(centre_of(rows), rows), n_basis, random_state=seed)
    return np.sort(candidates[np.unique(at)])


def require_choice(basis: Any) -> None:
    """
    Raise `InputError` for the name of a way to choose that does not exist.

    Parameters
    ----------
    basis : object
        What the user gave; rows are not looked at here.
    """
    if isinstance(basis, str) and basis not in CHOICES:
        raise InputError(f"basis is {basis!r}; choose {', '.join(CHOICES)}, or pass row numbers.")
