"""Make a process ready to sum: load the kernels, or compile them where nobody has before."""

from __future__ import annotations

import time

import numpy as np


def ready() -> float:
    """
    Sum over a few made rows, so that no part waits for the compiler.

    Returns: seconds it took; next to nothing where the kernels are loaded.
    """
    from corank.data.problem.ranking import RankingData
    from corank.distributed.sums import Wanted, sum_part
    from corank.distributed.whole import Problem

    began = time.perf_counter()
    for dtype in (np.float32, np.float64):
        X = np.arange(12, dtype=dtype).reshape(6, 2)
        data = RankingData.of(X, [0.0, 1.0, 1.0, np.nan, np.nan, 0.0], [1, 1, 1, 1, 1, 2])
        sum_part(iter([Problem(data, np.arange(6))]), Wanted(unscored=True, origin=np.zeros(2)))
    return time.perf_counter() - began
