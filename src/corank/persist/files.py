"""
Save and load fitted models, pipelines and summaries: one safetensors file with a JSON header, never pickle.

The header's ``corank`` entry is a JSON object: format, version, class, params, state, requests and the SHA-256 of
everything else. Arrays are tensors that the JSON refers to. No code of a file is executed, and only corank's
estimators, pipelines and three scikit-learn scalers can be built from one. A checksum does not protect against forged
files, so a loaded model is tried on a row of zeros before it is returned.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

import corank
from corank.data.durable.atomic import atomic_file
from corank.errors import InputError, reason
from corank.estimator.base import Ranker
from corank.estimator.query_scaler import QueryScaler
from corank.label_ranking import LabelRanker
from corank.parameters import number
from corank.persist.codec import decode, decode_estimator, encode, encode_estimator
from corank.rls import Summary
from corank.text import LinkLearn

FORMAT = 1
FIELDS: dict[str, type] = {
    "format": int, "version": str, "class": str, "params": dict, "state": dict, "requests": dict, "sha256": str,
}  # fmt: skip

# safetensors' names of the supported numpy types
TYPES = ("BOOL", "U8", "I8", "U16", "I16", "U32", "I32", "U64", "I64", "F16", "F32", "F64")

_SUMMARY = Summary.__name__
# largest number of columns for which a dense row of zeros is tried
_DENSE = 1 << 24

Tensors = dict[str, NDArray[Any]]


def save(model: Ranker | LabelRanker | Pipeline | Summary, path: str | Path, *, overwrite: bool = False) -> None:
    """
    Save a fitted model, pipeline or summary to a file, atomically.

    Parameters
    ----------
    model : Ranker, LabelRanker, Pipeline or Summary
        A fitted ranker or label ranker; a pipeline of `QueryScaler`, `Landmarks`, `Smooth`, scikit-learn's
        StandardScaler, MinMaxScaler and MaxAbsScaler, and a ranker; or a `Summary`. Anything that `load` could not
        read raises `InputError`.
    path : str or Path
        The file; ``.safetensors`` is the usual suffix.
    overwrite : bool, default False
        Whether to replace an existing file.

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
        _require_fitted(model)
    header["sha256"] = _digest(header, tensors)
    with atomic_file(path, overwrite=overwrite) as scratch:
        try:
            save_file(tensors, scratch, metadata={"corank": json.dumps(header)})
        except SafetensorError as error:  # raised for a full disk
            raise InputError(f"{path} cannot be written ({reason(error)}); no file was created.") from error


def load(path: str | Path) -> Any:
    """
    Load a file written by `save`.

    Parameters
    ----------
    path : str or Path
        The file.

    Returns
    -------
    Ranker, LabelRanker, Pipeline or Summary
        The fitted model, with the same predictions, or the summary.
    """
    header, tensors = _read(Path(path))
    if header["class"] != _SUMMARY:
        model = decode_estimator(header, tensors, str(path))
    elif set(header["state"]) == {field.name for field in fields(Summary)}:
        model = Summary(**{name: decode(value, tensors) for name, value in header["state"].items()})
    else:
        raise InputError(f"{path} holds a summary that corank {corank.__version__} cannot read; create it again.")
    _check_model(model, path)
    return model


def _parts(model: Any, name: str = "this") -> Iterator[tuple[str, Any]]:
    """Yield the estimators of a pipeline, or the model itself, with descriptions for messages."""
    if not isinstance(model, Pipeline):
        yield name, model
        return
    if not model.steps:
        raise InputError(f"{name} Pipeline has no steps; add some before saving it.")
    for step, part in model.steps:
        if not isinstance(step, str):
            raise InputError(f"{name} Pipeline has a step called {step!r}; name steps by strings.")
        if part is not None and part != "passthrough":
            yield from _parts(part, f"step {step!r}, a")


def _require_fitted(model: Any) -> None:
    for name, part in _parts(model):
        try:
            check_is_fitted(part)
        except NotFittedError:
            raise InputError(f"{name} {type(part).__name__} is not fitted; call fit before saving it.") from None


def _check_model(model: Any, path: str | Path) -> None:
    """Try a model on a row of zeros, to detect parts that do not fit together."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            if isinstance(model, Summary):
                _try_summary(model)
            else:
                for _, part in _parts(model):
                    _try_estimator(part)
    except Exception as error:  # a forged file may raise anything
        raise InputError(
            f"{path} holds a {type(model).__name__} whose parts do not fit together ({reason(error)}); save it again."
        ) from error


def _try_estimator(model: Any) -> None:
    if isinstance(model, LinkLearn):  # takes texts instead of rows
        model._check_state()
        return
    d = model.n_features_in_
    if type(d) is not int or not 0 < d < 1 << 32:
        raise InputError(f"n_features_in_ is {d!r}")
    if hasattr(model, "column_scale_"):
        _require_factors("column_scale_", model.column_scale_, d)
    names = getattr(model, "feature_names_in_", None)
    if names is not None and (np.shape(names) != (d,) or np.asarray(names).dtype != object):
        raise InputError(f"feature_names_in_ does not have {d} names")
    row = np.zeros((1, d)) if d <= _DENSE else sparse.csr_array((1, d))
    if isinstance(model, LabelRanker):
        model._check_state()
        _require_finite(model.utilities(row), (1, len(model.classes_)))
        return
    if not isinstance(model, Ranker):
        if getattr(model, "scale_", None) is not None and np.abs(model.scale_).min() < np.finfo(np.float64).tiny:
            raise InputError("scale_ is too small to divide by")
        transformed = model.transform(row, **({"qid": [0]} if isinstance(model, QueryScaler) else {}))
        _require_finite(transformed.data if sparse.issparse(transformed) else transformed)
        return
    model._check_state()
    prior = [0.0] if model.has_prior_ else None
    _require_finite(model.predict(row, prior=prior), (1,))
    if hasattr(model, "predict_views"):
        for view in model.views_:
            view.require_columns(d)
        _require_finite(model.predict_views(row, prior=prior), (1, len(model.views_)))


def _require_finite(values: NDArray[Any], shape: tuple[int, ...] | None = None) -> None:
    if shape not in (None, values.shape) or not np.isfinite(values).all():
        raise InputError(f"a row of zeros gives values of shape {values.shape}, or values that are not finite")


def _require_factors(name: str, factors: Any, d: int | None) -> None:
    if np.shape(factors) != (d,) or np.asarray(factors).dtype != np.float64:
        raise InputError(f"{name} does not have {d} columns")
    if not ((factors > 1e-154) & (factors < 1e154)).all():  # their squares must be finite
        raise InputError(f"{name} has values that are not positive, or whose squares overflow")


def _try_summary(summary: Summary) -> None:
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
            tensors = {key: _tensor(file, key, path) for key in file.keys()}  # noqa: SIM118 - not a dict
        digest = _digest({key: header[key] for key in header if key != "sha256"}, tensors)
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
