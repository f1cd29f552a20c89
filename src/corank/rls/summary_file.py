"""Sums in a file: safetensors with a JSON header, as models have it; nothing in it is ever run."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
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
from corank.kernels import KERNELS, CallableKernel
from corank.views import View

Tensors = dict[str, NDArray[Any]]

_HEADER = "corank-summary"
_CSR = ("data", "indices", "indptr")


def write_tensors(path: str | os.PathLike[str], header: dict[str, Any], tensors: Tensors) -> None:
    """
    Write arrays and what belongs to them, whole or not at all.

    Parameters
    ----------
    path : path
        The file.
    header : dict
        What json.dumps can write.
    tensors : dict of arrays
        The arrays.
    """
    kept = {name: np.ascontiguousarray(array) for name, array in tensors.items()}
    with atomic_file(path) as scratch:
        try:
            save_file(kept, scratch, metadata={_HEADER: json.dumps(header)})
        except SafetensorError as error:  # what it makes of a full disk
            raise InputError(f"{path} cannot be written ({reason(error)}); nothing was kept.") from error


def read_tensors(path: str | os.PathLike[str]) -> tuple[dict[str, Any], Tensors]:
    """
    Read what `write_tensors` wrote.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    header : dict
        What came with the arrays.
    tensors : dict of arrays
        The arrays.
    """
    if not Path(path).is_file():
        raise InputError(f"{path} is not a file; pass the path that a summary was saved to.")
    try:
        with safe_open(path, framework="np") as file:
            header = json.loads((file.metadata() or {}).get(_HEADER, "null"))
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict
    except (SafetensorError, ValueError) as error:
        raise InputError(f"{path} is truncated or no summary ({reason(error)}); save the summary again.") from error
    if not isinstance(header, dict):
        raise InputError(f"{path} is a safetensors file but no summary of corank; pass what Summary.save wrote.")
    return header, tensors


def pack_map(phi: FeatureMap, name: str, tensors: Tensors) -> dict[str, Any]:
    """
    Take a map apart.

    Parameters
    ----------
    phi : FeatureMap
        The map.
    name : str
        What the names of its arrays begin with.
    tensors : dict of arrays
        Receives them.

    Returns
    -------
    dict
        What else it is made of, for JSON.
    """
    kernel = phi.view.kernel
    if isinstance(kernel, CallableKernel):
        raise InputError("a kernel that is a function cannot be saved; use one of corank's own kernels.")
    arrays = {"columns": phi.view.columns, "view_basis": phi.view.basis, "T": phi.T}
    header = {
        "kernel": {"name": type(kernel).__name__, **asdict(kernel)},
        "n_features": phi.n_features,
        "shape": None,
    }
    if phi.basis is not None:
        arrays["numbers"], rows = phi.basis.numbers, phi.basis.rows
        if sparse.issparse(rows):
            arrays |= {part: getattr(rows, part) for part in _CSR}
            header["shape"] = list(rows.shape)
        else:
            arrays["rows"] = rows
    tensors |= {f"{name}.{key}": array for key, array in arrays.items() if array is not None}
    return header


def unpack_map(header: dict[str, Any], name: str, tensors: Tensors) -> FeatureMap:
    """
    Put a map together again.

    Parameters
    ----------
    header : dict
        What `pack_map` returned.
    name : str
        What the names of its arrays begin with.
    tensors : dict of arrays
        The arrays.

    Returns
    -------
    FeatureMap
        The map.
    """
    arrays = {key.removeprefix(f"{name}."): array for key, array in tensors.items() if key.startswith(f"{name}.")}
    given = dict(header["kernel"])
    kind = {kind.__name__: kind for kind in KERNELS.values()}[given.pop("name")]
    view = View(arrays.get("columns"), kind(**given), arrays.get("view_basis"))
    basis = None
    if "numbers" in arrays:
        rows: Any = arrays.get("rows")
        if header["shape"] is not None:
            rows = sparse.csr_array(tuple(arrays[part] for part in _CSR), shape=tuple(header["shape"]))
        basis = Basis(view, arrays["numbers"], rows)
    return FeatureMap(view, basis, arrays.get("T"), header["n_features"])
