"""Jester 1: ratings of 100 jokes by 24,983 users."""

from __future__ import annotations

import io
from functools import cache

import numpy as np
from numpy.typing import NDArray

from corank.data.durable.text import open_text
from corank.errors import InputError
from experiments.datasets.catalog import dataset

N_JOKES = 100
_NOT_RATED = 99.0


@cache
def read_ratings() -> NDArray[np.float32]:
    """
    Read all ratings.

    Returns: ratings from -9.95 to 10, NaN where a user did not rate a joke.
    """
    path = dataset("jester").path("jester-data-1.csv")
    table = np.loadtxt(io.BytesIO(open_text(path).read().data), delimiter=",", dtype=np.float32)
    if table.shape[1] != N_JOKES + 1:
        raise InputError(f"{path} has {table.shape[1]} columns, not a count and {N_JOKES} ratings; get it again.")
    ratings = table[:, 1:]
    ratings[ratings == _NOT_RATED] = np.nan
    ratings.setflags(write=False)
    return ratings
