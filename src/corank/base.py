"""Ranker: what every estimator of corank promises."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from corank.data.queries import Queries
from corank.data.ranking import RankingData, as_scores
from corank.data.rows import as_rows, columns_of
from corank.data.weights import as_weights as checked_weights
from corank.errors import InputError
from corank.kernels import is_precomputed
from corank.metrics import disagreement_error

OF_COLUMNS = ("n_features_in_", "feature_names_in_")
"""What scikit-learn records about the columns before a fit begins."""


class Ranker(BaseEstimator, ABC):
    """
    Base class of all rankers: learns from scored and unscored rows, scores rows, orders them.

    A subclass stores its parameters in ``__init__``, gets a checked and indexed problem from `_problem` in
    ``fit``, and gets checked rows from `_new_rows` in ``predict``. NaN in y marks an unscored row; `qid` holds one
    query id per row, of any hashable type, in any order. ``fit`` also takes a `RankingData` in place of X, y and
    qid, so that a problem indexed once (or a memory-mapped store) serves many fits.
    """

    # GridSearchCV, cross_val_score and Pipeline hand qid on without any set_*_request
    __metadata_request__fit: ClassVar[dict[str, bool]] = {"qid": True}
    __metadata_request__score: ClassVar[dict[str, bool]] = {"qid": True}

    _accepts_sparse: ClassVar[bool] = True
    _takes_weights: ClassVar[bool] = True
    # whether a constant added to the scores of a query changes nothing
    _learns_from_differences: ClassVar[bool] = True

    @abstractmethod
    def fit(
        self, X: Any, y: ArrayLike | None = None, *, qid: ArrayLike | None = None, sample_weight: Any = None
    ) -> Self:
        """
        Learn from rows.

        Parameters
        ----------
        X : array-like, CSR matrix, DataFrame, or RankingData
            The rows, or a whole problem (then y and qid stay None).
        y : array-like of shape (n_rows,)
            Scores, higher is better; NaN marks an unscored row.
        qid : array-like of shape (n_rows,), optional
            One query id per row; None puts all rows in one query.
        sample_weight : array-like of shape (n_rows,), optional
            A weight of 2 means what writing the row twice means: a pair weighs the product of its rows.

        Returns
        -------
        self
            The fitted ranker.
        """

    @abstractmethod
    def predict(self, X: Any) -> NDArray[np.float64]:
        """
        Score rows.

        Parameters
        ----------
        X : array-like, CSR matrix or DataFrame, shape (n_rows, n_features)
            The rows.

        Returns
        -------
        array of shape (n_rows,)
            Scores in input order, higher is better.
        """

    def rank(self, X: Any, qid: ArrayLike | None = None) -> NDArray[np.int64]:
        """
        Rank rows inside their queries.

        Parameters
        ----------
        X : array-like, CSR matrix or DataFrame, shape (n_rows, n_features)
            The rows.
        qid : array-like of shape (n_rows,), optional
            One query id per row; None ranks all rows together.

        Returns
        -------
        array of int64, shape (n_rows,)
            1 for the best row of each query; equal scores keep their input order.
        """
        scores = self.predict(X)
        return Queries.of(qid, len(scores)).ranks(scores)

    def score(self, X: Any, y: ArrayLike, qid: ArrayLike | None = None, sample_weight: None = None) -> float:
        """
        Share of comparable pairs that are ordered rightly: 1 − disagreement error, averaged over queries.

        Parameters
        ----------
        X : array-like, CSR matrix or DataFrame, shape (n_rows, n_features)
            The rows.
        y : array-like of shape (n_rows,)
            True scores; rows with NaN are left out.
        qid : array-like of shape (n_rows,), optional
            One query id per row.
        sample_weight : None
            There so that scikit-learn's Pipeline can route to this method; weights are refused.

        Returns
        -------
        float
            Between 0 and 1; a tie in the prediction counts one half.
        """
        if sample_weight is not None:
            raise InputError("sample_weight came, but score counts pairs unweighted; leave it out.")
        return 1.0 - disagreement_error(y, self.predict(X), qid)

    def _problem(self, X: Any, y: ArrayLike | None, qid: ArrayLike | None) -> RankingData:
        """Check and index what ``fit`` was given, and remember the columns."""
        if isinstance(X, RankingData):
            if y is not None or qid is not None:
                raise InputError("y or qid came beside a RankingData, which already holds both; pass it alone.")
            self._refuse_sparse(X.X)
            validate_data(self, X.X, skip_check_array=True)
            return X
        self._refuse_sparse(X)
        rows = as_rows(X)
        validate_data(self, columns_of(X, rows), skip_check_array=True)
        return RankingData.of_checked(rows, as_scores(y, rows.shape[0]), Queries.of(qid, rows.shape[0]))  # type: ignore[arg-type]

    def _new_rows(self, X: Any) -> Any:
        """Check the rows ``predict`` was given against the columns seen in ``fit``."""
        check_is_fitted(self)
        self._refuse_sparse(X)
        rows = as_rows(X)
        validate_data(self, columns_of(X, rows), skip_check_array=True, reset=False)
        return rows

    def _refuse_sparse(self, X: Any) -> None:
        if sparse.issparse(X) and not self._accepts_sparse:
            raise InputError(f"X is sparse, but {type(self).__name__} needs dense rows; pass X.toarray().")

    def _forget(self) -> None:
        """Drop what an earlier fit found; scikit-learn's record of the columns is of this fit."""
        for name in [name for name in vars(self) if name.endswith("_") and name not in OF_COLUMNS]:
            delattr(self, name)

    @property
    def _is_pairwise(self) -> bool:
        """Whether the columns of X are its rows, so that a fold must choose both."""
        return is_precomputed(getattr(self, "kernel", None))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._is_pairwise
        tags.input_tags.sparse = self._accepts_sparse
        tags.target_tags.required = True
        return tags


def as_weights(sample_weight: Any, n_rows: int) -> NDArray[np.float64] | None:
    """
    Check row weights: finite, not negative, one per row, not all zero.

    Parameters
    ----------
    sample_weight : array-like, number or None
        The weights; a number weighs every row alike.
    n_rows : int
        Number of rows of X.

    Returns
    -------
    array of float64, or None
        The weights; None where all rows weigh 1.
    """
    if sample_weight is None:
        return None
    given = np.asarray(sample_weight)
    return checked_weights(np.full(n_rows, given) if given.ndim == 0 else given, n_rows, name="sample_weight")


def rng_of(random_state: Any) -> np.random.Generator:
    """
    Make the one generator of a fit.

    Parameters
    ----------
    random_state : int, numpy.random.RandomState or None
        What the user gave.

    Returns
    -------
    numpy.random.Generator
        Seeded by it.
    """
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(0, 2**32, size=4, dtype=np.uint32))
    return np.random.default_rng(random_state)
