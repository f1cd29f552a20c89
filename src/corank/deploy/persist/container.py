"""Read the file of a model: header, tensors and checksum; builds nothing, so that it is light to import."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from corank._version import __version__
from corank.errors import InputError, reason

FORMAT = 1
FIELDS: dict[str, type] = {
    "format": int, "version": str, "class": str, "params": dict, "state": dict, "requests": dict, "sha256": str,
}  # fmt: skip

# safetensors' names of the supported numpy types
TYPES = ("BOOL", "U8", "I8", "U16", "I16", "U32", "I32", "U64", "I64", "F16", "F32", "F64")

Tensors = dict[str, NDArray[Any]]


def read_container(path: Path) -> tuple[dict[str, Any], Tensors]:
    """Return the header and the tensors of a file that `corank.save` wrote; raise `InputError` if it was changed."""
    if not path.is_file():
        raise InputError(f"{path} is not a file; pass the path that the model was saved to.")
    try:
        with safe_open(path, framework="np") as file:
            text = (file.metadata() or {}).get("corank")
            if text is None:
                raise InputError(f"{path} is a safetensors file but not a corank model; it has no 'corank' header.")
            header = json.loads(text)
            _check(header, path)
            tensors = {key: _tensor(file, key, path) for key in file.keys()}  # noqa: SIM118 - not a dict
        digest = digest_of({key: header[key] for key in header if key != "sha256"}, tensors)
    except (SafetensorError, ValueError, RecursionError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            f"{path} is truncated or not a corank model ({reason(error)}); save the model again."
        ) from error
    if digest != header["sha256"]:
        raise InputError(f"{path} does not match its checksum: it was damaged or changed; save the model again.")
    return header, tensors


def _tensor(file: Any, key: str, path: Path) -> NDArray[Any]:
    kind = file.get_slice(key).get_dtype()
    if kind not in TYPES:
        raise InputError(f"{path} holds numbers of type {kind}, which corank does not save; save the model again.")
    return np.asarray(file.get_tensor(key))


def _check(header: Any, path: Path) -> None:
    if isinstance(header, dict) and isinstance(header.get("format"), int) and header["format"] > FORMAT:
        raise InputError(
            f"{path} has format {header['format']}, newer than format {FORMAT} that corank {__version__} reads; "
            "upgrade corank."
        )
    if not isinstance(header, dict) or set(header) != set(FIELDS):
        raise InputError(
            f"{path} has a damaged header: it must hold exactly {', '.join(FIELDS)}; save the model again."
        )
    for key, kind in FIELDS.items():
        if not isinstance(header[key], kind):
            raise InputError(f"{path} has a damaged header: {key} must be a {kind.__name__}; save the model again.")


def digest_of(header: dict[str, Any], tensors: Tensors) -> str:
    """Return the checksum of a header without its checksum, and of the tensors."""
    digest = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
    for key in sorted(tensors):
        digest.update(f"{key} {tensors[key].dtype.str} {tensors[key].shape}".encode())
        digest.update(np.ascontiguousarray(tensors[key]).data)
    return digest.hexdigest()
