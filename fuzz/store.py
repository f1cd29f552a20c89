"""Stores: changed headers and arrays with valid checksums, opened, read and used for training."""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from scipy import sparse

import corank
from corank.data.io.stores import open_store, write_store
from corank.data.io.write import write_letor
from corank.errors import InputError
from fuzz.format import Format, Wrong, judge
from fuzz.mutations import EDGE_INTEGERS, ODD_VALUES, damaged_numbers, mutate, mutate_json
from fuzz.reference import LARGEST_ID
from fuzz.reference_store import Problem, Unsafe, Unsound, read_store, seal

DTYPES = [
    "<f4", "<f8", ">f8", "<f2", "<i4", "<i8", ">i8", "|i1", "<u8", "|u1", "|b1", "<U1", "<U3", "|S4", "|V8", "<m8[s]",
    "<M8[D]", "<c16", "|O", "O", "object", "f8,O", "<U0", "<U100000000", "<f16", "<f9", "int", "x", "", "i4,i4", "T",
    "(1000000,1000000)f8",
]  # fmt: skip
ODD: list[Any] = [*ODD_VALUES, *DTYPES, [["a", "|O"]], [["a", "<f8"]], "csr", "dense", "values", "y"]
EDGES = [*EDGE_INTEGERS, 4, 6, 7, 8, 11, 12, 13, 40]
Files = dict[str, bytes]

WAYS = ("sgd", "rls", "exact", "dense", "csr", "text")
"""Uses of an opened store: three learners, reading in another layout, writing as text."""


def pack(files: Files, cut: str | None = None) -> bytes:
    """
    A store as one input.

    cut: file to truncate after the store was opened.
    """
    return json.dumps({"files": {name: body.decode("latin-1") for name, body in files.items()}, "cut": cut}).encode()


class Store(Format):
    name = "store"
    suffix = ".json"
    share = 4.0
    ways = len(WAYS)

    def prepare(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            for files in _bases():
                for way in range(self.ways):
                    judge(self, pack(files), way, Path(folder))

    def generate(self, rng: Random) -> bytes:
        files = dict(rng.choice(_bases()))
        content = json.loads(files["header.json"])["content"]
        for _ in range(rng.choice((0, 1, 1, 1, 1, 2, 3))):
            content = _damage(files, content, rng)
        if isinstance(arrays := content.get("arrays"), dict) and rng.random() < 0.97:
            for name, entry in arrays.items():
                if isinstance(entry, dict) and f"{name}.bin" in files:
                    arrays[name] = entry | {"sha256": hashlib.sha256(files[f"{name}.bin"]).hexdigest()}
        files["header.json"] = seal(content)
        if rng.random() < 0.05:
            files["header.json"] = _damaged_header(files["header.json"], rng)
        return pack(files, rng.choice(list(files)) if rng.random() < 0.05 else None)

    def check(self, content: bytes, way: int, folder: Path) -> bool:
        given = json.loads(content)
        files = {name: body.encode("latin-1") for name, body in given["files"].items()}
        place = folder / "store"
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        for name, body in files.items():
            (place / name).write_bytes(body)
        problem: Problem | Unsound
        try:
            problem = read_store(files)
        except Unsound as error:
            problem = error
        try:
            store = open_store(place)
            if given["cut"]:
                with (place / given["cut"]).open("r+b") as file:
                    file.truncate(len(files[given["cut"]]) // 2)
            elif isinstance(problem, Problem):
                _compare(store, problem)
            if isinstance(store.qid, np.ndarray):
                store.qid.tolist()
            _ = store.docids, repr(store), store.data.n_pairs
            store.verify()
        except InputError as error:
            if isinstance(problem, Problem) and not given["cut"]:
                raise Wrong("refused", error) from error
            return False
        try:
            _use(store, WAYS[way], folder)
        except InputError:
            return False  # a sound problem may be one that nothing can be learnt from
        except MemoryError:
            # a store with more columns than text allows by default states the number explicitly
            if store.header["n_features"] <= LARGEST_ID:
                raise
            return False
        if isinstance(problem, Unsafe):
            raise Wrong("accepted", problem)
        return True


@cache
def _bases() -> list[Files]:
    """Return small stores of every layout and type of id, as files."""
    rng = np.random.default_rng(0)
    qids = [
        None,
        [3, 1, 3, 1, 3, 1, 3, 3, 1, 2, 3, 2],
        list("bbbaaaacccbb"),
        [0.5, 1.5, 2.5] * 4,
        ["é\U0001f600", "b"] * 6,
    ]
    found = []
    for k, qid in enumerate([*qids, *qids]):
        X = rng.normal(size=(12, 5)).astype(np.float32 if k % 3 else np.float64)
        X[rng.random(X.shape) < 0.4] = 0
        y = rng.integers(0, 3, 12).astype(float)
        y[rng.random(12) < 0.2] = np.nan
        docids = [f"d{row}" * (row % 3) for row in range(12)] if k % 2 else None
        found.append(_files(sparse.csr_matrix(X) if k < len(qids) else X, y, qid, docids))
    found.append(_files(np.ones((1, 1)), [np.nan], None, None))
    found.append(_files(sparse.csr_matrix((3, 2)), [1.0, 0.0, 2.0], ["a", "a", "a"], ["", "", ""]))
    return found


def _files(X: Any, y: Any, qid: Any, docids: Any) -> Files:
    with tempfile.TemporaryDirectory() as folder:
        write_store(Path(folder, "store"), X, y, qid, docids)
        return {file.name: file.read_bytes() for file in sorted(Path(folder, "store").iterdir())}


def _damage(files: Files, content: dict[str, Any], rng: Random) -> dict[str, Any]:
    """Change files and return the new header."""
    kind = rng.random()
    arrays = content.get("arrays")
    if kind < 0.2 or not isinstance(arrays, dict) or not arrays:
        changed = mutate_json(content, rng, ODD)
        return changed if isinstance(changed, dict) else content
    name = rng.choice(list(arrays))
    entry, file = arrays[name], f"{name}.bin"
    if not isinstance(entry, dict) or file not in files:
        return content
    if kind < 0.65:
        plain = entry.get("dtype") in ("<f4", "<f8", "<i4", "<i8") and len(files[file]) % 8 == 0
        array = np.frombuffer(files[file], entry["dtype"] if plain else "|S1")
        files[file] = damaged_numbers(array, rng)
    elif kind < 0.72:
        other = rng.choice(list(files))
        files[file], files[other] = files[other], files[file]
    elif kind < 0.78:
        del files[file]
    elif kind < 0.85:
        return content | {rng.choice(("n_rows", "n_features", "n_queries")): rng.choice(EDGES)}
    elif kind < 0.93:
        entry = entry | {"dtype": rng.choice(DTYPES)}
    else:
        entry = entry | {"shape": [rng.choice(EDGES) for _ in range(rng.randrange(4))]}
    if rng.random() < 0.5:  # make the size right, so that more than the size is tested
        entry = _fitted(entry, files.get(file, b""))
    return content | {"arrays": arrays | {name: entry}}


def _fitted(entry: dict[str, Any], body: bytes) -> dict[str, Any]:
    """Return the entry with a shape that fits the file."""
    try:
        size = np.dtype(entry["dtype"]).itemsize
    except (TypeError, ValueError, KeyError):
        return entry
    shape = entry.get("shape")
    is_vector = isinstance(shape, list) and len(shape) == 1
    return entry | {"shape": [len(body) // size]} if size and is_vector else entry


def _damaged_header(body: bytes, rng: Random) -> bytes:
    match rng.randrange(3):
        case 0:
            return rng.choice((b"[" * 100_000, b'{"a":' * 50_000, b"", b"null", b"[]", b'"corank store"', b"1e999"))
        case 1:
            return json.dumps(mutate_json(json.loads(body), rng, ODD)).encode()
        case _:
            return mutate(body, rng)


def _use(store: Any, what: str, folder: Path) -> None:
    """Learn from the rows, or write them."""
    data = store.data
    if what == "sgd":
        corank.SPD("hinge", 0.1, scale=False, solver="sgd", n_steps=30, random_state=0).fit(data).predict(store.X)
    elif what == "rls":
        corank.RankRLS(1.0).fit(data).predict(store.X)
    elif what == "exact":
        corank.SPD(alpha=0.1).fit(data).predict(store.X)
    elif what == "text":
        write_letor(folder / "again.txt", store.X, np.nan_to_num(store.y), store.qid, store.docids, overwrite=True)
    else:
        rows = corank.read(store.path, layout=what, dtype="float32", unjudged=0.0, qid=None)  # type: ignore[arg-type]
        corank.RankRLS(1.0, "gaussian").fit(rows.data).predict(rows.X)


def _compare(store: Any, problem: Problem) -> None:
    X = store.X.toarray() if sparse.issparse(store.X) else store.X
    if X.tolist() != problem.X:
        raise Wrong("rows", f"{X.tolist()} for {problem.X}")
    if not np.array_equal(store.y, problem.y, equal_nan=True):
        raise Wrong("scores", f"{store.y} for {problem.y}")
    for name in ("qid", "docids"):
        found, wanted = getattr(store, name), getattr(problem, name)
        if (found if found is None else found.tolist()) != wanted:
            raise Wrong(name, f"{found} for {wanted}")
