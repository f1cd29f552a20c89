"""The estimator contract, and the estimators that wrap or prepare others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from corank._lazy import lazy

if TYPE_CHECKING:
    from corank.base.base import Ranker as Ranker
    from corank.base.calibration import Calibrated as Calibrated
    from corank.base.calibration import Reliability as Reliability
    from corank.base.calibration import reliability_curve as reliability_curve
    from corank.base.explanation import Explanation as Explanation
    from corank.base.explanation import explain as explain
    from corank.base.landmarks import Landmarks as Landmarks
    from corank.base.path_display import PathDisplay as PathDisplay
    from corank.base.priors import ColumnMean as ColumnMean
    from corank.base.priors import OnTop as OnTop
    from corank.base.query_scaler import QueryScaler as QueryScaler
    from corank.base.search import QuerySearchCV as QuerySearchCV
    from corank.base.smooth import Smooth as Smooth

_HOMES = {
    "Calibrated": "corank.base.calibration",
    "ColumnMean": "corank.base.priors",
    "Explanation": "corank.base.explanation",
    "Landmarks": "corank.base.landmarks",
    "OnTop": "corank.base.priors",
    "PathDisplay": "corank.base.path_display",
    "QueryScaler": "corank.base.query_scaler",
    "QuerySearchCV": "corank.base.search",
    "Ranker": "corank.base.base",
    "Reliability": "corank.base.calibration",
    "Smooth": "corank.base.smooth",
    "explain": "corank.base.explanation",
    "reliability_curve": "corank.base.calibration",
}

__all__ = [*_HOMES]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy(__name__, _HOMES)
