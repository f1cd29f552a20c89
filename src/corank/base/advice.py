"""Warnings about data that can be used, but is probably not what the user meant."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from corank.data.ranking import RankingData
from corank.errors import warn

# numbers of rows, and of rows per grade, from which scores without query ids look like those of many queries
_MANY_ROWS = 50
_MANY_ALIKE = 10


def warn_of_no_agreement(data: RankingData, coupling: float) -> None:
    """Warn if views are coupled and no query has two unjudged rows on which they could agree."""
    rows_of_query = np.bincount(data.queries.codes[data.unscored_rows], minlength=1)
    if coupling > 0.0 and not (rows_of_query > 1).any():
        warn_of_useless_coupling(coupling)


def warn_of_useless_coupling(coupling: float) -> None:
    """Warn that a coupling of views has no effect."""
    warn(
        f"coupling is {coupling:g}, but no query holds two unjudged rows for the views to agree on, so it does "
        "nothing; mark unjudged rows by NaN in y, or set coupling=0."
    )


def warn_of_one_query(y: NDArray[np.float64]) -> None:
    """Warn if scores without query ids look like those of many queries: many rows and few grades."""
    scored = y[~np.isnan(y)]
    n_grades = len(np.unique(scored))
    if len(scored) >= _MANY_ROWS and n_grades * _MANY_ALIKE <= len(scored):
        warn(
            f"qid was not given, so all {len(y)} rows are treated as one query; pass qid if they belong to several "
            "queries, or qid=numpy.zeros(len(y)) if they do not."
        )
