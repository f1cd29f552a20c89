"""The estimator contract, and the estimators that wrap or prepare others."""

from corank.estimator.base import Ranker
from corank.estimator.calibrated import Calibrated
from corank.estimator.column_mean import ColumnMean
from corank.estimator.explanation import Explanation, explain
from corank.estimator.landmarks import Landmarks
from corank.estimator.on_top import OnTop
from corank.estimator.query_scaler import QueryScaler
from corank.estimator.reliability import Reliability, plot_reliability, reliability_curve
from corank.estimator.search import QuerySearchCV
from corank.estimator.smooth import Smooth

__all__ = [
    "Calibrated", "ColumnMean", "Explanation", "Landmarks", "OnTop", "QueryScaler", "QuerySearchCV", "Ranker",
    "Reliability", "Smooth", "explain", "plot_reliability", "reliability_curve",
]  # fmt: skip
