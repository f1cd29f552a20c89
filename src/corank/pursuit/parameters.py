"""What the parameters of pursuits may be."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from corank.graphs import QUERY_WEIGHTS
from corank.kernels import KERNELS
from corank.pursuit.coupled import SEARCHES
from corank.pursuit.fits import FITTINGS
from corank.pursuit.walk import RESIDUALS

SPLITS = ("columns", "dictionary")

_POSITIVE = Interval(Integral, 1, None, closed="left")
_BOTH: dict[str, list[Any]] = {
    "n_basis": [_POSITIVE],
    "kernel": [StrOptions(set(KERNELS)), HasMethods(["__call__"])],
    "query_weight": [StrOptions(set(QUERY_WEIGHTS))],
    "tol": [Interval(Real, 0, 1, closed="left")],
    "early_stopping": ["boolean"],
    "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
    "n_iter_no_change": [_POSITIVE],
    "random_state": ["random_state"],
}

PURSUIT: dict[str, list[Any]] = {
    **_BOTH,
    "mix": [Interval(Real, 0, 1, closed="both")],
    "fitting": [StrOptions(set(FITTINGS))],
    "fit_intercept": ["boolean"],
    "dictionary": [StrOptions({"scored", "all", "columns"}), _POSITIVE, "array-like"],
    "n_solutions": [_POSITIVE],
}
"""Of `RankingPursuit` and `fit_many`."""

CO_PURSUIT: dict[str, list[Any]] = {
    **_BOTH,
    "views": [_POSITIVE, list, tuple],
    "coupling": [Interval(Real, 0, float(np.finfo(np.float64).max), closed="both")],
    "search": [StrOptions(set(SEARCHES))],
    "split": [StrOptions(set(SPLITS))],
    "dictionary": [StrOptions({"scored", "all"}), _POSITIVE, "array-like"],
    "residual": [StrOptions(set(RESIDUALS))],
}
"""Of `CoRankingPursuit` and `fit_many_views`."""
