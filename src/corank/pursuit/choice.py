"""What the terms of a pursuit may stand for, and how views share it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.data.problem.ranking import RankingData
from corank.errors import InputError
from corank.kernels import Basis, is_precomputed
from corank.kernels.views import View, as_views
from corank.pursuit.dictionary import Dictionary, feature_columns, kernel_columns


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
        basis.judge(data.X)
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
