"""Saved models of every class: changed JSON and tensors with valid checksums, loaded, then used in every way."""

from __future__ import annotations

import json
import re
import sys
import tempfile
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from scipy import sparse
from sklearn import config_context
from sklearn.pipeline import Pipeline

import corank
from corank.base.base import Ranker
from corank.errors import InputError
from fuzz.format import Format, Wrong, judge
from fuzz.mutations import ODD_VALUES, mutate, mutate_json
from fuzz.safetensors import DTYPES, Parts, damage_tensor, damaged_outer
from fuzz.saved import classes, saved
from fuzz.uses import QIDS, ROWS, learn_on, predictions

SKLEARN = re.compile(r"X has \d+ features, but \w+ is expecting \d+ features|Input X contains infinity")
"""Messages of scikit-learn for a wrong number of columns, or for a scaler that overflows float64."""

NAN = b"NaN"
"""Stands for predictions that hold NaN."""

WAYS = ("explained", "dense", "sparse", "single", "one row", "saved again", "learnt on")


class Model(Format):
    """The saved models of one class; `kind` is the name of the class."""

    suffix = ".safetensors"
    share = 0.2
    ways = len(WAYS)

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.name = f"model.{kind}"

    def prepare(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            for content in saved(self.kind).values():
                for way in range(self.ways):
                    judge(self, content, way, Path(folder))

    def generate(self, rng: Random) -> bytes:
        usual = sys.getrecursionlimit()
        sys.setrecursionlimit(20_000)  # what is nested deeply must be written, but not be read, with more
        try:
            return self._generate(rng)
        finally:
            sys.setrecursionlimit(usual)

    def _generate(self, rng: Random) -> bytes:
        parts = Parts.of(rng.choice(list(saved(self.kind).values())))
        for _ in range(rng.choice((0, 1, 1, 1, 1, 1, 1, 2, 3))):
            if parts.tensors and rng.random() < 0.55:
                damage_tensor(parts, rng)
            else:
                parts.header = _changed_header(parts.header, self.kind, list(parts.tensors), rng)
        content = parts.sealed()
        kind = rng.random()
        if kind < 0.02:
            return damaged_outer(content, rng)
        if kind < 0.04:
            return mutate(content, rng)
        return content

    def check(self, content: bytes, way: int, folder: Path) -> bool:
        path = folder / "model.safetensors"
        path.write_bytes(content)
        expected = _expected(self.kind).get(content)
        try:
            model = corank.load(path)
        except InputError as error:
            if expected is not None:
                raise Wrong("refused", error) from error
            return False
        try:
            answers = _use(model, WAYS[way], folder)
        except ValueError as error:
            if expected is not None or (not isinstance(error, InputError) and not SKLEARN.match(str(error))):
                raise
            return False
        if expected is not None and way == 0 and answers != expected:
            raise Wrong("other predictions")
        if NAN in answers and not _has_extremes(content):
            raise Wrong(f"NaN from {type(model).__name__}")
        return True


def formats() -> list[Format]:
    """Return a format for each class of model."""
    return [Model(kind) for kind in classes()]


@cache
def _expected(kind: str) -> dict[bytes, list[bytes]]:
    """Return the predictions of every unchanged model, by its content."""
    known = {}
    with tempfile.TemporaryDirectory() as folder:
        for content in saved(kind).values():
            path = Path(folder, "model")
            path.write_bytes(content)
            known[Parts.of(content).sealed()] = _use(corank.load(path), "explained", Path(folder))
    return known


def _use(model: Any, way: str, folder: Path) -> list[bytes]:
    """Call every prediction; return the arrays that they returned."""
    repr(model)
    if isinstance(model, corank.models.PairSums):
        with np.errstate(all="ignore"):
            model = corank.RankRLS(1.0).fit_pair_sums(model + model)
    if way == "saved again":
        before = _answers(model, ROWS)
        corank.save(model, folder / "again.safetensors", overwrite=True)
        model = corank.load(folder / "again.safetensors")
        if _answers(model, ROWS) != before:
            raise Wrong("other predictions once it is saved again", before)
        return before
    if way == "learnt on":
        learn_on(model)
    rows: Any = ROWS.copy()  # a scaler may scale in place
    if way == "sparse" and getattr(model, "_accepts_sparse", False):
        rows = sparse.csr_matrix(ROWS)
    elif way == "single":
        rows = ROWS.astype(np.float32)
    elif way == "one row":
        rows = ROWS[:2]
    return _answers(model, rows, explained=way == "explained")


def _answers(model: Any, rows: Any, *, explained: bool = False) -> list[bytes]:
    answers = []
    # huge numbers may overflow; NaN without them is noticed by `check`
    with config_context(enable_metadata_routing=True), np.errstate(all="ignore"):
        if isinstance(model, Pipeline) and hasattr(model, "predict"):
            wants_qid = model.get_metadata_routing().consumes("predict", ["qid"])
            return [_scores(model, rows, **({"qid": QIDS[: rows.shape[0]]} if wants_qid else {})).tobytes()]
        for name, call in predictions(model):
            if name == "explain" and not explained:  # slow: scikit-learn looks up who takes qid
                continue
            try:
                found = call(model, rows.copy())
            except ValueError as error:
                if not isinstance(error, InputError) and not SKLEARN.match(str(error)):
                    raise
                answers.append(b"refused")
                continue
            if name == "predict" and isinstance(model, Ranker):
                _require_vector(found)
            answers.append(_as_bytes(found))
    return answers


def _as_bytes(found: Any) -> bytes:
    if not isinstance(found, np.ndarray) or found.dtype == object:
        return b""
    return NAN if found.dtype.kind == "f" and np.isnan(found).any() else found.tobytes()


def _has_extremes(content: bytes) -> bool:
    """Return whether a file holds numbers whose squares overflow or vanish."""
    parts = Parts.of(content)
    numbers = [np.frombuffer(body, DTYPES[kind]) for kind, _, body in parts.tensors.values() if kind in DTYPES]
    numbers += [
        np.array([abs(float(one)) for one in re.findall(r"-?[0-9][0-9.e+-]*", json.dumps(parts.header["state"]))])
    ]
    sizes = np.concatenate([np.abs(one.astype(np.float64)) for one in numbers])
    return bool(((sizes > 1e30) | ((sizes > 0.0) & (sizes < 1e-30))).any())


def _scores(model: Any, rows: Any, **given: Any) -> Any:
    scores = model.predict(rows.copy(), **given)
    _require_vector(scores)
    return scores


def _require_vector(scores: Any) -> None:
    if not isinstance(scores, np.ndarray) or scores.ndim != 1 or scores.dtype.kind != "f":
        raise Wrong("scores are not a vector of numbers", scores)


def _changed_header(header: dict[str, Any], own: str, names: list[str], rng: Random) -> dict[str, Any]:
    kind = rng.random()
    if kind < 0.08:
        other = Parts.of(rng.choice(list(saved(own).values()))).header
        part = rng.choice(("class", "params", "state", "requests"))
        return header | {part: other[part]}
    if kind < 0.1:
        return header | {"class": rng.choice(classes())}
    if kind < 0.11:
        deep: Any = "deep"
        for _ in range(rng.choice((50, 300, 900, 3000))):
            deep = [deep] if rng.random() < 0.5 else {"tuple": [deep]}
        state = header.get("state")
        return header | {"state": (state if isinstance(state, dict) else {}) | {"deep_": deep}}
    odd: list[Any] = [
        *ODD_VALUES, {"float": "nan"}, {"float": "x"}, {"tuple": []}, {"slice": [0, 1, 0]}, {"slice": [0, 10**30]},
        {"dict": {}}, {"array": "x"}, {"strings": {"items": ["a"], "dtype": "<U100000000"}},
        {"strings": {"items": ["a"], "dtype": "|O"}}, {"strings": {"items": [1], "dtype": "f8,O"}}, {"strings": ["a"]},
        {"noun": {"name": "View", "fields": {}}}, {"noun": {"name": "GaussianKernel", "fields": {"gamma": -1}}},
        {"noun": {"name": "GaussianKernel", "fields": {"gamma": 1.0}}},
        {"noun": {"name": "LinearKernel", "fields": {}}},
        {"estimator": {}}, {"estimator": {"class": "SPD", "params": {}, "state": {}, "requests": {}}},
        {"csr": {"data": [1.0], "indices": [9], "indptr": [0, 1], "shape": [1, 5]}}, "SPD", "gaussian", "precomputed",
    ]  # fmt: skip
    odd += [{"array": name} for name in names]
    # most of a header is the state
    where = "state" if rng.random() < 0.6 and isinstance(header.get("state"), dict) else None
    if where is not None:
        return header | {where: mutate_json(header[where], rng, odd)}
    changed = mutate_json(header, rng, odd)
    return changed if isinstance(changed, dict) else header
