"""Check what requests hold: every value is understood, or refused with a sentence that names the field."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.data import MAX_VALUE, largest_value
from corank.errors import InputError
from corank_lab.api.rankers import ServedModel

Floats = NDArray[np.float64]
Stored = Callable[[Sequence[str]], Mapping[str, dict[str, Any]]]
"""Returns stored items by id."""

MOST_ITEMS = 1000
"""Largest number of items of a request."""
MOST_EVENTS = 1000
"""Largest number of events of a request."""
MOST_FEATURES = 2000
"""Largest number of features of an item."""
_RANGE = f"a number from {-MAX_VALUE:g} to {MAX_VALUE:g}"
LONGEST_ID, LONGEST_QUERY, LONGEST_BODY = 200, 2000, 1_000_000
"""Largest numbers of characters of an id, of a query and of an event."""


def made_id(*parts: str) -> str:
    """Return an id for parts: a hash of the parts with their lengths, so that other parts never give the same id."""
    return hashlib.sha256("".join(f"{len(part)}:{part}" for part in parts).encode()).hexdigest()


def parse_json(content: bytes) -> Any:
    """Return the value of a JSON text."""
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        reason = f"{error}".split("\n")[0][:100]
        raise InputError(f"the body is not JSON ({reason}); send one JSON value in UTF-8.") from None


def dump_json(value: Any) -> str:
    """Return an event as JSON text to keep."""
    try:
        found = json.dumps(value, allow_nan=False)
    except (ValueError, RecursionError):
        raise InputError(
            "an event holds a number that is not finite, or is nested too deeply; send plain JSON."
        ) from None
    if len(found) > LONGEST_BODY:
        raise InputError(f"an event has {len(found)} characters of JSON; send at most {LONGEST_BODY}.")
    return found


def as_object(value: Any, what: str) -> dict[str, Any]:
    """Return a JSON object."""
    if not isinstance(value, dict):
        raise InputError(f"{what} is {_kind(value)}; send a JSON object.")
    return value


def as_list(value: Any, what: str, most: int) -> list[Any]:
    """Return a JSON list that is neither empty nor longer than `most`."""
    if not isinstance(value, list) or not value:
        raise InputError(f"{what} is {_kind(value)}; send a list with at least one element.")
    if len(value) > most:
        raise InputError(f"{what} has {len(value)} elements; send at most {most} at once.")
    return value


def text(data: Mapping[str, Any], name: str, longest: int = LONGEST_ID, *, required: bool = False) -> str:
    """Return a text of an object; empty if it may be missing and is."""
    value = data.get(name)
    if value is None and not required:
        return ""
    if not isinstance(value, str) or (required and not value):
        raise InputError(f"{name} is {_kind(value)}; send a text that is not empty.")
    if len(value) > longest:
        raise InputError(f"{name} has {len(value)} characters; send at most {longest}.")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise InputError(f"{name} holds half of a surrogate pair; send valid Unicode text.") from None
    if "\x00" in value:
        raise InputError(f"{name} holds a NUL character; send text without it.")
    return value


def number(data: Mapping[str, Any], name: str, low: float, high: float) -> float | None:
    """Return a number of an object, None if it is missing."""
    value = data.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise InputError(f"{name} is {_kind(value)}; send a number from {low:g} to {high:g}.")
    return float(value)


def flag(data: Mapping[str, Any], name: str) -> bool:
    """Return a truth value of an object; false if it is missing."""
    value = data.get(name, False)
    if not isinstance(value, bool):
        raise InputError(f"{name} is {_kind(value)}; send true or false.")
    return value


def items_of(data: Mapping[str, Any]) -> tuple[list[str], list[dict[str, Any]]]:
    """Return the ids of the items of a request, and their objects."""
    found = as_list(data.get("items"), "items", MOST_ITEMS)
    objects = [one if isinstance(one, dict) else {"id": one} for one in found]
    ids = [text(one, "id", required=True) for one in objects]
    if len(set(ids)) < len(ids):
        repeated = next(id for at, id in enumerate(ids) if id in ids[:at])
        raise InputError(f"the item {repeated[:60]!r} occurs twice; send every item once.")
    return ids, objects


def features_of(
    data: Mapping[str, Any], ids: Sequence[str], objects: list[dict[str, Any]], model: ServedModel, stored: Stored
) -> tuple[Floats, Floats | None]:
    """
    Return the features and the priors of the items of a request.

    Features come from the matrix `features` of the request, from each item, or from the stored items. The matrix is a
    list of lists, or an object ``{"float32": ...}`` or ``{"float64": ...}`` with the base64 of its little-endian rows,
    which is several times as fast to read.
    """
    matrix = data.get("features")
    if isinstance(matrix, dict):
        return _decoded(matrix, len(ids), model.n_features), _prior(data, objects, ids, model)
    if matrix is None:
        missing = [id for id, one in zip(ids, objects, strict=True) if "features" not in one]
        known = stored(missing) if missing else {}
        unknown = [id for id in missing if id not in known]
        if unknown:
            raise InputError(
                f"the item {unknown[0][:60]!r} has no features and is not stored; send its features, or store it with "
                "POST /items."
            )
        objects = [known[id] | one if id in known else one for id, one in zip(ids, objects, strict=True)]
        matrix = [
            one["features"] if type(one["features"]) is list else _named(one["features"], id, model)
            for id, one in zip(ids, objects, strict=True)
        ]
    elif not isinstance(matrix, list) or len(matrix) != len(ids):
        raise InputError(f"features is {_kind(matrix)} for {len(ids)} items; send one list of numbers for each item.")
    X = _matrix(matrix, model.n_features)
    return X, _prior(data, objects, ids, model)


def check_features(value: Any, id: str) -> Any:
    """Check features to store: a list of numbers in the range of values, or an object of them by name."""
    values = list(value.values()) if isinstance(value, dict) else value
    if not isinstance(values, list) or not 1 <= len(values) <= MOST_FEATURES:
        raise InputError(
            f"features of the item {id[:60]!r} is {_kind(value)}; send 1 to {MOST_FEATURES} numbers, as a list or by "
            "name."
        )
    for one in values:
        if not _is_value(one):
            raise InputError(f"a feature of the item {id[:60]!r} is {_kind(one)}; send {_RANGE}.")
    return value


def _decoded(packed: dict[str, Any], n: int, d: int) -> Floats:
    ((kind, content),) = packed.items() if len(packed) == 1 else (("", ""),)
    if kind not in ("float32", "float64") or not isinstance(content, str):
        raise InputError('features must be a list of lists, or {"float32": base64} or {"float64": base64}.')
    size = 4 if kind == "float32" else 8
    try:
        values = np.frombuffer(base64.b64decode(content, validate=True), dtype=f"<f{size}")
    except ValueError:
        values = np.empty(0)
    if len(values) != n * d:
        raise InputError(f"features is not the base64 of {n} times {d} numbers of {size} bytes.")
    return _in_range(values.astype(np.float64).reshape(n, d))


def _matrix(rows: list[Any], n_features: int) -> Floats:
    try:
        X = np.array(rows)
    except (ValueError, TypeError, OverflowError):
        X = np.empty(0)
    if X.ndim != 2 or X.shape[1] != n_features or X.dtype.kind not in "iufb":
        for at, row in enumerate(rows):
            if not isinstance(row, list) or len(row) != n_features:
                raise InputError(f"item number {at + 1} has {_kind(row)} as features; send {n_features} numbers.")
            for value in row:
                if not _is_value(value):
                    raise InputError(f"a feature of item number {at + 1} is {_kind(value)}; send {_RANGE}.")
    return _in_range(np.ascontiguousarray(X, dtype=np.float64))


def _in_range(X: Floats) -> Floats:
    largest = largest_value(X)
    if not largest <= MAX_VALUE:
        raise InputError(f"features hold the value {largest:.3g}; send {_RANGE}.")
    return X


def _named(value: Any, id: str, model: ServedModel) -> list[Any]:
    if not isinstance(value, dict):
        raise InputError(f"features of the item {id[:60]!r} is {_kind(value)}; send a list of numbers, or an object.")
    if model.names is None:
        raise InputError("this model has columns without names; send features as lists of numbers, in its order.")
    try:
        return [value[name] for name in model.names]
    except KeyError as error:
        raise InputError(f"the item {id[:60]!r} has no feature {error.args[0]!r}, which the model needs.") from None


def _prior(
    data: Mapping[str, Any], objects: list[dict[str, Any]], ids: Sequence[str], model: ServedModel
) -> Floats | None:
    values = data.get("prior")
    if values is None:
        values = [one.get("prior") for one in objects]
        if not model.has_prior:  # priors that a model does not use are allowed, so that two models may be exchanged
            return None
    elif not model.has_prior:
        return None
    if not isinstance(values, list) or len(values) != len(ids):
        raise InputError(f"prior is {_kind(values)} for {len(ids)} items; send one number for each item.")
    for id, value in zip(ids, values, strict=True):
        if not _is_value(value):
            raise InputError(f"the prior of the item {id[:60]!r} is {_kind(value)}; this model needs {_RANGE}.")
    return np.array(values, dtype=np.float64)


def _is_value(value: Any) -> bool:
    """Return whether a JSON value can be a feature or a prior; NaN and infinity are not in the range."""
    return isinstance(value, int | float) and abs(value) <= MAX_VALUE


def _kind(value: Any) -> str:
    """Describe a JSON value without repeating texts, which may be personal."""
    if value is None:
        return "missing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f"a text of {len(value)} characters" if value else "an empty text"
    if isinstance(value, list):
        return f"a list of {len(value)} elements"
    if isinstance(value, dict):
        return f"an object of {len(value)} fields"
    return f"{value:.6g}" if isinstance(value, float) else "a whole number" if abs(value) > 10**12 else f"{value}"
