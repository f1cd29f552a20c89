"""Basis: training rows to which other rows are compared; Terms: the summands of a score. Choice of basis rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from corank.base.kernels.kernel import inverse_root, require_inner_product, require_similarities, require_square
from corank.base.kernels.radial import centre_of, subtract_centre
from corank.base.kernels.views import View
from corank.core.rows.access import ScaledRows
from corank.data.scoring import repeat_first, score_columns
from corank.errors import InputError, warn
from corank.fitted import Part, Relations, Shapes, are_below

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Terms:
    """
    Scores of rows as sums Σ_t weights[t] values[row, t], up to a constant.

    kind {"column", "row", "prior"}: columns of X, similarities to training rows, or prior scores.
    """

    kind: Literal["column", "row", "prior"]
    numbers: NDArray[np.int64]  # (n_terms,): numbers of the columns or training rows
    weights: Floats  # (n_terms,): weights of columns, or coefficients of training rows
    values: Floats  # (n_rows, n_terms): values of the columns, similarities, or prior scores
    view: int | None = None  # number of the view, if there are several

    @classmethod
    def of_columns(cls, rows: Any, weights: Floats) -> Terms:
        """Make one term per column."""
        values = np.asarray(rows.toarray() if sparse.issparse(rows) else rows, dtype=np.float64)
        return cls("column", np.arange(len(weights)), np.asarray(weights, dtype=np.float64), values)

    @classmethod
    def of_prior(cls, scores: Floats) -> Terms:
        """Make one term of the prior scores."""
        return cls("prior", np.zeros(1, dtype=np.int64), np.ones(1), np.asarray(scores, dtype=np.float64)[:, None])


# rows for which a user's kernel is checked if the learner does not need the whole Gram matrix
_CHECKED = 512
# largest number of rows, and of similarities (16 MiB), in memory at once
_ROWS, _ENTRIES = 4096, 1 << 21


@dataclass(frozen=True, eq=False)
class Basis(Part):
    """Training rows to which other rows are compared."""

    _shapes: ClassVar[Shapes] = {"numbers": ("r",), "rows": ("r", "...")}
    _relations: ClassVar[Relations] = {
        "rows has the columns of its view": lambda b: _has_columns(b.rows, b.view),
    }

    view: View  # columns and a fitted kernel
    numbers: NDArray[np.int64]  # (r,): numbers of the training rows
    rows: Any  # the rows in the view's columns as float64, or objects; their numbers for a precomputed kernel

    @classmethod
    def of(cls, view: View, X: Any, numbers: NDArray[np.int64]) -> Basis:
        """Copy basis rows from the training rows."""
        if view.kernel.is_precomputed:
            return cls(view, numbers, numbers)
        return cls(view, numbers, as_doubles(view.select(X[numbers])))

    def __len__(self) -> int:
        return len(self.numbers)

    def subset(self, positions: NDArray[np.int64]) -> Basis:
        """Return the basis of the distinct rows at some positions, in ascending order of their numbers."""
        positions = np.unique(positions)
        positions = positions[np.argsort(self.numbers[positions])]
        return Basis(self.view, self.numbers[positions], self.rows[positions])

    def is_like(self, other: Basis) -> bool:
        """Return whether another basis has the same columns, kernel and rows."""
        A, B = self.rows, other.rows
        if not self.view.is_like(other.view) or A.shape != B.shape or sparse.issparse(A) != sparse.issparse(B):
            return False
        return (A != B).nnz == 0 if sparse.issparse(A) else bool(np.array_equal(A, B))

    def gram(self, X: Any) -> Floats:
        """Compute the Gram matrix of the basis rows and check the kernel."""
        kernel = self.view.kernel
        require_square(len(self), 2 if kernel.is_positive_definite else 3)
        with np.errstate(over="ignore", invalid="ignore"):
            K = kernel(X[self.numbers], self.rows) if kernel.is_precomputed else kernel(self.rows)
        # the function may keep a reference to its result, and callers overwrite K
        K = np.ascontiguousarray(K.copy() if kernel.is_user_function else K, dtype=np.float64)
        require_inner_product(K, kernel)
        return K

    def diagonal(self, X: Any) -> Floats:
        """Compute the similarity of each basis row with itself."""
        kernel = self.view.kernel
        values = X[self.numbers, self.numbers] if kernel.is_precomputed else kernel.diag(self.rows)
        return np.asarray(values, dtype=np.float64)

    def can_compare(self, n_columns: int) -> bool:
        """Return whether rows of so many columns can be compared with these."""
        if self.view.columns is not None:
            self.view.require_columns(n_columns)
            return True
        if self.view.kernel.is_precomputed:
            return are_below(self.rows, n_columns)
        return bool(self.rows.ndim == 1 or self.rows.shape[1] == n_columns)

    def check(self, X: Any) -> None:
        """Check a kernel of the user as `gram` does, on at most 512 of the rows."""
        if not self.view.kernel.is_positive_definite:
            self.subset(np.linspace(0, len(self) - 1, min(len(self), _CHECKED)).astype(np.int64)).gram(X)

    def similarities(self, rows: Any) -> Any:
        """Compute the similarities of rows to the basis."""
        with np.errstate(over="ignore", invalid="ignore"):
            K = np.asarray(self.view.kernel(as_doubles(self.view.select(rows)), self.rows), dtype=np.float64)
        require_similarities(K, self.view.kernel)
        return K

    def blocks(self, X: Any, numbers: NDArray[np.int64] | None = None) -> Iterator[tuple[slice, Floats]]:
        """Compute the similarities of many rows to the basis in blocks."""
        n = X.shape[0] if numbers is None else len(numbers)
        step = min(_ROWS, max(_ENTRIES // max(len(self), 1), 1))
        for start in range(0, n, step):
            piece = slice(start, min(start + step, n))
            yield piece, self.similarities(X[piece if numbers is None else numbers[piece]])

    def column_weights(self, coefficients: Floats) -> Floats:
        """Convert coefficients to weights of the view's columns, Rᵀc, for a linear kernel."""
        return np.asarray(self.rows.T @ coefficients)

    def score(self, rows: Any, coefficients: Floats) -> Floats:
        """
        Score rows: Σ_j c_j k(x, z_j); equal rows get equal bits.

        coefficients (r,) or (r, m): c, one column for each model.
        Returns (n,) or (n, m): scores.
        """
        out = np.zeros((rows.shape[0], *coefficients.shape[1:]))
        if len(self):
            for piece, K in self.blocks(rows):
                # objects are not compared, but the similarities of equal objects are equal
                out[piece] = K @ coefficients if rows.ndim == 2 else score_columns(K, coefficients)
        return repeat_first(rows, out)

    def terms(self, rows: Any, coefficients: Floats, view: int | None = None) -> Terms:
        """
        Split the scores of rows into terms.

        view: number of the view, if there are several.
        """
        K = self.similarities(rows[:]) if len(self) else np.zeros((rows.shape[0], 0))
        return Terms("row", self.numbers, np.asarray(coefficients, dtype=np.float64), np.asarray(K), view)


def as_doubles(rows: Any) -> Any:
    """Convert float32 rows to float64; other rows, and objects, are returned unchanged."""
    rows = rows[:] if isinstance(rows, ScaledRows) else rows
    return rows.astype(np.float64) if rows.dtype == np.float32 else rows


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


def _has_columns(rows: Any, view: Any) -> bool:
    """Return whether basis rows have the columns of their view."""
    if view.kernel.is_precomputed:
        return bool(rows.ndim == 1 and rows.dtype.kind == "i" and rows.min(initial=0) >= 0)
    if rows.dtype == object:
        return bool(rows.ndim == 1)
    is_wide_enough = view.columns is None or rows.shape[-1] == len(view.columns)
    return bool(rows.ndim == 2 and rows.dtype == np.float64 and is_wide_enough)


@dataclass(frozen=True, eq=False)
class FeatureMap(Part):
    """Map from rows of X to rows of Φ."""

    _shapes: ClassVar[Shapes] = {"T": ("r", "n_features")}
    _relations: ClassVar[Relations] = {
        "T has a row for each basis row": lambda m: (
            (m.basis is None) == (m.T is None) and (m.basis is None or len(m.basis) == len(m.T))
        ),
        "n_features is positive": lambda m: m.n_features >= 0,
    }

    view: View  # columns and a kernel whose parameters are numbers
    basis: Basis | None  # the basis rows; None if Φ is the view's columns
    T: Floats | None  # (r, k): U diag(κ)^{-1/2}; None if Φ is the view's columns
    n_features: int  # k, the number of columns of Φ

    @classmethod
    def of_columns(cls, view: View, n_columns: int) -> FeatureMap:
        """Use the `n_columns` columns of a view with a linear kernel."""
        return cls(view, None, None, n_columns)

    @classmethod
    def on_basis(cls, basis: Basis, X: Any) -> FeatureMap:
        """Build the features of basis rows, in O(r³) time and three r × r arrays."""
        require_square(len(basis), 3)
        T = inverse_root(basis.gram(X))
        return cls(basis.view, basis, T, T.shape[1])

    def __call__(self, rows: Any) -> Floats:
        """Return Φ for rows with all columns; plain columns keep their dtype."""
        if self.basis is not None:
            return np.asarray(self.basis.similarities(rows) @ self.T)
        columns = self.view.select(rows)
        if columns.shape[1] != self.n_features:
            raise InputError(
                f"X has {columns.shape[1]} columns, but the model expects {self.n_features}; pass the same columns."
            )
        return np.asarray(columns.toarray() if sparse.issparse(columns) else columns)

    @property
    def inflation(self) -> float:
        """Factor by which rounding errors of similarities grow in Φ: √(Σ κ / min κ); 1 for plain columns."""
        if self.T is None or not self.T.size:
            return 1.0
        kappa = 1.0 / np.sum(self.T**2, axis=0)
        return float(np.sqrt(kappa.sum() / kappa.min()))

    def is_like(self, other: FeatureMap) -> bool:
        """Return whether another map has the same columns, kernel and basis."""
        if self is other:
            return True
        if self.basis is None or other.basis is None:
            alike = self.view.is_like(other.view) and self.n_features == other.n_features
            return self.basis is other.basis and alike
        return self.basis.is_like(other.basis) and np.array_equal(self.T, other.T)  # type: ignore[arg-type]

    def coefficients(self, w: Floats) -> Floats:
        """Convert weights of Φ to coefficients of the view's columns (linear kernel) or of the basis rows."""
        if self.basis is None or self.T is None:
            return w
        a = np.asarray(self.T @ w)
        return self.basis.column_weights(a) if self.view.kernel.is_linear else a


def stack_features(maps: tuple[FeatureMap, ...]) -> Callable[[Any], Floats]:
    """Return the map from rows of X to rows of Φ = [Φ_1 … Φ_M], the concatenated features of several views."""
    return maps[0] if len(maps) == 1 else lambda rows: np.hstack([phi(rows) for phi in maps])
