"""The dictionary of a pursuit, as columns over the judged rows, and its inner product ⟨u, v⟩ = uᵀL̃v."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from corank.base.kernels.basis import Basis
from corank.base.kernels.kernel import is_precomputed
from corank.base.kernels.views import View, as_views
from corank.base.pairs import Laplacian, PairLaplacian, QueryLaplacian
from corank.base.pairs.losses import weigh_queries
from corank.base.solvers.solution import require_products
from corank.core.models.pursuit import TINY
from corank.data.queries import Queries
from corank.data.ranking import RankingData
from corank.errors import InputError, warn
from corank.memory import require_memory

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class InnerProduct:
    """L̃ = β diag(w) + (1 − β) L over the judged rows, as an operator."""

    L: Laplacian  # laplacian of the compared pairs
    mix: float  # β, the share of regression
    weights: Floats

    def apply(self, V: Floats) -> Floats:
        """Return L̃ V."""
        if self.mix == 0.0:
            return np.asarray(self.L @ V)
        plain = self.mix * (self.weights if V.ndim == 1 else self.weights[:, None]) * V
        return plain if self.mix == 1.0 else plain + (1.0 - self.mix) * (self.L @ V)

    def squares(self, V: Floats) -> Floats:
        """Return vᵀL̃v for each column, as a sum of squares, without cancellation."""
        total = np.zeros(V.shape[1])
        if self.mix > 0.0:
            total += self.mix * np.einsum("ij,ij,i->j", V, V, self.weights)
        if self.mix < 1.0:
            H = self.L.half(V)
            total += (1.0 - self.mix) * np.einsum("ij,ij->j", H, H)
        return total

    @property
    def largest(self) -> float:
        """An upper bound on the eigenvalues of L̃, for rounding errors of norms."""
        if isinstance(self.L, QueryLaplacian):
            top = float(np.max(self.L.scale, initial=0.0)) * float(np.max(self.L.weights, initial=1.0))
        else:
            assert isinstance(self.L, PairLaplacian)
            top = 2.0 * float(np.max(self.L.L.diagonal(), initial=0.0))
        return self.mix * float(self.weights.max()) + (1.0 - self.mix) * top


@dataclass(frozen=True, eq=False)
class Target:
    """The scores s to approximate."""

    rows: NDArray[np.int64]  # (n,): the judged rows of X: scored ones of positive weight, or those of pairs
    inner: InnerProduct  # the inner product over `rows`
    v: Floats  # (n,): L̃ s
    J: float  # sᵀL̃s, the objective of the empty model

    @classmethod
    def of(cls, data: RankingData, mix: float, query_weight: str) -> Target:
        """Build the target of a problem; the target of a preference is a difference of 1."""
        rows = data.scored_rows
        if data.pairs is not None:
            return cls._of_pairs(data, mix, query_weight)
        assert data.targets is not None
        queries = Queries.of(data.queries.codes[rows], len(rows))
        w = data.weight_of(rows)
        L = Laplacian.per_query(queries, query_weight, weights=None if data.weights is None else w)
        inner = InnerProduct(L, mix, w)
        s = data.targets[rows]
        if mix == 0.0:
            # the mean of a query cancels; subtracting it first avoids rounding errors
            s = s - (np.bincount(queries.codes, s) / queries.sizes)[queries.codes]
        return cls(rows, inner, inner.apply(s), float(inner.squares(s[:, None])[0]))

    @classmethod
    def _of_pairs(cls, data: RankingData, mix: float, query_weight: str) -> Target:
        if mix > 0.0:
            raise InputError(f"mix is {mix}, but pairs contain no scores for regression; pass mix=0, or scores.")
        assert data.pairs is not None
        rows, weight = data.scored_rows, weigh_queries(data, query_weight).pair_weight
        kept = weight > 0.0
        pairs, weight, gaps = np.searchsorted(rows, data.pairs[kept]), weight[kept], data.pair_targets[kept]
        L = Laplacian.from_pairs(pairs, len(rows), weight)
        inner = InnerProduct(L, 0.0, np.ones(len(rows)))
        return cls(rows, inner, np.asarray(L.half_t(np.sqrt(weight) * gaps)), float(weight @ gaps**2))


def without_mean(data: RankingData) -> tuple[float, RankingData]:
    """Subtract the mean target of the judged rows from all scores."""
    rows = data.scored_rows
    if data.y is None or data.targets is None:
        return 0.0, data
    mean = float(np.average(data.targets[rows], weights=data.weight_of(rows)))
    return mean, replace(data, y=data.y - mean)


# entries of a block of columns: 16 MiB of float64
_BLOCK = 1 << 21
# bytes of all blocks that exist at once
_WORK = 1 << 27
# a norm below this many units of rounding counts as 0: the column is constant in every query
_ROUNDING = 64.0
# up to this many scored rows all are candidates by default, above a number of random ones
_MANY_ROWS, _AUTO_ROWS = 5_000, 2_000


@dataclass(frozen=True, eq=False)
class Dictionary:
    """N columns over n rows."""

    D: Any

    def __len__(self) -> int:
        return int(self.D.shape[1])

    def correlate(self, v: Floats) -> Floats:
        """Return Dᵀv, the main cost of a step."""
        return np.asarray(self.D.T @ v.astype(self.D.dtype, copy=False), dtype=np.float64)

    def column(self, j: int) -> Floats:
        """Return one column."""
        return _dense(self.D[:, [j]])[:, 0]

    def blocks(self) -> Iterator[tuple[slice, Floats]]:
        """Yield slices of columns, and dense copies of these columns."""
        width = max(_BLOCK // max(self.D.shape[0], 1), 1)
        for start in range(0, len(self), width):
            piece = slice(start, min(start + width, len(self)))
            yield piece, _dense(self.D[:, piece])

    def squares(self, inner: InnerProduct) -> Floats:
        """Return kᵀL̃k for each column k; 0 for a column that is constant in every query, up to rounding."""
        out = np.concatenate([np.empty(0), *(inner.squares(block) for _, block in self.blocks())])
        return np.where(out > self.rounding(inner), out, 0.0)

    def rounding(self, inner: InnerProduct) -> Floats:
        """Return a bound on the rounding error of kᵀL̃k for each column."""
        unit = (_ROUNDING * np.finfo(self.D.dtype).eps) ** 2 * inner.largest
        plain = [np.einsum("ij,ij->j", block, block) for _, block in self.blocks()]
        return np.asarray(np.maximum(unit * np.concatenate([np.empty(0), *plain]), TINY))


def kernel_columns(basis: Basis, X: Any, rows: NDArray[np.int64]) -> Dictionary:
    """Build a dictionary of similarities to the rows of a basis, in blocks of rows and in the precision of X."""
    require_columns(len(rows), len(basis), X)
    D = np.empty((len(rows), len(basis)), dtype=_precision(X))
    for piece, K in basis.blocks(X, rows):
        D[piece] = K
    return Dictionary(D)


def require_columns(n_rows: int, n_columns: int, X: Any) -> None:
    """Raise `InputError` if columns of similarities do not fit in memory."""
    n_bytes = _precision(X).itemsize * n_rows * n_columns
    require_memory(n_rows, n_bytes + _WORK, "set dictionary to a smaller number of rows")


def _precision(X: Any) -> np.dtype[Any]:
    return np.dtype(np.float32 if X.dtype == np.float32 else np.float64)


def feature_columns(X: Any, rows: NDArray[np.int64]) -> Dictionary:
    """Build a dictionary of the columns of X."""
    chosen = X[rows]
    with np.errstate(over="ignore"):
        require_products(np.square(np.abs(chosen).max(), dtype=np.float64))
    return Dictionary(chosen.tocsc() if sparse.issparse(chosen) else chosen)


def _dense(block: Any) -> Floats:
    return np.asarray(block.toarray() if sparse.issparse(block) else block, dtype=np.float64)


def choose_rows(dictionary: Any, data: RankingData, rng: np.random.Generator) -> NDArray[np.int64]:
    """
    Choose the rows of a dictionary, ignoring rows of weight 0.

    dictionary {"auto", "scored", "all"}: the scored rows (those of pairs, if the problem has pairs), for "auto" some of
        them if they are many; all rows, a number of random rows, or row numbers.
    Returns: row numbers, ascending unless the user passed them.
    """
    if isinstance(dictionary, str) and dictionary in ("auto", "scored"):
        if dictionary == "scored" or len(data.scored_rows) <= _MANY_ROWS:
            return data.scored_rows
        warn(
            f"terms are chosen from {_AUTO_ROWS} of {len(data.scored_rows)} scored rows to save time; set dictionary "
            "to another number, or to 'scored' for all of them."
        )
        return np.sort(rng.choice(data.scored_rows, _AUTO_ROWS, replace=False))
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
        raise InputError(f"dictionary contains row {worst}; pass rows of X, from 0 to {data.n_rows - 1}.")
    if len(np.unique(rows)) < len(rows):
        raise InputError("dictionary contains a row twice; pass each row once.")
    return rows.astype(np.int64)


@dataclass(frozen=True, eq=False)
class Candidates:
    """The candidates for terms: rows of X with a kernel, or columns of X."""

    numbers: NDArray[np.int64]  # (N,): row or column numbers
    basis: Basis | None  # the rows; None for columns

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
        Choose rows and fit the kernel, or take the columns of X.

        dictionary {"auto", "scored", "all", "columns"}: see `choose_rows`; or the columns of X.
        """
        if isinstance(dictionary, str) and dictionary == "columns":
            return cls(np.arange(data.n_features), None)
        rows = choose_rows(dictionary, data, for_rows)
        basis = Basis.of(View(None, kernel).fit(data.X, for_kernel, data.weights), data.X, rows)
        basis.check(data.X)
        return cls(rows, basis)

    def over(self, X: Any, rows: NDArray[np.int64]) -> Dictionary:
        """Build the dictionary over some rows of X."""
        return feature_columns(X, rows) if self.basis is None else kernel_columns(self.basis, X, rows)


def split_views(
    views: Any,
    split: str,
    rows: NDArray[np.int64],
    n_features: int,
    kernel: Any,
    rng: np.random.Generator,
    names: Sequence[str] | None = None,
) -> list[View]:
    """Build the views of a problem, each with its dictionary as basis."""
    if not isinstance(views, Integral):
        if split == "dictionary":
            raise InputError(
                f"split='dictionary' requires a number of views, but views is a list of {len(views)}; pass a number, "
                "or give each View a basis and leave split out."
            )
    elif split == "dictionary":
        if len(rows) < int(views):
            raise InputError(
                f"views={views} requires a row per view, but the dictionary has {len(rows)} rows; pass fewer views."
            )
        return [View(None, kernel, np.sort(part)) for part in np.array_split(rng.permutation(rows), int(views))]
    elif is_precomputed(kernel):
        raise InputError("kernel='precomputed' has no columns to split into views; set split='dictionary'.")
    built = as_views(views, n_features, rng, kernel, names)
    return [replace(view, basis=rows) if view.basis is None else view for view in built]
