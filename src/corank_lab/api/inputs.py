"""Features and priors of the items of a request, as arrays."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import UNSET
from numpy.typing import NDArray

from corank.data import MAX_VALUE, largest_value
from corank.errors import InputError
from corank_lab.api.rankers import ServedModel
from corank_lab.api.requests import RANGE, Features, PackedMatrix, RankItem, RankRequest

Floats = NDArray[np.float64]
Stored = Callable[[Sequence[str]], Mapping[str, dict[str, Any]]]
"""Returns stored items by id."""
MAX_BODY = 1_000_000
"""Largest number of characters of an event."""


def made_id(*parts: str) -> str:
    """Return an id for parts: a hash of the parts with their lengths, so that other parts never give the same id."""
    return hashlib.sha256("".join(f"{len(part)}:{part}" for part in parts).encode()).hexdigest()


def dump_json(value: Any) -> str:
    """Return an event as JSON text to keep."""
    try:
        result = json.dumps(value, allow_nan=False)
    except (ValueError, RecursionError):
        raise InputError(
            "an event holds a number that is not finite, or is nested too deeply; send plain JSON."
        ) from None
    if len(result) > MAX_BODY:
        raise InputError(f"an event has {len(result)} characters of JSON; send at most {MAX_BODY}.")
    return result


def distinct(ids: list[str]) -> list[str]:
    """Return ids of items; raise `InputError` if one occurs twice."""
    if len(set(ids)) < len(ids):
        repeated = next(id for i, id in enumerate(ids) if id in ids[:i])
        raise InputError(f"the item {repeated[:60]!r} occurs twice; send every item once.")
    return ids


def features_of(
    request: RankRequest, items: list[RankItem], model: ServedModel, stored: Stored
) -> tuple[Floats, Floats | None]:
    """
    Return the features and the priors of the items of a request.

    Features come from the matrix `features` of the request, from each item, or from the stored items. The base64 of a
    matrix is several times as fast to read as JSON numbers.
    """
    matrix = request.features
    if isinstance(matrix, PackedMatrix):
        return _unpacked(matrix, len(items), model.n_features), _prior(request, items, model)
    if matrix is None:
        missing = [item.id for item in items if item.features is UNSET]
        if missing:
            items = _with_stored(items, stored(missing))
        matrix = [
            item.features if type(item.features) is list else _named(item.features, item.id, model) for item in items
        ]
    elif len(matrix) != len(items):
        raise InputError(f"features has {len(matrix)} rows for {len(items)} items; send one list for each item.")
    return _matrix(matrix, model.n_features), _prior(request, items, model)


def check_features(value: Features, id: str) -> Features:
    """Raise `InputError` if features to store are outside the range of values."""
    for item in value.values() if isinstance(value, dict) else value:
        if not abs(item) <= MAX_VALUE:
            raise InputError(f"features of the item {id[:60]!r} hold the value {item:.3g}; send {RANGE}.")
    return value


def _with_stored(items: list[RankItem], known: Mapping[str, dict[str, Any]]) -> list[RankItem]:
    result = []
    for item in items:
        if item.features is UNSET:
            if item.id not in known:
                raise InputError(
                    f"the item {item.id[:60]!r} has no features and is not stored; send its features, or store it with "
                    "POST /items."
                )
            kept = known[item.id]
            item = RankItem(item.id, kept["features"], kept.get("prior") if item.prior is None else item.prior)
        result.append(item)
    return result


def _unpacked(packed: PackedMatrix, n: int, d: int) -> Floats:
    sent = [(4, packed.float32), (8, packed.float64)]
    given = [(size, content) for size, content in sent if isinstance(content, bytes)]
    if len(given) != 1:
        raise InputError('features must be a list of lists, or {"float32": base64} or {"float64": base64}.')
    ((size, content),) = given
    if len(content) != n * d * size:
        raise InputError(f"features is not the base64 of {n} times {d} numbers of {size} bytes.")
    return _in_range(np.frombuffer(content, dtype=f"<f{size}").astype(np.float64).reshape(n, d))


def _matrix(rows: Sequence[list[float]], n_features: int) -> Floats:
    for number, row in enumerate(rows, 1):
        if len(row) != n_features:
            raise InputError(f"item number {number} has {len(row)} features; send {n_features} numbers.")
    return _in_range(np.array(rows, dtype=np.float64))


def _in_range(X: Floats) -> Floats:
    largest = largest_value(X)
    if not largest <= MAX_VALUE:
        raise InputError(f"features hold the value {largest:.3g}; send {RANGE}.")
    return X


def _named(value: Any, id: str, model: ServedModel) -> list[float]:
    if model.names is None:
        raise InputError("this model has columns without names; send features as lists of numbers, in its order.")
    try:
        return [value[name] for name in model.names]
    except KeyError as error:
        raise InputError(f"the item {id[:60]!r} has no feature {error.args[0]!r}, which the model needs.") from None


def _prior(request: RankRequest, items: list[RankItem], model: ServedModel) -> Floats | None:
    if not model.has_prior:  # priors that a model does not use are allowed, so that two models may be exchanged
        return None
    values = request.prior if request.prior is not None else [item.prior for item in items]
    if len(values) != len(items):
        raise InputError(f"prior has {len(values)} numbers for {len(items)} items; send one for each item.")
    for item, value in zip(items, values, strict=True):
        if value is None or not abs(value) <= MAX_VALUE:
            what = "missing" if value is None else f"{value:.3g}"
            raise InputError(f"the prior of the item {item.id[:60]!r} is {what}; this model needs {RANGE}.")
    return np.array(values, dtype=np.float64)
