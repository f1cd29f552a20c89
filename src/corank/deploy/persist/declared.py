"""
Check a loaded model against what its classes declare: known attributes, their types, shapes and finite numbers.

Types come from the annotations of estimators, of the record that ``_fit`` returns, and of dataclasses. Shapes come from
the table `SHAPES`. A forger can compute checksums, so nothing else says that the parts of a file fit together.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from corank._lazy import is_pipeline
from corank.base.contract import Learner, check_parameters
from corank.deploy.persist.relations import broken_relation
from corank.errors import InputError

SHAPES: dict[str, dict[str, tuple[str, ...]]] = {
    "Ranker": {
        "coef_": ("all columns",), "column_scale_": ("all columns",), "missing_columns_": ("missing",),
        "missing_means_": ("n_features_in_",),
    },
    "LabelRanker": {"coef_": ("labels", "n_features_in_"), "intercept_": ("labels",), "classes_": ("labels",)},
    "NeighborLabelRanker": {
        "training_rows_": ("rows", "n_features_in_"), "won_": ("rows", "labels"), "compared_": ("rows", "labels"),
        "sides_": ("rows", "labels"), "column_scale_": ("n_features_in_",),
    },
    "PairwiseLabelRanker": {"pair_coef_": ("pairs", "n_features_in_"), "pair_intercept_": ("pairs",)},
    "AutoLabelRanker": {"column_mean_": ("n_features_in_",), "column_scale_": ("n_features_in_",)},
    "Landmarks": {"column_scale_": ("n_features_in_",)},
    "Smooth": {"components_": ("r", "n_features_in_"), "embedding_": ("rows", "r")},
    "ColumnMean": {"columns_": ("columns",), "signs_": ("columns",)},
    "Calibrated": {"scores_": ("knots",), "levels_": ("knots",)},
    "BM25": {"idf_": ("n_features_in_",), "query_": ("n_features_in_",)},
    "RankSVM": {"support_": ("support",)},
    "RankRLS": {"dual_coef_": ("r",), "alpha_path_": ("alphas", "weights"), "loo_scores_": ("alphas",)},
    "ViewRankRLS": {"view_weights_": ("views",)},
    "CoRankingPursuit": {"terms_": ("terms", "views"), "term_coefs_": ("terms", "views"), "gains_": ("terms",)},
    "RankingPursuit": {"terms_": ("terms",), "term_coefs_": ("terms",), "gains_": ("terms",)},
    "LCRA": {"view_coefs_": ("views", "all columns")},
    "OrdinalGP": {"levels_": ("levels",), "thresholds_": ("levels - 1",)},
    "PreferenceGP": {
        "site_tau_": ("parts", "sites"), "site_nu_": ("parts", "sites"), "graph_": ("items", "items"),
    },
    "RatingsRanker": {
        "items_": ("items",), "users_": ("users",), "ratings_": ("users", "items"), "item_means_": ("items",),
        "item_features_": ("items", "q"),
    },
    "CollaborativeGP": {
        "levels_": ("levels",), "item_covariance_": ("items", "items"), "user_scales_": ("users",),
        "user_sigmas_": ("users",),
        "site_tau_": ("sites",), "site_nu_": ("sites",), "user_thresholds_": ("users", "levels - 1"),
        "item_gram_": ("items", "items"), "feature_scale_": ("features",),
    },
    "Basis": {"numbers": ("r",), "rows": ("r", "...")},
    "FeatureMap": {"T": ("r", "n_features")},
    "PosteriorProcess": {"mu": ("k",), "factor": ("k", "k")},
    "ProcessMixture": dict.fromkeys(("map_numbers", "sigma", "log_prior", "log_evidence"), ("parts",)),
    "Sites": dict.fromkeys(("left", "right", "lo", "hi", "noise", "weight"), ("sites",)),
    "DistinctRows": {"rows": ("items", "..."), "numbers": ("items",), "of_row": ("rows",)},
    "ThresholdPrior": {"mean": ("thresholds",), "var": ("thresholds",)},
    "Moments": {"pair": ("size", "size"), "plain": ("size", "size")},
}  # fmt: skip
"""Shapes of arrays, by class and attribute; a name has one value within an object, "..." is any number of axes."""

MAY_BE_INFINITE = frozenset(
    [
        "lo", "hi",  # of sites
        # numbers that are only shown
        "lows", "highs", "estimate_",  # intervals from few queries
        "objective_", "objective_trace_", "objective_path_", "gains_", "jitter_", "view_gap_", "log_evidence_",
        "evidence_trace_", "loo_scores_", "validation_errors_", "cumulative_loss_",
    ]
)  # fmt: skip
"""Attributes that may hold infinite numbers or NaN."""

# numpy cannot hold larger integers
_LARGEST = 2**63


def require_declared(value: Any) -> None:
    """Raise `InputError` if a part of a model differs from what its class declares."""
    kind: Any = type(value)
    if is_pipeline(value):
        for _, step in value.steps:
            require_declared(step)
    elif isinstance(value, Learner):
        _require_parameters(value)
        state = {name: part for name, part in vars(value).items() if name.endswith("_") and not name.startswith("_")}
        if missing := _required(kind) - state.keys():
            raise InputError(f"{kind.__name__} has no {min(missing)}")
        _require_object(value, state, _attribute_types(kind))
    elif dataclasses.is_dataclass(value):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        _require_object(value, fields, _hints(kind))
    elif isinstance(value, list | tuple):
        for part in value:
            require_declared(part)
    elif isinstance(value, dict):
        for part in value.values():
            require_declared(part)


def _require_parameters(model: Learner) -> None:
    """Check the parameters of an estimator, and those of estimators that are its parameters."""
    check_parameters(model)
    for part in model.get_params(deep=False).values():
        if isinstance(part, Learner):
            _require_parameters(part)


def _require_object(value: Any, parts: dict[str, Any], declared: dict[str, Any]) -> None:
    made: Any = type(value)
    kind = made.__name__
    for name, part in parts.items():
        if name not in declared:
            raise InputError(f"{kind} has no attribute {name}")
        if not _is_a(part, declared[name]):
            raise InputError(f"{kind}.{name} is {_described(part)}")
        if name not in MAY_BE_INFINITE and not _is_finite(part):
            raise InputError(f"{kind}.{name} holds numbers that are not finite")
        require_declared(part)
    # columns of X, and indicators of missing values
    n_columns = getattr(value, "_n_columns", None)
    sizes: dict[str, int] = {} if n_columns is None else {"all columns": n_columns}
    for name, axes in _shapes(made).items():
        if parts.get(name) is not None and not _fits(np.shape(parts[name]), axes, parts, sizes):
            raise InputError(f"{kind}.{name} has the shape {np.shape(parts[name])}")
    broken = broken_relation(value)
    if broken is not None:
        raise InputError(f"in {kind}, it does not hold that {broken}")


def _fits(shape: tuple[int, ...], axes: tuple[str, ...], parts: dict[str, Any], sizes: dict[str, int]) -> bool:
    if axes[-1] == "...":
        axes = axes[:-1]
        shape = shape[: len(axes)]
    if len(shape) != len(axes):
        return False
    for n, axis in zip(shape, axes, strict=True):
        name, _, less = axis.partition(" - ")
        wanted = parts[name] if isinstance(parts.get(name), int) else sizes.setdefault(name, n + int(less or 0))
        if n != wanted - int(less or 0):
            return False
    return True


@cache
def _shapes(kind: type) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for base in reversed(kind.__mro__):
        found |= SHAPES.get(base.__name__, {})
    return found


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return typing.get_type_hints(kind)


@cache
def _attribute_types(kind: Any) -> dict[str, Any]:
    """Return the types of fitted attributes, from the class and from the record that its ``_fit`` returns."""
    of_record = {name: hint for name, hint in _record_types(kind).items() if name not in _hints(kind)}
    return {"feature_names_in_": NDArray[np.object_], **_hints(kind), **of_record}


@cache
def _required(kind: Any) -> set[str]:
    """Return the fitted attributes that every fit sets: the fields of the record that cannot be None."""
    return {name for name, hint in _record_types(kind).items() if not _is_a(None, hint)}


def _record_types(kind: Any) -> dict[str, Any]:
    record: Any = _hints(kind._fit).get("return") if hasattr(kind, "_fit") else None
    fields = typing.get_type_hints(record) if dataclasses.is_dataclass(record) else {}
    return {f"{name}_": hint for name, hint in fields.items()}


def _is_a(value: Any, hint: Any) -> bool:
    """Return whether a value has a declared type; integers also pass as floats."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        return True
    if origin in (typing.Union, types.UnionType):
        return any(_is_a(value, one) for one in inner)
    if origin is typing.Literal:
        return isinstance(value, str) and value in inner
    if origin is np.ndarray:
        (dtype,) = typing.get_args(inner[1])
        return isinstance(value, np.ndarray) and (dtype is Any or value.dtype == dtype)
    if origin is tuple and inner[-1] is not Ellipsis:
        return isinstance(value, tuple) and len(value) == len(inner) and all(map(_is_a, value, inner))
    if origin in (list, tuple):
        return isinstance(value, origin) and all(_is_a(one, inner[0]) for one in value)
    if origin is dict:
        return isinstance(value, dict) and all(_is_a(one, inner[1]) for one in value.values())
    if hint is float and isinstance(value, float):
        return True
    if hint in (int, float):
        return isinstance(value, int) and not isinstance(value, bool) and abs(value) < _LARGEST
    return isinstance(value, origin or hint)


def _is_finite(value: Any) -> bool:
    if sparse.issparse(value):
        value = value.data
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        # a sum overflows, or is NaN, far more cheaply than each number is tested
        return bool(np.isfinite(value.sum())) or bool(np.isfinite(value).all())
    return not isinstance(value, float) or np.isfinite(value)


def _described(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype}"
    return f"{value!r:.50}" if isinstance(value, str | int | float | None) else f"a {type(value).__name__}"
