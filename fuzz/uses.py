"""The public predictions of every class of model, called on small rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.pipeline import Pipeline

import corank
from corank.base.base import Ranker
from corank.models.ratings.ranker import RatingsRanker
from corank.text import Corpus

ROWS = np.abs(np.random.default_rng(1).normal(size=(7, 5)))  # BM25 takes counts
QIDS = ["a", "a", "b", "b", "b", "a", "c"]
Y = np.arange(7.0) % 3
PAIRS = [[0, 1], [2, 0], [3, 4]]
CORPUS = Corpus.of(["tin and gold", "gold coins, gold mines", "iron rust", "tin"], language=None)
ITEM_IDS, USER_IDS = [0, 3, 5, 9, 0, 1, 2], ["u", "u", "v", "y", "stranger", "w", "x"]

Call = Callable[[Any, Any], Any]

ON_ROWS: dict[str, tuple[Call, ...]] = {
    "predict": (lambda m, X: m.predict(X),),
    "rank": (lambda m, X: m.rank(X, QIDS[: X.shape[0]]),),
    "predict_proba": (lambda m, X: m.predict_proba(X),),
    "predict_views": (lambda m, X: m.predict_views(X),),
    "predict_path": (lambda m, X: m.predict_path(X),),
    "predict_level": (lambda m, X: m.predict_level(X), lambda m, X: m.predict_level(X, "median")),
    "predict_pair": (lambda m, X: m.predict_pair(X, PAIRS), lambda m, X: corank.models.suggest_pairs(m, X, 2)),
    "posterior": (lambda m, X: m.posterior(X), lambda m, X: m.posterior()),
    "answered": (lambda m, X: m.answered(),),
    "ranker_scores": (lambda m, X: m.ranker_scores(X),),
    "explain": (lambda m, X: m.explain(X[0]), lambda m, X: m.explain(X[1], 1)),
    "show": (lambda m, X: _learnt(m, X, 2),),
    "learn": (lambda m, X: _learnt(m, X, 9),),
    "decision_function": (lambda m, X: m.decision_function(X),),
    "utilities": (lambda m, X: m.utilities(X),),
    "predict_ranking": (lambda m, X: m.predict_ranking(X),),
    "predict_relevant": (lambda m, X: m.predict_relevant(X),),
    "predict_top": (lambda m, X: m.predict_top(X),),
    "transform": (lambda m, X: m.transform(X),),
    "get_feature_names_out": (lambda m, X: m.get_feature_names_out(),),
    "to_index": (lambda m, X: _searched(m.to_index(CORPUS)),),
}
"""Predictions from rows, by the name of the method."""

ON_RATINGS: dict[str, tuple[Call, ...]] = {
    "predict": (lambda m, X: m.predict(ITEM_IDS, USER_IDS), lambda m, X: m.predict(ITEM_IDS)),
    "rank": (lambda m, X: m.rank(ITEM_IDS, USER_IDS),),
    "predict_user": (lambda m, X: m.predict_user([0, 2], [1.0, 5.0]), lambda m, X: m.predict_user([7], [3.0])),
    "predict_users": (lambda m, X: m.predict_users(_two_users(m)),),
    "recommend": (lambda m, X: m.recommend("u", 3), lambda m, X: m.recommend("stranger")),
    "recommend_user": (lambda m, X: m.recommend_user([1], [4.0], 3),),
    "predict_proba": (lambda m, X: m.predict_proba(ITEM_IDS, USER_IDS),),
    "predict_level": (
        lambda m, X: m.predict_level(ITEM_IDS, USER_IDS),
        lambda m, X: m.predict_level(ITEM_IDS, by="median"),
    ),
    "predict_user_proba": (lambda m, X: m.predict_user_proba([0, 3], [2.0, 5.0]),),
    "predict_new": (lambda m, X: m.predict_new(ROWS[:3, :2]), lambda m, X: m.predict_new(ROWS[:2, :2], ["v"], True)),
}
"""Predictions of rankers of ratings."""

WITH_STD: dict[str, Call] = {
    "rows": lambda m, X: m.predict(X, return_std=True),
    "ratings": lambda m, X: m.predict(ITEM_IDS, USER_IDS, return_std=True),
}
"""Predictions with standard deviations."""


def predictions(model: Any) -> Iterator[tuple[str, Call]]:
    """Yield every public prediction of a model: its name, and a function of the model and of rows."""
    on_ratings = isinstance(model, RatingsRanker)
    if getattr(model, "has_prior_", False):
        yield "predict", lambda m, X: m.predict(X, prior=np.arange(float(X.shape[0])))
        return
    for name, calls in (ON_RATINGS if on_ratings else ON_ROWS).items():
        if callable(getattr(model, name, None)):
            yield from ((name, call) for call in calls)
    if isinstance(model, corank.PreferenceGP | corank.OrdinalGP | corank.CollaborativeGP):
        yield "return_std", WITH_STD["ratings" if on_ratings else "rows"]
    if isinstance(model, corank.RankingPursuit | corank.CoRankingPursuit):
        yield "n_terms", lambda m, X: m.predict(X, 1)
    if isinstance(model, Ranker | Pipeline) and not on_ratings and hasattr(model, "predict"):
        yield "explain", lambda m, X: corank.explain(m, X, (0, X.shape[0] - 1), qid=QIDS[:1] * X.shape[0])


def learn_on(model: Any) -> None:
    """Fit a loaded model further, where that is possible."""
    if isinstance(model, corank.OnlineLabelRanker):
        model.partial_fit(ROWS, model.predict(ROWS))
    elif isinstance(model, corank.PreferenceGP):
        model.partial_fit(pairs=[[0, 1]])
    elif hasattr(model, "partial_fit") and "n_steps" in model.get_params(deep=False):
        model.set_params(n_steps=5, n_jobs=None)  # a larger number may take years
        model.partial_fit(ROWS, Y, qid=QIDS, **({"prior": Y} if model.has_prior_ else {}))


def _two_users(model: Any) -> Any:
    return sparse.csr_array(([4.0, 2.0], ([0, 1], [0, 0])), shape=(2, len(model.items_)))


def _searched(index: Any) -> Any:
    return index.search(["gold tin", "rust", ""], 2), index.scores("coins gold")


def _learnt(model: Any, rows: Any, k: int) -> Any:
    """Show a list to a copy, which learns from a click on its second row."""
    own = deepcopy(model)
    impression = own.show(rows, k)
    return own.learn(impression, np.arange(len(impression)) == 1).predict(rows)
