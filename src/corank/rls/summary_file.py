"""Sums in a file: safetensors with a JSON header, as models have it; nothing in it is ever run."""

from __future__ import annotations

import json
import os
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file
from scipy import sparse

from corank.basis import Basis, FeatureMap
from corank.data.atomic import atomic_file
from corank.errors import InputError, reason
from corank.kernels import KERNELS
from corank.moments import Moments
from corank.views import View

Tensors = dict[str, NDArray[Any]]

_HEADER = "corank-summary"
_NOUNS = {kind.__name__: kind for kind in (Basis, FeatureMap, Moments, View, *KERNELS.values())}


def write_record(path: str | os.PathLike[str], record: dict[str, Any]) -> None:
    """Write a record of numbers, words, arrays and corank's nouns, whole or not at all."""
    tensors: Tensors = {}
    header = json.dumps({name: _pack(value, name, tensors) for name, value in record.items()})
    with atomic_file(path) as scratch:
        try:
            save_file(tensors, scratch, metadata={_HEADER: header})
        except SafetensorError as error:  # what it makes of a full disk
            raise InputError(f"{path} cannot be written ({reason(error)}); nothing was kept.") from error


def read_record(path: str | os.PathLike[str], names: set[str]) -> dict[str, Any]:
    """Read a record of these names that `write_record` wrote."""
    if not Path(path).is_file():
        raise InputError(f"{path} is not a file; pass the path that a summary was saved to.")
    try:
        with safe_open(path, framework="np") as file:
            header = json.loads((file.metadata() or {}).get(_HEADER, "null"))
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict
        if not isinstance(header, dict) or set(header) != names:
            raise ValueError("it has no header of a summary")
        return {name: _unpack(value, tensors) for name, value in header.items()}
    except (SafetensorError, ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{path} is no summary that this corank saved, or is damaged ({reason(error)}); save the summary again."
        ) from error


def _pack(value: Any, name: str, tensors: Tensors) -> Any:
    if sparse.issparse(value):
        parts = {part: _pack(getattr(value, part), f"{name}.{part}", tensors) for part in ("data", "indices", "indptr")}
        return {"csr": {**parts, "shape": list(value.shape)}}
    if isinstance(value, np.ndarray) and value.dtype.kind in "if":
        tensors[name] = np.ascontiguousarray(value)
        return {"array": name}
    if isinstance(value, tuple):
        return {"tuple": [_pack(one, f"{name}.{i}", tensors) for i, one in enumerate(value)]}
    if type(value) in _NOUNS.values():
        parts = {one.name: _pack(getattr(value, one.name), f"{name}.{one.name}", tensors) for one in fields(value)}
        return {type(value).__name__: parts}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise InputError(f"{name} is a {type(value).__name__}, which cannot be saved; use one of corank's own kernels.")


def _unpack(value: Any, tensors: Tensors) -> Any:
    if not isinstance(value, dict):
        return value
    ((kind, body),) = value.items()
    if kind == "array":
        return tensors[body]
    if kind == "tuple":
        return tuple(_unpack(one, tensors) for one in body)
    parts = {name: _unpack(one, tensors) for name, one in body.items()}
    if kind == "csr":
        return sparse.csr_array((parts["data"], parts["indices"], parts["indptr"]), shape=tuple(parts["shape"]))
    return _NOUNS[kind](**parts)
