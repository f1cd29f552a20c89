"""
The best single column on left-out queries: what an order that is known already, such as BM25, gives by itself.

Without each fold, the column and its direction are those of the best mean metric over the other queries; the fold is
then ordered by that column. It is a baseline of the leaderboard and not averaged: on the development collections of
``benchmarks/bench_auto.py``, an average with it, or weights shrunk towards it where it leads, changed the mean nDCG@10
by −.0015 to −.001 with 5 judged queries and by −.0016 to +.002 with 20, within chance. Few queries do not say which
column it is; a user who knows passes it as prior.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from corank.models.auto.left_out import LeftOut

Floats = NDArray[np.float64]

# largest numbers of left-out queries and of values for which columns are compared
_MOST_LISTS, _MOST_VALUES = 40, 1 << 20


class BestColumn(NamedTuple):
    """A column and its direction."""

    name: str  # for people
    values: Floats  # (n_lists,): metric of each left-out list, ordered by the column that is best on other folds


def find_best_column(left_out: LeftOut, names: tuple[str, ...] | None) -> BestColumn | None:
    """Compare the columns, falling and rising."""
    X = left_out.data.X
    too_large = left_out.n_lists > _MOST_LISTS or len(left_out.rows) * X.shape[1] > _MOST_VALUES
    if sparse.issparse(X) or too_large or left_out.n_folds < 2:
        return None
    columns = np.asarray(X[left_out.rows], dtype=np.float64)
    values = left_out.values(np.hstack([columns, -columns]))
    fold_of_list = np.zeros(left_out.n_lists, dtype=np.int64)
    fold_of_list[left_out.lists] = left_out.folds
    known, found = np.nan_to_num(values), np.empty(left_out.n_lists)
    for fold in range(left_out.n_folds):
        out = fold_of_list == fold
        found[out] = values[out, np.argmax(known[~out].mean(axis=0))]
    best = int(np.argmax(known.mean(axis=0)))
    column = best % X.shape[1]
    name = f"column {column if names is None else names[column]}"
    return BestColumn(name if best < X.shape[1] else f"{name}, lowest first", found)
