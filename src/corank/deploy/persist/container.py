"""Read the file of a model: header, tensors and checksum; builds nothing, so that it is light to import."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from corank._version import __version__
from corank.data.rows import as_rows, encode_like, require_columns
from corank.data.scoring import score_columns
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


RANKERS = ("SPD", "CRR", "LCRA", "RankSVM", "RankRLS")
"""Rankers that score rows by `coef_` and `intercept_`; the last one with a linear kernel only, without intercept."""

_LINEAR_KERNEL = {"noun": {"name": "LinearKernel", "fields": {}}}


@dataclass(frozen=True, eq=False)
class LoadedLinear:
    """The scores of a linear ranker: w · x + b."""

    coef_: NDArray[np.float64]  # coef_ (n_features,), intercept_: w and b
    intercept_: float
    feature_names_in_: NDArray[np.object_] | None  # names of the columns, or None

    @property
    def n_features_in_(self) -> int:
        """Number of columns."""
        return len(self.coef_)

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Score rows whose column names were compared with those of the model."""
        rows = as_rows(encode_like(X, self.feature_names_in_))
        require_columns(self, X, rows)
        return score_columns(rows, self.coef_) + self.intercept_


def load_linear(path: Path) -> LoadedLinear | None:
    """Load a linear ranker; None if the file holds another model, or anything that `corank.load` must examine."""
    header, tensors = read_container(path)
    state, kind = header["state"], header["class"]
    if (
        kind not in RANKERS
        or header["requests"]
        or "has_prior_" in state
        or "missing_means_" in state
        or state.get("coef_") != {"array": "coef_"}
    ):
        return None
    if kind == "RankRLS" and state.get("kernel_") != _LINEAR_KERNEL:
        return None
    coef, intercept = tensors.get("coef_"), 0.0 if kind == "RankRLS" else state.get("intercept_")
    names = state.get("feature_names_in_", {"strings": None})
    if coef is None or coef.dtype != np.float64 or coef.shape != (state.get("n_features_in_"),) or not len(coef):
        return None
    if not isinstance(intercept, float) or not np.isfinite(coef).all() or list(names) != ["strings"]:
        return None
    words = names["strings"]
    if words is None:
        return LoadedLinear(coef, intercept, None)
    if not isinstance(words, list) or len(words) != len(coef) or not all(isinstance(word, str) for word in words):
        return None
    return LoadedLinear(coef, intercept, np.array(words, dtype=object))
