"""Model files taken apart, damaged and put together again, with the checksum that they then have."""

from __future__ import annotations

import hashlib
import json
import struct
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np

from fuzz.dice import EDGE_INTEGERS, damaged_numbers, mutate_json

DTYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "|i1", "U64": "<u8",
    "U32": "<u4", "U16": "<u2", "U8": "|u1", "BOOL": "|b1",
}  # fmt: skip
"""Types of safetensors that numpy has, by the names of both."""

FOREIGN_DTYPES = {"BF16": 2, "F8_E4M3": 1, "F8_E5M2": 1, "F4": 1, "C64": 8, "F128": 16, "": 1}


@dataclass
class Parts:
    """
    A model file, taken apart.

    header: the JSON of its ``corank`` entry.
    tensors: type, shape and bytes of each tensor.
    """

    header: dict[str, Any]
    tensors: dict[str, tuple[str, list[int], bytes]]

    @classmethod
    def of(cls, content: bytes) -> Parts:
        """Take a file apart; ValueError and its like where that cannot be."""
        (length,) = struct.unpack("<Q", content[:8])
        outer = json.loads(content[8 : 8 + length])
        metadata, body, tensors, covered = outer.pop("__metadata__"), content[8 + length :], {}, 0
        for name, entry in outer.items():
            begin, end = entry.pop("data_offsets")
            tensors[name] = (entry.pop("dtype"), entry.pop("shape"), body[begin:end])
            covered += end - begin
            if entry or begin < 0:
                raise ValueError("an entry that says more, or points outside")
        if set(metadata) != {"corank"} or covered != len(body):
            raise ValueError("more than a model")
        return cls(json.loads(metadata["corank"]), tensors)

    def digest(self) -> str:
        """The checksum of all that the file says."""
        header = {key: value for key, value in self.header.items() if key != "sha256"}
        total = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
        for name, (kind, shape, body) in sorted(self.tensors.items()):
            total.update(f"{name} {DTYPES.get(kind, kind)} {tuple(shape)}".encode(errors="surrogatepass") + body)
        return total.hexdigest()

    def sealed(self) -> bytes:
        """The file, with the checksum that its content has."""
        header = {key: value for key, value in self.header.items() if key != "sha256"}
        outer: dict[str, Any] = {"__metadata__": {"corank": json.dumps(header | {"sha256": self.digest()})}}
        at = 0
        for name, (kind, shape, body) in self.tensors.items():
            outer[name] = {"dtype": kind, "shape": shape, "data_offsets": [at, at + len(body)]}
            at += len(body)
        return join(outer, b"".join(body for _, _, body in self.tensors.values()))


def join(outer: Any, body: bytes) -> bytes:
    """A safetensors file of a header and what lies behind it."""
    text = json.dumps(outer).encode()
    return struct.pack("<Q", len(text)) + text + body


def damage_tensor(parts: Parts, dice: Random) -> None:
    """Change the numbers, the shape, the type or the name of one tensor."""
    kind, names = dice.random(), list(parts.tensors)
    name = dice.choice(names)
    dtype, shape, body = parts.tensors[name]
    if kind < 0.55:
        numbers = np.dtype(DTYPES.get(dtype, "|u1"))
        body = damaged_numbers(np.frombuffer(body, numbers, len(body) // numbers.itemsize), dice)
    elif kind < 0.7:
        shape = dice.choice(
            ([len(body)], [], [1, *shape], [*shape, 1], shape[::-1], shape[1:], [0], [dice.choice(EDGE_INTEGERS)])
        )
    elif kind < 0.82:
        dtype = dice.choice([*DTYPES, *FOREIGN_DTYPES])
    elif kind < 0.9:
        parts.tensors[dice.choice(("x", name + "'", ""))] = parts.tensors.pop(name)
        return
    else:
        other = dice.choice(names)
        parts.tensors[name], parts.tensors[other] = parts.tensors[other], parts.tensors[name]
        return
    if dice.random() < 0.8:  # safetensors itself refuses what does not fit
        shape, body = _fitted(dtype, shape, body)
    parts.tensors[name] = (dtype, shape, body)


def _fitted(dtype: str, shape: list[int], body: bytes) -> tuple[list[int], bytes]:
    """A shape that the bytes fill; as many dimensions as before where that can be."""
    size = np.dtype(DTYPES[dtype]).itemsize if dtype in DTYPES else FOREIGN_DTYPES[dtype]
    body = body[: len(body) // size * size]
    n = len(body) // size
    if len(shape) == 2 and shape[1] > 0:
        width = min(shape[1], n) or 1
        return [n // width, width], body[: n // width * width * size]
    return [1] * max(0, len(shape) - 1) + [n], body


def damaged_outer(content: bytes, dice: Random) -> bytes:
    """The header of safetensors itself: types, shapes, offsets that overlap or point outside."""
    (length,) = struct.unpack("<Q", content[:8])
    outer, body = json.loads(content[8 : 8 + length]), content[8 + length :]
    if dice.random() < 0.2:
        outer["__metadata__"]["corank"] = dice.choice(
            ("[" * 100_000, '{"a":' * 50_000, "null", "[]", "1e999", "{}", "")
        )
        return join(outer, body)
    return join(mutate_json(outer, dice), body)
