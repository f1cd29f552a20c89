"""
The contract of everything that learns: check, compute a frozen record, install it last in one assignment.

A fit that fails or is interrupted changes nothing. Rankers, label rankers, transformers, ``partial_fit`` and
`corank.deploy.fit_parts` all use these functions, in this order:

1. `check_parameters` raises `InputError` for the first parameter that is not allowed.
2. `note_columns` reads the number and the names of the columns of X; `named_columns` does so where the names are known
   and X is elsewhere, as in `corank.deploy.fit_parts`. Where an estimator learns further, `check_columns` compares X
   with the columns of the first fit, and `kept_columns` returns these.
3. The estimator computes a frozen dataclass, without changing itself.
4. `install` replaces the fitted attributes by the fields of the record and the notes on columns.

Importances of columns: one number per column of X, at least 0, with sum 1.

Linear rankers: |w_j| σ_j, the change of the score when column j changes by its standard deviation inside queries, which
is 1/column_scale_j. Trees: the gains of all splits on column j. Both are relative to the sum over columns. The
indicator of a missing value counts for its column.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from functools import wraps
from inspect import signature
from typing import Any, ClassVar, TypeVar, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from corank.data.column_roles import list_names
from corank.data.columns import MissingValues
from corank.data.inputs import MAX_VALUE
from corank.data.ranking import RankingData
from corank.data.rows import NamedRows, as_rows, columns_of, encode_like, require_columns
from corank.errors import InputError, InputTypeError, warn
from corank.fitted import Predictions, Relations, Shapes
from corank.parameters import Rules, check_values, rules_of

COLUMN_NOTES = ("n_features_in_", "feature_names_in_")
"""Fitted attributes that describe columns, as scikit-learn names them."""

Notes = dict[str, Any]


class Estimator(BaseEstimator):
    """Base class of all estimators and transformers: parameters with rules, fitted attributes that end in "_"."""

    _rules: ClassVar[Rules] = {}
    _shapes: ClassVar[Shapes] = {}
    _relations: ClassVar[Relations] = {
        f"scores of rows with values up to {MAX_VALUE:g} do not overflow": lambda model: _are_moderate(model),
    }
    _predictions: ClassVar[Predictions] = {}
    _has_columns: ClassVar[bool] = True  # whether it learns from the columns of X
    # attributes that are only shown
    _may_be_infinite: ClassVar[frozenset[str]] = frozenset(
        [
            "objective_", "objective_trace_", "objective_path_", "gains_", "jitter_", "view_gap_", "log_evidence_",
            "evidence_trace_", "loo_scores_", "validation_errors_", "cumulative_loss_", "estimate_",
        ]
    )  # fmt: skip

    n_features_in_: int

    def _check_combinations(self) -> None:
        """Raise `InputError` if parameters contradict each other."""

    def _check_state(self) -> None:
        """Raise `InputError` if fitted attributes, which a file may have set, do not fit together."""


L = TypeVar("L", bound=Estimator)

LIGHTGBM_ARGUMENTS = {
    "init_score": "pass it as prior, to fit and to predict",
    "callbacks": "only LambdaRank(scorer='trees') calls them",
    "eval_at": "only LambdaRank takes it",
    "eval_metric": "set metric='nDCG@10'",
    "eval_names": "there is one eval_set, whose errors are validation_errors_",
    "categorical_feature": "pass a DataFrame with these columns as categories, by X.astype({name: 'category'})",
    "feature_name": "pass a DataFrame, whose column names are kept",
}
"""Arguments of LightGBM's ``fit`` that have another name here, and what to write."""

F = TypeVar("F", bound=Callable[..., Any])


def named_after_y(fit: F) -> F:
    """Let ``fit`` refuse a third value by position, which LightGBM and scikit-learn read as different things."""
    refused = set(LIGHTGBM_ARGUMENTS) - set(signature(fit).parameters)

    @wraps(fit)
    def checked(self: Any, X: Any, y: Any = None, *more: Any, **named: Any) -> Any:
        if more:
            raise InputTypeError(
                f"{type(self).__name__}.fit takes X and y by position, but {len(more)} more values were given; name "
                "them, as in fit(X, y, qid=qid) or fit(X, y, group=sizes)."
            )
        if strange := sorted(refused & set(named)):
            raise InputTypeError(f"fit has no {strange[0]}; {LIGHTGBM_ARGUMENTS[strange[0]]}.")
        return fit(self, X, y, **named)

    return cast(F, checked)


class _ColumnNotes(BaseEstimator):
    """Receives scikit-learn's notes on columns, so that the estimator is not changed before its fit has succeeded."""


def check_parameters(estimator: Estimator) -> None:
    """Raise `InputError` for the first parameter that is not allowed, or for parameters that contradict each other."""
    kind: Any = type(estimator)
    rules = rules_of(kind)
    check_values({name: getattr(estimator, name) for name in rules}, rules)
    estimator._check_combinations()


def note_columns(X: Any, rows: Any) -> Notes:
    """Return the number and, if they are strings, the names of columns."""
    if isinstance(X, NamedRows):
        return named_columns(rows.shape[1], X.names)
    notes = _ColumnNotes()
    validate_data(notes, columns_of(X, rows), skip_check_array=True)
    return dict(vars(notes))


def named_columns(n_features: int, names: Sequence[Any] | None = None) -> Notes:
    """Return notes on columns whose number and names are known."""
    notes: Notes = {"n_features_in_": n_features}
    kinds = sorted({type(name).__name__ for name in names or ()})
    if kinds == ["str"]:
        notes["feature_names_in_"] = np.array(names, dtype=object)
    elif "str" in kinds:
        raise InputTypeError(f"X has column names of types {', '.join(kinds)}; convert them all to strings.")
    return notes


def check_columns(estimator: Any, X: Any, rows: Any) -> None:
    """Raise `ValueError` if X has other columns than those of ``fit``: another number, other names or another order."""
    known = getattr(estimator, "feature_names_in_", None)
    if isinstance(X, NamedRows) and X.names is not None and known is not None:
        if list(X.names) != known.tolist():
            raise InputError(_other_names(X.names, known.tolist()))
        return
    require_columns(estimator, X, rows)
    if known is None and not hasattr(X, "columns"):
        return
    if known is not None and _column_names(X) == known.tolist():
        return
    validate_data(estimator, columns_of(X, rows), skip_check_array=True, reset=False)


def _column_names(X: Any) -> list[Any] | None:
    """Return the names of the columns of a frame; None if X is not a frame."""
    columns = getattr(X, "columns", None)
    return columns if columns is None or isinstance(columns, list) else list(columns.tolist())


def _other_names(names: Sequence[str], known: list[str]) -> str:
    result = set(names)
    if result == set(known):
        return (
            "X has the columns of fit in another order; read the file with features=model.feature_names_in_, or "
            "reorder X."
        )
    missing, extra = [item for item in known if item not in result], [name for name in names if name not in set(known)]
    lacks = f"lacks {list_names(missing)}, which were in fit" if missing else ""
    has = f"has {list_names(extra)}, which were not in fit" if extra else ""
    return f"X {' and '.join(filter(None, (lacks, has)))}; pass the columns of fit."


def kept_columns(estimator: Any) -> Notes:
    """Return the notes on columns of a fitted estimator that learns further."""
    return {name: value for name, value in vars(estimator).items() if name in COLUMN_NOTES}


def checked_rows(estimator: Any, X: Any) -> Any:
    """Return X as checked rows with the columns of ``fit``."""
    check_is_fitted(estimator)
    X = encode_like(X, getattr(estimator, "feature_names_in_", None))
    rows = as_rows(X)
    check_columns(estimator, X, rows)
    return rows


def install(estimator: L, record: Any, notes: Mapping[str, Any]) -> L:
    """Replace all fitted attributes in one assignment."""
    kept = {name: value for name, value in vars(estimator).items() if name.startswith("_") or not name.endswith("_")}
    values = {} if record is None else {f"{field.name}_": getattr(record, field.name) for field in fields(record)}
    learnt = {name: value for name, value in values.items() if value is not None}
    estimator.__dict__ = {**kept, **notes, **learnt}
    return estimator


# numbers of rows, and of rows per grade, from which scores without query ids look like those of many queries
_MANY_ROWS = 50
_MANY_ALIKE = 10


def warn_of_no_agreement(data: RankingData, coupling: float) -> None:
    """Warn if views are coupled and no query has two unjudged rows on which they could agree."""
    rows_of_query = np.bincount(data.queries.codes[data.unscored_rows], minlength=1)
    if coupling > 0.0 and not (rows_of_query > 1).any():
        warn_of_useless_coupling(coupling)


def warn_of_useless_coupling(coupling: float) -> None:
    """Warn that a coupling of views has no effect."""
    warn(
        f"coupling is {coupling:g}, but no query holds two unjudged rows for the views to agree on, so it does "
        "nothing; mark unjudged rows by NaN in y, or set coupling=0."
    )


def warn_of_one_query(y: NDArray[np.float64]) -> None:
    """Warn if scores without query ids look like those of many queries: many rows and few grades."""
    scored = y[~np.isnan(y)]
    n_grades = len(np.unique(scored))
    if len(scored) >= _MANY_ROWS and n_grades * _MANY_ALIKE <= len(scored):
        warn(
            f"qid was not given, so all {len(y)} rows are treated as one query; pass qid if they belong to several "
            "queries, or qid=numpy.zeros(len(y)) if they do not."
        )


def importances(model: Any) -> NDArray[np.float64]:
    """Return the importances of the columns of a fitted ranker; zeros if it uses no column."""
    if hasattr(model, "trees_"):
        parts = model.trees_.importances("gain")
    elif np.ndim(getattr(model, "coef_", 0.0)) == 1 and hasattr(model, "column_scale_"):
        parts = np.abs(model.coef_) / model.column_scale_
    else:
        raise AttributeError(
            f"{type(model).__name__} has no feature_importances_: they are defined for trees, and for linear rankers "
            "with scale=True."
        )
    result = parts[: model.n_features_in_].copy()
    if len(parts) > len(result):
        result[model.missing_columns_] += parts[len(result) :]
    return np.asarray(result / (result.sum() or 1.0))


_WEIGHTS = ("coef_", "dual_coef_", "view_coefs_", "term_coefs_", "pair_coef_", "intercept_", "pair_intercept_")


def _are_moderate(model: Any) -> bool:
    """Return whether sums of weights times values up to `MAX_VALUE` are finite."""
    values = [getattr(model, name, ()) for name in _WEIGHTS]
    arrays = [part for value in values for part in (value if isinstance(value, list | tuple) else [value])]
    return all(np.isfinite(np.abs(part * MAX_VALUE).sum()) for part in arrays)


def fill_problem(model: Any, data: RankingData, notes: dict[str, Any], continues: bool) -> RankingData:
    """Return a problem without missing values, or with those that trees learn from."""
    if model._missing == "inner":
        return data
    result = filling_of(model) if continues else MissingValues.of(data.X) if data.has_missing else None
    if result is None:
        if data.has_missing:
            raise InputError(
                "X contains NaN, but had no missing value in the first fit; fill missing values, or fit again."
            )
        return data
    notes["missing_columns_"], notes["missing_means_"] = result.columns, result.means
    if model._missing == "keep":
        return replace(data, filling=result)
    names = None if data.names is None else tuple(result.names(list(data.names)))
    return replace(data, X=result.fill(data.X), names=names, has_missing=False, filling=result)


def fill_rows(model: Any, X: Any) -> Any:
    """Return checked rows for a fitted ranker, with missing values filled as in ``fit``; trees keep them."""
    filling = None if hasattr(model, "trees_") else filling_of(model)
    return X if filling is None else filling.fill(X)


def filling_of(model: Any) -> MissingValues | None:
    """Return how a fitted ranker fills missing values; None if ``fit`` had none."""
    return MissingValues(model.missing_columns_, model.missing_means_) if hasattr(model, "missing_means_") else None
