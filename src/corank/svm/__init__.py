"""Learn the margin: RankSVM, linear and with kernels."""

from corank.svm.ranksvm import RankSVM

__all__ = ["RankSVM"]
