"""Scores that mean something: the expected grade of a row, or the probability that it is relevant."""

from corank.calibration.calibrated import Calibrated
from corank.calibration.reliability import Reliability, plot_reliability, reliability_curve

__all__ = ["Calibrated", "Reliability", "plot_reliability", "reliability_curve"]
