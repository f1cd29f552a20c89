"""What theory promises for a ranker: intervals on held-out data, classes of rankers, cross-validation."""

from corank.evaluation.bounds.bound import Bound
from corank.evaluation.bounds.cross_validation import cv_bound
from corank.evaluation.bounds.kpartite import finite_class, kpartite_interval, linear_class

__all__ = ["Bound", "cv_bound", "finite_class", "kpartite_interval", "linear_class"]
