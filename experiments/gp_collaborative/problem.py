"""MovieLens 1M as Yu, Yu and Tresp have EachMovie: heavy users to learn about, all others as features of the movies."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from corank.collaborative import Collaborative
from experiments.datasets.movielens import read_ratings

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

N_USERS = 100
N_MOVIES = 800


@dataclass(frozen=True, eq=False)
class Movies:
    """
    The 800 movies with the most ratings; the paper has 809.

    Y (100, N): ratings of the users with the most ratings; NaN is none.
    others: CSR matrix of all other users' ratings.
    features: what movies are known by, under the name of each kind.
    """

    Y: Floats
    others: Any
    features: dict[str, Any]


@cache
def movies() -> Movies:
    """
    Read the ratings, and make features of them.

    "correlation" (the paper's): others' ratings less each one's mean, 0 where there is none; to be seen by a cosine.
    "directions": the features of `Collaborative`, learnt from the others, and the means of movies beside them, both of
    one size; to be seen by an inner product.
    """
    ratings = read_ratings().astype(np.float64)
    often = np.argsort(-(~np.isnan(ratings)).sum(axis=0), kind="stable")[:N_MOVIES]
    ratings = ratings[:, np.sort(often)]
    heavy = np.argsort(-(~np.isnan(ratings)).sum(axis=1), kind="stable")[:N_USERS]
    rest = np.setdiff1d(np.arange(len(ratings)), heavy)
    seen = ~np.isnan(ratings[rest])
    kept = seen.any(axis=1)
    rest, seen = rest[kept], seen[kept]
    others = sparse.csr_array((ratings[rest][seen], np.nonzero(seen)), shape=seen.shape)
    centred = others.copy()
    centred.data = others.data - np.repeat(np.nanmean(ratings[rest], axis=1), np.diff(others.indptr))
    model = Collaborative(random_state=0).fit(others)
    mean = model.item_means_ - model.item_means_.mean()
    Z = model.item_features_ / np.sqrt((model.item_features_**2).sum(axis=1).mean())
    features = {
        "correlation": sparse.csr_array(centred.T),
        "directions": np.column_stack([Z, mean / mean.std()]),
    }
    return Movies(ratings[heavy], others, features)


KERNELS = {"correlation": "cosine", "directions": "linear"}


def training_movies(n: int, repeat: int, seed: int) -> Integers:
    """Draw the movies whose ratings are known."""
    rng = np.random.default_rng([seed, repeat, n])
    return np.sort(rng.permutation(movies().Y.shape[1])[:n])
