"""
One repeat of the comparison of views on MQ2008: training and test queries, hidden scores, and basis rows.

Even repeats are of one half of the queries, odd repeats of the other. Of the queries of a half 70 % are to train on; a
share of the training rows is unscored; each of two views has 20 random basis rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.base.kernels import GaussianKernel, Kernel
from corank.base.kernels.views import View
from corank.data.splits import mask_scores
from corank.metrics import evaluate
from experiments.datasets.mq2008 import read_parts

Floats = NDArray[np.float64]

N_BASIS = 20
TRAIN_SHARE = 0.7


@dataclass(frozen=True, eq=False)
class ViewsRepeat:
    """
    One repeat.

    X, y, qid: training rows; y is NaN where a score is hidden.
    X_test, y_test, qid_test: test rows.
    views: two views, each with its basis rows and the kernel.
    """

    X: Floats
    y: Floats
    qid: NDArray[Any]
    X_test: Floats
    y_test: Floats
    qid_test: NDArray[Any]
    views: list[View]

    @property
    def kernel(self) -> Kernel:
        """The kernel of both views."""
        kernel: Kernel = self.views[0].kernel
        return kernel

    def mean_errors(self, scores: Floats) -> list[float]:
        """Return the mean disagreement error over the test queries of each column of scores."""
        return [float(evaluate(self.y_test, f, self.qid_test, "disagreement")["disagreement"].mean) for f in scores.T]


def draw_views(seed: int, repeat: int, hidden: float) -> ViewsRepeat:
    """Draw one repeat; a share `hidden` of its training rows is unscored."""
    rng = np.random.default_rng([seed, repeat])
    X, y, qid = _rows()
    half = np.random.default_rng(0).permutation(np.unique(qid))[repeat % 2 :: 2]
    kept = np.isin(qid, half)
    X, y, qid, queries = X[kept], y[kept], qid[kept], rng.permutation(half)
    train = np.isin(qid, queries[: round(TRAIN_SHARE * len(queries))])
    y_train = mask_scores(y[train], fraction=hidden, random_state=int(rng.integers(2**31)))
    kernel = median_kernel(X[train], rng)
    basis = rng.choice(int(train.sum()), 2 * N_BASIS, replace=False)
    views = [View(None, kernel, np.sort(part)) for part in (basis[:N_BASIS], basis[N_BASIS:])]
    return ViewsRepeat(X[train], y_train, qid[train], X[~train], y[~train], qid[~train], views)


def median_kernel(X: Any, rng: np.random.Generator) -> GaussianKernel:
    """
    Return a Gaussian kernel whose σ is the median distance of rows; corank's own default is twice as wide.

    rng: draws pairs of them.
    """
    fitted: Any = GaussianKernel().fit(X, rng)
    return GaussianKernel(4.0 * fitted.gamma)


@cache
def _rows() -> tuple[Floats, Floats, NDArray[Any]]:
    """Rows of the queries that have something to order."""
    file = read_parts()
    assert file.qid is not None
    codes = np.unique(file.qid, return_inverse=True)[1]
    y = np.asarray(file.y)
    several = np.array([len(np.unique(y[codes == q])) > 1 for q in range(codes.max() + 1)])
    kept = several[codes]
    return np.asarray(file.X)[kept], y[kept], codes[kept]
