"""The estimator contract, and the estimators that wrap or prepare others."""

from corank.estimator.base import Ranker
from corank.estimator.calibration import Calibrated, Reliability, reliability_curve
from corank.estimator.explanation import Explanation, explain
from corank.estimator.landmarks import Landmarks
from corank.estimator.path_display import PathDisplay
from corank.estimator.priors import ColumnMean, OnTop
from corank.estimator.query_scaler import QueryScaler
from corank.estimator.search import QuerySearchCV
from corank.estimator.smooth import Smooth

__all__ = [
    "Calibrated", "ColumnMean", "Explanation", "Landmarks", "OnTop", "PathDisplay", "QueryScaler", "QuerySearchCV",
    "Ranker", "Reliability", "Smooth", "explain", "reliability_curve",
]  # fmt: skip
