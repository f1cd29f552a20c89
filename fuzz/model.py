"""Saved models of every ranker: changed JSON and tensors with valid checksums, loaded and used to predict."""

from __future__ import annotations

import json
import re
import struct
import sys
import tempfile
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, Literal

import numpy as np
from scipy import sparse
from sklearn import config_context
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

import corank
from corank.errors import InputError
from fuzz.format import Format, Wrong, judge
from fuzz.mutations import ODD_VALUES, mutate, mutate_json
from fuzz.safetensors import Parts, damage_tensor, damaged_outer

ROWS = np.random.default_rng(1).normal(size=(7, 5))
QIDS = ["a", "a", "b", "b", "b", "a", "c"]
SKLEARN = re.compile(r"X has 5 features, but \w+ is expecting \d+ features|Input X contains infinity")
"""Messages of scikit-learn for a wrong number of columns, or for a scaler that overflows float64."""

WAYS = ("dense", "sparse", "single", "saved again", "learnt on", "one row")


class Model(Format):
    name = "model"
    suffix = ".safetensors"
    share = 4.0
    ways = len(WAYS)

    def prepare(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            for content in _bases().values():
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
        parts = Parts.of(rng.choice(list(_bases().values())))
        for _ in range(rng.choice((0, 1, 1, 1, 1, 2, 3))):
            if parts.tensors and rng.random() < 0.55:
                damage_tensor(parts, rng)
            else:
                parts.header = _changed_header(parts.header, list(parts.tensors), rng)
        content = parts.sealed()
        kind = rng.random()
        if kind < 0.04:
            return damaged_outer(content, rng)
        if kind < 0.07:
            return mutate(content, rng)
        return content

    def check(self, content: bytes, way: int, folder: Path) -> bool:
        path = folder / "model.safetensors"
        path.write_bytes(content)
        expected = _known().get(_essence(content))
        try:
            model = corank.load(path)
            scores = _use(model, WAYS[way], folder)
        except ValueError as error:
            if not isinstance(error, InputError) and not SKLEARN.match(str(error)):
                raise
            if expected is not None:
                raise Wrong("refused", error) from error
            return False
        if expected is not None and WAYS[way] == "dense" and scores.tobytes() != expected:
            raise Wrong("scores", scores)
        return True


@cache
def _bases() -> dict[str, bytes]:
    """Return saved models of every ranker in the laws, of pipelines, and of sums."""
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
                if rows is not X and not (name in LAWFUL and make()._accepts_sparse):
                    continue  # scaling and perceptrons are for dense rows
                corank.save(make().fit(rows, y, qid=qid), path, overwrite=True)
                found[f"{name} {type(rows).__name__}"] = path.read_bytes()
        corank.save(corank.RankRLS(1.0).summary(X, y, qid=qid), path, overwrite=True)
        found["Summary"] = path.read_bytes()
    return found


@cache
def _known() -> dict[str, bytes]:
    """Return the scores of every saved model, by its content."""
    known = {}
    with tempfile.TemporaryDirectory() as folder:
        for content in _bases().values():
            path = Path(folder, "model")
            path.write_bytes(content)
            known[_essence(content)] = _use(corank.load(path), "dense", Path(folder)).tobytes()
    return known


def _essence(content: bytes) -> str:
    """Return the content of a file in a fixed order; empty if it cannot be parsed."""
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
    """Return scores of new rows."""
    if isinstance(model, corank.Summary):
        return _scores(corank.RankRLS(1.0).fit_summary(model + model), ROWS)
    rows: Any = ROWS.copy()  # a scaler may scale in place
    if way == "sparse" and getattr(model, "_accepts_sparse", False):
        rows = sparse.csr_matrix(ROWS)
    elif way == "single":
        rows = ROWS.astype(np.float32)
    elif way == "one row":
        rows = ROWS[:1]
    repr(model)
    if not hasattr(model, "predict"):
        return np.zeros(0)  # a pipeline without a ranker at its end
    if way == "learnt on" and hasattr(model, "partial_fit") and "n_steps" in model.get_params(deep=False):
        model.set_params(n_steps=30, n_jobs=None)  # or it may honestly take years
        model.partial_fit(ROWS, np.arange(7.0) % 3, qid=QIDS)
    if way == "saved again":
        before = _scores(model, rows)
        corank.save(model, folder / "again.safetensors", overwrite=True)
        model = corank.load(folder / "again.safetensors")
        if _scores(model, rows).tobytes() != before.tobytes():
            raise Wrong("other scores once it is saved again", before)
    return _scores(model, rows)


def _scores(model: Any, rows: Any) -> Any:
    # overflows in scalers of scikit-learn are not faults of corank
    over: Literal["ignore", "warn"] = "ignore" if isinstance(model, Pipeline) else "warn"
    with config_context(enable_metadata_routing=True), np.errstate(over=over):
        wants_qid = model.get_metadata_routing().consumes("predict", ["qid"])
        given = {"qid": QIDS[: rows.shape[0]]} if wants_qid else {}
        scores = model.predict(rows.copy(), **given)
    if not isinstance(scores, np.ndarray) or scores.shape != (rows.shape[0],) or scores.dtype.kind != "f":
        raise Wrong("scores are not a vector of numbers", scores)
    return scores


def _changed_header(header: dict[str, Any], names: list[str], rng: Random) -> dict[str, Any]:
    kind = rng.random()
    if kind < 0.1:
        other = Parts.of(rng.choice(list(_bases().values()))).header
        part = rng.choice(("class", "params", "state", "requests"))
        return header | {part: other[part]}
    if kind < 0.12:
        deep: Any = "deep"
        for _ in range(rng.choice((50, 300, 900, 3000))):
            deep = [deep] if rng.random() < 0.5 else {"tuple": [deep]}
        state = header.get("state")
        return header | {"state": (state if isinstance(state, dict) else {}) | {"deep_": deep}}
    odd: list[Any] = [
        *ODD_VALUES, {"float": "nan"}, {"float": "x"}, {"tuple": []}, {"slice": [0, 1, 0]}, {"slice": [0, 10**30]},
        {"dict": {}}, {"array": "x"}, {"strings": {"items": ["a"], "dtype": "<U100000000"}},
        {"strings": {"items": ["a"], "dtype": "|O"}}, {"strings": {"items": [1], "dtype": "f8,O"}},
        {"noun": {"name": "View", "fields": {}}}, {"noun": {"name": "GaussianKernel", "fields": {"gamma": -1}}},
        {"estimator": {}}, {"estimator": {"class": "SPD", "params": {}, "state": {}, "requests": {}}},
        {"csr": {"data": [1.0], "indices": [9], "indptr": [0, 1], "shape": [1, 5]}}, "SPD", "gaussian", "precomputed",
    ]  # fmt: skip
    odd += [{"array": name} for name in names]
    changed = mutate_json(header, rng, odd)
    return changed if isinstance(changed, dict) else header
