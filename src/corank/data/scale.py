"""Scale features inside each query, as LETOR's query-level normalisation does."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from corank.core.blocks import MINMAX, ZSCORE, scale_blocks
from corank.core.threads import cut, n_threads, spread
from corank.data.queries import Queries
from corank.data.rows import as_rows, columns_of
from corank.errors import InputError

METHODS = {"minmax": MINMAX, "zscore": ZSCORE}


class QueryScaler(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """
    Scale every feature inside every query to [0, 1], or to mean 0 and deviation 1.

    A feature that is constant in a query becomes 0 there. Nothing is learnt in ``fit`` but the number of columns:
    a query is scaled by its own rows, so unseen queries need no special care.

    Parameters
    ----------
    method : {"minmax", "zscore"}
        ``(x − min)/(max − min)``, or ``(x − mean)/deviation`` (population deviation).

    Examples
    --------
    >>> X = [[1.0, 5.0], [3.0, 5.0], [10.0, 0.0]]
    >>> QueryScaler().fit_transform(X, qid=["a", "a", "b"]).tolist()
    [[0.0, 0.0], [1.0, 0.0], [0.0, 0.0]]
    """

    __metadata_request__transform: ClassVar[dict[str, bool]] = {"qid": True}

    def __init__(self, method: Literal["minmax", "zscore"] = "minmax") -> None:
        self.method = method

    def fit(self, X: Any, y: Any = None) -> Self:
        """
        Remember the columns.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            The rows.
        y : object, optional
            Ignored.

        Returns
        -------
        self
            The scaler.
        """
        if self.method not in METHODS:
            raise InputError(f"method is {self.method!r}; choose one of {', '.join(METHODS)}.")
        rows = self._dense(X)
        validate_data(self, columns_of(X, rows), skip_check_array=True)
        return self

    def transform(self, X: Any, qid: ArrayLike | None = None) -> NDArray[Any]:
        """
        Scale rows by the rows of their own query.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            The rows.
        qid : array-like of shape (n_rows,), optional
            One query id per row; None scales all rows together.

        Returns
        -------
        ndarray of shape (n_rows, n_features)
            Scaled rows, in X's precision.
        """
        check_is_fitted(self)
        rows = self._dense(X)
        validate_data(self, columns_of(X, rows), skip_check_array=True, reset=False)
        queries = Queries.of(qid, len(rows))
        out = np.empty_like(rows)
        code = METHODS[self.method]
        spread(
            lambda first, last: scale_blocks(rows, out, queries.order, queries.starts, code, first, last),
            cut(queries.starts, 4 * n_threads()),
        )
        return out

    def fit_transform(self, X: Any, y: Any = None, *, qid: ArrayLike | None = None) -> NDArray[Any]:
        """
        Remember the columns and scale.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            The rows.
        y : object, optional
            Ignored.
        qid : array-like of shape (n_rows,), optional
            One query id per row.

        Returns
        -------
        ndarray of shape (n_rows, n_features)
            Scaled rows.
        """
        return self.fit(X, y).transform(X, qid)

    def _dense(self, X: Any) -> NDArray[Any]:
        if sparse.issparse(X):
            raise InputError("X is sparse, but scaling inside queries fills in its zeros; pass X.toarray().")
        return np.asarray(as_rows(X))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "n_features_in_")
