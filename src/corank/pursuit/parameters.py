"""What the parameters that pursuits share may be."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from corank.graphs import QUERY_WEIGHTS
from corank.kernels import KERNELS

POSITIVE = Interval(Integral, 1, None, closed="left")
"""A whole number of at least 1."""

CONSTRAINTS: dict[str, list[Any]] = {
    "n_basis": [POSITIVE],
    "kernel": [StrOptions(set(KERNELS)), HasMethods(["__call__"])],
    "query_weight": [StrOptions(set(QUERY_WEIGHTS))],
    "tol": [Interval(Real, 0, 1, closed="left")],
    "early_stopping": ["boolean"],
    "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
    "n_iter_no_change": [POSITIVE],
    "random_state": ["random_state"],
}
"""Of `RankingPursuit` and `CoRankingPursuit`."""
