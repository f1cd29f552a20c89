"""Methods of ordinal regression: Gaussian processes, and methods of scikit-learn; each chooses its own parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV, RidgeCV
from sklearn.model_selection import StratifiedKFold

from corank.models.gp import OrdinalGP
from corank.parameters import Likelihood

Floats = NDArray[np.float64]
Guess = tuple[Floats, Floats]

ALPHAS = tuple(10.0**power for power in range(-2, 4))
CS = (0.01, 0.1, 1.0, 10.0)
# scale of the threshold columns, so that thresholds are hardly penalised
_FREE = 100.0


def constant(X: Floats, y: Floats, Z: Floats) -> Guess:
    """The median grade, and the most frequent one."""
    levels, counts = np.unique(y, return_counts=True)
    middle = np.sort(y)[(len(y) - 1) // 2]
    return np.full(len(Z), middle), np.full(len(Z), levels[counts.argmax()])


def ridge(X: Floats, y: Floats, Z: Floats) -> Guess:
    """Ridge regression on the grades, rounded: mord's OrdinalRidge; its penalty by leave-one-out."""
    results = RidgeCV(ALPHAS).fit(X, y).predict(Z)
    levels = np.unique(y)
    nearest = levels[np.abs(results[:, None] - levels).argmin(axis=1)]
    return nearest, nearest


def all_thresholds(X: Floats, y: Floats, Z: Floats, C: float) -> Floats:
    """
    Logistic regression on every threshold at once: mord's LogisticAT, whose alpha is 1/C.

    Each row is repeated for each threshold, with the side of its grade as class: the weights are shared, and each
    threshold is an extra column.
    """
    levels = np.unique(y)
    k = len(levels) - 1
    columns = np.tile(_FREE * np.eye(k), (len(y), 1))
    rows = np.hstack([np.repeat(X, k, axis=0), columns])
    side = (np.repeat(y, k) > np.tile(levels[:-1], len(y))).astype(int)
    model = LogisticRegression(C=C, fit_intercept=False, max_iter=2000).fit(rows, side)
    w, b = model.coef_[0, : X.shape[1]], _FREE * model.coef_[0, X.shape[1] :]
    return np.asarray(levels[((Z @ w)[:, None] + b > 0.0).sum(axis=1)])


def logistic_thresholds(X: Floats, y: Floats, Z: Floats) -> Guess:
    """`all_thresholds`, its C by the absolute error in fivefold cross-validation."""
    folds = list(StratifiedKFold(5, shuffle=True, random_state=0).split(X, y))

    def error(C: float) -> float:
        return float(np.mean([np.abs(all_thresholds(X[a], y[a], X[b], C) - y[b]).mean() for a, b in folds]))

    results = all_thresholds(X, y, Z, min(CS, key=error))
    return results, results


def by_classes(model: Any) -> Callable[[Floats, Floats, Floats], Guess]:
    """Any classifier, whose probabilities have a middle grade, too."""

    def guess(X: Floats, y: Floats, Z: Floats) -> Guess:
        shares = model().fit(X, y).predict_proba(Z)
        levels = np.unique(y)
        return levels[(np.cumsum(shares, axis=1)[:, :-1] < 0.5).sum(axis=1)], levels[shares.argmax(axis=1)]

    return guess


def process(likelihood: Likelihood, kernel: str) -> Callable[[Floats, Floats, Floats], Guess]:
    """A Gaussian process with default parameters."""

    def guess(X: Floats, y: Floats, Z: Floats) -> Guess:
        model = OrdinalGP(kernel, likelihood=likelihood, random_state=0).fit(X, y, qid=np.zeros(len(y)))
        return model.predict_level(Z, "median"), model.predict_level(Z, "mode")

    return guess


METHODS: dict[str, Callable[[Floats, Floats, Floats], Guess]] = {
    "constant": constant,
    "ridge, rounded": ridge,
    "logistic, all thresholds": logistic_thresholds,
    "logistic, classes": by_classes(lambda: LogisticRegressionCV(Cs=CS, cv=5, max_iter=2000)),
    "random forest": by_classes(lambda: RandomForestClassifier(300, random_state=0)),
    "GPR": process("gaussian", "gaussian"),
    "GPOR": process("ordinal", "gaussian"),
    "GPOR, ard": process("ordinal", "ard"),
}
