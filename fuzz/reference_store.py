"""
Slow reference reader of stores: arrays as plain numbers, and the index rebuilt by sorting in Python.

It distinguishes three kinds of stores: valid ones (as `write_store` writes them), which must be read correctly; unsafe
ones (an index out of bounds, or a number that is not finite), which must be rejected; and others, whose index is that
of another problem.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

FACTS = {"n_rows": int, "n_features": int, "n_queries": int, "layout": str, "has_qid": bool, "arrays": dict}
KINDS = {
    "values": ("<f4", "<f8"), "indices": ("<i4", "<i8"), "indptr": ("<i4", "<i8"), "y": ("<f8",),
    "docid_bytes": ("|u1",),
}  # fmt: skip
"""Types of arrays; ids are numbers or strings, other arrays are 64-bit integers."""

INDEX = ("codes", "query_order", "starts", "order", "scored_stops", "grade_starts", "grade_stops", "query_grades")


class Unsound(Exception):
    """A store that `write_store` would not have written."""


class Unsafe(Unsound):
    """An index out of bounds, or a number that is not finite."""


@dataclass(frozen=True)
class Problem:
    """Content of a valid store: rows as lists, NaN for unscored rows."""

    X: list[list[float]]
    y: list[float]
    qid: list[Any] | None
    docids: list[str] | None


def seal(content: dict[str, Any]) -> bytes:
    """Return the header for this content, with its checksum."""
    total = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    header = {"format": "corank store", "version": 1, "sha256": total, "content": content}
    return json.dumps(header, indent=1).encode()


def read_store(files: Mapping[str, bytes]) -> Problem:
    """Return the problem of a valid store; raise `Unsafe` or `Unsound` otherwise."""
    content = _content(files)
    arrays = {name: _array(files, name, entry) for name, entry in content["arrays"].items()}
    n, d = content["n_rows"], content["n_features"]
    X = _rows(arrays, content["layout"], n, d)
    y = arrays["y"].tolist()
    ids = arrays["ids"].tolist()
    index = {name: arrays[name].tolist() for name in INDEX}
    _require(len(y) == n and len(ids) == content["n_queries"] and len(set(ids)) == len(ids), "lengths")
    _require(not any(math.isinf(score) for score in y) and not any(name != name for name in ids), "numbers", Unsafe)
    _require_inside(index, n, len(ids))
    _require(index == _index(index["codes"], y, len(ids)), "index")
    _require(list(dict.fromkeys(index["codes"])) == list(range(len(ids))), "ids that no row has, or out of order")
    docids = None
    if "docid_stops" in arrays:
        stops, text = arrays["docid_stops"].tolist(), arrays["docid_bytes"].tobytes()
        _require(len(stops) == n and stops[-1:] == [len(text)], "documents")
        _require(all(a <= b for a, b in pairwise([0, *stops])), "documents", Unsafe)
        docids = [text[a:b].decode(errors="surrogateescape") for a, b in pairwise([0, *stops])]
    return Problem(X, y, [ids[code] for code in index["codes"]] if content["has_qid"] else None, docids)


def _require(holds: bool, what: str, kind: type[Unsound] = Unsound) -> None:
    if not holds:
        raise kind(what)


def _content(files: Mapping[str, bytes]) -> dict[str, Any]:
    try:
        header = json.loads(files["header.json"])
        content: dict[str, Any] = header["content"]
        _require(header == json.loads(seal(content)), "header")
        _require({name: type(value) for name, value in content.items()} == FACTS, "facts")
        named = set(content["arrays"])
    except (KeyError, TypeError, ValueError, RecursionError, AttributeError) as error:
        raise Unsound("header") from error
    wanted = {"values", "y", "ids", *INDEX}
    wanted |= {"indices", "indptr"} if content["layout"] == "csr" else set()
    _require(named - {"docid_bytes", "docid_stops"} == wanted, "names of arrays")
    _require(len(named - wanted) in (0, 2) and content["layout"] in ("csr", "dense"), "layout")
    _require(min(content[name] for name in ("n_rows", "n_features", "n_queries")) >= 0, "negative sizes")
    return content


def _array(files: Mapping[str, bytes], name: str, entry: Any) -> np.ndarray[Any, Any]:
    _require(isinstance(entry, dict) and set(entry) == {"dtype", "shape", "sha256"}, "entry")
    kind, shape, total = entry["dtype"], entry["shape"], entry["sha256"]
    _require(isinstance(kind, str) and isinstance(shape, list) and all(type(k) is int for k in shape), "entry")
    is_id = name == "ids" and kind[:2] in ("<U", "<i", "<u", "<f", "|i", "|u", "|b") and kind[2:].isdecimal()
    _require(is_id or kind in KINDS.get(name, () if name == "ids" else ("<i8",)), "types")
    _require(len(shape) == (2 if name == "values" and len(shape) == 2 else 1) and min(shape) >= 0, "dimensions")
    content = files.get(f"{name}.bin", b"")
    _require(f"{name}.bin" in files and total == hashlib.sha256(content).hexdigest(), "checksum of an array")
    try:
        size = np.dtype(kind).itemsize * math.prod(shape)
        _require(size == len(content), "size of a file")
        array = np.frombuffer(content, kind).reshape(shape) if size else np.empty(shape, kind)
    except (TypeError, ValueError, MemoryError) as error:
        raise Unsound("numpy refuses it") from error
    if array.dtype.kind == "U" and size:
        _require(int(np.frombuffer(content, "<u4").max()) < 0x110000, "no characters", Unsafe)
    return array


def _rows(arrays: dict[str, np.ndarray[Any, Any]], layout: str, n: int, d: int) -> list[list[float]]:
    values = arrays["values"]
    _require(bool(np.isfinite(values).all()), "numbers", Unsafe)
    if layout == "dense":
        _require(values.shape == (n, d), "shape")
        return values.tolist()  # type: ignore[no-any-return]
    indices, indptr = arrays["indices"].tolist(), arrays["indptr"].tolist()
    _require(values.ndim == 1 and len(indices) == len(values), "shape")
    _require(len(indptr) == n + 1 and indptr[0] == 0 and indptr[-1] == len(values), "pointers", Unsafe)
    _require(all(a <= b for a, b in pairwise(indptr)), "pointers", Unsafe)
    _require(all(0 <= k < d for k in indices), "columns", Unsafe)
    _require(n * d <= 1 << 20, "too large to compare")
    rows = [[0.0] * d for _ in range(n)]
    for row, (begin, end) in zip(rows, pairwise(indptr), strict=True):
        _require(all(a < b for a, b in pairwise(indices[begin:end])), "columns out of order")
        for k in range(begin, end):
            row[indices[k]] = float(values[k])
    return rows


def _require_inside(index: dict[str, list[int]], n: int, n_queries: int) -> None:
    n_grades = len(index["grade_starts"])
    lengths = {"codes": n, "query_order": n, "order": n, "starts": n_queries + 1, "scored_stops": n_queries,
               "grade_stops": n_grades, "query_grades": n_queries + 1}  # fmt: skip
    _require(all(len(index[name]) == length for name, length in lengths.items()), "lengths of the index")
    limits = {"codes": n_queries - 1, "query_order": n - 1, "order": n - 1, "starts": n, "scored_stops": n,
              "grade_starts": n, "grade_stops": n, "query_grades": n_grades}  # fmt: skip
    for name, limit in limits.items():
        _require(all(0 <= k <= limit for k in index[name]), f"{name} point outside", Unsafe)


def _index(codes: list[int], y: list[float], n_queries: int) -> dict[str, list[int]]:
    """Return the index of a problem, query by query."""
    made: dict[str, list[int]] = {name: [] for name in INDEX} | {"codes": codes, "starts": [0], "query_grades": [0]}
    for query in range(n_queries):
        rows = [row for row, code in enumerate(codes) if code == query]
        scored = sorted((row for row in rows if y[row] == y[row]), key=lambda row: y[row])
        begin = len(made["order"])
        made["query_order"] += rows
        made["order"] += scored + [row for row in rows if y[row] != y[row]]
        made["starts"].append(len(made["order"]))
        made["scored_stops"].append(begin + len(scored))
        for k, row in enumerate(scored):
            if k == 0 or y[row] != y[scored[k - 1]]:
                made["grade_starts"].append(begin + k)
            if k + 1 == len(scored) or y[row] != y[scored[k + 1]]:
                made["grade_stops"].append(begin + k + 1)
        made["query_grades"].append(len(made["grade_starts"]))
    return made
