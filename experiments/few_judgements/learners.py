"""Estimators for judged rows: corank's rankers, and LogisticRegression as a scikit-learn user would choose."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from corank.models.rls import RankRLS

Floats = NDArray[np.float64]


class Classified(BaseEstimator):
    """A classifier as a ranker: it sees the rows that are judged, and scores by its decision function."""

    def __init__(self, classifier: Any) -> None:
        self.classifier = classifier

    def fit(self, X: Any, y: Floats) -> Self:
        """Fit the classifier on the judged rows."""
        judged = np.flatnonzero(~np.isnan(y))
        self.classifier_ = clone(self.classifier).fit(X[judged], y[judged])
        return self

    def predict(self, X: Any) -> Floats:
        """Score rows."""
        return np.asarray(self.classifier_.decision_function(X))


RANKRLS, SMOOTHED = "RankRLS", "RankRLS, Smooth"
STRONGER = "RankRLS, cosine kernel"
LOGISTIC, SVM = "LogisticRegression", "LinearSVC"


def learners() -> dict[str, tuple[str, Any]]:
    """
    Return an estimator with default parameters except those for text: unscaled columns, balanced classes.

    Returns: name to its features ("text" or "smooth") and the estimator. For rows of norm 1 the cosine kernel is the
        linear one, except that its default alpha does not depend on the number of columns.
    """
    return {
        LOGISTIC: ("text", Classified(LogisticRegression(class_weight="balanced"))),
        SVM: ("text", Classified(LinearSVC(class_weight="balanced"))),
        RANKRLS: ("text", RankRLS(scale=False)),
        SMOOTHED: ("smooth", RankRLS(scale=False)),
        STRONGER: ("text", RankRLS(kernel="cosine")),
        f"{STRONGER}, Smooth": ("smooth", RankRLS(kernel="cosine")),
    }
