"""Columns of ids in tables of pyarrow's: numbers as they are, texts as strings of which equal ones are kept once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.errors import InputError, import_extra


def ids_of(column: Any, name: str) -> list[str] | NDArray[Any]:
    """
    Read the ids of a column.

    column: a column of numbers or text.
    name: what it is called in messages.
    Returns: texts as a list, else an array.
    """
    if column.null_count:
        row = column.is_null().to_pylist().index(True)
        raise InputError(f"{name} is null at row {row}; every row needs an id there.")
    if import_extra("pyarrow", "frames").types.is_nested(column.type):
        raise InputError(f"{name} holds {column.type}; ids are numbers or text.")
    if is_text(column.type):
        return _texts(column)
    ids = to_numpy(column)
    return [str(one) for one in ids.tolist()] if ids.dtype.kind == "O" else ids


def is_text(kind: Any) -> bool:
    """
    Say whether a type of pyarrow's holds text, or bytes that are meant as text.

    Returns: true for strings and binary, also as categories.
    """
    arrow = import_extra("pyarrow", "frames")
    kind = kind.value_type if arrow.types.is_dictionary(kind) else kind
    return kind in (arrow.string(), arrow.large_string(), arrow.binary(), arrow.large_binary())


def integers_of(column: Any) -> Any:
    """
    Read query ids of text: integers where all of them are written as such, and null where nothing is written.

    column: a column of text.
    Returns: a column of integers, or of text.
    """
    arrow, given = import_extra("pyarrow", "frames"), import_extra("pyarrow.compute", "frames")
    column = given.if_else(given.equal(column, ""), None, column)
    try:
        numbers = column.cast(arrow.int64())
    except arrow.ArrowInvalid:
        return column
    return numbers if numbers.cast(arrow.string()).equals(column) else column


def to_numpy(column: Any) -> NDArray[Any]:
    """
    Turn a column into an array.

    Returns: of objects where numpy has no type for it.
    """
    return np.asarray(column.to_numpy(zero_copy_only=False))


def _texts(column: Any) -> list[str]:
    """Bytes that are not UTF-8 are kept as in LETOR text."""
    arrow = import_extra("pyarrow", "frames")
    found: list[str] = []
    for chunk in column.chunks:
        coded = chunk if arrow.types.is_dictionary(chunk.type) else chunk.dictionary_encode()
        words = coded.dictionary.cast(arrow.large_binary()).to_pylist()
        codes = coded.indices.to_pylist()
        if None in words or (codes and not 0 <= min(codes) <= max(codes) < len(words)):
            raise arrow.ArrowInvalid("a text is not in its dictionary")
        words = [word.decode(errors="surrogateescape") for word in words]
        found += [words[code] for code in codes]
    return found
