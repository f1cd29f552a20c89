"""
Files as an attacker would write them: anything changed, every checksum right.

`forge_store` and `forge_model` change what a file says and compute its checksums anew; `wrong_stores` and
`wrong_models` list changes that must be refused in one sentence.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import safe_open
from safetensors.numpy import save_file

from corank.deploy.persist.container import digest_of

Header = dict[str, Any]
INDEX = (
    "codes", "query_order", "starts", "order", "scored_stops", "grade_starts", "grade_stops", "query_grades",
)  # fmt: skip


def checksum(content: Header) -> str:
    """The checksum of a store's header, written a second time."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def forge_store(place: Path, change: Callable[[Header], Any]) -> None:
    """Change what the header of a store says."""
    header = json.loads((place / "header.json").read_text())
    change(header["content"])
    header["sha256"] = checksum(header["content"])
    (place / "header.json").write_text(json.dumps(header))


def forge_array(place: Path, name: str, change: Callable[[np.ndarray], np.ndarray | None]) -> None:
    """Change an array of a store, in place or for another; shape, type and checksum in the header follow."""

    def follow(content: Header) -> None:
        entry, file = content["arrays"][name], place / f"{name}.bin"
        array = np.fromfile(file, entry["dtype"]).reshape(entry["shape"])
        changed = change(array)
        array = array if changed is None else changed
        file.write_bytes(array.tobytes())
        entry.update(dtype=array.dtype.str, shape=list(array.shape))
        entry.update(sha256=hashlib.sha256(array.tobytes()).hexdigest())

    forge_store(place, follow)


def forge_model(path: Path, change: Callable[[Header, dict[str, np.ndarray]], Any]) -> None:
    """Change the header of a saved model, its tensors, or both."""
    with safe_open(path, framework="np") as file:
        header = json.loads(file.metadata()["corank"])
        tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118 - not a dict
    change(header, tensors)
    header["sha256"] = digest_of({key: value for key, value in header.items() if key != "sha256"}, tensors)
    save_file(
        {key: np.ascontiguousarray(value) for key, value in tensors.items()}, path, {"corank": json.dumps(header)}
    )


def wrong_headers() -> Iterator[tuple[str, Callable[[Header], Any]]]:
    """Headers of stores that must be refused when the store is opened."""
    facts = ("n_rows", "n_features", "n_queries", "layout", "has_qid", "arrays")
    for fact in facts:
        yield f"{fact} missing", lambda c, fact=fact: c.pop(fact)
        for value in (None, True, -1, 0, 1.0, 2**31, 2**63, 10**30, "dense", "7", [], {}, [[]], "\ud800"):
            yield f"{fact}={value!r}", lambda c, fact=fact, value=value: c.update({fact: value})
    yield "another fact", lambda c: c.update(more=1)
    for name in ("values", "y", "ids", *INDEX):
        yield f"{name} missing", lambda c, name=name: c["arrays"].pop(name)
        for key in ("dtype", "shape", "sha256"):
            yield f"{name} without {key}", lambda c, name=name, key=key: c["arrays"][name].pop(key)
        for dtype in (
            "|O",
            "O",
            "<i8,<i8",
            "<M8[s]",
            "|V8",
            "<c16",
            "<U99999999999",
            "<U0",
            ">f8",
            "x" * 9,
            "",
            8,
            None,
        ):
            yield f"{name} of {dtype!r}", lambda c, name=name, dtype=dtype: c["arrays"][name].update(dtype=dtype)
        for shape in ([-1], [], [0], [True], [2**62], [1.0], ["3"], [[1]], None, [1, 1, 1], {}):
            yield f"{name} of shape {shape!r}", lambda c, name=name, shape=shape: c["arrays"][name].update(shape=shape)
        yield f"{name} is a list", lambda c, name=name: c["arrays"].update({name: []})
    for name in ("../x", "/etc/passwd", "x", "", "values.bin", "header"):
        yield f"an array {name!r}", lambda c, name=name: c["arrays"].update({name: c["arrays"]["y"]})
    for name in ("docid_bytes", "docid_stops"):
        yield f"only one of docids, not {name}", lambda c, name=name: c["arrays"].pop(name)


def wrong_arrays(as_csr: bool) -> Iterator[tuple[str, str, Callable[[np.ndarray], Any]]]:
    """Arrays of stores, of the right type and shape, that must be refused before a kernel follows them."""
    names = (*INDEX, *(("indices", "indptr") if as_csr else ()))
    for name in names:
        for at in (0, 1, 7, -1):
            for value in (-1, 2**30, -(2**31), 40, 6, 299):
                yield name, f"[{at}] = {value}", lambda a, at=at, value=value: _set(a, at, value)
        yield name, "zeros", lambda a: np.zeros_like(a)
        yield name, "backwards", lambda a: a[::-1].copy()
    for value in (np.nan, np.inf, -np.inf):
        yield "values", f"{value}", lambda a, value=value: a.reshape(-1).__setitem__(5, value)
    for value in (np.inf, -np.inf):
        yield "y", f"{value}", lambda a, value=value: a.__setitem__(5, value)
    yield "y", "other scores", lambda a: a[::-1].copy()
    yield "ids", "twice", lambda a: a.__setitem__(0, a[1])
    yield "ids", "no characters", lambda a: np.full((len(a), 1), 2**31, np.uint32).view("<U1")[:, 0]
    yield "ids", "no truth", lambda a: np.full(len(a), 7, np.uint8).view(bool)
    yield "ids", "NaN", lambda a: np.where(np.arange(len(a)) == 3, np.nan, np.arange(float(len(a))))


def _set(array: np.ndarray, at: int, value: int) -> None:
    array[at] = value if array[at] != value else value + 1
