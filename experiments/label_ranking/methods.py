"""The methods of the label ranking experiment: each learns from training rows and gives utilities for test rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from corank.base.transformers import Landmarks
from corank.models.labels import (
    AutoLabelRanker,
    CalibratedLabelRanker,
    ForestLabelRanker,
    LabelPreferences,
    NeighborLabelRanker,
    OnlineLabelRanker,
    PairwiseLabelRanker,
    hamming_loss,
    kendall_distance,
    kendall_tau,
    top_positions,
)
from corank.models.labels.online import RankingLoss
from corank.models.labels.ranker import ranking
from corank.parameters import Conversion, Targets

Floats = NDArray[np.float64]

ALPHAS = (0.01, 0.1, 1.0)
"""Penalties that are tried, as shares of the mean squared length of rows over their number; 0.1 is the default."""

HELD_OUT = 4
"""A quarter of the training rows chooses among them."""

# most rows that a kernel perceptron is trained on
MAX_KERNEL_ROWS = 3000
# numbers of neighbours that scikit-learn's are chosen from, on a quarter of the training rows
NEIGHBOURS = (1, 3, 5, 10, 20, 40)

Method = Callable[[Floats, Floats, Floats, int], Floats | None]


def _online(average: bool, kernel: Any = None) -> Method:
    def run(X: Floats, y: Floats, Z: Floats, seed: int) -> Floats | None:
        if kernel is not None and len(X) > MAX_KERNEL_ROWS:
            return None
        ranker = OnlineLabelRanker("kendall", "ranks", kernel, average=average, random_state=seed)
        return _utilities(make_pipeline(StandardScaler(), ranker).fit(X, y), Z)

    return run


def _batch(conversion: Conversion) -> Method:
    def run(X: Floats, y: Floats, Z: Floats, seed: int) -> Floats:
        return CalibratedLabelRanker(targets="ranks", conversion=conversion).fit(X, y).utilities(Z)

    return run


def _landmarks(X: Floats, y: Floats, Z: Floats, seed: int) -> Floats:
    model = make_pipeline(Landmarks(300, random_state=seed), CalibratedLabelRanker(targets="ranks"))
    return _utilities(model.fit(X, y), Z)


def _neighbours(X: Floats, y: Floats, Z: Floats, seed: int) -> Floats:
    return NeighborLabelRanker(targets="ranks").fit(X, y).utilities(Z)


def _forest(X: Floats, y: Floats, Z: Floats, seed: int) -> Floats:
    return ForestLabelRanker(targets="ranks", random_state=seed).fit(X, y).utilities(Z)


def _pairwise(X: Floats, y: Floats, Z: Floats, seed: int) -> Floats:
    return PairwiseLabelRanker(targets="ranks").fit(X, y).utilities(Z)


def _automatic(X: Floats, y: Floats, Z: Floats, seed: int) -> Floats:
    return AutoLabelRanker("ranks", random_state=seed).fit(X, y).utilities(Z)


def _constant(X: Floats, y: Floats, Z: Floats, seed: int) -> Floats:
    return np.tile(-y.mean(axis=0), (len(Z), 1))


def _ridge(X: Floats, y: Floats, Z: Floats, seed: int) -> Floats:
    return -np.asarray(make_pipeline(StandardScaler(), Ridge()).fit(X, y).predict(Z))


def _random_forest(X: Floats, y: Floats, Z: Floats, seed: int) -> Floats:
    return -np.asarray(RandomForestRegressor(100, min_samples_leaf=2, random_state=seed).fit(X, y).predict(Z))


def _nearest(X: Floats, y: Floats, Z: Floats, seed: int) -> Floats:
    def fitted(k: float, X: Floats, y: Floats) -> Any:
        return make_pipeline(StandardScaler(), KNeighborsRegressor(min(int(k), len(X)), weights="distance")).fit(X, y)

    held = np.random.default_rng(seed).permutation(len(X)) % HELD_OUT == 0

    def tau(k: float) -> float:
        return float(np.nanmean(kendall_tau(y[held], fitted(k, X[~held], y[~held]).predict(X[held]))))

    return -np.asarray(fitted(max(NEIGHBOURS, key=tau), X, y).predict(Z))


def _utilities(model: Any, Z: Floats) -> Floats:
    return np.asarray(model[-1].utilities(model[:-1].transform(Z)))


CANDIDATES: dict[str, Method] = {
    "batch": _batch("all"),
    "online": _online(True),
    "pairwise": _pairwise,
    "neighbours": _neighbours,
    "forest": _forest,
}
"""The methods that `AutoLabelRanker` averages."""

RANKING: dict[str, Method] = {
    "constant": _constant,
    "ridge": _ridge,
    "kNN": _nearest,
    "random forest": _random_forest,
    **CANDIDATES,
    "automatic": _automatic,
}
"""From positions of labels: scikit-learn's regressions of positions, and corank's rankers."""

VARIANTS: dict[str, Method] = {
    "online, last": _online(False),
    "online, kernel": _online(True, "gaussian"),
    "batch, adjacent": _batch("adjacent"),
    "batch, landmarks": _landmarks,
}
"""What was left out of the defaults; None where a method would take too long."""


def _calibrated(targets: Targets, ranker: type[Any] = CalibratedLabelRanker, **how: Any) -> Method:
    def fitted(alpha: float, X: Floats, y: Floats) -> Any:
        return ranker(targets=targets, alpha=_penalty(alpha, X), **how).fit(X, y)

    def run(X: Floats, y: Floats, Z: Floats, seed: int) -> Floats:
        return np.asarray(_tuned(fitted, X, y, targets, seed).utilities(Z))

    return run


def _one_vs_rest(targets: str) -> Method:
    def fitted(alpha: float, X: Floats, y: Floats) -> Any:
        # its penalty is added to the sum over rows with columns of deviation 1
        of_label = LogisticRegression(C=1.0 / (alpha * X.shape[1]), max_iter=1000)
        return make_pipeline(StandardScaler(), OneVsRestClassifier(of_label)).fit(X, (y > 0).astype(int))

    def run(X: Floats, y: Floats, Z: Floats, seed: int) -> Floats:
        return np.asarray(_tuned(fitted, X, y, targets, seed).decision_function(Z))

    return run


def _uncalibrated(targets: str, cut: str) -> Method:
    """Learn the order alone, without the zero point, and cut it at one utility or after one number of labels."""

    def fitted(alpha: float, X: Floats, y: Floats) -> Any:
        order = top_positions(y) if targets == "top" else -y
        model = CalibratedLabelRanker(alpha=_penalty(alpha, X)).fit(X, LabelPreferences.from_ranks(order))
        u = model.utilities(X)
        threshold = max(np.quantile(u, np.linspace(0.01, 0.99, 99)), key=lambda t: -_cost(targets, y, u - t))
        if cut == "number":
            threshold = max(range(y.shape[1] + 1), key=lambda k: -_cost(targets, y, _first(u, k)))
        return _Cut(model, threshold, cut)

    def run(X: Floats, y: Floats, Z: Floats, seed: int) -> Floats:
        return np.asarray(_tuned(fitted, X, y, targets, seed).decision_function(Z))

    return run


class _Cut:
    """An order of labels with a cut: utilities above 0 are those above it."""

    def __init__(self, model: CalibratedLabelRanker, threshold: float, cut: str) -> None:
        self.model, self.threshold, self.cut = model, threshold, cut

    def decision_function(self, X: Floats) -> Floats:
        u = self.model.utilities(X)
        return u - self.threshold if self.cut == "utility" else _first(u, int(self.threshold))


def _first(u: Floats, k: int) -> Floats:
    """Move utilities so that the first k of each row are above 0."""
    down = -np.sort(-u, axis=1)
    low = down[:, k - 1] if k > 0 else down[:, 0] + 1.0
    high = down[:, k] if k < u.shape[1] else down[:, -1] - 1.0
    return u - (0.5 * (low + high) if k > 0 else low)[:, None]


def _prior(targets: Targets) -> Method:
    def run(X: Floats, y: Floats, Z: Floats, seed: int) -> Floats:
        model = CalibratedLabelRanker(targets=targets).fit(np.zeros((len(X), 1)), y)
        return model.utilities(np.zeros((len(Z), 1)))

    return run


def _stream(targets: Targets, loss: RankingLoss) -> Method:
    def run(X: Floats, y: Floats, Z: Floats, seed: int) -> Floats:
        model = make_pipeline(StandardScaler(), OnlineLabelRanker(loss, targets, random_state=seed))
        return _utilities(model.fit(X, y), Z)

    return run


def cut_methods(targets: Targets) -> dict[str, Method]:
    """
    Return methods whose utilities have a zero point.

    targets: "relevant" or "top".
    """
    online = {f"online, {loss}": _stream(targets, loss) for loss in ("share", "kendall")}
    ranked = {
        "calibrated, adjacent": _calibrated(targets, conversion="adjacent"),
        "calibrated, lowest": _calibrated(targets, above_zero="lowest"),
    }
    return {
        "constant": _prior(targets),
        "one-vs-rest logistic": _one_vs_rest(targets),
        "uncalibrated, one number": _uncalibrated(targets, "number"),
        "uncalibrated, one utility": _uncalibrated(targets, "utility"),
        **online,
        **(ranked if targets == "top" else {}),
        "pairwise": _calibrated(targets, PairwiseLabelRanker),
        "calibrated": _calibrated(targets),
    }


def _penalty(share: float, X: Floats) -> float:
    return float(share * X.shape[1] / len(X))


def _tuned(fitted: Callable[[float, Floats, Floats], Any], X: Floats, y: Floats, targets: str, seed: int) -> Any:
    """Choose the penalty on a quarter of the training rows, and learn from all of them."""
    held = np.random.default_rng(seed).permutation(len(X)) % HELD_OUT == 0

    def cost(alpha: float) -> float:
        return _cost(targets, y[held], np.asarray(fitted(alpha, X[~held], y[~held]).decision_function(X[held])))

    return fitted(min(ALPHAS, key=cost), X, y)


def _cost(targets: str, y: Floats, u: Floats) -> float:
    """Hamming loss, and of top lists Kendall's distance."""
    if targets == "relevant":
        return float(hamming_loss(y, u > 0.0).mean())
    return float(kendall_distance(top_positions(y), top_order(u)).mean())


def top_order(u: Floats) -> Floats:
    """Return the top lists of utilities as positions of all labels: those at or below 0 are tied behind."""
    return top_positions(np.where(u > 0.0, ranking(u), 0))
