"""The estimator contract, and the estimators that wrap or prepare others."""

from corank.estimator.base import Ranker
from corank.estimator.calibration import Calibrated, Reliability, plot_reliability, reliability_curve
from corank.estimator.explanation import Explanation, explain
from corank.estimator.landmarks import Landmarks
from corank.estimator.priors import ColumnMean, OnTop
from corank.estimator.query_scaler import QueryScaler
from corank.estimator.search import QuerySearchCV
from corank.estimator.smooth import Smooth

__all__ = [
    "Calibrated", "ColumnMean", "Explanation", "Landmarks", "OnTop", "QueryScaler", "QuerySearchCV", "Ranker",
    "Reliability", "Smooth", "explain", "plot_reliability", "reliability_curve",
]  # fmt: skip
