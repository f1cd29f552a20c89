"""Choice of basis rows: random rows, rows spread by k-means++, or given rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.base.kernels.radial import centre_of, subtract_centre
from corank.base.kernels.views import View
from corank.errors import InputError, warn

CHOICES = ("random", "kmeans++")


def choose_basis(
    view: View, X: Any, candidates: NDArray[np.int64], n_basis: int | None, basis: Any, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Choose the basis rows of a view."""
    chosen = view.basis if view.basis is not None else None if isinstance(basis, str) else np.asarray(basis)
    if chosen is not None:
        if chosen.ndim != 1 or chosen.dtype.kind not in "iu" or not len(chosen):
            raise InputError(f"basis is {basis!r}; pass 'random', 'kmeans++' or a list of row numbers.")
        chosen = np.unique(chosen)
        if chosen[0] < 0 or chosen[-1] >= X.shape[0]:
            worst = chosen[0] if chosen[0] < 0 else chosen[-1]
            raise InputError(f"basis names row {worst}, but X has rows 0 to {X.shape[0] - 1}; pass row numbers of X.")
        return chosen.astype(np.int64)
    require_choice(basis)
    if n_basis is None or n_basis >= len(candidates):
        return np.sort(candidates)
    if basis == "random":
        return np.sort(rng.choice(candidates, n_basis, replace=False))
    if view.kernel.is_precomputed or X.ndim != 2:
        raise InputError("basis='kmeans++' needs numeric columns, which these rows do not have; use basis='random'.")
    seed, rows = int(rng.integers(2**31)), view.select(X[candidates])
    from sklearn.cluster import kmeans_plusplus  # takes most of a second to import

    _, chosen = kmeans_plusplus(subtract_centre(centre_of(rows), rows), n_basis, random_state=seed)
    return np.sort(candidates[np.unique(chosen)])


def auto_basis(n_basis: int | str | None, n_rows: int, most: int, n_auto: int) -> int | None:
    """Return the number of basis rows; None for all rows."""
    if n_basis != "auto":
        return n_basis  # type: ignore[return-value]
    if n_rows <= most:
        return None
    warn(
        f"{n_rows} rows are approximated by {n_auto} basis rows to save time; set n_basis to another number, or to "
        "None for all rows."
    )
    return n_auto


def require_choice(basis: Any) -> None:
    """Raise `InputError` for an unknown name of a choice; row numbers are not checked here."""
    if isinstance(basis, str) and basis not in CHOICES:
        raise InputError(f"basis is {basis!r}; choose one of {', '.join(CHOICES)}, or pass row numbers.")
