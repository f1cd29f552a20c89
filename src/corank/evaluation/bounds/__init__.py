"""Bounds on the expected ranking error: from held-out data, by cross-validation, and for classes of rankers."""

from corank.evaluation.bounds.bound import Bound
from corank.evaluation.bounds.cross_validation import cv_bound
from corank.evaluation.bounds.kpartite import finite_class, kpartite_interval, linear_class
from corank.evaluation.bounds.resampling import resampling_interval

__all__ = ["Bound", "cv_bound", "finite_class", "kpartite_interval", "linear_class", "resampling_interval"]
