"""
Ranker: the base class of all rankers of rows.

`Ranker.fit` is the transaction of `corank.base.contract`. It checks parameters, rows, scores or preferences,
queries and weights; holds out judgements for early stopping; scales columns; and passes the problem to the subclass,
whose `_fit` returns a frozen record. Its fields become the fitted attributes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from corank.base.contract import (
    Estimator,
    check_columns,
    check_parameters,
    fill_problem,
    fill_rows,
    filling_of,
    importances,
    install,
    kept_columns,
    named_after_y,
    note_columns,
    warn_of_one_query,
)
from corank.base.held_out import HeldOut, hold_out
from corank.base.kernels import as_kernel
from corank.base.kernels.basis import Terms
from corank.base.kernels.kernel import is_precomputed
from corank.core.rows.access import ScaledRows
from corank.data.collection import Dataset
from corank.data.columns import column_factors
from corank.data.inputs import as_prior, as_scores, require_squares
from corank.data.queries import Queries, qid_of_group, qid_of_index
from corank.data.ranking import RankingData
from corank.data.rows import (
    as_objects,
    as_rows,
    encode_categories,
    encode_like,
    has_missing,
    is_table,
    require_finite,
    with_names,
)
from corank.errors import InputError
from corank.fitted import Relations, Shapes, are_below
from corank.metrics import disagreement_error
from corank.parameters import rng_of


class Interrupted(KeyboardInterrupt):
    """
    Ctrl-C during a fit whose steps so far give a model, which is installed before the interrupt is raised again.

    fitted: the frozen record of that model.
    """

    def __init__(self, fitted: Any) -> None:
        super().__init__()
        self.fitted = fitted


class Ranker(Estimator, ABC):
    """
    Base class of all rankers: learns from scored and unjudged rows, scores rows, ranks them.

    A subclass declares its parameters as fields, and in `_rules` which values are allowed. It computes in `_fit`
    and scores rows in `_score_rows`, where `_checked_rows` checks them. NaN in y marks an unjudged row; with
    preferences, a row that is in none of them is unjudged. `qid` holds one query id per row, of any hashable type, in
    any order. ``fit`` also takes a `RankingData` in place of X, y, qid and pairs, so that a problem indexed once (or a
    memory-mapped store) serves many fits.
    """

    _shapes: ClassVar[Shapes] = {
        "coef_": ("all columns",),
        "column_scale_": ("all columns",),
        "missing_columns_": ("missing",),
        "missing_means_": ("n_features_in_",),
    }
    _relations: ClassVar[Relations] = {
        "basis_ has the columns of X": lambda m: (
            getattr(m, "_reads_ids", False) or not hasattr(m, "basis_") or m.basis_.can_compare(m._n_columns)
        ),
        "missing_columns_ names columns": lambda m: (
            hasattr(m, "missing_columns_") == hasattr(m, "missing_means_")
            and (not hasattr(m, "missing_columns_") or are_below(m.missing_columns_, m.n_features_in_))
            and (np.diff(getattr(m, "missing_columns_", [])) > 0).all()
        ),
        "views_ names columns": lambda m: all(
            view.columns is None or are_below(view.columns, m._n_columns) for view in getattr(m, "views_", ())
        ),
    }

    # GridSearchCV, cross_val_score and Pipeline route qid and prior without any set_*_request
    __metadata_request__fit: ClassVar[dict[str, bool]] = {"qid": True, "prior": True}
    __metadata_request__predict: ClassVar[dict[str, bool]] = {"prior": True}
    __metadata_request__score: ClassVar[dict[str, bool]] = {"qid": True, "prior": True}

    _accepts_sparse: ClassVar[bool] = True
    # whether a constant added to the scores of a query has no effect
    _learns_from_differences: bool = True
    # whether y is needed
    _needs_judgements: bool = True
    # whether pairs are needed, or single scores suffice
    _needs_pairs: bool = True
    # whether the size of differences of scores matters, not only their sign
    _learns_sizes: bool = True

    validation_fraction: float
    # whether the model was fitted with a prior
    has_prior_: bool = False
    column_scale_: NDArray[np.float64]
    # columns with missing values in fit, and means of all columns; only if there were any
    missing_columns_: NDArray[np.int64]
    missing_means_: NDArray[np.float64]

    @named_after_y
    def fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        *,
        qid: ArrayLike | None = None,
        sample_weight: Any = None,
        pairs: ArrayLike | None = None,
        pair_weight: Any = None,
        prior: ArrayLike | None = None,
        group: ArrayLike | None = None,
    ) -> Self:
        """
        Learn from scored rows, or from preferences.

        Parameters
        ----------
        X : array-like, CSR matrix, DataFrame, Dataset, or RankingData
            The rows, or a whole problem: what `corank.read` returns, or a `RankingData` (then y, qid and pairs stay
            None). With a kernel function, rows may be any objects.
        y : array-like of shape (n_rows,)
            Scores, higher is better; NaN marks an unjudged row.
        qid : array-like of shape (n_rows,), optional
            One query id per row; None takes the index of a DataFrame if it is named "qid", and puts all rows in one
            query otherwise.
        sample_weight : array-like of shape (n_rows,), optional
            A weight of 2 is equivalent to repeating the row; the weight of a pair is the product of its rows'.
        pairs : array-like of int, shape (n_pairs, 2), optional
            Preferences instead of y: row numbers, the preferred row first. Rows in no preference are unjudged.
        pair_weight : array-like of shape (n_pairs,), optional
            Weights of the preferences, multiplied by those of their rows.
        prior : array-like of shape (n_rows,), optional
            Prior scores s₀, one per row: f = s₀ + g is learnt, and only g is penalised. Their scale is that of the
            loss: the scale of y for squares, a difference of 1 between winner and loser for preferences and the
            hinges, log-odds for the logistic loss.
        group : array-like of int, optional
            LightGBM's sizes of queries whose rows are adjacent, instead of qid.

        Returns
        -------
        self
            The fitted ranker.
        """
        if group is not None:
            if qid is not None or isinstance(X, RankingData | Dataset):
                raise InputError("group was given in addition to query ids; pass one of them.")
            qid = qid_of_group(group, X.shape[0] if hasattr(X, "shape") else len(X))
        qid = qid_of_index(X, qid)
        return self._learn((X, y, qid, pairs), (sample_weight, pair_weight), prior, continues=self._continues)

    @abstractmethod
    def _fit(self, data: RankingData, held: HeldOut | None, rng: np.random.Generator) -> Any:
        """Compute a model from a checked problem, without changing `self`."""

    def _score_rows(self, X: Any) -> NDArray[np.float64]:
        """Score rows without the prior. Not called if a subclass overrides ``predict``."""
        raise NotImplementedError

    def predict(self, X: Any, *, prior: ArrayLike | None = None) -> NDArray[np.float64]:
        """
        Score rows.

        Parameters
        ----------
        X : array-like, CSR matrix or DataFrame, shape (n_rows, n_features)
            The rows.
        prior : array-like of shape (n_rows,), optional
            Prior scores of these rows; required if and only if ``fit`` had a prior.

        Returns
        -------
        array of shape (n_rows,)
            Scores in input order, higher is better.
        """
        return self._add_prior(self._score_rows(X), prior)

    def _add_prior(self, scores: NDArray[np.float64], prior: ArrayLike | None) -> NDArray[np.float64]:
        """Add the prior to scores."""
        if not self._check_prior(prior):
            return scores
        offset = as_prior(prior, len(scores))  # type: ignore[arg-type]
        return offset + scores if scores.ndim == 1 else offset[:, None] + scores

    def _check_prior(self, prior: Any) -> bool:
        """Return whether there is a prior; raise `InputError` if only one of ``fit`` and ``predict`` has one."""
        if prior is None and self.has_prior_:
            raise InputError(
                "this model was fitted with a prior, but prior is missing; pass prior, one score for each row of X."
            )
        if prior is not None and not self.has_prior_:
            raise InputError("prior was given, but this model was fitted without one; fit with a prior, or omit it.")
        return prior is not None

    def _terms(self, X: Any, qid: ArrayLike | None, rows: NDArray[np.int64]) -> list[Terms]:
        """
        Return the terms whose sums are the scores of some rows, without the prior.

        Overridden by models that do not score by `coef_`, or by `basis_` and `dual_coef_`.
        """
        has_basis = hasattr(self, "basis_") and hasattr(self, "dual_coef_")
        if not has_basis and not hasattr(self, "coef_"):
            raise InputError(
                f"{type(self).__name__} is not additive, so its scores cannot be split into contributions; explain a "
                "linear or kernel model, or a pursuit."
            )
        chosen = self._checked_rows(X)[rows]
        if has_basis:
            return [self.basis_.terms(self._scale_rows(chosen), self.dual_coef_)]
        return [Terms.of_columns(chosen, self.coef_)]

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """Importances of the columns, with sum 1: gains of trees, or |weight| · deviation; see `importances`."""
        return importances(self)

    def rank(self, X: Any, qid: ArrayLike | None = None, *, prior: ArrayLike | None = None) -> NDArray[np.int64]:
        """
        Rank rows inside their queries.

        Parameters
        ----------
        X : array-like, CSR matrix or DataFrame, shape (n_rows, n_features)
            The rows.
        qid : array-like of shape (n_rows,), optional
            One query id per row; None ranks all rows together.
        prior : array-like of shape (n_rows,), optional
            As in `predict`.

        Returns
        -------
        array of int64, shape (n_rows,)
            1 for the best row of each query; equal scores keep their input order.
        """
        qid = qid_of_index(X, qid)
        scores = self._predict_queries(X, qid, prior)
        return Queries.of(qid, len(scores)).ranks(scores)

    def _predict_queries(self, X: Any, qid: ArrayLike | None, prior: ArrayLike | None) -> NDArray[np.float64]:
        """Score rows of known queries; overridden by rankers whose scores depend on the query."""
        return self.predict(X, prior=prior)

    def score(
        self,
        X: Any,
        y: ArrayLike,
        qid: ArrayLike | None = None,
        sample_weight: None = None,
        *,
        prior: ArrayLike | None = None,
    ) -> float:
        """
        Return the share of comparable pairs in the right order: 1 − disagreement error, averaged over queries.

        Parameters
        ----------
        X : array-like, CSR matrix or DataFrame, shape (n_rows, n_features)
            The rows.
        y : array-like of shape (n_rows,)
            True scores; rows with NaN are left out.
        qid : array-like of shape (n_rows,), optional
            One query id per row.
        sample_weight : None
            Not supported; present so that scikit-learn's Pipeline can route to this method.
        prior : array-like of shape (n_rows,), optional
            As in `predict`.

        Returns
        -------
        float
            Between 0 and 1; a tie in the prediction counts one half.
        """
        if sample_weight is not None:
            raise InputError("sample_weight was given, but score counts pairs unweighted; omit it.")
        qid = qid_of_index(X, qid)
        scores = self._predict_queries(X, qid, prior)
        if qid is None:
            warn_of_one_query(as_scores(y, len(scores)))
        return 1.0 - disagreement_error(y, scores, qid)

    def _learn(
        self,
        inputs: tuple[Any, ...],
        weights: tuple[Any, Any],
        prior: Any,
        *,
        continues: bool,
        fit: Callable[..., Any] | None = None,
        holds_out: bool = True,
    ) -> Self:
        """Check, compute and install."""
        check_parameters(self)
        if continues:
            inputs = (encode_like(inputs[0], getattr(self, "feature_names_in_", None)), *inputs[1:])
        data, notes = self._problem(*inputs)
        if continues and notes:
            check_columns(self, inputs[0], data.X)
            notes = kept_columns(self)
        data = data.weighted(*weights).with_prior(prior)
        if continues:
            self._check_prior(data.prior)
        if data.prior is not None:
            notes["has_prior_"] = True
        self._require_judgements(data)
        data = fill_problem(self, data, notes, continues)
        if self._scales_columns(data):
            notes["column_scale_"] = self.column_scale_ if continues else column_factors(data)
            data = replace(data, X=ScaledRows(data.X, notes["column_scale_"]))
        for_split, rng = rng_of(getattr(self, "random_state", None)).spawn(2)
        held = None
        if holds_out and getattr(self, "early_stopping", False):
            held = hold_out(data, self.validation_fraction, for_split, by_squares=not self._needs_pairs)
        try:
            fitted = (fit or self._fit)(data, held, rng)
        except Interrupted as stop:
            install(self, stop.fitted, notes)
            raise KeyboardInterrupt from None
        return install(self, fitted, notes)

    @property
    def _continues(self) -> bool:
        """Whether ``fit`` continues from the last one (warm start)."""
        return False

    def _require_judgements(self, data: RankingData) -> None:
        if not self._needs_judgements:
            return
        mix = getattr(self, "mix", 0)
        if data.y is None and mix > 0:
            raise InputError(f"mix is {mix}, but preference pairs have no scores for regression; pass mix=0 or scores.")
        if data.y is not None and self._learns_sizes:
            require_squares(data.y)
        if self._needs_pairs:
            data.require_pairs()
        elif not len(data.scored_rows):
            raise InputError(f"none of the {data.n_rows} rows has a score and a weight above zero; score some rows.")

    def _problem(self, X: Any, y: Any, qid: Any, pairs: Any) -> tuple[RankingData, dict[str, Any]]:
        """Check and index the arguments of ``fit``; return also the notes on columns."""
        if isinstance(X, Dataset) and y is None and qid is None and pairs is None:
            X = X.data
        if isinstance(X, RankingData):
            if y is not None or qid is not None or pairs is not None:
                raise InputError("y, qid or pairs was given with a RankingData, which holds them; pass it alone.")
            X.require_unchanged()
            if X.has_missing:
                require_finite(X.X, missing=self._missing != "error")
            return X, self._columns(X, X.X)
        if y is not None and pairs is not None:
            raise InputError("y and pairs were both given; pass scores or preferences, not both.")
        is_object = self._takes_objects and not is_table(X)
        X = X if is_object else encode_categories(X)
        rows = as_objects(X) if is_object else as_rows(X, missing=self._missing != "error")
        columns = self._columns(X, rows)
        is_missing = self._missing != "error" and has_missing(rows)
        names = tuple(columns["feature_names_in_"]) if "feature_names_in_" in columns else None
        queries = Queries.of(qid, rows.shape[0])
        if pairs is not None:
            data = RankingData.of_checked_pairs(rows, pairs, queries)
            return replace(data, names=names, has_missing=is_missing), columns
        if y is None and not self._needs_judgements:
            y = np.full(rows.shape[0], np.nan)
        scores = as_scores(y, rows.shape[0])
        if qid is None and self._needs_judgements and self._needs_pairs:
            warn_of_one_query(scores)
        data = RankingData.of_checked(rows, scores, queries)
        return replace(data, names=names, has_missing=is_missing), columns

    def _columns(self, X: Any, rows: Any) -> dict[str, Any]:
        """Check rows and return the notes on their columns; empty for rows that are objects."""
        self._refuse_sparse(rows)
        if rows.ndim == 1:
            return {}
        if rows.shape[1] == 0:  # from a file without features
            raise InputError(f"X has {rows.shape[0]} rows of 0 features; pass rows with features.")
        if self._is_pairwise and rows.shape[0] != rows.shape[1]:
            raise InputError(
                "kernel='precomputed' needs the Gram matrix of the training rows, but X has shape "
                f"{tuple(rows.shape)}; pass a square X."
            )
        return note_columns(X, rows)

    def _checked_rows(self, X: Any) -> Any:
        """Check rows for ``predict`` against the columns of ``fit``."""
        if not hasattr(self, "n_features_in_"):
            check_is_fitted(self)
            return as_objects(X)
        self._refuse_sparse(X)
        X = encode_like(X, getattr(self, "feature_names_in_", None))
        rows = as_rows(X, missing=self._knows_missing)
        check_columns(self, X, rows)
        return fill_rows(self, rows)

    @property
    def _missing(self) -> str:
        """What to do about NaN in X: "error", "mean" (fill), "keep" (trees), or "inner" (a ranker inside this one)."""
        return "error" if self._is_pairwise else getattr(self, "missing", "error")

    @property
    def _knows_missing(self) -> bool:
        """Whether rows for ``predict`` may have NaN."""
        return self._missing in ("inner", "keep") or hasattr(self, "missing_columns_")

    @property
    def _n_columns(self) -> int:
        """Number of columns that the model has learnt: those of X, and indicators of missing values."""
        n_indicators = 0 if hasattr(self, "trees_") else len(getattr(self, "missing_columns_", ()))
        return self.n_features_in_ + n_indicators

    def _named_rows(self, X: Any) -> Any:
        """Check rows for ``predict``, and give them the names of ``fit``, for rankers inside this one."""
        rows, names, filling = self._checked_rows(X), getattr(self, "feature_names_in_", None), filling_of(self)
        if names is not None and filling is not None and not hasattr(self, "trees_"):
            names = filling.names(list(names))
        return with_names(rows, names)

    def _scaled_rows(self, X: Any) -> Any:
        """Check and scale rows for ``predict``."""
        return self._scale_rows(self._checked_rows(X))

    def _scale_rows(self, rows: Any) -> Any:
        return ScaledRows(rows, self.column_scale_) if hasattr(self, "column_scale_") else rows

    def _refuse_sparse(self, X: Any) -> None:
        if sparse.issparse(X) and not self._accepts_sparse:
            raise InputError(f"X is sparse, but {type(self).__name__} needs dense rows; pass X.toarray().")

    @property
    def _kernels(self) -> list[Any]:
        """The kernels as given."""
        return [self.kernel] if hasattr(self, "kernel") else []

    def _scales_columns(self, data: RankingData) -> bool:
        if not getattr(self, "scale", False) or data.X.ndim == 1:
            return False
        return all(as_kernel(kernel).scales_columns for kernel in self._kernels)

    @property
    def _takes_objects(self) -> bool:
        return bool(self._kernels) and all(as_kernel(kernel).takes_objects for kernel in self._kernels)

    @property
    def _is_pairwise(self) -> bool:
        """Whether X is a Gram matrix, so that a fold must select rows and columns."""
        return any(is_precomputed(kernel) for kernel in self._kernels)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._is_pairwise
        tags.input_tags.sparse = self._accepts_sparse
        tags.input_tags.allow_nan = self._missing != "error"
        tags.target_tags.required = self._needs_judgements
        return tags
