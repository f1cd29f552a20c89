"""The estimator contract, and the estimators that wrap or prepare others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from corank._lazy import lazy

if TYPE_CHECKING:
    from corank.estimator.base import Ranker as Ranker
    from corank.estimator.calibration import Calibrated as Calibrated
    from corank.estimator.calibration import Reliability as Reliability
    from corank.estimator.calibration import reliability_curve as reliability_curve
    from corank.estimator.explanation import Explanation as Explanation
    from corank.estimator.explanation import explain as explain
    from corank.estimator.landmarks import Landmarks as Landmarks
    from corank.estimator.path_display import PathDisplay as PathDisplay
    from corank.estimator.priors import ColumnMean as ColumnMean
    from corank.estimator.priors import OnTop as OnTop
    from corank.estimator.query_scaler import QueryScaler as QueryScaler
    from corank.estimator.search import QuerySearchCV as QuerySearchCV
    from corank.estimator.smooth import Smooth as Smooth

_HOMES = {
    "Calibrated": "corank.estimator.calibration",
    "ColumnMean": "corank.estimator.priors",
    "Explanation": "corank.estimator.explanation",
    "Landmarks": "corank.estimator.landmarks",
    "OnTop": "corank.estimator.priors",
    "PathDisplay": "corank.estimator.path_display",
    "QueryScaler": "corank.estimator.query_scaler",
    "QuerySearchCV": "corank.estimator.search",
    "Ranker": "corank.estimator.base",
    "Reliability": "corank.estimator.calibration",
    "Smooth": "corank.estimator.smooth",
    "explain": "corank.estimator.explanation",
    "reliability_curve": "corank.estimator.calibration",
}

__all__ = [*_HOMES]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy(__name__, _HOMES)
