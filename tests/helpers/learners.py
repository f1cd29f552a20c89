"""Every estimator and transformer that corank exports, and `fit_parts`, each with a way to fit it and to use it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

import corank
from corank import registry
from corank.base import ColumnMean, Landmarks, NeighborSmoother, QueryScaler, QuerySearchCV
from corank.data.splits import mask_scores
from corank.data.synthetic import make_ranking
from corank.deploy import fit_parts
from corank.models.gp import CollaborativeGP
from corank.models.labels import (
    AutoLabelRanker,
    CalibratedLabelRanker,
    ForestLabelRanker,
    LabelPreferences,
    NeighborLabelRanker,
    OnlineLabelRanker,
    PairwiseLabelRanker,
)
from corank.models.ratings import Collaborative, ItemMean
from corank.models.rls import CoRankRLS, RankRLS
from corank.text import BM25, Corpus, LinkLearn, Links
from helpers.estimators import LAWFUL, REPEATED
from helpers.ratings import draw_ratings, events

PROBLEM = make_ranking(12, (2, 9), random_state=3)
QID = PROBLEM.qid
Y = mask_scores(PROBLEM.y, fraction=0.3, random_state=1)
FEW = 7
"""Number of columns of a second problem."""
NAMES = [f"feature {column}" for column in range(PROBLEM.X.shape[1])]


@dataclass(frozen=True)
class Case:
    """
    An estimator, and how it is used.

    make: a new estimator.
    fit: fits an estimator to data.
    use: what a fitted estimator answers about data, as an array.
    data: two problems that differ; the first is `PROBLEM.X` and the second has fewer columns, where `has_columns`.
    bad: data that must be refused.
    further: fits a fitted estimator to further data, where there is such a method.
    is_saved: whether `corank.save` takes it.
    keeps_partial: whether an interrupted fit may keep the steps so far as a new, complete model.
    """

    make: Callable[[], Any]
    fit: Callable[[Any, Any], Any]
    use: Callable[[Any, Any], Any]
    data: tuple[Any, Any]
    bad: Any
    has_columns: bool = True
    further: Callable[[Any, Any], Any] | None = None
    is_saved: bool = True
    keeps_partial: bool = False


def _rows(make: Callable[[], Any], fit: Any, use: Any, X: Any = PROBLEM.X, **more: Any) -> Case:
    bad = X[:, :FEW].copy()
    bad[4, 2] = np.inf
    return Case(make, fit, use, (X, X[:, :FEW]), bad, **more)


def _ranker(make: Callable[[], Any]) -> Case:
    further = None
    if hasattr(make(), "partial_fit"):
        further = lambda model, X: model.partial_fit(X, Y, qid=QID)  # noqa: E731
    return _rows(
        make,
        lambda model, X: model.fit(X, Y, qid=QID),
        lambda model, X: model.predict(X),
        further=further,
        keeps_partial=isinstance(make(), corank.SPD | corank.CRR | corank.LCRA | corank.LambdaRank),
    )


def _labels(make: Callable[[], Any], y: Any) -> Case:
    further = (lambda model, X: model.partial_fit(X, y)) if hasattr(make(), "partial_fit") else None
    return _rows(make, lambda model, X: model.fit(X, y), lambda model, X: model.utilities(X), further=further)


def _by_parts(make: Callable[[], Any]) -> Case:
    def fit(model: Any, X: Any) -> Any:
        part = QID < 6
        take = X.loc if hasattr(X, "loc") else X
        return fit_parts(model, [(take[rows], Y[rows], QID[rows]) for rows in (part, ~part)])

    return _rows(make, fit, lambda model, X: model.predict(X))


def _of_ratings(make: Callable[[], Any]) -> Case:
    data = tuple(events(draw_ratings(12, n_items, seed=n_items)) for n_items in (9, 6))
    items, ratings, users = data[0]
    return Case(
        make,
        lambda model, one: model.fit(one[0], one[1], qid=one[2]),
        lambda model, one: model.predict(one[0], one[2]),
        data,
        (items, ratings[:-1], users),
        has_columns=False,
    )


def _links(seed: int) -> Links:
    rng = np.random.default_rng(seed)
    words = [f"w{number}" for number in range(40)]
    corpus = Corpus.of([" ".join(rng.choice(words, rng.integers(5, 20))) for _ in range(20)], language=None)
    return Links.of(corpus, [(str(i), str((i + 1) % 20)) for i in range(20)])


_RANKS = LabelPreferences.from_ranks(np.argsort(np.argsort(-PROBLEM.X[:, :3], axis=1), axis=1) + 1)
_CLASSES = (PROBLEM.X[:, 0] > 0).astype(int) + (PROBLEM.X[:, 1] > 0)
_COUNTS = np.round(4 * np.abs(PROBLEM.X))

LEARNERS: dict[str, Case] = {
    **{name: _ranker(make) for name, make in LAWFUL.items()},
    "ColumnMean": _rows(
        lambda: ColumnMean([0, 3]),
        lambda model, X: model.fit(X, qid=QID),
        lambda model, X: model.predict(X, QID),
    ),
    "BM25": _rows(BM25, lambda model, X: model.fit(X), lambda model, X: model.predict(X), _COUNTS),
    "CalibratedLabelRanker": _labels(CalibratedLabelRanker, _RANKS),
    "OnlineLabelRanker": _labels(lambda: OnlineLabelRanker(random_state=0), _CLASSES),
    "OnlineLabelRanker kernel": _labels(lambda: OnlineLabelRanker(kernel="gaussian", random_state=0), _RANKS),
    "NeighborLabelRanker": _labels(NeighborLabelRanker, _RANKS),
    "ForestLabelRanker": _labels(lambda: ForestLabelRanker(5, random_state=0), _RANKS),
    "PairwiseLabelRanker": _labels(PairwiseLabelRanker, _RANKS),
    "AutoLabelRanker": _labels(lambda: AutoLabelRanker(cv=2, random_state=0), _RANKS),
    "QueryScaler": _rows(
        QueryScaler,
        lambda model, X: model.fit(X, qid=QID),
        lambda model, X: model.transform(X, QID),
    ),
    "Landmarks": _rows(
        lambda: Landmarks(5, random_state=0),
        lambda model, X: model.fit(X),
        lambda model, X: model.transform(X),
    ),
    "NeighborSmoother": _rows(
        lambda: NeighborSmoother(n_neighbors=3, n_components=4, random_state=0),
        lambda model, X: model.fit(X),
        lambda model, X: model.transform(X),
    ),
    "QuerySearchCV": _rows(
        lambda: QuerySearchCV(RankRLS(), {"alpha": [0.1, 1.0]}, metric="kendall", cv=3),
        lambda model, X: model.fit(X, PROBLEM.y, qid=QID),
        lambda model, X: model.predict(X),
        is_saved=False,
    ),
    "Collaborative": _of_ratings(lambda: Collaborative(random_state=0)),
    "ItemMean": _of_ratings(ItemMean),
    "CollaborativeGP": _of_ratings(lambda: CollaborativeGP(max_iter=1, random_state=0)),
    "Fusion": _rows(
        corank.Fusion,
        lambda model, X: model.fit(X, Y, qid=QID),
        lambda model, X: model.predict(X, qid=QID),
        is_saved=False,
    ),
    "Leaderboard": Case(
        corank.Leaderboard,
        lambda model, votes: model.fit(*votes),
        lambda model, votes: model.predict_proba(votes[0][:1], votes[1][:1]),
        ((["b", "b", "c", "b"], ["a", "a", "a", "c"]), (["b", "a"], ["a", "b"])),
        (["b", "a"], ["a", "a"]),
        has_columns=False,
        is_saved=False,
    ),
    "LinkLearn": Case(
        lambda: LinkLearn(n_hidden=2, n_steps=5, random_state=0),
        lambda model, links: model.fit(links),
        lambda model, links: model.to_index(links.corpus).search("w1 w2 w3 w4", k=20).scores,
        (_links(0), _links(1)),
        "no links",
        has_columns=False,
    ),
    "fit_parts RankRLS": _by_parts(RankRLS),
    "fit_parts CoRankRLS": _by_parts(lambda: CoRankRLS(random_state=0)),
}


def exported() -> dict[str, type]:
    """Return the concrete estimators that corank or one of its packages exports."""
    places = [import_module(f"corank.{name}") for name in registry.FOLDERS]
    found = {}
    for place in places:
        for name in getattr(place, "__all__", ()):
            thing = getattr(place, name)
            if isinstance(thing, type) and issubclass(thing, BaseEstimator) and not inspect.isabstract(thing):
                found[name] = thing
    return found


# these go through the same code as another entry
REPEATED_LEARNERS = frozenset(["CalibratedLabelRanker sgd", "OnlineLabelRanker kernel"])


def is_long(name: str) -> bool:
    """Return whether only `make test-all` runs the laws on an entry."""
    return name in REPEATED or name in REPEATED_LEARNERS
