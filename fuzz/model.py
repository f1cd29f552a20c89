"""Saved models of every ranker: JSON and tensors changed, with right checksums, then loaded and asked for scores."""

from __future__ import annotations

import hashlib
import json
import re
import struct
import sys
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from scipy import sparse
from sklearn import config_context
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

import corank
from corank.errors import InputError
from fuzz.dice import EDGE_INTEGERS, ODD_VALUES, mutate, mutate_json
from fuzz.format import Format, Wrong, judge

DTYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "|i1", "U64": "<u8",
    "U32": "<u4", "U16": "<u2", "U8": "|u1", "BOOL": "|b1",
}  # fmt: skip
"""Types of safetensors that numpy has, by the names of both."""

FOREIGN_DTYPES = {"BF16": 2, "F8_E4M3": 1, "F8_E5M2": 1, "F4": 1, "C64": 8, "F128": 16, "": 1}

ROWS = np.random.default_rng(1).normal(size=(7, 5))
QIDS = ["a", "a", "b", "b", "b", "a", "c"]
WAYS = ("dense", "sparse", "single", "saved again", "learnt on", "one row")


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
        header = json.loads(outer.pop("__metadata__")["corank"])
        body = content[8 + length :]
        tensors = {
            name: (entry["dtype"], entry["shape"], body[slice(*entry["data_offsets"])]) for name, entry in outer.items()
        }
        if sum(len(part) for _, _, part in tensors.values()) != len(body):
            raise ValueError("bytes that no tensor has")
        return cls(header, tensors)

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


class Model(Format):
    name = "model"
    suffix = ".safetensors"
    share = 4.0
    ways = len(WAYS)

    @property
    def sample(self) -> bytes:
        return next(iter(_bases().values()))

    def prepare(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            for content in _bases().values():
                for way in range(self.ways):
                    judge(self, content, way, Path(folder))

    def generate(self, dice: Random) -> bytes:
        usual = sys.getrecursionlimit()
        sys.setrecursionlimit(20_000)  # what is nested deeply must be written, but not be read, with more
        try:
            return self._generate(dice)
        finally:
            sys.setrecursionlimit(usual)

    def _generate(self, dice: Random) -> bytes:
        parts = Parts.of(dice.choice(list(_bases().values())))
        for _ in range(dice.choice((0, 1, 1, 1, 1, 2, 3))):
            _damage(parts, dice)
        content = parts.sealed()
        kind = dice.random()
        if kind < 0.04:
            return _damaged_outer(content, dice)
        if kind < 0.07:
            return mutate(content, dice)
        return content

    def check(self, content: bytes, way: int, folder: Path) -> bool:
        path = folder / "model.safetensors"
        path.write_bytes(content)
        expected = _known().get(_essence(content))
        try:
            model = corank.load(path)
            scores = _use(model, WAYS[way], folder)
        except ValueError as error:
            # scikit-learn's own words where a model is for rows of another width
            if not isinstance(error, InputError) and not re.match(
                r"X has 5 features, but \w+ is expecting \d+", str(error)
            ):
                raise
            if expected is not None:
                raise Wrong("refused", error) from error
            return False
        if expected is not None and WAYS[way] == "dense" and scores.tobytes() != expected:
            raise Wrong("scores", scores)
        return True


@cache
def _bases() -> dict[str, bytes]:
    """A saved model of every ranker in the settings of the laws, of pipelines, and of sums."""
    tests = Path(__file__).resolve().parent.parent / "tests"
    sys.path[:0] = [str(tests), str(tests / "laws")]
    from lawful import LAWFUL

    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(14, 5)), np.r_[rng.integers(0, 3, 10).astype(float), [np.nan] * 4]
    qid = np.array(list("aaabbbcccaabbc"))
    made: dict[str, Callable[[], Any]] = {name: make for name, make in LAWFUL.items() if name != "PlainRanker"}
    made |= {
        "sgd": lambda: corank.SPD("hinge", 0.1, solver="sgd", n_steps=30, random_state=0),
        "minmax": lambda: make_pipeline(corank.QueryScaler(), corank.RankRLS(1.0)),
        "standard": lambda: make_pipeline(StandardScaler(with_mean=False), corank.SPD(alpha=0.1)),
        "range": lambda: make_pipeline(
            MinMaxScaler(), MaxAbsScaler(), corank.Landmarks(4, random_state=0), corank.CRR()
        ),
    }
    found = {}
    with (
        tempfile.TemporaryDirectory() as folder,
        warnings.catch_warnings(),
        config_context(enable_metadata_routing=True),
    ):
        warnings.simplefilter("ignore")
        path = Path(folder, "model")
        for name, make in made.items():
            for rows in (X, sparse.csr_matrix(X)):
                if name not in LAWFUL and rows is not X:
                    continue  # scaling is for dense rows
                corank.save(make().fit(rows, y, qid=qid), path)
                found[f"{name} {type(rows).__name__}"] = path.read_bytes()
        corank.save(corank.RankRLS(1.0).summary(X, y, qid=qid), path)
        found["Summary"] = path.read_bytes()
    return found


@cache
def _known() -> dict[str, bytes]:
    """The scores of every saved model, by what it says."""
    known = {}
    with tempfile.TemporaryDirectory() as folder:
        for content in _bases().values():
            path = Path(folder, "model")
            path.write_bytes(content)
            known[_essence(content)] = _use(corank.load(path), "dense", Path(folder)).tobytes()
    return known


def _essence(content: bytes) -> str:
    """All that a file says, in one order; empty where it cannot be taken apart."""
    try:
        parts = Parts.of(content)
        essence = json.dumps(
            [
                parts.header,
                sorted((name, kind, shape, body.hex()) for name, (kind, shape, body) in parts.tensors.items()),
            ],
            sort_keys=True,
        )
        is_plain = parts.header["sha256"] == parts.digest()
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, struct.error):
        return ""
    return essence if is_plain else ""


def _use(model: Any, way: str, folder: Path) -> Any:
    """Scores of rows that the model never saw."""
    if isinstance(model, corank.Summary):
        return _scores(corank.RankRLS(1.0).fit_summary(model + model), ROWS)
    rows: Any = ROWS
    if way == "sparse" and not isinstance(model, Pipeline):
        rows = sparse.csr_matrix(ROWS)
    elif way == "single":
        rows = ROWS.astype(np.float32)
    elif way == "one row":
        rows = ROWS[:1]
    repr(model)
    if way == "learnt on" and hasattr(model, "partial_fit"):
        model.partial_fit(ROWS, np.arange(7.0) % 3, qid=QIDS)
    if way == "saved again":
        before = _scores(model, rows)
        corank.save(model, folder / "again.safetensors")
        model = corank.load(folder / "again.safetensors")
        if _scores(model, rows).tobytes() != before.tobytes():
            raise Wrong("other scores once it is saved again", before)
    return _scores(model, rows)


def _scores(model: Any, rows: Any) -> Any:
    with config_context(enable_metadata_routing=True):
        wants_qid = model.get_metadata_routing().consumes("predict", ["qid"])
        scores = model.predict(rows, qid=QIDS[: rows.shape[0]]) if wants_qid else model.predict(rows)
    if not isinstance(scores, np.ndarray) or scores.shape != (rows.shape[0],) or scores.dtype.kind != "f":
        raise Wrong("scores are no vector of numbers", scores)
    return scores


def _damage(parts: Parts, dice: Random) -> None:
    """Change one thing."""
    kind = dice.random()
    names = list(parts.tensors)
    if kind < 0.45 or not names:
        parts.header = _changed_header(parts.header, names, dice)
        return
    name = dice.choice(names)
    dtype, shape, body = parts.tensors[name]
    if kind < 0.75:
        body = _damaged_tensor(body, DTYPES.get(dtype, "|u1"), dice)
    elif kind < 0.83:
        shape = dice.choice(
            ([len(body)], [], [1, *shape], [*shape, 1], shape[::-1], shape[1:], [0], [dice.choice(EDGE_INTEGERS)])
        )
    elif kind < 0.9:
        dtype = dice.choice([*DTYPES, *FOREIGN_DTYPES])
    elif kind < 0.94:
        parts.tensors[dice.choice(("x", name + "'", ""))] = parts.tensors.pop(name)
        return
    else:
        other = dice.choice(names)
        parts.tensors[name], parts.tensors[other] = parts.tensors[other], parts.tensors[name]
        return
    if dice.random() < 0.8:  # safetensors itself refuses what does not fit
        shape, body = _fitted(dtype, shape, body)
    parts.tensors[name] = (dtype, shape, body)


def _changed_header(header: dict[str, Any], names: list[str], dice: Random) -> dict[str, Any]:
    kind = dice.random()
    if kind < 0.1:
        other = Parts.of(dice.choice(list(_bases().values()))).header
        part = dice.choice(("class", "params", "state", "requests"))
        return header | {part: other[part]}
    if kind < 0.12:
        deep: Any = "deep"
        for _ in range(dice.choice((50, 300, 900, 3000))):
            deep = [deep] if dice.random() < 0.5 else {"tuple": [deep]}
        return header | {"state": header["state"] | {"deep_": deep}}
    odd: list[Any] = [
        *ODD_VALUES, {"float": "nan"}, {"float": "x"}, {"tuple": []}, {"slice": [0, 1, 0]}, {"slice": [0, 10**30]},
        {"dict": {}}, {"array": "x"}, {"strings": {"items": ["a"], "dtype": "<U100000000"}},
        {"strings": {"items": ["a"], "dtype": "|O"}}, {"strings": {"items": [1], "dtype": "f8,O"}},
        {"noun": {"name": "View", "fields": {}}}, {"noun": {"name": "GaussianKernel", "fields": {"gamma": -1}}},
        {"estimator": {}}, {"estimator": {"class": "SPD", "params": {}, "state": {}, "requests": {}}},
        {"csr": {"data": [1.0], "indices": [9], "indptr": [0, 1], "shape": [1, 5]}}, "SPD", "gaussian", "precomputed",
    ]  # fmt: skip
    odd += [{"array": name} for name in names]
    changed = mutate_json(header, dice, odd)
    return changed if isinstance(changed, dict) else header


def _damaged_tensor(body: bytes, kind: str, dice: Random) -> bytes:
    array = np.frombuffer(body, kind).copy()
    if not len(array):
        return body
    if dice.random() < 0.2:
        return array[: dice.randrange(len(array) + 1)].tobytes() + array[: dice.choice((0, 1))].tobytes()
    for _ in range(dice.choice((1, 1, 2, len(array)))):
        at = dice.randrange(len(array))
        if array.dtype.kind in "iu":
            ends = np.iinfo(array.dtype)
            array[at] = min(max(dice.choice([*EDGE_INTEGERS, 4, 7, 13, 14, 15]), ends.min), ends.max)
        elif array.dtype.kind == "f":
            with np.errstate(over="ignore"):
                array[at] = dice.choice((np.nan, np.inf, -np.inf, 0.0, -0.0, 1e300, 5e-324, 1.0, -1.0, 3e38))
        else:
            array[at] = ~array[at]
    return array.tobytes()


def _fitted(dtype: str, shape: list[int], body: bytes) -> tuple[list[int], bytes]:
    """A shape that the bytes fill; as many dimensions as before where that can be."""
    size = np.dtype(DTYPES[dtype]).itemsize if dtype in DTYPES else FOREIGN_DTYPES[dtype]
    body = body[: len(body) // size * size]
    n = len(body) // size
    if len(shape) == 2 and shape[1] > 0:
        width = min(shape[1], n) or 1
        return [n // width, width], body[: n // width * width * size]
    return [1] * max(0, len(shape) - 1) + [n], body


def _damaged_outer(content: bytes, dice: Random) -> bytes:
    """The header of safetensors itself: types, shapes, offsets that overlap or point outside."""
    (length,) = struct.unpack("<Q", content[:8])
    outer, body = json.loads(content[8 : 8 + length]), content[8 + length :]
    if dice.random() < 0.2:
        outer["__metadata__"]["corank"] = dice.choice(
            ("[" * 100_000, '{"a":' * 50_000, "null", "[]", "1e999", "{}", "")
        )
        return join(outer, body)
    return join(mutate_json(outer, dice), body)
