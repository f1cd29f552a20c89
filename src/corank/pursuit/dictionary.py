"""Dictionary: the functions that a pursuit chooses from, as columns over the rows it learns from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from corank.core.models.pursuit import TINY
from corank.data.problem.ranking import RankingData
from corank.errors import InputError
from corank.kernels import Basis, is_precomputed
from corank.kernels.views import View, as_views
from corank.pursuit.inner import Floats, Inner
from corank.solvers.solution import require_products

# entries of a block of columns: 16 MiB of float64
_BLOCK = 1 << 21
# a norm below this many units of rounding is that of a column which is constant in every query
_ROUNDING = 64.0


@dataclass(frozen=True, eq=False)
class Dictionary:
    """
    N columns over n rows, held once.

    >>> Dictionary(np.array([[1.0, 0.0], [1.0, 2.0]])).correlate(np.array([1.0, 1.0]))
    array([2., 2.])
    """

    D: Any

    def __len__(self) -> int:
        return int(self.D.shape[1])

    def correlate(self, v: Floats) -> Floats:
        """
        Return Dᵀv, the one product over the dictionary that a step costs.

        v (n,): one number per row.
        Returns: one number per column.
        """
        return np.asarray(self.D.T @ v.astype(self.D.dtype, copy=False), dtype=np.float64)

    def column(self, j: int) -> Floats:
        """Return one column."""
        return _dense(self.D[:, [j]])[:, 0]

    def blocks(self) -> Iterator[tuple[slice, Floats]]:
        """
        Go through the columns, a few at a time.

        Yields: which columns, and a copy of them.
        """
        width = max(_BLOCK // max(self.D.shape[0], 1), 1)
        for start in range(0, len(self), width):
            piece = slice(start, min(start + width, len(self)))
            yield piece, _dense(self.D[:, piece])

    def squares(self, inner: Inner) -> Floats:
        """
        Return kᵀL̃k for each column k; 0 for a column that is constant in every query, up to rounding.

        inner: the inner product.
        Returns: squared norms.
        """
        out = np.concatenate([np.empty(0), *(inner.squares(block) for _, block in self.blocks())])
        return np.where(out > self.rounding(inner), out, 0.0)

    def rounding(self, inner: Inner) -> Floats:
        """
        Return what kᵀL̃k may amount to by rounding alone.

        inner: the inner product.
        Returns: one bound per column.
        """
        unit = (_ROUNDING * np.finfo(self.D.dtype).eps) ** 2 * inner.largest
        plain = [np.einsum("ij,ij->j", block, block) for _, block in self.blocks()]
        return np.asarray(np.maximum(unit * np.concatenate([np.empty(0), *plain]), TINY))


def kernel_columns(basis: Basis, X: Any, rows: NDArray[np.int64]) -> Dictionary:
    """
    Make a dictionary of similarities, in blocks of rows: one n × N array and little more.

    basis: what each column is the similarity to.
    rows (n,): those that the columns run over.
    Returns: of len(basis) columns, in the precision of X.
    """
    D = np.empty((len(rows), len(basis)), dtype=np.float32 if X.dtype == np.float32 else np.float64)
    for piece, K in basis.blocks(X, rows):
        D[piece] = K
    return Dictionary(D)


def feature_columns(X: Any, rows: NDArray[np.int64]) -> Dictionary:
    """
    Make a dictionary of the columns of X themselves.

    rows (n,): those that the columns run over.
    Returns: of as many columns as X.
    """
    chosen = X[rows]
    with np.errstate(over="ignore"):
        require_products(np.square(np.abs(chosen).max(), dtype=np.float64))
    return Dictionary(chosen.tocsc() if sparse.issparse(chosen) else chosen)


def _dense(block: Any) -> Floats:
    return np.asarray(block.toarray() if sparse.issparse(block) else block, dtype=np.float64)


def choose_rows(dictionary: Any, data: RankingData, rng: np.random.Generator) -> NDArray[np.int64]:
    """
    Choose the rows of a dictionary; rows of weight zero are as if they were not there.

    dictionary {"scored", "all"}: the scored rows (those of pairs, where the problem is given by pairs), all rows, so
        many random rows, or those named.
    rng: draws random rows.
    Returns: row numbers, ascending unless the user named them.

    >>> data = RankingData.of([[0.0], [1.0], [2.0]], [1, 0, float("nan")])
    >>> choose_rows("scored", data, np.random.default_rng(0)).tolist()
    [0, 1]
    """
    if isinstance(dictionary, str) and dictionary == "scored":
        return data.scored_rows
    present = np.sort(np.concatenate([data.scored_rows, data.unscored_rows]))
    if isinstance(dictionary, str):
        return present
    if isinstance(dictionary, Integral):
        if int(dictionary) >= len(present):
            return present
        return np.sort(rng.choice(present, int(dictionary), replace=False))
    rows = np.asarray(dictionary)
    if rows.ndim != 1 or rows.dtype.kind not in "iu" or not len(rows):
        raise InputError(
            f"dictionary has type {rows.dtype} and shape {rows.shape}; pass row numbers, a number of rows, 'scored' or "
            "'all'."
        )
    if rows.min() < 0 or rows.max() >= data.n_rows:
        worst = rows.min() if rows.min() < 0 else rows.max()
        raise InputError(f"dictionary names row {worst}, but X has rows 0 to {data.n_rows - 1}.")
    if len(np.unique(rows)) < len(rows):
        raise InputError("dictionary names a row twice; name each row once.")
    return rows.astype(np.int64)


@dataclass(frozen=True, eq=False)
class Candidates:
    """
    What terms may stand for: rows as a view sees them, or the columns of X themselves.

    numbers (N,): the rows or columns.
    basis: the rows; None where the columns stand for themselves.
    """

    numbers: NDArray[np.int64]
    basis: Basis | None

    @classmethod
    def of(
        cls,
        dictionary: Any,
        kernel: Any,
        data: RankingData,
        for_rows: np.random.Generator,
        for_kernel: np.random.Generator,
    ) -> Candidates:
        """
        Choose rows and fit the kernel, or take the columns.

        dictionary {"scored", "all", "columns"}: see `choose_rows`; or the columns of X.
        kernel: how rows are compared.
        for_rows, for_kernel: draw random rows, and resolve the kernel's "median".
        """
        if isinstance(dictionary, str) and dictionary == "columns":
            return cls(np.arange(data.n_features), None)
        rows = choose_rows(dictionary, data, for_rows)
        basis = Basis.of(View(None, kernel).fit(data.X, for_kernel, data.weights), data.X, rows)
        basis.check(data.X)
        return cls(rows, basis)

    def over(self, X: Any, rows: NDArray[np.int64]) -> Dictionary:
        """
        Make the dictionary.

        rows: those that its columns run over.
        Returns: of N columns.
        """
        return feature_columns(X, rows) if self.basis is None else kernel_columns(self.basis, X, rows)


def deal_views(
    views: Any, split: str, rows: NDArray[np.int64], n_features: int, kernel: Any, rng: np.random.Generator
) -> list[View]:
    """
    Make the views of a problem, each with its dictionary.

    views: see `corank.kernels.views.as_views`.
    split {"columns", "dictionary"}: what is dealt at random where `views` is a number: the columns, or `rows`.
    rows: from `choose_rows`; the dictionary of views that name no basis.
    n_features: number of columns.
    kernel: of views that name none.
    Returns: the views, each with its basis.
    """
    if not isinstance(views, Integral):
        if split == "dictionary":
            raise InputError(
                f"split='dictionary' deals rows to a number of views, but views is a list of {len(views)}; pass a "
                "number, or give each View its basis and leave split out."
            )
    elif split == "dictionary":
        if len(rows) < int(views):
            raise InputError(f"views={views} needs a row for each, but the dictionary has {len(rows)} rows.")
        return [View(None, kernel, np.sort(part)) for part in np.array_split(rng.permutation(rows), int(views))]
    elif is_precomputed(kernel):
        raise InputError("kernel='precomputed' leaves no columns to deal to views; set split='dictionary'.")
    made = as_views(views, n_features, rng, kernel)
    return [replace(view, basis=rows) if view.basis is None else view for view in made]
