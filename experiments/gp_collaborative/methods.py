"""Methods that rate movies for users: individual and collaborative Gaussian processes, and two baselines."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from corank.choices import Likelihood
from corank.collaborative import Collaborative, ItemMean
from corank.errors import UsageWarning
from corank.gp import CollaborativeGP, OrdinalGP
from experiments.gp_collaborative.problem import KERNELS, Movies

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Guess = tuple[Floats, Floats]

LEVELS = np.arange(1.0, 6.0)


def one_by_one(movies: Movies, train: Integers, likelihood: Likelihood, kind: str, n_users: int) -> Guess:
    """GPR or GPOR: one Gaussian process per user, each with its own hyper-parameters, for the first users."""
    X, Y = movies.features[kind], movies.Y
    middle, likeliest = np.full(Y.shape, np.nan), np.full(Y.shape, np.nan)
    for user, y in enumerate(Y[:n_users]):
        known = train[~np.isnan(y[train])]
        asked = np.setdiff1d(np.flatnonzero(~np.isnan(y)), train)
        if len(np.unique(y[known])) < 2:
            middle[user, asked] = likeliest[user, asked] = y[known].mean() if len(known) else np.nanmean(Y[:, train])
            continue
        model = OrdinalGP(KERNELS[kind], likelihood=likelihood, scale=False, random_state=0)
        model.fit(X[known], y[known], qid=np.zeros(len(known)))
        middle[user, asked] = model.predict_level(X[asked], "median")
        likeliest[user, asked] = model.predict_level(X[asked], "mode")
    return middle, likeliest


def together(movies: Movies, train: Integers, likelihood: Likelihood, kind: str) -> Guess:
    """CGPR or CGPOR."""
    Y = movies.Y
    seen = np.zeros(Y.shape, dtype=bool)
    seen[:, train] = ~np.isnan(Y[:, train])
    ratings = sparse.csr_array((Y[seen], np.nonzero(seen)), shape=Y.shape)
    model = CollaborativeGP(likelihood, KERNELS[kind], scale=False, n_jobs=-1)
    model.fit(ratings, item_features=movies.features[kind])
    user, item = np.nonzero(~np.isnan(Y) & ~np.isin(np.arange(Y.shape[1]), train))
    shares = model.predict_proba(item, user)
    middle, likeliest = np.full(Y.shape, np.nan), np.full(Y.shape, np.nan)
    middle[user, item] = model.levels_[(np.cumsum(shares, axis=1)[:, :-1] < 0.5).sum(axis=1)]
    likeliest[user, item] = model.levels_[shares.argmax(axis=1)]
    return middle, likeliest


def cheaply(movies: Movies, train: Integers, model: ItemMean | Collaborative) -> Guess:
    """Learn from the other users' ratings too, which are the features of the Gaussian processes."""
    Y = movies.Y
    seen = np.zeros(Y.shape, dtype=bool)
    seen[:, train] = ~np.isnan(Y[:, train])
    own = sparse.csr_array((Y[seen], np.nonzero(seen)), shape=Y.shape)
    model.fit(sparse.vstack([movies.others, own], format="csr"))
    scores = model.predict_users(own)
    nearest = np.clip(np.round(scores), LEVELS[0], LEVELS[-1])
    return nearest, nearest


METHODS: dict[str, Callable[[Movies, Integers, str, int], Guess]] = {
    "GPR": lambda movies, train, kind, n_users: one_by_one(movies, train, "gaussian", kind, n_users),
    "CGPR": lambda movies, train, kind, n_users: together(movies, train, "gaussian", kind),
    "GPOR": lambda movies, train, kind, n_users: one_by_one(movies, train, "ordinal", kind, n_users),
    "CGPOR": lambda movies, train, kind, n_users: together(movies, train, "ordinal", kind),
}
CHEAP: dict[str, Callable[[Movies, Integers], Guess]] = {
    "Item mean": lambda movies, train: cheaply(movies, train, ItemMean()),
    "Collaborative": lambda movies, train: cheaply(movies, train, Collaborative(random_state=0)),
}


def errors(movies: Movies, train: Integers, n_users: int, guess: Callable[[], Guess]) -> dict[str, list[float] | float]:
    """
    Errors of a method on the test movies of the first users.

    Returns: each user's mean absolute error (of the median grade) and zero-one error (of the most probable grade), and
    the processor time.
    """
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UsageWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        middle, likeliest = guess()
    seconds = time.process_time() - began
    Y = movies.Y.copy()
    Y[:, train] = np.nan
    Y = Y[:n_users]
    absolute, wrong = np.abs(middle[:n_users] - Y), np.where(np.isnan(Y), np.nan, likeliest[:n_users] != Y)
    return {
        "absolute": np.nanmean(absolute, axis=1).tolist(),
        "wrong": np.nanmean(wrong, axis=1).tolist(),
        "seconds": seconds,
    }
