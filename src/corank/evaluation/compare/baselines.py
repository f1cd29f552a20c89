"""What a learnt ranker has to beat: a random order, and LightGBM as it comes."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from corank.data.problem.queries import Queries
from corank.data.problem.rows import as_rows
from corank.errors import InputError, import_extra
from corank.evaluation.compare.problem import comparable
from corank.lambdarank import LambdaRank
from corank.lambdarank.trees import taken

Floats = NDArray[np.float64]

# the gains that LightGBM's defaults have
_GRADES = 31


class RandomOrder(BaseEstimator):
    """
    No order: equal scores where a convention takes the expectation over ties, else random ones.

    is_drawn: whether scores are drawn.
    """

    def __init__(self, is_drawn: bool, *, random_state: Any = None) -> None:
        self.is_drawn = is_drawn
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn nothing."""
        self.is_fitted_ = True
        return self

    def predict(self, X: Any) -> Floats:
        """Score rows without a look."""
        n = X.shape[0]
        return np.random.default_rng(self.random_state).random(n) if self.is_drawn else np.zeros(n)


class LightGBM(BaseEstimator):
    """LightGBM's lambdarank with its defaults, on one thread; the model is one of corank's that holds its trees."""

    __metadata_request__fit: ClassVar[dict[str, bool]] = {"qid": True}

    def __init__(self, *, random_state: Any = None) -> None:
        self.random_state = random_state

    def fit(self, X: Any, y: ArrayLike, *, qid: ArrayLike) -> Self:
        """Grow trees on the scored rows."""
        rows, grades = as_rows(X), np.asarray(y, dtype=np.float64)
        scored = ~np.isnan(grades)
        if not np.isin(grades[scored], np.arange(_GRADES)).all():
            raise InputError(
                f"LightGBM's lambdarank takes whole grades from 0 to {_GRADES - 1} only; leave lightgbm out."
            )
        queries = Queries.of(np.asarray(qid)[scored], int(scored.sum()))
        order = np.flatnonzero(scored)[queries.order]
        ranker = import_extra("lightgbm", "trees").LGBMRanker(verbosity=-1, n_jobs=1, random_state=self.random_state)
        ranker.fit(taken(rows[order]), grades[order], group=queries.sizes)
        model = LambdaRank(scorer="trees", scale=False)
        model.trees_ = ranker.booster_.model_to_string()
        model.n_iter_ = int(ranker.booster_.num_trees())
        model.n_features_in_ = int(rows.shape[1])
        model.n_skipped_queries_ = len(queries) - len(comparable(grades[scored], queries.codes))
        self.ranker_ = model
        return self

    def predict(self, X: Any) -> Floats:
        """Score rows by the trees."""
        return self.ranker_.predict(X)
