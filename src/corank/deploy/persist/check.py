"""
Check a loaded model: what its classes declare, and every public prediction of two small rows.

A forger can compute checksums, so nothing else says that the parts of a file fit together. Types come from the
annotations of estimators, of the record that ``_fit`` returns, and of dataclasses; shapes, relations and predictions
from the tables of the classes (`corank.fitted`). Predictions find what no declaration covers, at the cost of a few
predictions of two rows.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from corank._lazy import is_of, is_pipeline
from corank.base.contract import Estimator, check_parameters
from corank.data.inputs import MAX_VALUE
from corank.errors import InputError
from corank.parameters import number

if TYPE_CHECKING:
    from corank.models.rls import PairSums

# largest number of columns for which dense rows are tried
_MAX_DENSE_COLUMNS = 1 << 24

Prediction = Callable[[Any, Any], Any]

# numpy cannot hold larger integers
_MAX_INTEGER = 2**63


def require_declared(value: Any) -> None:
    """Raise `InputError` if a part of a model differs from what its class declares."""
    kind: Any = type(value)
    if is_pipeline(value):
        for _, step in value.steps:
            require_declared(step)
    elif isinstance(value, Estimator):
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


def _require_parameters(model: Estimator) -> None:
    """Check the parameters of an estimator, and those of estimators that are its parameters."""
    check_parameters(model)
    for part in model.get_params(deep=False).values():
        if isinstance(part, Estimator):
            _require_parameters(part)


def _require_object(value: Any, parts: dict[str, Any], declared: dict[str, Any]) -> None:
    made: Any = type(value)
    kind, may_be_infinite = made.__name__, getattr(made, "_may_be_infinite", ())
    for name, part in parts.items():
        if name not in declared:
            raise InputError(f"{kind} has no attribute {name}")
        if not _is_a(part, declared[name]):
            raise InputError(f"{kind}.{name} is {_described(part)}")
        if name not in may_be_infinite and not _is_finite(part):
            raise InputError(f"{kind}.{name} holds numbers that are not finite")
        require_declared(part)
    # columns of X, and indicators of missing values
    n_columns = getattr(value, "_n_columns", None)
    sizes: dict[str, int] = {} if n_columns is None else {"all columns": n_columns}
    for name, axes in table_of(made, "_shapes").items():
        if parts.get(name) is not None and not _fits(np.shape(parts[name]), axes, parts, sizes):
            raise InputError(f"{kind}.{name} has the shape {np.shape(parts[name])}")
    broken = _broken_relation(value)
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
def table_of(kind: Any, name: str) -> dict[str, Any]:
    """Return the entries of a table of a class and of its base classes, such as ``_shapes``."""
    return {key: entry for base in reversed(kind.__mro__) for key, entry in vars(base).get(name, {}).items()}


def _broken_relation(value: Any) -> str | None:
    """Return the first sentence that does not hold of an object; None if all hold."""
    kind: Any = type(value)
    for sentence, test in table_of(kind, "_relations").items():
        try:
            holds = bool(test(value))
        except Exception:  # a missing or odd part
            holds = False
        if not holds:
            return sentence
    return None


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
        return any(_is_a(value, hint) for hint in inner)
    if origin is typing.Literal:
        return isinstance(value, str) and value in inner
    if origin is np.ndarray:
        (dtype,) = typing.get_args(inner[1])
        return isinstance(value, np.ndarray) and (dtype is Any or value.dtype == dtype)
    if origin is tuple and inner[-1] is not Ellipsis:
        return isinstance(value, tuple) and len(value) == len(inner) and all(map(_is_a, value, inner))
    if origin in (list, tuple):
        return isinstance(value, origin) and all(_is_a(part, inner[0]) for part in value)
    if origin is dict:
        return isinstance(value, dict) and all(_is_a(part, inner[1]) for part in value.values())
    if hint is float and isinstance(value, float):
        return True
    if hint in (int, float):
        return isinstance(value, int) and not isinstance(value, bool) and abs(value) < _MAX_INTEGER
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


def try_model(model: Any) -> None:
    """Raise if a prediction of a model, pipeline or summary fails, or is not finite."""
    if is_of(model, "PairSums"):
        _try_summary(model)
    elif is_pipeline(model):
        if not all(hasattr(step, "transform") for _, step in model.steps[:-1] if step not in (None, "passthrough")):
            raise InputError("a step before the last is not a transformer")
        for _, step in model.steps:
            if step is not None and step != "passthrough":
                try_model(step)
    elif not getattr(model, "_has_columns", True):
        model._check_state()
        _try_predictions(model, None)
    else:
        _try_estimator(model)


def _try_estimator(model: Any) -> None:
    d = model.n_features_in_
    if type(d) is not int or not 0 < d < 1 << 32:
        raise InputError(f"n_features_in_ is {d!r}")
    if hasattr(model, "column_scale_"):
        _require_factors("column_scale_", model.column_scale_, getattr(model, "_n_columns", d))
    names = getattr(model, "feature_names_in_", None)
    if names is not None and (np.shape(names) != (d,) or np.asarray(names).dtype != object):
        raise InputError(f"feature_names_in_ does not have {d} names")
    rows = _rows(d)
    if hasattr(model, "transform"):
        if getattr(model, "scale_", None) is not None and np.abs(model.scale_).min() < np.finfo(np.float64).tiny:
            raise InputError("scale_ is too small to divide by")
        qid = {"qid": [0, 0]} if is_of(model, "QueryScaler") else {}
        for factor in (1.0, MAX_VALUE if hasattr(model, "scale_") else 1.0):
            _require_finite(model.transform(factor * rows, **qid))
        return
    model._check_state()
    if getattr(model, "_reads_ids", False):
        rows = np.repeat(model.items_[:1], 2)
    _require_finite(_utilities(model, rows) if hasattr(model, "utilities") else _scores(model, rows))
    _try_predictions(model, rows)
    if hasattr(model, "_terms") and not getattr(model, "_reads_ids", False):
        _try_prediction(_contributions, model, rows)


def _try_predictions(model: Any, rows: Any) -> None:
    kind: Any = type(model)
    for name, predict in table_of(kind, "_predictions").items():
        if callable(getattr(model, name, None)):  # some depend on parameters
            _try_prediction(predict, model, rows)


def _try_prediction(predict: Prediction, model: Any, rows: Any) -> None:
    try:
        values = predict(model, rows)
    except InputError:  # it needs what this model lacks, such as a path or a prior
        return
    _require_finite(values)


def _scores(model: Any, X: Any) -> Any:
    scores = model._predict_queries(X, [0, 0], [0.0, 0.0] if model.has_prior_ else None)
    if scores.shape != (2,) or scores.dtype != np.float64:
        raise InputError(f"two rows have scores of shape {scores.shape}")
    return scores


def _utilities(model: Any, X: Any) -> Any:
    utilities = model.utilities(X)
    if utilities.shape != (2, len(model.classes_)):
        raise InputError(f"two rows have utilities of shape {utilities.shape}")
    return utilities


def _contributions(model: Any, X: Any) -> Any:
    """Return the contributions that `corank.explain` would show."""
    terms = model._terms(X, [0, 0], np.arange(2))
    if any(term.values.shape != (2, len(term.weights)) or len(term.numbers) != len(term.weights) for term in terms):
        raise TypeError("contributions differ in number")  # not an InputError, which means that there are none
    return np.concatenate([term.weights * (term.values[0] - term.values[1]) for term in terms])


def _rows(d: int) -> Any:
    """Return a row of zeros and a row of small positive numbers."""
    if d > _MAX_DENSE_COLUMNS:
        return sparse.csr_array(([0.5], ([1], [d - 1])), shape=(2, d))
    return np.stack([np.zeros(d), 1.0 / (2.0 + np.arange(d) % 7)])


def _require_finite(values: Any) -> None:
    numbers = np.asarray(values.data if sparse.issparse(values) else values)
    if numbers.dtype.kind == "f" and not np.isfinite(numbers).all():
        raise InputError("two rows give values that are not finite")


def _require_factors(name: str, factors: Any, d: int | None) -> None:
    if np.shape(factors) != (d,) or np.asarray(factors).dtype != np.float64:
        raise InputError(f"{name} does not have {d} columns")
    if not ((factors > 1e-154) & (factors < 1e154)).all():  # their squares must be finite
        raise InputError(f"{name} has values that are not positive, or whose squares overflow")


def _try_summary(summary: PairSums) -> None:
    width = sum(phi.n_features for phi in summary.maps)
    if summary.scored.n_features != width:
        raise InputError(f"the sums do not have {width} features")
    d, free = summary.n_features, summary.free
    if not all(map(number(0).allows, (summary.scored.pair_weight, *summary.weights, free.differences, free.n_queries))):
        raise InputError("the weights of pairs are not finite numbers of at least 0")
    if d is None and not all(phi.basis is not None for phi in summary.maps):
        raise InputError("the number of columns is missing")
    if not all(np.isfinite(part.pair).all() for part in (summary.scored, summary.unscored) if part is not None):
        raise InputError("the sums are not finite")
    if summary.factors is not None:
        _require_factors("factors", summary.factors, d)
    (summary + summary).equations(1.0)
