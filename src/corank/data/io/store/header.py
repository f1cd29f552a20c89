"""
The header of a store, and its validation.

A forger can compute the checksum of a header. The names of the arrays, their types and the relations between their
shapes are therefore checked against the tables in this module.
"""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from reprlib import repr as short
from typing import Any

from corank.data.durable.atomic import folder_exists
from corank.data.durable.regular import open_regular
from corank.errors import InputError

FORMAT = "corank store"
VERSION = 1
HEADER = "header.json"

# a header has about 3 kB
_MAX_HEADER_BYTES = 1 << 16
# kernels use 32-bit column indices; file sizes bound rows and queries
_MAX_FEATURES = 1 << 32

_FACTS = {"n_rows": int, "n_features": int, "n_queries": int, "layout": str, "has_qid": bool}
_ENTRY = {"dtype": str, "shape": list, "sha256": str}
_IDS = r"[|](b1|[iu]1)|<([iu][248]|f[248]|U[1-9][0-9]{0,7})"

# a pattern of the dtype, then the shape: facts, or other names that must have one value throughout
_ROWS: dict[str, dict[str, tuple[str, ...]]] = {
    "dense": {"values": ("<f[48]", "n_rows", "n_features")},
    "csr": {
        "values": ("<f[48]", "n_stored"),
        "indices": ("<i[48]", "n_stored"),
        "indptr": ("<i[48]", "n_rows + 1"),
    },
}
_INDEXED: dict[str, tuple[str, ...]] = {
    "y": ("<f8", "n_rows"),
    "ids": (_IDS, "n_queries"),
    "codes": ("<i8", "n_rows"),
    "query_order": ("<i8", "n_rows"),
    "starts": ("<i8", "n_queries + 1"),
    "order": ("<i8", "n_rows"),
    "scored_stops": ("<i8", "n_queries"),
    "grade_starts": ("<i8", "n_grades"),
    "grade_stops": ("<i8", "n_grades"),
    "query_grades": ("<i8", "n_queries + 1"),
}
_TEXTS: dict[str, dict[str, tuple[str, ...]]] = {
    "docid": {"docid_bytes": ("[|]u1", "n_docid_bytes"), "docid_stops": ("<i8", "n_rows")},
    "name": {"name_bytes": ("[|]u1", "n_name_bytes"), "name_stops": ("<i8", "n_features")},
}
"""Arrays of texts, which a store may have: document ids of rows, and names of columns."""


def is_store(path: Path) -> bool:
    """Return whether a folder contains a store, of any version."""
    return _parsed(path) is not None


def checksum(content: dict[str, Any]) -> str:
    """Return the SHA-256 of the canonical JSON of a header's content, in hexadecimal."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def header_text(content: dict[str, Any]) -> str:
    """Return the text of a header with this content."""
    header = {"format": FORMAT, "version": VERSION, "sha256": checksum(content), "content": content}
    return json.dumps(header, indent=1) + "\n"


def read_header(place: Path) -> dict[str, Any]:
    """Read and validate the header of a store; return its facts and its arrays with types, shapes and checksums."""
    if not folder_exists(place):
        raise InputError(f"there is no store {place}; create one with: corank convert SOURCE {place}.")
    header = _parsed(place)
    if header is None:
        raise InputError(
            f"{place} is not a store: it has no {HEADER} of the format {FORMAT!r}; write one with corank convert."
        )
    if header.get("version") != VERSION:
        raise InputError(
            f"{place} is a store of version {short(header.get('version'))}, but this corank reads version {VERSION}; "
            "upgrade corank or write the store again."
        )
    content = header.get("content")
    if not isinstance(content, dict) or not _matches(content, header.get("sha256")):
        raise InputError(f"{place} is damaged: {HEADER} does not match its checksum; write the store again.")
    fault = _fault(content)
    if fault is not None:
        raise InputError(f"{place} is damaged: {HEADER} is invalid ({fault}); write the store again.")
    return content


def _parsed(place: Path) -> dict[str, Any] | None:
    """Return the JSON of a header, or None."""
    file = place / HEADER
    try:
        with open_regular(file) as handle:
            text = handle.read(_MAX_HEADER_BYTES + 1)
        header = json.loads(text) if len(text) <= _MAX_HEADER_BYTES else None
    except (OSError, ValueError, RecursionError):
        return None
    return header if isinstance(header, dict) and header.get("format") == FORMAT else None


def _matches(content: dict[str, Any], sha256: Any) -> bool:
    try:
        return bool(checksum(content) == sha256)
    except RecursionError:  # nested just deep enough to be parsed
        return False


def _fault(content: dict[str, Any]) -> str | None:
    """Describe the first invalid part of a header; None if it is valid."""
    arrays = content.get("arrays")
    if not isinstance(arrays, dict) or set(content) != {*_FACTS, "arrays"}:
        return f"its keys are {short(sorted(content))}"
    for name, kind in _FACTS.items():
        if type(content[name]) is not kind:
            return f"{name} is {short(content[name])}"
    layout = content["layout"]
    if layout not in _ROWS or content["n_rows"] < 1 or not 0 <= content["n_features"] <= _MAX_FEATURES:
        return f"{short(content['n_rows'])} rows, {short(content['n_features'])} features, layout {short(layout)}"
    wanted = _ROWS[layout] | _INDEXED
    for texts in _TEXTS.values():
        wanted |= {} if texts.keys().isdisjoint(arrays) else texts
    if arrays.keys() != wanted.keys():
        return f"arrays {short(sorted(arrays.keys() ^ wanted.keys()))} are missing or unknown"
    lengths = {name: content[name] for name in ("n_rows", "n_features", "n_queries")}
    lengths |= {f"{name} + 1": n + 1 for name, n in lengths.items()}
    for name, (dtype, *axes) in wanted.items():
        entry = arrays[name]
        if not isinstance(entry, dict) or {key: type(value) for key, value in entry.items()} != _ENTRY:
            return f"{name} is {short(entry)}"
        sizes = [lengths.setdefault(axis, n) for axis, n in zip(axes, entry["shape"], strict=False)]
        if re.fullmatch(dtype, entry["dtype"]) is None or any(type(n) is not int or n < 0 for n in entry["shape"]):
            return f"{name} has the type {short(entry['dtype'])} and the shape {short(entry['shape'])}"
        if sizes != entry["shape"] or len(sizes) != len(axes):
            return f"{name} has the shape {short(entry['shape'])}"
    return None
