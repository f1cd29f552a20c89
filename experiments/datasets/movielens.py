"""MovieLens 1M: ratings of movies by 6,040 users."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from corank.data.durable.text import open_text
from corank.errors import InputError
from experiments.datasets.catalog import dataset


@cache
def read_ratings() -> NDArray[np.float32]:
    """
    Read all ratings.

    Returns: ratings from 1 to 5, NaN where a user did not rate a movie.
    """
    path = dataset("movielens-1m").path("ratings.csv")
    header, _, body = open_text(path).read().tobytes().partition(b"\n")
    # one number after the other: many times faster than a parser of tables
    table = np.array(body.replace(b"\n", b",").rstrip(b",").split(b","), dtype=np.int32)
    if header.strip() != b"user,item,rating" or len(table) % 3 or not len(table) or table.min() < 1:
        raise InputError(f"{path} does not hold user, item and rating, counted from 1; get it again.")
    user, item, rating = table.reshape(-1, 3).T
    ratings = np.full((user.max(), item.max()), np.nan, dtype=np.float32)
    ratings[user - 1, item - 1] = rating
    ratings.setflags(write=False)
    return ratings
