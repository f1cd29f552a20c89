"""
Save and load a fitted ranker or pipeline, or a summary: one safetensors file with a JSON header, never pickle.

The header's ``corank`` entry is a JSON object: format, version, class, params, state, requests and the SHA-256 of
everything else. Arrays live as tensors and are named in the JSON; nothing in a file is ever executed, and only corank's
rankers and transformers, pipelines and three scalers of scikit-learn can be built from one.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

import corank
from corank.base import Ranker
from corank.data.atomic import atomic_file
from corank.errors import InputError, reason
from corank.persist.codec import decode, decode_estimator, encode, encode_estimator
from corank.rls import Summary

FORMAT = 1
FIELDS: dict[str, type] = {
    "format": int, "version": str, "class": str, "params": dict, "state": dict, "requests": dict, "sha256": str,
}  # fmt: skip

_SUMMARY = Summary.__name__

Tensors = dict[str, NDArray[Any]]


def save(model: Ranker | Pipeline | Summary, path: str | Path, *, overwrite: bool = False) -> None:
    """
    Write a fitted ranker or pipeline, or sums to be added to others, to a file, which appears whole or not at all.

    Parameters
    ----------
    model : Ranker, Pipeline or Summary
        A fitted ranker, or a pipeline of `QueryScaler`, `Landmarks`, scikit-learn's StandardScaler, MinMaxScaler and
        MaxAbsScaler, and a ranker; or a `Summary`. Anything that `load` could not read back is refused.
    path : str or Path
        The file; ``.safetensors`` is the usual suffix.
    overwrite : bool, default False
        Whether a file that stands at `path` is replaced.

    Examples
    --------
    ``save(SPD().fit(X, y, qid=qid), "model.safetensors")``
    """
    tensors: Tensors = {}
    header: dict[str, Any] = {"format": FORMAT, "version": corank.__version__}
    if isinstance(model, Summary):
        sums = {field.name: encode(getattr(model, field.name), field.name, tensors) for field in fields(model)}
        header |= {"class": _SUMMARY, "params": {}, "state": sums, "requests": {}}
    else:
        header |= encode_estimator(model, "", tensors)
        _require_fitted(model, "this")
    header["sha256"] = _digest(header, tensors)
    with atomic_file(path, overwrite=overwrite) as scratch:
        try:
            save_file(tensors, scratch, metadata={"corank": json.dumps(header)})
        except SafetensorError as error:  # what it makes of a full disk
            raise InputError(f"{path} cannot be written ({reason(error)}); nothing was kept.") from error


def load(path: str | Path) -> Any:
    """
    Read what `save` wrote.

    Parameters
    ----------
    path : str or Path
        The file.

    Returns
    -------
    Ranker, Pipeline or Summary
        A fitted model with the same predictions, or the sums.
    """
    header, tensors = _read(Path(path))
    if header["class"] != _SUMMARY:
        return decode_estimator(header, tensors, str(path))
    if set(header["state"]) != {field.name for field in fields(Summary)}:
        raise InputError(f"{path} holds other sums than corank {corank.__version__} knows; sum them again.")
    return Summary(**{name: decode(value, tensors) for name, value in header["state"].items()})


def _require_fitted(model: Any, name: str) -> None:
    if isinstance(model, Pipeline):
        for step, part in model.steps:
            if part is not None and part != "passthrough":
                _require_fitted(part, f"step {step!r}, a")
        return
    try:
        check_is_fitted(model)
    except NotFittedError:
        raise InputError(f"{name} {type(model).__name__} is not fitted; call fit before saving it.") from None


def _read(path: Path) -> tuple[dict[str, Any], Tensors]:
    if not path.is_file():
        raise InputError(f"{path} is not a file; pass the path that the model was saved to.")
    try:
        with safe_open(path, framework="np") as file:
            text = (file.metadata() or {}).get("corank")
            if text is None:
                raise InputError(f"{path} is a safetensors file but not a corank model; it has no 'corank' header.")
            header = json.loads(text)
            _check(header, path)
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118 - not a dict
    except (SafetensorError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path} is truncated or not a corank model ({error}); save the model again.") from error
    if _digest({key: header[key] for key in header if key != "sha256"}, tensors) != header["sha256"]:
        raise InputError(f"{path} does not match its checksum: it was damaged or changed; save the model again.")
    return header, tensors


def _check(header: Any, path: Path) -> None:
    if isinstance(header, dict) and isinstance(header.get("format"), int) and header["format"] > FORMAT:
        raise InputError(
            f"{path} has format {header['format']}, newer than format {FORMAT} that corank {corank.__version__} reads; "
            "upgrade corank."
        )
    if not isinstance(header, dict) or set(header) != set(FIELDS):
        raise InputError(
            f"{path} has a damaged header: it must hold exactly {', '.join(FIELDS)}; save the model again."
        )
    for key, kind in FIELDS.items():
        if not isinstance(header[key], kind):
            raise InputError(f"{path} has a damaged header: {key} must be a {kind.__name__}; save the model again.")


def _digest(header: dict[str, Any], tensors: Tensors) -> str:
    digest = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
    for key in sorted(tensors):
        digest.update(f"{key} {tensors[key].dtype.str} {tensors[key].shape}".encode())
        digest.update(np.ascontiguousarray(tensors[key]).data)
    return digest.hexdigest()
