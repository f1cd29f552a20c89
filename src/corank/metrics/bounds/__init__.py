"""Bounds on the expected ranking error: from held-out data, by cross-validation, and for classes of rankers."""

from corank.metrics.bounds.cross_validation import DistanceScorer, cv_bound, randomised_bound, ranking_distance
from corank.metrics.bounds.kpartite import Bound, finite_class, kpartite_interval, linear_class
from corank.metrics.bounds.resampling import resampling_interval

__all__ = [
    "Bound", "DistanceScorer", "cv_bound", "finite_class", "kpartite_interval", "linear_class", "randomised_bound",
    "ranking_distance", "resampling_interval",
]  # fmt: skip
