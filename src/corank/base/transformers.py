"""Transformers: scale features within queries, and similarities to landmark rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import ClassNamePrefixFeaturesOutMixin, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from corank.base.contract import Estimator, check_columns, check_parameters, checked_rows, install, note_columns
from corank.base.docs import shared_parameters
from corank.base.kernels import Kernel, as_kernel
from corank.base.kernels.basis import Basis, choose_basis, require_choice
from corank.base.kernels.views import View
from corank.core.rows.access import ScaledRows
from corank.core.rows.blocks import MINMAX, ZSCORE, scale_blocks
from corank.core.threads import cut, n_threads, parallel_map
from corank.data.columns import column_factors
from corank.data.queries import Queries, qid_of_index
from corank.data.ranking import RankingData
from corank.data.routing import how_to_pass_qid
from corank.data.rows import as_objects, as_rows, encode_categories, encode_like, is_table
from corank.data.scoring import repeat_first
from corank.errors import InputError, warn
from corank.fitted import Relations, Shapes
from corank.parameters import Rules, boolean, integer, kernel, listing, rng_of, seed, text

METHODS = {"minmax": MINMAX, "zscore": ZSCORE}


class QueryScaler(OneToOneFeatureMixin, TransformerMixin, Estimator):
    """
    Scale every feature inside every query to [0, 1], or to mean 0 and deviation 1.

    A feature that is constant in a query becomes 0 there. A query is scaled by its own rows, so ``fit`` learns only the
    columns and the number of queries. After a fit with several queries, rows without `qid` raise `InputError`; after a
    fit with one query they are one query.

    Parameters
    ----------
    method : {"minmax", "zscore"}
        ``(x − min)/(max − min)``, or ``(x − mean)/deviation`` (population deviation).

    Attributes
    ----------
    n_queries_ : int or None
        Number of queries in ``fit``; None without `qid`.

    Examples
    --------
    >>> X = [[1.0, 5.0], [3.0, 5.0], [10.0, 0.0]]
    >>> QueryScaler().fit_transform(X, qid=["a", "a", "b"]).tolist()
    [[0.0, 0.0], [1.0, 0.0], [0.0, 0.0]]
    """

    __metadata_request__fit: ClassVar[dict[str, bool]] = {"qid": True}
    __metadata_request__transform: ClassVar[dict[str, bool]] = {"qid": True}
    _rules: ClassVar[Rules] = {}

    _relations: ClassVar[Relations] = {
        "n_queries_ is set": lambda m: hasattr(m, "n_queries_"),
    }

    n_queries_: int | None

    def __init__(self, method: Literal["minmax", "zscore"] = "minmax") -> None:
        self.method = method

    def fit(self, X: Any, y: Any = None, *, qid: ArrayLike | None = None) -> Self:
        """Remember the columns and the number of queries."""
        check_parameters(self)
        X, qid = encode_categories(X), qid_of_index(X, qid)
        rows = self._dense(X)
        n_queries = None if qid is None else len(Queries.of(qid, len(rows)))
        return install(self, None, {**note_columns(X, rows), "n_queries_": n_queries})

    def transform(self, X: Any, qid: ArrayLike | None = None) -> NDArray[Any]:
        """Scale rows by the rows of their own query, in X's precision."""
        check_is_fitted(self)
        X, qid = encode_like(X, getattr(self, "feature_names_in_", None)), qid_of_index(X, qid)
        rows = self._dense(X)
        check_columns(self, X, rows)
        if qid is None:
            self._require_one_query()
        queries = Queries.of(qid, len(rows))
        out = np.empty_like(rows)
        code = METHODS[self.method]
        parallel_map(
            lambda first, last: scale_blocks(rows, out, queries.order, queries.starts, code, first, last),
            cut(queries.starts, 4 * n_threads()),
        )
        return out

    def fit_transform(self, X: Any, y: Any = None, *, qid: ArrayLike | None = None) -> NDArray[Any]:
        """Remember the columns and scale; the parameters are those of `fit`."""
        return self.fit(X, y, qid=qid).transform(X, qid)

    def _require_one_query(self) -> None:
        """Raise or warn about rows without query ids, unless ``fit`` had a single query."""
        advice = f"{how_to_pass_qid()} (the same id for all if they are one query)."
        if self.n_queries_ is None:
            warn(f"qid was not given, so QueryScaler scales all rows as one query; {advice}")
        elif self.n_queries_ > 1:
            raise InputError(
                f"QueryScaler was fitted with {self.n_queries_} queries, but these rows have no qid; {advice}"
            )

    def _dense(self, X: Any) -> NDArray[Any]:
        if sparse.issparse(X):
            raise InputError("X is sparse, but scaling inside queries does not keep zeros; pass X.toarray().")
        return np.asarray(as_rows(X))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "n_features_in_")


@dataclass(frozen=True, eq=False)
class FittedLandmarks:
    """The fitted attributes of `Landmarks`."""

    basis: Basis
    kernel: Kernel
    column_scale: NDArray[np.float64] | None


@shared_parameters
class Landmarks(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Estimator):
    """
    Transform each row to its kernel similarities to a few landmark rows.

    Parameters
    ----------
    n_basis : int
        Number of landmarks; at most the number of rows.
    kernel : str, Kernel or callable
        The similarity (see `corank.base.kernels.as_kernel`); CSR rows need a kernel that supports them.
    basis : {"random", "kmeans++"} or array-like of int
        Landmarks drawn without replacement; drawn one by one with probability proportional to the squared distance to
        the nearest landmark so far, at O(n) distances each; or the numbers of these rows.
    scale : bool
        Whether to divide columns by their standard deviation before rows are compared.
    {random_state}

    Attributes
    ----------
    basis_ : Basis
        The landmarks.
    kernel_ : Kernel
        The kernel with its parameters resolved.
    column_scale_ : array of shape (n_features,)
        Column factors; only with `scale` and a kernel on columns.

    Examples
    --------
    >>> X = [[0.0], [1.0], [5.0]]
    >>> Landmarks(2, "linear", random_state=0).fit(X).transform([[2.0]]).shape
    (1, 2)
    """

    _rules: ClassVar[Rules] = {
        "n_basis": integer(1),
        "kernel": kernel,
        "basis": text | listing,
        "scale": boolean,
        "random_state": seed,
    }

    _shapes: ClassVar[Shapes] = {"column_scale_": ("n_features_in_",)}

    basis_: Basis
    kernel_: Kernel
    column_scale_: NDArray[np.float64]

    def __init__(
        self,
        n_basis: int = 100,
        kernel: Any = "gaussian",
        *,
        basis: Any = "random",
        scale: bool = True,
        random_state: Any = None,
    ) -> None:
        self.n_basis = n_basis
        self.kernel = kernel
        self.basis = basis
        self.scale = scale
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Choose the landmarks and resolve the kernel; rows may be any objects for a kernel function, y is ignored."""
        check_parameters(self)
        kernel = as_kernel(self.kernel)
        X = encode_categories(X)
        rows = as_objects(X) if kernel.takes_objects and not is_table(X) else as_rows(X)
        n, factors, scaled = rows.shape[0], None, rows
        if self.scale and kernel.scales_columns:
            factors = column_factors(RankingData.of_checked(rows, np.zeros(n), Queries.of(None, n)))
            scaled = ScaledRows(rows, factors)
        notes = note_columns(X, rows) if rows.ndim == 2 else {}
        return install(self, self.choose(scaled, factors), notes)

    def _check_combinations(self) -> None:
        require_choice(self.basis)
        if as_kernel(self.kernel).is_precomputed:
            raise InputError("landmarks are rows, but a precomputed kernel has similarities; choose another kernel.")

    def choose(self, rows: Any, factors: NDArray[np.float64] | None) -> FittedLandmarks:
        """Choose landmarks from rows that are multiplied by `factors`, without changing the transformer."""
        if rows.shape[0] < 2:
            raise InputError("X has 1 sample, but landmarks need at least two; pass more rows.")
        for_kernel, for_basis = rng_of(self.random_state).spawn(2)
        view, numbers = View(None, as_kernel(self.kernel)).fit(rows, for_kernel), np.arange(rows.shape[0])
        basis = Basis.of(view, rows, choose_basis(view, rows, numbers, self.n_basis, self.basis, for_basis))
        basis.gram(rows)
        return FittedLandmarks(basis, view.kernel, factors)

    def transform(self, X: Any) -> NDArray[Any]:
        """Compute the similarities φ(x) of rows to the landmarks, dense, float32 for float32 rows."""
        check_is_fitted(self)
        has_columns = hasattr(self, "n_features_in_")
        rows = checked_rows(self, X) if has_columns else as_objects(X)
        scaled = ScaledRows(rows, self.column_scale_) if hasattr(self, "column_scale_") else rows
        out = np.empty((rows.shape[0], self._n_features_out), dtype=rows.dtype if has_columns else np.float64)
        for piece, K in self.basis_.blocks(scaled):
            out[piece] = K
        return repeat_first(rows, out)

    @property
    def _n_features_out(self) -> int:
        return len(self.basis_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
