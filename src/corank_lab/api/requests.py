"""
Requests as msgspec structs: one definition for validation, for /openapi.json and for fast reading; their features.

Unknown fields are allowed; an event is stored with them. A value that is refused is named by its place.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import msgspec
import numpy as np
from msgspec import UNSET, Meta, Struct, UnsetType
from numpy.typing import NDArray

from corank.data import MAX_VALUE, largest_value
from corank.errors import InputError

if TYPE_CHECKING:
    from corank_lab.api.models import ServedModel

MAX_ITEMS = 1000  # largest number of items of a request
MAX_EVENTS = 1000  # largest number of events of a request
MAX_FEATURES = 2000  # largest number of features of an item
MAX_ID, MAX_QUERY = 200, 2000  # largest numbers of characters of an id and of a query
RANGE = f"a number from {-MAX_VALUE:g} to {MAX_VALUE:g}"

Text = Annotated[str, Meta(max_length=MAX_ID)]
Id = Annotated[str, Meta(min_length=1, max_length=MAX_ID)]
Query = Annotated[str, Meta(max_length=MAX_QUERY)]
Number = float | bool
Row = Annotated[list[Number], Meta(min_length=1, max_length=MAX_FEATURES)]
Features = Row | Annotated[dict[str, Number], Meta(min_length=1, max_length=MAX_FEATURES)]
"""Numbers in the order of the model's columns, or by their names."""
T = TypeVar("T")


class RankItem(Struct):
    """An item to rank; its features are here or in the matrix of the request."""

    id: Id
    features: Features | UnsetType = UNSET
    prior: Number | None = None


class PackedMatrix(Struct):
    """The base64 of all rows, little-endian, in one of two types."""

    float32: bytes | UnsetType = UNSET
    float64: bytes | UnsetType = UNSET


class RankRequest(Struct):
    """Items to rank; a repeated request with the same id gets the same answer."""

    items: Annotated[list[RankItem | Id], Meta(min_length=1, max_length=MAX_ITEMS)]
    features: Annotated[list[Row], Meta(max_length=MAX_ITEMS)] | PackedMatrix | None = None
    prior: Annotated[list[Number], Meta(max_length=MAX_ITEMS)] | None = None
    id: Text | None = None
    query: Query | None = None
    user: Text | None = None
    k: Annotated[int, Meta(ge=1, le=MAX_ITEMS)] | None = None
    model: Text | None = None
    random_state: str | UnsetType | None = UNSET


class Feedback(Struct, kw_only=True):
    """Feedback on one item of a list, all clicks on a list, or the end of a list."""

    impression: Id
    item: Text | None = None
    action: Text | None = None
    id: Text | None = None
    user: Text | None = None
    clicks: Annotated[list[Text], Meta(max_length=MAX_ITEMS)] | UnsetType = UNSET
    final: bool = False
    agent: Query | None = None  # agent, owner, seconds: what the rules look at
    owner: Text | None = None
    seconds: Annotated[float, Meta(ge=0, le=1e7)] | None = None


class ActivateRequest(Struct):
    """The version to use from now on."""

    version: Annotated[int, Meta(ge=1, le=10**9)]


class MalformedError(InputError):
    """A body is not JSON."""

    status = 400


def parse(content: bytes, decoder: msgspec.json.Decoder[T]) -> T:
    """Return a request."""
    with _explaining():
        content.decode()  # msgspec does not decode texts that it skips
        result = decoder.decode(content)
    _refuse_nul(content)
    return result


def parse_feedback(content: bytes) -> list[tuple[dict[str, Any], Feedback]]:
    """Return the events of one object, of a list, or of the list `events`, each as it was sent and as a struct."""
    with _explaining():
        sent = msgspec.json.decode(content)
        if isinstance(sent, dict) and "events" in sent:
            sent = sent["events"]
        sent = sent if isinstance(sent, list) else [sent]
        result = msgspec.convert(sent, list[Feedback])
    if not 1 <= len(sent) <= MAX_EVENTS:
        raise InputError(f"the request has {len(sent)} events; send from 1 to {MAX_EVENTS}.")
    _refuse_nul(content)
    return list(zip(sent, result, strict=True))


@contextmanager
def _explaining() -> Iterator[None]:
    """Raise `MalformedError` if a body is not JSON, or else `InputError` with the place of the value."""
    try:
        yield
    except msgspec.ValidationError as error:
        what, _, place = str(error).partition(" - at `$")
        more = f"send {RANGE}" if what == "Number out of range" else "GET /openapi.json describes it"
        raise InputError(f"{place.strip('`.') or 'the body'} is refused ({what}); {more}.") from None
    except (ValueError, RecursionError) as error:
        raise MalformedError(f"the body is not JSON ({str(error)[:100]}); send one JSON value in UTF-8.") from None


def _refuse_nul(content: bytes) -> None:
    if b"\\u0000" in content:
        raise InputError("a text holds the NUL character \\u0000; send texts without it.")


Floats = NDArray[np.float64]

MAX_BODY = 1_000_000  # largest number of characters of an event


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


def features_of(request: RankRequest, items: list[RankItem], model: ServedModel) -> tuple[Floats, Floats | None]:
    """
    Return the features and the priors of the items of a request.

    Features come from the matrix `features` of the request, or from each item. The base64 of a matrix is several times
    as fast to read as JSON numbers.
    """
    matrix = request.features
    if isinstance(matrix, PackedMatrix):
        return _unpacked(matrix, len(items), model.n_features), _prior(request, items, model)
    if matrix is None:
        matrix = [item.features if type(item.features) is list else _named(item, model) for item in items]
    elif len(matrix) != len(items):
        raise InputError(f"features has {len(matrix)} rows for {len(items)} items; send one list for each item.")
    return _matrix(matrix, model.n_features), _prior(request, items, model)


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


def _named(item: RankItem, model: ServedModel) -> list[Number]:
    if not isinstance(item.features, dict):
        raise InputError(f"the item {item.id[:60]!r} has no features; send them.")
    if model.names is None:
        raise InputError("this model has columns without names; send features as lists of numbers, in its order.")
    try:
        return [item.features[name] for name in model.names]
    except KeyError as error:
        raise InputError(
            f"the item {item.id[:60]!r} has no feature {error.args[0]!r}, which the model needs."
        ) from None


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
