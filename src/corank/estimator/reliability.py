"""Reliability: do predictions of 0.7 come true seven times in ten?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corank.data.problem.inputs import as_numbers, as_scores
from corank.errors import InputError, import_extra
from corank.parameters import check_values, one_of, whole

Floats = NDArray[np.float64]
STRATEGIES = ("uniform", "quantile")


@dataclass(frozen=True, eq=False)
class Reliability:
    """
    Means of predictions and of what came true, bin by bin; empty bins are left out.

    Attributes
    ----------
    predicted : array of float64
        Mean prediction of each bin, ascending.
    observed : array of float64
        Mean score of each bin.
    counts : array of int64
        Rows of each bin.
    """

    predicted: Floats
    observed: Floats
    counts: NDArray[np.int64]

    @property
    def expected_error(self) -> float:
        """Expected calibration error Σ_b (n_b / n) |observed_b − predicted_b|."""
        return float(np.average(np.abs(self.observed - self.predicted), weights=self.counts))


def reliability_curve(
    y: ArrayLike, p: ArrayLike, n_bins: int = 10, strategy: Literal["uniform", "quantile"] = "uniform"
) -> Reliability:
    """
    Compare predictions with what came true.

    Parameters
    ----------
    y : array-like of shape (n,)
        Scores, such as 0 and 1; NaN marks unscored rows, which are left out.
    p : array-like of shape (n,)
        Predicted probabilities or expected scores.
    n_bins : int
        Number of bins.
    strategy : {"uniform", "quantile"}
        Bins of equal width (of [0, 1], or of the range of p where y or p leaves it), or of about equal numbers.

    Returns
    -------
    Reliability
        The curve.

    Examples
    --------
    >>> curve = reliability_curve([0, 1, 1, 1], [0.2, 0.2, 0.9, 0.9], n_bins=2)
    >>> curve.observed.tolist(), round(curve.expected_error, 3)
    ([0.5, 1.0], 0.2)
    """
    predictions = as_numbers(p, "p", "prediction")
    if not np.isfinite(predictions).all():
        raise InputError("p holds NaN or infinity; pass a vector of finite predictions.")
    truth = as_scores(y, len(predictions))
    kept = ~np.isnan(truth)
    truth, predictions = truth[kept], predictions[kept]
    if len(truth) == 0:
        raise InputError("y holds no score to compare predictions with; pass at least one.")
    check_values({"n_bins": n_bins, "strategy": strategy}, {"n_bins": whole(1), "strategy": one_of(*STRATEGIES)})
    bins = np.searchsorted(_edges(truth, predictions, n_bins, strategy), predictions)
    counts = np.bincount(bins)
    filled = counts > 0
    sums = [np.bincount(bins, weights=values)[filled] / counts[filled] for values in (predictions, truth)]
    return Reliability(sums[0], sums[1], counts[filled])


def plot_reliability(curve: Reliability, ax: Any = None) -> Any:
    """
    Draw a reliability curve beside the diagonal that perfect predictions follow.

    Parameters
    ----------
    curve : Reliability
        The curve.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes
        The drawing.
    """
    pyplot = import_extra("matplotlib.pyplot", "report")
    ax = pyplot.subplots()[1] if ax is None else ax
    ends = [min(curve.predicted.min(), curve.observed.min()), max(curve.predicted.max(), curve.observed.max())]
    ax.plot(ends, ends, color="0.7", linestyle="--", label="perfect")
    ax.plot(curve.predicted, curve.observed, marker="o", label=f"expected error {curve.expected_error:.3f}")
    ax.set_xlabel("mean prediction")
    ax.set_ylabel("mean score")
    ax.legend()
    return ax


def _edges(y: Floats, p: Floats, n_bins: int, strategy: str) -> Floats:
    """Upper ends of all bins but the last."""
    if strategy == "quantile":
        return np.asarray(np.quantile(p, np.linspace(0.0, 1.0, n_bins + 1)[1:-1]))
    probable = min(y.min(), p.min()) >= 0.0 and max(y.max(), p.max()) <= 1.0
    low, high = (0.0, 1.0) if probable else (p.min(), p.max())
    return np.linspace(low, high, n_bins + 1)[1:-1]
