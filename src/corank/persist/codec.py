"""Values as JSON plus named tensors, and back; only known kinds of value pass, in either direction."""

from __future__ import annotations

import dataclasses
import math
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

import corank
from corank import kernels, views
from corank.base import Ranker
from corank.errors import InputError

# the modules whose dataclasses may stand inside a saved model
HOMES: tuple[ModuleType, ...] = (kernels, views)


def encode(value: Any, name: str, tensors: dict[str, NDArray[Any]]) -> Any:
    """
    Turn a value into JSON; arrays go to `tensors`, under names that start with `name`.

    Parameters
    ----------
    value : object
        None, bool, number, string, slice, array, CSR matrix, a corank noun or ranker, or lists, tuples and dicts of
        these.
    name : str
        What to call the value in names and messages.
    tensors : dict
        Receives the arrays.

    Returns
    -------
    object
        What json.dumps can write.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": repr(value)}
    if isinstance(value, np.ndarray):
        return _encode_array(value, name, tensors)
    if sparse.issparse(value):
        csr = value.tocsr()
        parts = {part: encode(getattr(csr, part), f"{name}.{part}", tensors) for part in ("data", "indices", "indptr")}
        return {"csr": {**parts, "shape": list(csr.shape)}}
    if isinstance(value, list | tuple):
        items = [encode(item, f"{name}.{i}", tensors) for i, item in enumerate(value)]
        return items if isinstance(value, list) else {"tuple": items}
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {"dict": {key: encode(item, f"{name}.{key}", tensors) for key, item in value.items()}}
    if isinstance(value, slice):
        return {"slice": [encode(part, name, tensors) for part in (value.start, value.stop, value.step)]}
    if isinstance(value, Ranker):
        return {"ranker": encode_ranker(value, f"{name}.", tensors)}
    if dataclasses.is_dataclass(value) and type(value) in _nouns().values():
        fields = {
            f.name: encode(getattr(value, f.name), f"{name}.{f.name}", tensors) for f in dataclasses.fields(value)
        }
        return {"noun": {"name": type(value).__name__, "fields": fields}}
    raise InputError(
        f"{name} is a {type(value).__name__}, which cannot be saved; use numbers, strings, arrays or corank's own "
        "kernels, views and rankers."
    )


def decode(value: Any, tensors: dict[str, NDArray[Any]]) -> Any:
    """
    Turn what `encode` made back into the value.

    Parameters
    ----------
    value : object
        Parsed JSON.
    tensors : dict
        The arrays that the JSON names.

    Returns
    -------
    object
        The value.
    """
    if isinstance(value, list):
        return [decode(item, tensors) for item in value]
    if not isinstance(value, dict):
        return value
    try:
        ((kind, body),) = value.items()
        return _decode_kind(kind, body, tensors)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"the model file describes a value wrongly ({error}); save the model again.") from error


def encode_ranker(model: Ranker, prefix: str, tensors: dict[str, NDArray[Any]]) -> dict[str, Any]:
    """
    Turn a ranker, fitted or not, into JSON: its class, parameters and fitted attributes.

    Parameters
    ----------
    model : Ranker
        A ranker that corank exports.
    prefix : str
        What the names of its arrays start with.
    tensors : dict
        Receives the arrays.

    Returns
    -------
    dict
        ``class``, ``params`` and ``state``.
    """
    name = type(model).__name__
    if getattr(corank, name, None) is not type(model):
        raise InputError(f"{name} is not a ranker that corank exports, so a saved file could not be loaded again.")
    params, state = model.get_params(deep=False), {key: value for key, value in vars(model).items() if _is_state(key)}
    return {
        "class": name,
        "params": {key: encode(value, prefix + key, tensors) for key, value in params.items()},
        "state": {key: encode(value, prefix + key, tensors) for key, value in state.items()},
    }


def decode_ranker(body: dict[str, Any], tensors: dict[str, NDArray[Any]], where: str) -> Ranker:
    """
    Turn what `encode_ranker` made back into a ranker.

    Parameters
    ----------
    body : dict
        ``class``, ``params`` and ``state``.
    tensors : dict
        The arrays that it names.
    where : str
        The file, for messages.

    Returns
    -------
    Ranker
        Of a class that corank exports; nothing else can be built.
    """
    name = body["class"]
    kind = getattr(corank, name, None) if name in corank.__all__ else None
    if not (isinstance(kind, type) and issubclass(kind, Ranker)):
        raise InputError(
            f"{where} holds a {name}, a ranker that corank {corank.__version__} does not have; upgrade corank."
        )
    params = {key: decode(value, tensors) for key, value in body["params"].items()}
    unknown = set(params) - set(kind._get_param_names())
    if unknown:
        raise InputError(f"{where} sets {', '.join(sorted(unknown))}, which {kind.__name__} does not know.")
    model = kind(**params)
    for key, value in body["state"].items():
        if not (key.isidentifier() and _is_state(key)):
            raise InputError(
                f"{where} holds {key!r}, which is no name of a fitted attribute; the file was tampered with."
            )
        setattr(model, key, decode(value, tensors))
    return model


def _is_state(name: str) -> bool:
    return name.endswith("_") and not name.startswith("_")


def _decode_kind(kind: str, body: Any, tensors: dict[str, NDArray[Any]]) -> Any:
    match kind:
        case "float":
            return float(body)
        case "array":
            return tensors[body]
        case "strings":
            return np.array(body["items"], dtype=body["dtype"])
        case "csr":
            parts = [decode(body[part], tensors) for part in ("data", "indices", "indptr")]
            return sparse.csr_array(tuple(parts), shape=tuple(body["shape"]))
        case "tuple":
            return tuple(decode(item, tensors) for item in body)
        case "dict":
            return {key: decode(item, tensors) for key, item in body.items()}
        case "slice":
            return slice(*body)
        case "ranker":
            return decode_ranker(body, tensors, "the model file")
        case "noun":
            fields = {key: decode(item, tensors) for key, item in body["fields"].items()}
            return _nouns()[body["name"]](**fields)
    raise ValueError(f"unknown kind {kind!r}")


def _encode_array(value: NDArray[Any], name: str, tensors: dict[str, NDArray[Any]]) -> Any:
    if value.dtype.kind in "biuf":
        tensors[name] = np.asarray(value, order="C")
        return {"array": name}
    if value.ndim == 1 and all(isinstance(item, str) for item in value):
        return {"strings": {"items": value.tolist(), "dtype": "object" if value.dtype.kind == "O" else value.dtype.str}}
    raise InputError(f"{name} is an array of type {value.dtype}, which cannot be saved; use numbers or strings.")


def _nouns() -> dict[str, type[Any]]:
    return {
        name: kind
        for home in HOMES
        for name, kind in vars(home).items()
        if isinstance(kind, type) and dataclasses.is_dataclass(kind) and kind.__module__.startswith(home.__name__)
    }
