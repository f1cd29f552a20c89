"""QueryScaler: query-level normalisation of features, as in LETOR."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from corank.base.contract import Estimator, check_columns, check_parameters, install, note_columns
from corank.core.rows.blocks import MINMAX, ZSCORE, scale_blocks
from corank.core.threads import cut, n_threads, parallel_map
from corank.data.queries import Queries, qid_of_index
from corank.data.routing import how_to_pass_qid
from corank.data.rows import as_rows
from corank.errors import InputError, warn
from corank.fitted import Relations
from corank.parameters import Rules, one_of

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
    _rules: ClassVar[Rules] = {"method": one_of(*METHODS)}

    _relations: ClassVar[Relations] = {
        "n_queries_ is set": lambda m: hasattr(m, "n_queries_"),
    }

    n_queries_: int | None

    def __init__(self, method: Literal["minmax", "zscore"] = "minmax") -> None:
        self.method = method

    def fit(self, X: Any, y: Any = None, *, qid: ArrayLike | None = None) -> Self:
        """Remember the columns and the number of queries."""
        check_parameters(self)
        rows, qid = self._dense(X), qid_of_index(X, qid)
        n_queries = None if qid is None else len(Queries.of(qid, len(rows)))
        return install(self, None, {**note_columns(X, rows), "n_queries_": n_queries})

    def transform(self, X: Any, qid: ArrayLike | None = None) -> NDArray[Any]:
        """Scale rows by the rows of their own query, in X's precision."""
        check_is_fitted(self)
        rows, qid = self._dense(X), qid_of_index(X, qid)
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
