"""
Models of the service: they draw lists, learn from the clicks on them, and have versions 1, 2, ..., one of them active.

- `OnlineModel`: PDGD or PairwiseEpsilonGreedy. It learns from every list, with or without a prior score.
- `FixedModel`: any saved ranker or pipeline. It sorts by score and learns nothing.
- `InterleavedModel`: two others merged by team draft; clicks show which one users prefer, with a test that may be
  looked at any time.

A list is drawn from a generator whose state is the SHA-256 of the list's id. The log keeps the features, scores and
propensities with which it was drawn. So a model is a function of its initial state and the log, and nothing else.
A version keeps its initial state for ever. Models come from files that the owner adds, or from training on the log;
never from a path or a file in a request.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from copy import copy
from dataclasses import asdict
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from corank.base import Ranker
from corank.clicks import Impression, InterleavedList, InterleavingTest, OnlineRanker, TeamDraft
from corank.data import MAX_VALUE, largest_value, predict_with_qid, with_names
from corank.deploy import model_bytes, model_from_bytes
from corank.errors import InputError, suggest_names
from corank_lab.api.log import TABLES, Arrays
from corank_lab.database.connections import Statements
from corank_lab.database.database import Database
from corank_lab.database.schema import utc_now

Floats = NDArray[np.float64]
RngState = NDArray[np.uint64]
Resolve = Callable[[str, int], "ServedModel"]  # returns a model by name and version


class Drawn(NamedTuple):
    """A list that was drawn."""

    rows: NDArray[np.int64]  # numbers of the rows shown, from the top
    scores: Floats  # score of every row
    arrays: Arrays  # what learning from the list needs, and the features


class ServedModel(ABC):
    """A model that the service can use."""

    kind: ClassVar[str]
    n_features: int
    names: list[str] | None
    has_prior: bool
    n_learnt: int = 0

    @abstractmethod
    def score(self, X: Floats, prior: Floats | None) -> Floats:
        """Return the score of every row."""

    @abstractmethod
    def draw(self, X: Floats, prior: Floats | None, k: int, rng_state: RngState) -> Drawn:
        """Draw a list of up to k rows; `rng_state` is advanced."""

    def learn(self, arrays: Arrays, n_learnt: int, clicked: NDArray[np.bool_]) -> bool:
        """Learn from a list that this model drew."""
        return False

    @abstractmethod
    def content(self) -> bytes:
        """Return the state; equal states give equal bytes."""

    def snapshot(self) -> ServedModel:
        """Return a copy that learning does not change."""
        return self

    def bind(self, resolve: Resolve) -> ServedModel:
        """Use another source of the models that this one refers to."""
        return self

    def report(self) -> dict[str, Any]:
        """Return what people want to know about the state, as JSON values."""
        return {}


class OnlineModel(ServedModel):
    """An online ranker."""

    kind = "online"

    def __init__(self, ranker: OnlineRanker) -> None:
        self.ranker = copy(ranker)
        self.ranker.coef_ = ranker.coef_.copy()
        self.n_features, self.names = _columns(ranker)
        self.has_prior = bool(ranker.has_prior_)

    @property
    def n_learnt(self) -> int:  # type: ignore[override]
        return int(self.ranker.n_learnt_)

    def score(self, X: Floats, prior: Floats | None) -> Floats:
        return X @ self.ranker.coef_ + (0.0 if prior is None else prior)

    def draw(self, X: Floats, prior: Floats | None, k: int, rng_state: RngState) -> Drawn:
        drawn = self.ranker._draw(X, prior, rng_state, k)
        arrays = {"X": X, "rows": drawn.rows, "log_propensities": drawn.log_propensities, "scores": drawn.scores}
        if prior is not None:
            arrays["prior"] = prior
        return Drawn(drawn.rows, drawn.scores, arrays)

    def learn(self, arrays: Arrays, n_learnt: int, clicked: NDArray[np.bool_]) -> bool:
        given = [arrays[name] for name in ("X", "prior") if name in arrays]
        # lists of earlier versions may hold values that are refused now; they are left out, at every replay
        if not np.isfinite(arrays["scores"]).all() or not all(largest_value(part) <= MAX_VALUE for part in given):
            return False
        shown, chances, scores = (arrays[name] for name in ("rows", "log_propensities", "scores"))
        impression = Impression(0, shown, chances, n_learnt, arrays["X"], scores, arrays.get("prior"))
        w = self.ranker.coef_.copy()
        self.ranker._step(impression, clicked, w)
        if not np.isfinite(w).all():  # a step that overflows is left out, at every replay
            return False
        self.ranker.coef_ = w
        self.ranker.n_learnt_ += 1
        return True

    def content(self) -> bytes:
        return model_bytes(self.ranker)

    def snapshot(self) -> ServedModel:
        return OnlineModel(self.ranker)


class FixedModel(ServedModel):
    """A ranker or pipeline that was learnt before."""

    kind = "fixed"

    def __init__(self, content: bytes, *, is_known: bool = False) -> None:
        self._content, self.model = content, model_from_bytes(content, object, is_known=is_known)
        last = self.model.steps[-1][1] if hasattr(self.model, "steps") else self.model
        if not hasattr(self.model, "predict") or not hasattr(last, "has_prior_"):
            raise InputError(
                f"a {type(last).__name__} does not score rows, so the service cannot use it; pass a ranker or a "
                "pipeline that ends with one."
            )
        self.n_features, self.names = _columns(self.model)
        self.has_prior = bool(last.has_prior_)

    def score(self, X: Floats, prior: Floats | None) -> Floats:
        rows = with_names(X, self.names)
        one_query = np.zeros(len(X), dtype=np.int64)
        if isinstance(self.model, Ranker):
            return np.asarray(self.model._predict_queries(rows, one_query, prior), dtype=np.float64)
        return predict_with_qid(self.model, rows, one_query, prior)

    def draw(self, X: Floats, prior: Floats | None, k: int, rng_state: RngState) -> Drawn:
        scores = self.score(X, prior)
        rows = _best(scores)[:k]
        return Drawn(rows, scores, {"X": X, "rows": rows, "log_propensities": np.zeros(len(rows)), "scores": scores})

    def content(self) -> bytes:
        return self._content


class InterleavedModel(ServedModel):
    """Two models whose rankings are merged by team draft; the state is JSON with their names and the lists won."""

    kind = "interleaved"

    def __init__(self, content: bytes, resolve: Resolve) -> None:
        self._state: dict[str, Any] = json.loads(content)
        self._resolve = resolve
        first = self._models()[0]
        self.n_features, self.names, self.has_prior = first.n_features, first.names, first.has_prior

    @classmethod
    def start(cls, first: tuple[str, int], second: tuple[str, int], resolve: Resolve) -> bytes:
        """Return the initial state of a test of two models, which must take the same features."""
        models = [list(first), list(second)]
        state = {"models": models, "wins": [0, 0], "ties": 0, "test": InterleavingTest().state()}
        content = json.dumps(state, sort_keys=True).encode()
        a, b = (resolve(*model) for model in (first, second))
        if (a.n_features, a.names, a.has_prior) != (b.n_features, b.names, b.has_prior):
            raise InputError(
                f"{first[0]} takes {a.n_features} features and {second[0]} {b.n_features}, or their names or "
                "priors differ; compare two models of the same features."
            )
        return content

    @property
    def n_learnt(self) -> int:  # type: ignore[override]
        """Number of lists with at least one click."""
        return int(sum(self._state["wins"]) + self._state["ties"])

    def _models(self) -> list[ServedModel]:
        return [self._resolve(str(name), int(version)) for name, version in self._state["models"]]

    def score(self, X: Floats, prior: Floats | None) -> Floats:
        return self._models()[0].score(X, prior)

    def draw(self, X: Floats, prior: Floats | None, k: int, rng_state: RngState) -> Drawn:
        scores = [model.score(X, prior) for model in self._models()]
        rankings = np.stack([_best(item) for item in scores])
        merged = TeamDraft(k)._interleave(rankings, np.empty(min(k, len(X)), dtype=np.int64), rng_state)
        teams = np.empty(0) if merged.teams is None else merged.teams
        arrays = {"X": X, "rows": merged.rows, "teams": teams, "scores": np.stack(scores)}
        return Drawn(merged.rows, scores[0], arrays)

    def learn(self, arrays: Arrays, n_learnt: int, clicked: NDArray[np.bool_]) -> bool:
        if not clicked.any():
            return False
        merged = InterleavedList(arrays["rows"], np.zeros((2, 1), dtype=np.int64), arrays["teams"])
        first, second = TeamDraft(len(clicked)).credit(merged, clicked)
        wins = self._state["wins"]
        wins = [wins[0] + int(first > second), wins[1] + int(second > first)]
        test = InterleavingTest.of_state(self._state["test"]).add(float(np.sign(first - second)))
        ties = self._state["ties"] + int(first == second)
        self._state = {**self._state, "wins": wins, "ties": ties, "test": test.state()}
        return True

    def content(self) -> bytes:
        return json.dumps(self._state, sort_keys=True).encode()

    def snapshot(self) -> ServedModel:
        return copy(self)

    def bind(self, resolve: Resolve) -> ServedModel:
        self._resolve = resolve
        return self

    def report(self) -> dict[str, Any]:
        names = [f"{name}/{version}" for name, version in self._state["models"]]
        verdict = asdict(InterleavingTest.of_state(self._state["test"]).verdict())
        verdict["winner"] = {"A": names[0], "B": names[1]}.get(verdict["winner"])
        if not self.n_learnt:
            verdict["mean"] = None
        return {"models": names, "wins": self._state["wins"], "ties": self._state["ties"], "verdict": verdict}


def load_model(kind: str, content: bytes, resolve: Resolve, *, is_known: bool = True) -> ServedModel:
    """Return a model from its kind and state."""
    if kind == OnlineModel.kind:
        return OnlineModel(model_from_bytes(content, OnlineRanker, is_known=is_known))  # type: ignore[type-abstract]
    return (
        InterleavedModel(content, resolve) if kind == InterleavedModel.kind else FixedModel(content, is_known=is_known)
    )


def rng_state_of(id: str) -> RngState:
    """Return the state of the generator that draws a list: 256 bits that depend on its id only."""
    return np.frombuffer(hashlib.sha256(id.encode("utf-8", "replace")).digest(), dtype="<u8").astype(np.uint64)


def _best(scores: Floats) -> NDArray[np.int64]:
    """Return all rows by decreasing score; equal scores in the order of the rows."""
    return np.argsort(-scores, kind="stable").astype(np.int64)


def _columns(model: Any) -> tuple[int, list[str] | None]:
    names = getattr(model, "feature_names_in_", None)
    return int(model.n_features_in_), None if names is None else [str(name) for name in names]


_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class ModelRow(NamedTuple):
    """A version of a model."""

    name: str
    version: int
    kind: str
    recipe: dict[str, Any]  # how it was made, as JSON values
    counts: dict[str, int]  # lists that it drew and that were learnt, and those with a click
    learnt: int  # number of the last event that changed its state
    created: str


class Registry:
    """The models of a database. It may be used by many threads."""

    def __init__(self, store: Database) -> None:
        store.install(TABLES)
        self.store = store
        self._lock = threading.RLock()
        self._loaded: dict[tuple[str, int], tuple[int, ServedModel]] = {}
        self.active: dict[str, int] = {}
        self.refresh()

    def add(self, name: str, kind: str, content: bytes, recipe: dict[str, Any]) -> int:
        """Add a version, and activate it if it is the first of its name."""
        if not _NAME.fullmatch(name):
            raise InputError(f"a model cannot be called {name!r}; use up to 64 letters, digits, dots and hyphens.")
        load_model(kind, content, self.model, is_known=False)

        def job(db: Statements) -> int:
            newest = db("SELECT COALESCE(MAX(version), 0) FROM models WHERE name = ?", name).fetchone()[0]
            version = int(newest) + 1
            db(
                "INSERT INTO models (name, version, kind, recipe, initial, state, counts, learnt, created) "
                "VALUES (?, ?, ?, ?, ?, ?, '{}', 0, ?)",
                name, version, kind, json.dumps(recipe), content, content, utc_now(),
            )  # fmt: skip
            # version 0.2 kept earlier activations in `history`
            sql = "INSERT INTO active_models (name, version, history) VALUES (?, ?, '[]') ON CONFLICT (name) DO NOTHING"
            db(sql, name, version)
            return version

        version = self.store.run(job)
        self.refresh()
        return version

    def versions(self) -> list[ModelRow]:
        rows = self.store.read(
            "SELECT name, version, kind, recipe, counts, learnt, created FROM models ORDER BY name, version"
        )
        return [ModelRow(row[0], row[1], row[2], json.loads(row[3]), json.loads(row[4]), *row[5:]) for row in rows]

    def activate(self, name: str, version: int) -> int:
        self._require(name)
        known = [row.version for row in self.versions() if row.name == name]
        if version not in known:
            raise InputError(f"{name} has no version {version}; its versions are 1 to {max(known)}.")
        self.store.write(("UPDATE active_models SET version = ? WHERE name = ?", version, name))
        self.refresh()
        return version

    def remove(self, name: str, version: int) -> None:
        """Remove a version that is not active; its lists stay in the log, and are not learnt any more."""
        self._require(name)
        if self.active[name] == version:
            raise InputError(f"{name} version {version} is active; activate another version first.")
        self.model(name, version)
        self.store.write(("DELETE FROM models WHERE name = ? AND version = ?", name, version))
        self._loaded.pop((name, version), None)

    def model(self, name: str, version: int) -> ServedModel:
        """Return a version, in the state that was committed last as far as this process knows."""
        with self._lock:
            result = self._loaded.get((name, version))
            if result is None:
                result = self._loaded[name, version] = self._load(name, version)
            return result[1]

    def serving(self, name: str | None) -> tuple[str, int, ServedModel]:
        """Return name, version and model that answers for a name; None stands for the only name."""
        if name is None:
            if len(self.active) != 1:
                names = ", ".join(sorted(self.active)) or "none"
                raise InputError(f"the request names no model, but the service has several or none: {names}.")
            name = next(iter(self.active))
        self._require(name)
        version = self.active[name]
        return name, version, self.model(name, version)

    def publish(self, name: str, version: int, learnt: int, model: ServedModel) -> None:
        """Use a new state of a version, which was committed."""
        with self._lock:
            self._loaded[name, version] = (learnt, model.bind(self.model))

    def refresh(self) -> None:
        """Take notice of activations and states that other processes committed; loads the new states."""
        self.active = {
            name: int(version) for name, version in self.store.read("SELECT name, version FROM active_models")
        }
        for name, version, learnt in self.store.read("SELECT name, version, learnt FROM models"):
            known = self._loaded.get((name, version))
            if known is not None and known[0] < learnt:
                fresh = self._load(name, version)
                with self._lock:
                    if self._loaded[name, version][0] < fresh[0]:
                        self._loaded[name, version] = fresh

    def _load(self, name: str, version: int) -> tuple[int, ServedModel]:
        rows = self.store.read("SELECT kind, state, learnt FROM models WHERE name = ? AND version = ?", name, version)
        if not rows:
            raise InputError(f"there is no version {version} of a model {name!r}; list them with GET /models.")
        kind, state, learnt = rows[0]
        return learnt, load_model(kind, bytes(state), self.model)

    def _require(self, name: str) -> None:
        if name not in self.active:
            hint = suggest_names(name, sorted(self.active)) if self.active else "add one with corank serve add"
            raise InputError(f"there is no model {name[:60]!r}; {hint}.")


def subject_of(name: str, version: int) -> str:
    """Return the subject of lists that a version drew."""
    return f"{name}/{version}"


def version_of(subject: str) -> tuple[str, int]:
    """Return name and version of a subject."""
    name, _, version = subject.rpartition("/")
    return name, int(version)
