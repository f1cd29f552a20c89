"""
ColumnMean: order rows by columns that are scores already, such as the BM25 columns of a LETOR set.

    f(x) = mean over the chosen columns j of sign_j · x_j, each column scaled inside its query

Nothing is learnt and nothing has to be judged. It is the bar that a ranker learnt from few judgements has to pass, and
what it may be put on top of (`corank.OnTop`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corank.data.problem.ranking import RankingData
from corank.errors import InputError
from corank.estimator.base import Ranker
from corank.estimator.held_out import HeldOut
from corank.estimator.query_scaler import METHODS, QueryScaler
from corank.kernels import Terms
from corank.pairwise import dense
from corank.parameters import Rules, is_whole, listing, none, one_of

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class _Mean:
    """See the attributes of `ColumnMean`."""

    columns: NDArray[np.int64]
    signs: Floats
    scaler: QueryScaler | None


class ColumnMean(Ranker):
    """
    The mean of some columns, without learning.

    ``fit`` needs no y: it may be None, or NaN for every row. Where columns are scaled inside queries, ``predict`` asks
    for `qid` as ``rank`` does.

    Parameters
    ----------
    columns : array-like of int
        Numbers of the columns, each of which is a score of some kind.
    signs : array-like of float, optional
        What each of them is multiplied by: −1 where lower is better. None takes all as they are.
    method : {"minmax", "zscore", None}
        How a column is scaled inside each query before the mean is taken, see `corank.QueryScaler`; None takes it as it
        is.

    Attributes
    ----------
    columns_ : array of int64
        The columns.
    signs_ : array of float64
        What they are multiplied by.
    scaler_ : QueryScaler
        Scales the chosen columns; not with method=None.

    Examples
    --------
    >>> X = [[3.0, 10.0], [1.0, 30.0], [2.0, 0.0]]
    >>> ColumnMean([0, 1], [1, -1], method="minmax").fit(X).predict(X).round(2).tolist()
    [0.33, -0.5, 0.25]
    """

    _needs_judgements: bool = False
    _needs_pairs: bool = False
    __metadata_request__predict: ClassVar[dict[str, bool]] = {"qid": True, "prior": True}

    _rules: ClassVar[Rules] = {"columns": listing, "signs": listing | none, "method": one_of(*METHODS) | none}

    columns_: NDArray[np.int64]
    signs_: Floats
    scaler_: QueryScaler

    def __init__(self, columns: Any, signs: Any = None, *, method: str | None = "zscore") -> None:
        self.columns = columns
        self.signs = signs
        self.method = method

    def _fit(self, data: RankingData, held: HeldOut | None, rng: np.random.Generator) -> _Mean:
        given = list(self.columns)
        if not given or not all(is_whole(j) and 0 <= j < data.n_features for j in given):
            raise InputError(
                f"columns is {self.columns!r}; pass one or more column numbers from 0 to {data.n_features - 1}."
            )
        try:
            signs = np.ones(len(given)) if self.signs is None else np.asarray(self.signs, dtype=np.float64)
        except (TypeError, ValueError):
            signs = np.empty(0)
        if signs.shape != (len(given),) or not np.isfinite(signs).all():
            raise InputError(f"signs is {self.signs!r} for {len(given)} columns; pass one finite number for each.")
        columns, scaler = np.array(given, dtype=np.int64), None
        if self.method is not None:
            rows = dense(data.X[:, columns])
            scaler = QueryScaler(self.method).fit(rows, qid=data.queries.codes)  # type: ignore[arg-type]
        return _Mean(columns, signs, scaler)

    def predict(self, X: Any, qid: ArrayLike | None = None, *, prior: ArrayLike | None = None) -> Floats:
        """
        Score rows.

        Parameters
        ----------
        X : array-like, CSR matrix or DataFrame, shape (n_rows, n_features)
            The rows.
        qid : array-like of shape (n_rows,), optional
            One query id per row; asked for where columns are scaled inside queries and ``fit`` saw several.
        prior : array-like of shape (n_rows,), optional
            Scores of these rows known before learning; wanted where ``fit`` had a prior, and only there.

        Returns
        -------
        array of shape (n_rows,)
            Scores in input order, higher is better.
        """
        return self._add_prior(self._scaled(X, qid) @ self.signs_ / len(self.signs_), prior)

    def _scaled(self, X: Any, qid: ArrayLike | None) -> Floats:
        chosen = np.asarray(dense(self._checked_rows(X)[:, self.columns_]), dtype=np.float64)
        if not hasattr(self, "scaler_"):
            return chosen
        # one row is one query
        return self.scaler_.transform(chosen, [0] if qid is None and len(chosen) == 1 else qid)

    def _terms(self, X: Any, qid: ArrayLike | None, rows: NDArray[np.int64]) -> list[Terms]:
        return [Terms("column", self.columns_, self.signs_ / len(self.signs_), self._scaled(X, qid)[rows])]

    def _predict_queries(self, X: Any, qid: ArrayLike | None, prior: ArrayLike | None) -> Floats:
        return self.predict(X, qid, prior=prior)
