"""The estimator contract, and what estimators share: losses, pairs, kernels, solvers, search, calibration."""

from corank._lazy import lazy

__getattr__, __dir__, __all__ = lazy(__name__)
