"""Rules of the parameters of pursuits."""

from __future__ import annotations

import numpy as np

from corank.base.pairs.factors import QUERY_WEIGHTS
from corank.models.pursuit.coupled import RESIDUALS, SEARCHES
from corank.models.pursuit.fits import FITTINGS
from corank.parameters import Rules, boolean, integer, items, kernel, listing, number, one_of, seed

SPLITS = ("columns", "dictionary")

_ROWS = integer(1) | listing
_BOTH: Rules = {
    "n_basis": integer(1),
    "kernel": kernel,
    "query_weight": one_of(*QUERY_WEIGHTS),
    "scale": boolean,
    "tol": number(0, 1, inside="[)"),
    "early_stopping": boolean,
    "validation_fraction": number(0, 1, inside="()"),
    "n_iter_no_change": integer(1),
    "random_state": seed,
    "verbose": boolean,
}

PURSUIT: Rules = {
    **_BOTH,
    "mix": number(0, 1),
    "fitting": one_of(*FITTINGS),
    "fit_intercept": boolean,
    "dictionary": one_of("auto", "scored", "all", "columns") | _ROWS,
    "n_solutions": integer(1),
}
"""Of `RankingPursuit`."""

CO_PURSUIT: Rules = {
    **_BOTH,
    "views": integer(1) | items,
    "coupling": number(0, float(np.finfo(np.float64).max)),
    "search": one_of(*SEARCHES),
    "split": one_of(*SPLITS),
    "dictionary": one_of("scored", "all") | _ROWS,
    "residual": one_of(*RESIDUALS),
}
"""Of `CoRankingPursuit`."""
