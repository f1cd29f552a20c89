"""
Encode values as JSON plus named tensors, and decode them; only known types are accepted in either direction.

A value takes at most the memory of its part of the file: every tensor is used once, and strings are decoded as objects.
"""

from __future__ import annotations

import dataclasses
import inspect
import math
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn import config_context
from sklearn.base import BaseEstimator

import corank
from corank import registry
from corank._lazy import is_pipeline
from corank._moved import GONE, NAMES
from corank.data.rows import require_structure
from corank.errors import InputError, reason
from corank.fitted import PARTS, Part

BASES = frozenset(
    f"corank.{name}"
    for name in (
        "base.base.Ranker", "base.smooth.NeighborSmoother", "base.transformers.Landmarks",
        "base.transformers.QueryScaler", "models.labels.ranker.LabelRanker", "text.link_learn.LinkLearn",
    )
)  # fmt: skip
"""Classes of corank that may be built from a file, with their subclasses."""

FROM_SKLEARN = {
    "Pipeline": "sklearn.pipeline",
    "StandardScaler": "sklearn.preprocessing",
    "MinMaxScaler": "sklearn.preprocessing",
    "MaxAbsScaler": "sklearn.preprocessing",
}
"""Classes of scikit-learn that may be built from a file, in addition to corank's estimators."""

METHODS = (
    "fit", "partial_fit", "predict", "predict_proba", "predict_log_proba", "decision_function", "score", "transform",
    "inverse_transform",
)  # fmt: skip
"""Methods whose metadata requests are saved."""

# errors that a forged description of a value may raise
_DECODE_ERRORS = (KeyError, TypeError, ValueError, AttributeError, IndexError, ArithmeticError, RecursionError)


def encode(value: Any, name: str, tensors: dict[str, NDArray[Any]]) -> Any:
    """Encode a value as JSON; arrays are added to `tensors`, under names that start with `name`."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": repr(value)}
    if type(value) in (np.ndarray, np.memmap):
        return _encode_array(value, name, tensors)
    if sparse.issparse(value):
        csr = value.tocsr()
        parts = {part: encode(getattr(csr, part), f"{name}.{part}", tensors) for part in ("data", "indices", "indptr")}
        return {"csr": {**parts, "shape": list(csr.shape)}}
    if type(value) in (list, tuple, range):
        items = [encode(item, f"{name}.{i}", tensors) for i, item in enumerate(value)]
        return {"tuple": items} if isinstance(value, tuple) else items
    if type(value) is dict and all(isinstance(key, str) for key in value):
        return {"dict": {key: encode(item, f"{name}.{key}", tensors) for key, item in value.items()}}
    if isinstance(value, slice):
        return {"slice": [encode(part, name, tensors) for part in (value.start, value.stop, value.step)]}
    if isinstance(value, BaseEstimator):
        return {"estimator": encode_estimator(value, name, tensors)}
    if isinstance(value, Part) and PARTS.get(type(value).__name__) is type(value):
        of_record: Any = value
        names = [field.name for field in dataclasses.fields(of_record)]
        fields = {key: encode(getattr(value, key), f"{name}.{key}", tensors) for key in names}
        # the key of format 1
        return {"noun": {"name": type(value).__name__, "fields": fields}}
    raise InputError(
        f"{name} is a {type(value).__name__}, which cannot be saved; use numbers, strings, arrays or corank's own "
        "kernels, views and rankers."
    )


def decode(value: Any, tensors: dict[str, NDArray[Any]]) -> Any:
    """Decode a value."""
    if not isinstance(value, list | dict):
        return value
    try:
        if isinstance(value, list):
            return [decode(item, tensors) for item in value]
        ((kind, body),) = value.items()
        return _decode_kind(kind, body, tensors)
    except InputError:
        raise
    except _DECODE_ERRORS as error:
        raise InputError(
            f"the model file contains an invalid value ({reason(error)}); save the model again."
        ) from error


def encode_estimator(model: Any, name: str, tensors: dict[str, NDArray[Any]]) -> dict[str, Any]:
    """Encode an estimator as JSON: class, parameters, fitted attributes and metadata requests."""
    kind, prefix = type(model), f"{name}." if name else ""
    if _buildable(kind.__name__) is not kind:
        raise InputError(
            f"{name or 'the model'} is a {kind.__name__}, which cannot be saved; pass one of corank's rankers or "
            f"transformers, or {', '.join(FROM_SKLEARN)}."
        )
    if "_sklearn_output_config" in vars(model):
        raise InputError(f"{name or 'the model'} uses set_output, which is not saved; save it without.")
    params = model.get_params(deep=False)
    state = {key: value for key, value in vars(model).items() if _is_state(key)}
    encoded = {key: encode(value, prefix + key, tensors) for key, value in params.items() if key != "steps"}
    if is_pipeline(model):
        # joblib would execute pickles from that folder
        _require_no_memory(params.get("memory"), name or "the model")
        encoded["steps"] = [{"tuple": [step, encode(part, prefix + step, tensors)]} for step, part in model.steps]
    return {
        "class": kind.__name__,
        "params": encoded,
        "state": {key: encode(value, prefix + key, tensors) for key, value in state.items()},
        "requests": _requests(model),
    }


def decode_estimator(body: dict[str, Any], tensors: dict[str, NDArray[Any]], where: str) -> Any:
    """Decode an estimator: one that corank exports, or one of `FROM_SKLEARN`."""
    kind = _buildable(body["class"])
    if kind is None:
        name, advice = body["class"], "upgrade corank"
        if isinstance(name, str) and name in GONE:
            name, advice = f"{name} of corank 0.2", GONE[name]
        raise InputError(f"{where} holds a {name}, which corank {corank.__version__} cannot load; {advice}.")
    params = {key: decode(value, tensors) for key, value in body["params"].items()}
    params = {key: value for key, value in params.items() if key not in getattr(kind, "_gone", ())}
    unknown = set(params) - set(kind._get_param_names())
    if unknown:
        raise InputError(
            f"{where} sets {', '.join(sorted(unknown))}, which {kind.__name__} does not have; save the model again, or "
            "upgrade corank."
        )
    if body["class"] == "Pipeline":
        _require_no_memory(params.get("memory"), where)
    try:
        model = kind(**params)
        for key, value in body["state"].items():
            if not (key.isidentifier() and _is_state(key)):
                raise InputError(
                    f"{where} holds {key!r}, which is not the name of a fitted attribute; the file was changed."
                )
            setattr(model, key, decode(value, tensors))
    except (TypeError, AttributeError) as error:  # a missing step, or a name that cannot be set
        raise InputError(f"{where} contains an invalid {kind.__name__} ({reason(error)}); save it again.") from error
    _set_requests(model, body["requests"], where)
    return model


def _set_requests(model: Any, requests: dict[str, dict[str, Any]], where: str) -> None:
    with config_context(enable_metadata_routing=True):
        for method, wanted in requests.items():
            setter = getattr(model, f"set_{method}_request", None) if method in METHODS else None
            try:
                setter(**wanted)  # type: ignore[misc]
            except (TypeError, ValueError) as error:
                raise InputError(
                    f"{where} contains invalid metadata requests ({reason(error)}); save the model again."
                ) from error


def _buildable(name: Any) -> Any:
    """Return the class of an estimator that may be built from a file, or None."""
    if not isinstance(name, str):
        return None
    if name in FROM_SKLEARN:
        return getattr(import_module(FROM_SKLEARN[name]), name)
    kind = registry.find(NAMES.get(name, name).rpartition(".")[2])  # files of 0.2 have the old names
    is_ours = isinstance(kind, type) and any(f"{item.__module__}.{item.__name__}" in BASES for item in kind.__mro__)
    return kind if is_ours and not inspect.isabstract(kind) else None


def _require_no_memory(memory: Any, name: str) -> None:
    if memory is not None:
        raise InputError(f"{name} is a Pipeline with memory={memory!r}, which is not saved; set memory=None.")


def _requests(model: Any) -> dict[str, dict[str, Any]]:
    """Return the requests set with ``set_fit_request`` and similar methods, by method."""
    if "_metadata_request" not in vars(model):
        return {}
    routing = model.get_metadata_routing()
    requests_of = {method: dict(getattr(routing, method).requests) for method in METHODS}
    return {method: requests for method, requests in requests_of.items() if requests}


def _is_state(name: str) -> bool:
    return name.endswith("_") and not name.startswith("_")


def _decode_kind(kind: str, body: Any, tensors: dict[str, NDArray[Any]]) -> Any:
    match kind:
        case "float":
            return float(body)
        case "array":
            return tensors.pop(body)
        case "strings":
            if not (isinstance(body, list) and all(isinstance(item, str) for item in body)):
                raise TypeError("an array of strings holds other values")
            return np.array(body, dtype=object)
        case "csr":
            parts = [decode(body[part], tensors) for part in ("data", "indices", "indptr")]
            if any(part.dtype.kind != "i" for part in parts[1:]):
                raise TypeError("indices are not integers")
            matrix = sparse.csr_array(tuple(parts), shape=tuple(body["shape"]))
            require_structure(matrix, "a matrix of the model file")
            return matrix
        case "tuple":
            return tuple(decode(item, tensors) for item in body)
        case "dict":
            return {key: decode(item, tensors) for key, item in body.items()}
        case "slice":
            return slice(*(decode(part, tensors) for part in body))
        case "estimator":
            return decode_estimator(body, tensors, "the model file")
        case "noun":
            fields = {key: decode(item, tensors) for key, item in body["fields"].items()}
            if any(isinstance(value, slice) for value in fields.values()):
                raise ValueError("a slice can select any number of columns")
            try:
                return PARTS[body["name"]](**fields)
            except InputError as error:  # its message is for users, not for files
                raise ValueError(reason(error)) from error
    raise ValueError(f"unknown kind {kind!r}")


def _encode_array(value: NDArray[Any], name: str, tensors: dict[str, NDArray[Any]]) -> Any:
    if value.dtype.kind in "biuf" and value.dtype.itemsize <= 8:
        # keys of dicts may contain dots, so that names collide, or characters that are not Unicode
        name = name.encode(errors="backslashreplace").decode()
        while name in tensors:
            name += "'"
        tensors[name] = np.asarray(value, dtype=value.dtype.newbyteorder("="), order="C")
        return {"array": name}
    if value.ndim == 1 and all(isinstance(item, str) for item in value):
        return {"strings": value.tolist()}
    raise InputError(f"{name} is an array of type {value.dtype}, which cannot be saved; use numbers or strings.")
