"""Model and index files: parse, damage and reassemble them, models with a valid checksum."""

from __future__ import annotations

import hashlib
import json
import struct
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np

from fuzz.mutations import EDGE_INTEGERS, damaged_numbers, mutate_json

DTYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "|i1", "U64": "<u8",
    "U32": "<u4", "U16": "<u2", "U8": "|u1", "BOOL": "|b1",
}  # fmt: skip
"""Data types of safetensors and their names in numpy."""

FOREIGN_DTYPES = {"BF16": 2, "F8_E4M3": 1, "F8_E5M2": 1, "F4": 1, "C64": 8, "F128": 16, "": 1}


@dataclass
class Parts:
    """
    A file, taken apart.

    header: the JSON of the entry `key`.
    tensors: type, shape and bytes of each tensor.
    key: "corank" for a model, whose header holds a checksum; "corank index" for an index.
    """

    header: Any
    tensors: dict[str, tuple[str, list[int], bytes]]
    key: str = "corank"

    @classmethod
    def of(cls, content: bytes, key: str = "corank") -> Parts:
        """Parse a file; raises ValueError or a similar error for an invalid file."""
        (length,) = struct.unpack("<Q", content[:8])
        outer = json.loads(content[8 : 8 + length])
        metadata, body, tensors, covered = outer.pop("__metadata__"), content[8 + length :], {}, 0
        for name, entry in outer.items():
            begin, end = entry.pop("data_offsets")
            tensors[name] = (entry.pop("dtype"), entry.pop("shape"), body[begin:end])
            covered += end - begin
            if entry or begin < 0:
                raise ValueError("an entry that says more, or points outside")
        if set(metadata) != {key} or covered != len(body):
            raise ValueError("more than a model")
        return cls(json.loads(metadata[key]), tensors, key)

    def digest(self) -> str:
        """Return the checksum of the content."""
        header = {key: value for key, value in self.header.items() if key != "sha256"}
        total = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
        for name, (kind, shape, body) in sorted(self.tensors.items()):
            total.update(f"{name} {DTYPES.get(kind, kind)} {tuple(shape)}".encode(errors="surrogatepass") + body)
        return total.hexdigest()

    def sealed(self) -> bytes:
        """Return the file, with a valid checksum if it is a model."""
        header = self.header
        if self.key == "corank":
            header = {key: value for key, value in header.items() if key != "sha256"} | {"sha256": self.digest()}
        outer: dict[str, Any] = {"__metadata__": {self.key: json.dumps(header)}}
        at = 0
        for name, (kind, shape, body) in self.tensors.items():
            outer[name] = {"dtype": kind, "shape": shape, "data_offsets": [at, at + len(body)]}
            at += len(body)
        return join(outer, b"".join(body for _, _, body in self.tensors.values()))


def join(outer: Any, body: bytes) -> bytes:
    """Return a safetensors file from a header and its data."""
    text = json.dumps(outer).encode()
    text += b" " * (-len(text) % 8)  # arrays are aligned, so that they can be mapped
    return struct.pack("<Q", len(text)) + text + body


def damage_tensor(parts: Parts, rng: Random) -> None:
    """Change the numbers, the shape, the type or the name of one tensor."""
    kind, names = rng.random(), list(parts.tensors)
    name = rng.choice(names)
    dtype, shape, body = parts.tensors[name]
    if kind < 0.55:
        numbers = np.dtype(DTYPES.get(dtype, "|u1"))
        body = damaged_numbers(np.frombuffer(body, numbers, len(body) // numbers.itemsize), rng)
    elif kind < 0.7:
        shape = rng.choice(
            ([len(body)], [], [1, *shape], [*shape, 1], shape[::-1], shape[1:], [0], [rng.choice(EDGE_INTEGERS)])
        )
    elif kind < 0.82:
        dtype = rng.choice([*DTYPES, *FOREIGN_DTYPES])
    elif kind < 0.9:
        parts.tensors[rng.choice(("x", name + "'", ""))] = parts.tensors.pop(name)
        return
    else:
        other = rng.choice(names)
        parts.tensors[name], parts.tensors[other] = parts.tensors[other], parts.tensors[name]
        return
    if rng.random() < 0.8:  # safetensors itself refuses what does not fit
        shape, body = _fitted(dtype, shape, body)
    parts.tensors[name] = (dtype, shape, body)


def _fitted(dtype: str, shape: list[int], body: bytes) -> tuple[list[int], bytes]:
    """Return a shape that matches the number of bytes, with the same number of dimensions if possible."""
    size = np.dtype(DTYPES[dtype]).itemsize if dtype in DTYPES else FOREIGN_DTYPES[dtype]
    body = body[: len(body) // size * size]
    n = len(body) // size
    if len(shape) == 2 and shape[1] > 0:
        width = min(shape[1], n) or 1
        return [n // width, width], body[: n // width * width * size]
    return [1] * max(0, len(shape) - 1) + [n], body


def damaged_outer(content: bytes, rng: Random) -> bytes:
    """Damage the safetensors header: types, shapes, overlapping or invalid offsets."""
    (length,) = struct.unpack("<Q", content[:8])
    outer, body = json.loads(content[8 : 8 + length]), content[8 + length :]
    if rng.random() < 0.2:
        outer["__metadata__"][next(iter(outer["__metadata__"]))] = rng.choice(
            ("[" * 100_000, '{"a":' * 50_000, "null", "[]", "1e999", "{}", "")
        )
        return join(outer, body)
    return join(mutate_json(outer, rng), body)
