"""MovieLens 1M as EachMovie in the paper: ratings of heavy users; the other users are features of the movies."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from corank.models.ratings import Collaborative
from experiments.datasets.movielens import read_ratings

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

N_USERS = 100
N_MOVIES = 800


@dataclass(frozen=True, eq=False)
class Movies:
    """
    The 800 movies with the most ratings; the paper has 809.

    Y (100, N): ratings of the users with the most ratings; NaN means no rating.
    others: CSR matrix of all other users' ratings.
    features: features of the movies, by kind.
    """

    Y: Floats
    others: Any
    features: dict[str, Any]


@cache
def movies() -> Movies:
    """
    Read the ratings, and make features of them.

    "correlation" (the paper's): ratings of the other users minus each user's mean, 0 if missing, with a cosine kernel.
    "directions": the features of `Collaborative`, learnt from the other users, and the means of the movies, scaled to
    the same size, with a linear kernel.
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
    """Draw the training movies."""
    rng = np.random.default_rng([seed, repeat, n])
    return np.sort(rng.permutation(movies().Y.shape[1])[:n])
