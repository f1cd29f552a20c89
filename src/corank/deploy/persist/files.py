"""
Save and load fitted models, pipelines and summaries: one safetensors file with a JSON header, never pickle.

The header's ``corank`` entry is a JSON object: format, version, class, params, state, requests and the SHA-256 of
everything else. Arrays are tensors that the JSON refers to. No code of a file is executed, and only corank's
estimators, pipelines and three scikit-learn scalers can be built from one. A checksum does not protect against forged
files, so a loaded model is checked against what its classes declare, and
tries every prediction on two rows before it is returned.
"""

from __future__ import annotations

import json
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, overload

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import save as save_tensors
from safetensors.numpy import save_file
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

import corank
from corank._lazy import is_of, is_pipeline
from corank.data.durable.atomic import atomic_file
from corank.deploy.persist.codec import decode, decode_estimator, encode, encode_estimator
from corank.deploy.persist.container import FORMAT, Tensors, digest_of, read_container
from corank.errors import InputError, reason

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline

    from corank.base.base import Ranker
    from corank.models.labels import LabelRanker
    from corank.models.rls import PairSums

_SUMMARY = "Summary"  # the name of the class in files, from 0.1 on

Model = TypeVar("Model")


def save(model: Ranker | LabelRanker | Pipeline | PairSums, path: str | Path, *, overwrite: bool = False) -> None:
    """
    Save a fitted model, pipeline or summary to a file, atomically.

    Parameters
    ----------
    model : Ranker, LabelRanker, Pipeline or PairSums
        A fitted ranker or label ranker; a pipeline of `QueryScaler`, `Landmarks`, `NeighborSmoother`, scikit-learn's
        StandardScaler, MinMaxScaler and MaxAbsScaler, and a ranker; or a `PairSums`. Anything that `load` could not
        read raises `InputError`.
    path : str or Path
        The file; ``.safetensors`` is the usual suffix.
    overwrite : bool, default False
        Whether to replace an existing file.

    Examples
    --------
    ``save(SPD().fit(X, y, qid=qid), "model.safetensors")``
    """
    tensors, metadata = _encoded(model)
    with atomic_file(path, overwrite=overwrite) as scratch:
        try:
            save_file(tensors, scratch, metadata=metadata)
        except SafetensorError as error:  # raised for a full disk
            raise InputError(f"{path} cannot be written ({reason(error)}); no file was created.") from error


def model_bytes(model: Ranker | LabelRanker | Pipeline | PairSums) -> bytes:
    """Return the content of the file that `save` writes; equal models give equal bytes."""
    tensors, metadata = _encoded(model)
    return bytes(save_tensors(tensors, metadata=metadata))


def model_from_bytes(content: bytes, kind: type[Model], *, is_known: bool = False) -> Model:
    """Load a model from the content of a file, with the checks of `load`."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.safetensors")
        path.write_bytes(content)
        if not is_known:
            return load(path, kind)
        header, tensors = read_container(path)
        model = decode_estimator(header, tensors, kind.__name__)
        if not isinstance(model, kind):
            raise InputError(f"the content is a {type(model).__name__}, not a {kind.__name__}.")
        return model


def _encoded(model: Any) -> tuple[Tensors, dict[str, str]]:
    tensors: Tensors = {}
    header: dict[str, Any] = {"format": FORMAT, "version": corank.__version__}
    if is_of(model, "PairSums"):
        sums = {field.name: encode(getattr(model, field.name), field.name, tensors) for field in fields(model)}
        header |= {"class": _SUMMARY, "params": {}, "state": sums, "requests": {}}
    else:
        header |= encode_estimator(model, "", tensors)
        _require_fitted(model)
    header["sha256"] = digest_of(header, tensors)
    return tensors, {"corank": json.dumps(header)}


@overload
def load(path: str | Path) -> Any: ...


@overload
def load(path: str | Path, kind: type[Model]) -> Model: ...


def load(path: str | Path, kind: type[Any] | None = None) -> Any:
    """
    Load a file written by `save`.

    Parameters
    ----------
    path : str or Path
        The file.
    kind : type, optional
        The expected class, such as `Ranker` or `RankRLS`; another one raises `InputError`. Type checkers then know the
        class of the result.

    Returns
    -------
    Ranker, LabelRanker, Pipeline or PairSums
        The fitted model, with the same predictions, or the summary.

    Examples
    --------
    ``load("model.safetensors", RankRLS).alpha_``
    """
    header, tensors = read_container(Path(path))
    model = (
        _decode_sums(header, tensors, path)
        if header["class"] == _SUMMARY
        else decode_estimator(header, tensors, str(path))
    )
    if kind is not None and not isinstance(model, kind):
        raise InputError(
            f"{path} holds a {type(model).__name__}, not a {kind.__name__}; load it with kind={type(model).__name__}."
        )
    _check_model(model, path)
    return model


def _decode_sums(header: dict[str, Any], tensors: Tensors, path: str | Path) -> PairSums:
    from corank.models.rls import PairSums

    if set(header["state"]) != {field.name for field in fields(PairSums)}:
        raise InputError(f"{path} holds a summary that corank {corank.__version__} cannot read; create it again.")
    return PairSums(**{name: decode(value, tensors) for name, value in header["state"].items()})


def _parts(model: Any, name: str = "this") -> Iterator[tuple[str, Any]]:
    """Yield the estimators of a pipeline, or the model itself, with descriptions for messages."""
    if not is_pipeline(model):
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
    """Check what classes declare, then try every prediction, to detect parts that do not fit together."""
    from corank.deploy.persist.check import require_declared, try_model

    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            for _ in _parts(model):  # the names of steps
                pass
            require_declared(model)
            try_model(model)
    except Exception as error:  # a forged file may raise anything
        raise InputError(
            f"{path} holds a {type(model).__name__} whose parts do not fit together ({reason(error)}); save it again."
        ) from error
