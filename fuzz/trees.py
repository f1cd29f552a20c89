"""Tree models: forged arrays with valid checksums, damaged files and LightGBM texts, against a walk in Python."""

from __future__ import annotations

import json
import struct
import tempfile
import warnings
from functools import cache
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from scipy import sparse

import corank
from corank.models.lambdarank import TreeEnsemble
from fuzz.format import Format, Wrong, judge
from fuzz.mutations import EDGE_INTEGERS, ODD_BYTES, damaged_numbers, mutate, mutate_json
from fuzz.safetensors import DTYPES, Parts, damage_tensor, damaged_outer

N_FEATURES = 5
ROWS = np.round(np.random.default_rng(1).normal(size=(19, N_FEATURES)), 1) * 1.5
WAYS = ("dense", "sparse", "single", "one row", "threads", "saved again", "lightgbm")
FLOATS = (np.nan, np.inf, -np.inf, 0.0, -0.0, 1e308, -1e308, 5e-324, 1e-35, 1.0, -1.0, 1e300, 0.1)
# type and length of each array: per node, leaf or child, or tree and one more
ARRAYS = {
    "starts": ("I64", "trees"), "features": ("U32", "nodes"), "thresholds": ("F64", "nodes"),
    "children": ("I32", "children"), "flags": ("U8", "nodes"), "values": ("F64", "leaves"), "gains": ("F64", "nodes"),
    "node_counts": ("I32", "nodes"), "leaf_counts": ("I32", "leaves"),
}  # fmt: skip
WORDS = [
    *ODD_BYTES, b"tree_sizes=1 1 1", b"tree_sizes=-1", b"num_tree_per_iteration=0", b"num_tree_per_iteration=-1",
    b"num_tree_per_iteration=1000000000", b"99999999e-8", b"9999999e-7", b"\rTree=1\r", b"\nTree=0\n", b"num_leaves=0",
    b"num_leaves=1", b"num_leaves=2147483647", b"-2147483648", b"nan", b"inf", b"1e400", b"num_cat=1", b"is_linear=1",
    b"end of trees", b"max_feature_idx=0", b"max_feature_idx=4294967295", b"decision_type=255", b"left_child=0 0 0",
]  # fmt: skip


class Trees(Format):
    """Model files with trees."""

    name = "trees"
    suffix = ".safetensors"
    ways = len(WAYS)

    def prepare(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            for content in _bases():
                for way in range(self.ways):
                    judge(self, content, way, Path(folder))

    def generate(self, rng: Random) -> bytes:
        parts = Parts.of(rng.choice(_bases()))
        for _ in range(rng.choice((1, 1, 1, 2, 3))):
            kind = rng.random()
            if kind < 0.75:
                _change_trees(parts, rng)
            elif kind < 0.85:
                damage_tensor(parts, rng)
            else:
                odd = [*_odd_texts(), *EDGE_INTEGERS, None, [], {}, *({"array": name} for name in parts.tensors)]
                changed = mutate_json(parts.header, rng, odd)
                parts.header = changed if isinstance(changed, dict) else parts.header
        content = parts.sealed()
        kind = rng.random()
        return damaged_outer(content, rng) if kind < 0.05 else mutate(content, rng) if kind < 0.15 else content

    def check(self, content: bytes, way: int, folder: Path) -> bool:
        path = folder / "model.safetensors"
        path.write_bytes(content)
        expected = _verdict(content)
        try:
            model = corank.load(path)
        except corank.errors.InputError as error:
            # safetensors checks more of its own header than the verdict does
            if expected and "not a corank model" not in str(error):
                raise Wrong("refused", error) from error
            return False
        if expected is False:
            raise Wrong("accepted", repr(model))
        _use(model, WAYS[way], folder)
        return True


class TreeText(Format):
    """Texts of LightGBM."""

    name = "tree_text"
    suffix = ".txt"
    is_text = True

    @property
    def sample(self) -> bytes:  # type: ignore[override]
        return _texts()[0]

    def generate(self, rng: Random) -> bytes:
        text = rng.choice(_texts())
        if rng.random() < 0.5:
            lines = text.split(b"\n")
            at = rng.randrange(len(lines))
            name, _, numbers = lines[at].partition(b"=")
            items = numbers.split()
            if items:
                items[rng.randrange(len(items))] = rng.choice([*WORDS, *(str(n).encode() for n in EDGE_INTEGERS)])
            lines[at] = rng.choice((name + b"=" + b" ".join(items), name + b"=", b"", rng.choice(WORDS)))
            text = b"\n".join(lines)
        return mutate(text, rng, WORDS, lambda: rng.choice(_texts())) if rng.random() < 0.6 else text

    def check(self, content: bytes, way: int, folder: Path) -> bool:
        trees = TreeEnsemble.from_lightgbm(content.decode("latin-1"))
        if trees.n_features == N_FEATURES:
            _require_scores(trees.score_rows(ROWS), trees, ROWS)
        return True


@cache
def _bases() -> list[bytes]:
    """Return saved models: usual trees, deep ones, zeros as missing values, a prior, a single leaf, and no tree."""
    rng = np.random.default_rng(0)
    X, y = np.round(rng.normal(size=(60, N_FEATURES)), 1), rng.integers(0, 3, 60).astype(float)
    qid, found = np.repeat(np.arange(6), 10), []
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for n_steps, params in ((3, {}), (2, {"num_leaves": 30}), (3, {"zero_as_missing": True}), (0, {})):
            leaves = {"num_leaves": 6, "min_sum_hessian_in_leaf": 0.1, **params}
            model = corank.LambdaRank("ranknet", "trees", n_steps=n_steps, tree_params=leaves, random_state=0)
            corank.save(model.fit(X, y, qid=qid), Path(folder, "m"), overwrite=True)
            found.append(Path(folder, "m").read_bytes())
        model.set_params(n_steps=4).fit(X, y, qid=qid)
        # a single leaf in front
        one, many = _single_leaf(), model.trees_.to_lightgbm()
        model.trees_ = TreeEnsemble.from_lightgbm(many.replace("\nTree=0\n", f"\n{one}Tree=1\n", 1))
        corank.save(model, Path(folder, "m"), overwrite=True)
        found.append(Path(folder, "m").read_bytes())
    return found


def _single_leaf() -> str:
    return "Tree=0\nnum_leaves=1\nnum_cat=0\nleaf_value=0.25\nleaf_count=60\nis_linear=0\n\n\n"


@cache
def _texts() -> list[bytes]:
    """Return LightGBM's texts of the models."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for content in _bases():
            Path(folder, "m").write_bytes(content)
            found.append(corank.load(Path(folder, "m")).trees_.to_lightgbm().encode())
    return found


def _odd_texts() -> list[str]:
    text = _texts()[0].decode()
    return [text, "", *(text.replace("num_tree_per_iteration=1", word.decode("latin-1"), 1) for word in WORDS[-12:])]


def _change_trees(parts: Parts, rng: Random) -> None:
    """Change one array of the trees: often so that the trees remain valid, or nearly so."""
    known = [name for name in ARRAYS if f"trees_.{name}" in parts.tensors]
    if not known:
        return
    name = rng.choice([*known, *(["children", "starts"] if len(known) == len(ARRAYS) else [])])
    dtype, shape, body = parts.tensors[f"trees_.{name}"]
    numbers = np.dtype(DTYPES.get(dtype, "|u1"))
    array = np.frombuffer(body, numbers, len(body) // numbers.itemsize).copy()
    kind = rng.random()
    if kind < 0.5 and len(array):
        at = rng.randrange(len(array))
        if array.dtype.kind == "f":
            with np.errstate(over="ignore"):
                array[at] = rng.choice((*FLOATS, rng.gauss(0.0, 1.0), rng.choice(array)))
        else:
            ends = np.iinfo(array.dtype) if array.dtype.kind in "iu" else None
            near = [int(array[at]) + rng.choice((-1, 1)), int(rng.choice(array)), rng.randrange(-9, 9)]
            value = rng.choice([*near, *near, rng.choice(EDGE_INTEGERS)])
            array[at] = value if ends is None else min(max(value, ends.min), ends.max)
        body = array.tobytes()
    elif kind < 0.65 and len(array) > 1:
        one, other = rng.randrange(len(array)), rng.randrange(len(array))
        array[one], array[other] = array[other], array[one]
        body = array.tobytes()
    elif kind < 0.75:
        body = damaged_numbers(array, rng)
    elif kind < 0.85 and len(array):
        dtype = rng.choice([kind for kind in DTYPES if kind != "BOOL"])
        with np.errstate(all="ignore"):
            body = array.astype(DTYPES[dtype]).tobytes()
    elif kind < 0.95:
        shape = rng.choice(([len(array)], [1, len(array)], [len(array), 1], [2, len(array) // 2], [0], []))
    else:
        _drop_last_tree(parts)
        return
    if shape and rng.random() < 0.9:
        n = len(body) // np.dtype(DTYPES.get(dtype, "|u1")).itemsize
        shape = [n // 2, 2] if len(shape) == 2 and shape[1] == 2 and n % 2 == 0 else [n] if len(shape) == 1 else shape
    parts.tensors[f"trees_.{name}"] = (dtype, shape, body)


def _drop_last_tree(parts: Parts) -> None:
    """Remove a tree from all arrays, which leaves a valid model."""
    arrays = _arrays(parts)
    if arrays is None or not _is_sound(arrays) or len(arrays["starts"]) < 2:
        return
    n, trees = int(arrays["starts"][-2]), len(arrays["starts"]) - 2
    kept = {"trees": trees + 1, "nodes": n, "children": n, "leaves": n + trees}
    for name, (dtype, length) in ARRAYS.items():
        array = arrays[name][: kept[length]]
        parts.tensors[f"trees_.{name}"] = (dtype, list(array.shape), array.tobytes())


def _arrays(parts: Parts) -> dict[str, Any] | None:
    """Return the arrays of the trees, or None if one is missing or cannot be read."""
    found = {}
    try:
        for name in ARRAYS:
            dtype, shape, body = parts.tensors[f"trees_.{name}"]
            found[name] = np.frombuffer(body, DTYPES[dtype]).reshape(shape)
    except (KeyError, ValueError, TypeError, OverflowError):
        return None
    return found


def _verdict(content: bytes) -> bool | None:
    """Return whether a file must be accepted, or None where more than the arrays of the trees was changed."""
    try:
        parts = Parts.of(content)
        if parts.header.pop("sha256") != parts.digest():
            return None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, struct.error):
        return None
    if (json.dumps(parts.header), tuple(parts.tensors)) not in _headers():
        return None
    arrays = _arrays(parts)
    return None if arrays is None else _is_sound(arrays)


@cache
def _headers() -> set[tuple[str, tuple[str, ...]]]:
    found = set()
    for content in _bases():
        parts = Parts.of(content)
        parts.header.pop("sha256")
        found.add((json.dumps(parts.header), tuple(parts.tensors)))
    return found


def _is_sound(arrays: dict[str, Any]) -> bool:
    """Check trees from their roots, tree by tree."""
    n, trees = len(np.ravel(arrays["features"])), len(np.ravel(arrays["starts"])) - 1
    shapes = {"trees": (trees + 1,), "nodes": (n,), "children": (n, 2), "leaves": (n + trees,)}
    for name, (dtype, length) in ARRAYS.items():
        array = arrays[name]
        if array.dtype != np.dtype(DTYPES[dtype]) or array.shape != shapes[length]:
            return False
        if dtype == "F64" and not np.isfinite(array).all():
            return False
    starts, children = arrays["starts"].tolist(), arrays["children"].tolist()
    if trees < 0 or starts[0] != 0 or starts[-1] != n or any(a > b for a, b in pairwise(starts)):
        return False
    if any(j >= N_FEATURES for j in arrays["features"].tolist()) or set(arrays["flags"].tolist()) - {0, 2, 4, 6, 8, 10}:
        return False
    if any(count < 0 for name in ("node_counts", "leaf_counts") for count in arrays[name].tolist()):
        return False
    largest = 0.0
    for t in range(trees):
        m = starts[t + 1] - starts[t]
        leaves = arrays["values"][starts[t] + t : starts[t + 1] + t + 1].tolist()
        largest += max(map(abs, leaves))
        nodes, found = [0] if m else [], [] if m else [0]
        reached = set(nodes)
        while nodes:
            node = nodes.pop()
            for child in children[starts[t] + node]:
                if child < 0:
                    found.append(-child - 1)
                elif child <= node or child >= m or child in reached:
                    return False
                else:
                    reached.add(child)
                    nodes.append(child)
        if len(reached) != m or sorted(found) != list(range(m + 1)):
            return False
    return bool(np.isfinite(largest))


def _use(model: Any, way: str, folder: Path) -> None:
    """Score rows and compare the scores with those of a walk, or of LightGBM."""
    rows: Any = ROWS.astype(np.float32) if way == "single" else ROWS[:1] if way == "one row" else ROWS
    given = {"prior": np.zeros(rows.shape[0])} if getattr(model, "has_prior_", False) else {}
    trees = getattr(model, "trees_", None)
    if way == "saved again":
        corank.save(model, folder / "again.safetensors", overwrite=True)
        model = corank.load(folder / "again.safetensors")
    if way == "threads":
        rows = np.tile(ROWS, (30, 1))
        given = {name: np.tile(prior, 30) for name, prior in given.items()}
        model.set_params(n_jobs=2)
    scores = model.predict(sparse.csr_array(rows) if way == "sparse" and model._accepts_sparse else rows, **given)
    if not isinstance(trees, TreeEnsemble):
        return  # the header was changed
    if way == "threads" and scores.tobytes() != np.tile(scores[: len(ROWS)], 30).tobytes():
        raise Wrong("scores of equal rows", scores)
    _require_scores(scores[: len(ROWS)], trees, rows[: len(ROWS)])
    if way == "lightgbm":
        import lightgbm

        theirs = lightgbm.Booster(model_str=trees.to_lightgbm()).predict(rows, num_threads=1)
        if theirs.tobytes() != scores.tobytes():
            raise Wrong("scores of LightGBM", (theirs, scores))


def _require_scores(scores: Any, trees: TreeEnsemble, rows: Any) -> None:
    expected = np.array([_walk(trees, row) for row in rows.astype(np.float64).tolist()])
    if scores.tobytes() != expected.tobytes():
        raise Wrong("scores", (scores, expected))


def _walk(trees: TreeEnsemble, row: list[float]) -> float:
    total, starts = 0.0, trees.starts.tolist()
    for t in range(trees.n_trees):
        begin, node = starts[t], 0 if starts[t + 1] > starts[t] else -1
        while node >= 0:
            at = begin + node
            x, flags = row[int(trees.features[at])], int(trees.flags[at])
            if flags & 4 and abs(x) <= float(np.float32(1e-35)):
                side = 0 if flags & 2 else 1
            else:
                side = 0 if x <= float(trees.thresholds[at]) else 1
            node = int(trees.children[at, side])
        total += float(trees.values[begin + t - node - 1])
    return total
