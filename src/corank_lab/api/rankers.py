"""
Rankers of the service: they draw lists, and learn from the clicks on lists that they drew.

- `OnlineModel`: PDGD or PairwiseEpsilonGreedy. It learns from every list, with or without a prior score.
- `FixedModel`: any saved ranker or pipeline. It sorts by score and learns nothing.
- `InterleavedModel`: two others merged by team draft; clicks show which one users prefer, with a test that may be
  looked at any time.

A list is drawn from a generator whose state is the SHA-256 of the list's id. The log keeps the features, scores and
propensities with which it was drawn. So a model is a function of its initial state and the log, and nothing else.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable
from copy import copy
from dataclasses import asdict
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from corank.clicks import Impression, InterleavedList, InterleavingTest, OnlineRanker, TeamDraft
from corank.data import MAX_VALUE, largest_value, with_names
from corank.deploy import model_bytes, model_from_bytes
from corank.errors import InputError
from corank_lab.api.log import Arrays

Floats = NDArray[np.float64]
RngState = NDArray[np.uint64]
Resolve = Callable[[str, int], "ServedModel"]
"""Returns a model by name and version."""


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
        """Number of lists learnt."""
        return int(self.ranker.n_learnt_)

    def score(self, X: Floats, prior: Floats | None) -> Floats:
        """Return the score of every row."""
        return X @ self.ranker.coef_ + (0.0 if prior is None else prior)

    def draw(self, X: Floats, prior: Floats | None, k: int, rng_state: RngState) -> Drawn:
        """Draw a list."""
        drawn = self.ranker._draw(X, prior, rng_state, k)
        arrays = {"X": X, "rows": drawn.rows, "log_propensities": drawn.log_propensities, "scores": drawn.scores}
        if prior is not None:
            arrays["prior"] = prior
        return Drawn(drawn.rows, drawn.scores, arrays)

    def learn(self, arrays: Arrays, n_learnt: int, clicked: NDArray[np.bool_]) -> bool:
        """Learn from a list."""
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
        """Return the state."""
        return model_bytes(self.ranker)

    def snapshot(self) -> ServedModel:
        """Return a copy that learning does not change."""
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
        """Return the score of every row."""
        rows = with_names(X, self.names)
        scores = self.model.predict(rows) if prior is None else self.model.predict(rows, prior=prior)  # type: ignore[attr-defined]
        return np.asarray(scores, dtype=np.float64)

    def draw(self, X: Floats, prior: Floats | None, k: int, rng_state: RngState) -> Drawn:
        """Draw a list."""
        scores = self.score(X, prior)
        rows = _best(scores)[:k]
        return Drawn(rows, scores, {"X": X, "rows": rows, "log_propensities": np.zeros(len(rows)), "scores": scores})

    def content(self) -> bytes:
        """Return the state."""
        return self._content


class InterleavedModel(ServedModel):
    """
    Two models whose rankings are merged by team draft.

    content: JSON with the names and versions of the models, and the lists won by each.
    """

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
        item, two = (resolve(*model) for model in (first, second))
        if (item.n_features, item.names, item.has_prior) != (two.n_features, two.names, two.has_prior):
            raise InputError(
                f"{first[0]} takes {item.n_features} features and {second[0]} {two.n_features}, or their names or "
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
        """Return the score of every row."""
        return self._models()[0].score(X, prior)

    def draw(self, X: Floats, prior: Floats | None, k: int, rng_state: RngState) -> Drawn:
        """Draw a list."""
        scores = [model.score(X, prior) for model in self._models()]
        rankings = np.stack([_best(item) for item in scores])
        merged = TeamDraft(k)._interleave(rankings, np.empty(min(k, len(X)), dtype=np.int64), rng_state)
        teams = np.empty(0) if merged.teams is None else merged.teams
        arrays = {"X": X, "rows": merged.rows, "teams": teams, "scores": np.stack(scores)}
        return Drawn(merged.rows, scores[0], arrays)

    def learn(self, arrays: Arrays, n_learnt: int, clicked: NDArray[np.bool_]) -> bool:
        """Learn from a list."""
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
        """Return the state."""
        return json.dumps(self._state, sort_keys=True).encode()

    def snapshot(self) -> ServedModel:
        """Return a copy that learning does not change."""
        return copy(self)

    def bind(self, resolve: Resolve) -> ServedModel:
        """Compare the models of another source."""
        self._resolve = resolve
        return self

    def report(self) -> dict[str, Any]:
        """Return the models compared, and the lists that each won."""
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
