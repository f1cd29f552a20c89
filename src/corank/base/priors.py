"""
Priors: ColumnMean averages columns that are scores already, and ResidualRanker learns a correction to a prior ranker.

ResidualRanker learns  f = c s₀ + g,  c = max(0, Σ (y_a − y_b)(s₀_a − s₀_b) / Σ (s₀_a − s₀_b)²),  s₀ the prior ranker's
scores. c converts them to the scale of y: the least-squares slope over the judged pairs (a, b), those of one query with
different scores. Only g is penalised. Without judgements against it, the order is that of the prior ranker; if the
judgements contradict it (c = 0), the ranker learns without a prior.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from corank.base.base import Ranker
from corank.base.held_out import HeldOut
from corank.base.kernels.basis import Terms
from corank.base.pairs import Laplacian
from corank.base.pairs.moments import dense
from corank.base.solvers.solution import ordered
from corank.base.transformers import METHODS, QueryScaler
from corank.data.column_roles import column_numbers
from corank.data.ranking import RankingData
from corank.data.rows import with_names
from corank.data.scoring import score_columns
from corank.errors import InputError
from corank.fitted import Relations, Shapes, are_below
from corank.parameters import Missing, Rules, having, is_integer, listing, none, one_of

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class FittedColumnMean:
    """The fitted attributes of `ColumnMean`."""

    columns: NDArray[np.int64]
    signs: Floats
    scaler: QueryScaler | None


class ColumnMean(Ranker):
    """
    Feature average: score rows by the mean of some columns, without learning.

    f(x) is the mean over the chosen columns j of sign_j · x_j, each column scaled inside its query. It is for columns
    that are scores already, such as the BM25 columns of a LETOR set: a baseline for a ranker learnt from few
    judgements, and a prior ranker for `corank.base.ResidualRanker`. ``fit`` needs no y. If columns are scaled inside
    queries, ``predict`` needs `qid` as ``rank`` does.

    Parameters
    ----------
    columns : array-like of int or str
        Numbers or names of the columns, each a score.
    signs : array-like of float, optional
        Factor of each column: −1 if lower is better. None means 1 for all.
    method : {"minmax", "zscore", None}
        How to scale a column inside each query before taking the mean, see `corank.QueryScaler`; None does not scale.
    missing : {"mean", "error"}
        What to do about NaN in X: "mean" fills in the mean of the column over the rows of ``fit``, "error" raises.

    Attributes
    ----------
    columns_ : array of int64
        The columns.
    signs_ : array of float64
        Their factors.
    scaler_ : QueryScaler
        Scales the columns; not with method=None.

    Examples
    --------
    >>> X = [[3.0, 10.0], [1.0, 30.0], [2.0, 0.0]]
    >>> ColumnMean([0, 1], [1, -1], method="minmax").fit(X).predict(X).round(2).tolist()
    [0.33, -0.5, 0.25]
    """

    _needs_judgements: bool = False
    _needs_pairs: bool = False
    __metadata_request__predict: ClassVar[dict[str, bool]] = {"qid": True, "prior": True}

    _rules: ClassVar[Rules] = {
        "columns": listing,
        "signs": listing | none,
        "method": one_of(*METHODS) | none,
    }

    _shapes: ClassVar[Shapes] = {"columns_": ("columns",), "signs_": ("columns",)}
    _relations: ClassVar[Relations] = {
        "columns_ names columns": lambda m: are_below(m.columns_, m.n_features_in_, -m.n_features_in_),
    }

    columns_: NDArray[np.int64]
    signs_: Floats
    scaler_: QueryScaler

    def __init__(
        self, columns: Any, signs: Any = None, *, method: str | None = "zscore", missing: Missing = "mean"
    ) -> None:
        self.columns = columns
        self.signs = signs
        self.method = method
        self.missing = missing

    def _fit(self, data: RankingData, held: HeldOut | None, rng: np.random.Generator) -> FittedColumnMean:
        numbers = column_numbers(self.columns, data.names, "columns")
        # indicators of missing values follow the columns of X
        n_columns = data.n_features - (0 if data.filling is None else len(data.filling.columns))
        if not numbers or not all(is_integer(j) and 0 <= j < n_columns for j in numbers):
            raise InputError(f"columns is {self.columns!r}; pass one or more column numbers from 0 to {n_columns - 1}.")
        try:
            signs = np.ones(len(numbers)) if self.signs is None else np.asarray(self.signs, dtype=np.float64)
        except (TypeError, ValueError):
            signs = np.empty(0)
        if signs.shape != (len(numbers),) or not np.isfinite(signs).all():
            raise InputError(f"signs is {self.signs!r} for {len(numbers)} columns; pass one finite number for each.")
        columns, scaler = np.array(numbers, dtype=np.int64), None
        if self.method is not None:
            rows = dense(data.X[:, columns])
            scaler = QueryScaler(self.method).fit(rows, qid=data.queries.codes)  # type: ignore[arg-type]
        return FittedColumnMean(columns, signs, scaler)

    def predict(self, X: Any, qid: ArrayLike | None = None, *, prior: ArrayLike | None = None) -> Floats:
        """Score rows; `qid` is required if columns are scaled inside queries and ``fit`` had several."""
        return self._add_prior(score_columns(self._scaled(X, qid), self.signs_) / len(self.signs_), prior)

    @property
    def coef_(self) -> Floats:
        """Weights of all columns; only if they are not scaled inside queries."""
        if hasattr(self, "scaler_") or not hasattr(self, "columns_"):
            raise AttributeError("ColumnMean has coef_ only if it is fitted and does not scale inside queries")
        weights = np.zeros(self._n_columns)
        np.add.at(weights, self.columns_, self.signs_ / len(self.signs_))
        return weights

    def _score_rows(self, X: Any) -> Floats:
        """Score rows without query ids; only if columns are not scaled inside queries."""
        return score_columns(self._checked_rows(X), self.coef_)

    def _scaled(self, X: Any, qid: ArrayLike | None) -> Floats:
        chosen = np.asarray(dense(self._checked_rows(X)[:, self.columns_]), dtype=np.float64)
        if not hasattr(self, "scaler_"):
            return chosen
        # a single row is one query
        return self.scaler_.transform(chosen, [0] if qid is None and len(chosen) == 1 else qid)

    def _terms(self, X: Any, qid: ArrayLike | None, rows: NDArray[np.int64]) -> list[Terms]:
        return [Terms("column", self.columns_, self.signs_ / len(self.signs_), self._scaled(X, qid)[rows])]

    def _predict_queries(self, X: Any, qid: ArrayLike | None, prior: ArrayLike | None) -> Floats:
        return self.predict(X, qid, prior=prior)


@dataclass(frozen=True, eq=False)
class FittedResidualRanker:
    """The fitted attributes of `ResidualRanker`."""

    prior_ranker: Ranker
    ranker: Ranker
    slope: float


class ResidualRanker(Ranker):
    """
    Prior offset: a ranker that corrects the scores of a prior ranker without judgements; the prediction is their sum.

    Parameters
    ----------
    prior_ranker : Ranker
        A ranker that needs no judgements, such as `corank.ColumnMean`.
    ranker : Ranker
        Learns the correction from the judgements.

    Attributes
    ----------
    prior_ranker_ : Ranker
        The prior ranker, fitted on all rows without scores.
    ranker_ : Ranker
        The ranker, fitted with the prior.
    slope_ : float
        c, the factor of the prior scores: the least-squares slope of differences of y on differences of prior scores
        over the judged pairs, or 0 if it is negative. A preference counts as a difference of 1, as does a difference
        of grades if the ranker uses only the order.

    Examples
    --------
    >>> from corank import ColumnMean, RankRLS, make_ranking
    >>> from corank.base import ResidualRanker
    >>> problem = make_ranking(60, 10, random_state=0)
    >>> judged = problem.qid < 3
    >>> model = ResidualRanker(ColumnMean([0, 1]), RankRLS())
    >>> model = model.fit(problem.X[judged], problem.y[judged], qid=problem.qid[judged])
    >>> model.rank(problem.X, qid=problem.qid).shape
    (600,)
    """

    __metadata_request__predict: ClassVar[dict[str, bool]] = {"qid": True, "prior": True}

    _rules: ClassVar[Rules] = {
        "prior_ranker": having("a corank ranker such as ColumnMean([0, 1])", "fit", "predict"),
        "ranker": having("a corank ranker such as RankRLS()", "fit", "predict"),
    }

    prior_ranker_: Ranker
    ranker_: Ranker
    slope_: float

    def __init__(self, prior_ranker: Any, ranker: Any) -> None:
        self.prior_ranker = prior_ranker
        self.ranker = ranker

    def _check_combinations(self) -> None:
        for name in ("prior_ranker", "ranker"):
            if not isinstance(getattr(self, name), Ranker):
                raise InputError(f"{name} is a {type(getattr(self, name)).__name__}; pass a corank ranker.")
        if self.prior_ranker._needs_judgements:
            raise InputError(
                f"prior_ranker is a {type(self.prior_ranker).__name__}, which learns from judgements; pass a ranker "
                "without judgements, such as ColumnMean, or pass its scores to fit as prior."
            )

    def _fit(self, data: RankingData, held: HeldOut | None, rng: np.random.Generator) -> FittedResidualRanker:
        unjudged = RankingData.of_checked(data.X, np.full(data.n_rows, np.nan), data.queries)
        prior_ranker = clone(self.prior_ranker).fit(replace(unjudged, names=data.names))
        prior_scores = prior_ranker._predict_queries(with_names(data.X, data.names), data.queries.codes, None)
        slope = prior_slope(data if self._learns_sizes else ordered(data), prior_scores)
        total = slope * prior_scores + data.prior_of(np.arange(data.n_rows))
        return FittedResidualRanker(prior_ranker, clone(self.ranker).fit(replace(data, prior=total)), slope)

    def predict(self, X: Any, qid: ArrayLike | None = None, *, prior: ArrayLike | None = None) -> Floats:
        """Score rows; `prior` is added to the scores of the prior ranker, which may need `qid`."""
        check_is_fitted(self)
        rows = self._named_rows(X)
        # added to the scores of the prior ranker, as in `_fit`
        prior_scores = self._add_prior(self.slope_ * self.prior_ranker_._predict_queries(rows, qid, None), prior)
        return self.ranker_._predict_queries(rows, qid, prior_scores)

    def _terms(self, X: Any, qid: ArrayLike | None, rows: NDArray[np.int64]) -> list[Terms]:
        """Return the prior ranker's score as one term, and the terms of the ranker."""
        checked = self._named_rows(X)
        prior_scores = self.slope_ * self.prior_ranker_._predict_queries(checked, qid, None)
        return [Terms.of_prior(prior_scores[rows]), *self.ranker_._terms(checked, qid, rows)]

    def _predict_queries(self, X: Any, qid: ArrayLike | None, prior: ArrayLike | None) -> Floats:
        return self.predict(X, qid, prior=prior)

    @property
    def _learns_from_differences(self) -> bool:  # type: ignore[override]
        return bool(self.ranker._learns_from_differences)

    @property
    def _needs_pairs(self) -> bool:  # type: ignore[override]
        return bool(self.ranker._needs_pairs)

    @property
    def _learns_sizes(self) -> bool:  # type: ignore[override]
        return bool(self.ranker._learns_sizes)

    @property
    def _accepts_sparse(self) -> bool:  # type: ignore[override]
        return bool(getattr(self.ranker, "_accepts_sparse", True))

    @property
    def _missing(self) -> str:
        """Missing values are filled for both rankers."""
        return "error" if getattr(self.ranker, "_missing", "error") == "error" else "mean"

    @property
    def _kernels(self) -> list[Any]:
        """The kernels of the ranker, as given."""
        return getattr(self.ranker, "_kernels", [])


def prior_slope(data: RankingData, prior_scores: Floats) -> float:
    """Return the least-squares slope of targets on prior scores over judged pairs; 0 if it is negative."""
    if data.pairs is not None:
        gaps, w = prior_scores[data.pairs[:, 0]] - prior_scores[data.pairs[:, 1]], data.pair_weight
        numerator, denominator = float(w @ (gaps * data.pair_targets)), float(w @ gaps**2)
    else:
        assert data.targets is not None
        L = Laplacian.per_query(data, "pairs", "scored")
        denominator = float(L.quad(prior_scores))
        numerator = float(L.quad(prior_scores, np.where(data.is_scored, data.targets, 0.0)))
    return max(0.0, numerator / denominator) if denominator > 0.0 else 0.0
