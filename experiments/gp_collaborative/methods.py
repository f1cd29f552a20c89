"""Methods that rate movies for users: individual and collaborative Gaussian processes, and two baselines."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import minimize_scalar
from sklearn.exceptions import ConvergenceWarning

from corank.base.kernels import as_kernel
from corank.errors import UsageWarning
from corank.models.gp import CollaborativeGP, OrdinalGP
from corank.models.ratings import Collaborative, ItemMean
from corank.parameters import Likelihood
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


# the models of Yu, Yu and Tresp: no priors, no scale per user, free thresholds and noise per user
PAPERS: dict[str, Any] = {"prior_weight": 0.0, "user_scales": False, "free_thresholds": True, "start": "kernel"}


def together(movies: Movies, train: Integers, likelihood: Likelihood, kind: str, **parameters: Any) -> Guess:
    """CGPR or CGPOR."""
    Y = movies.Y
    seen = np.zeros(Y.shape, dtype=bool)
    seen[:, train] = ~np.isnan(Y[:, train])
    ratings = sparse.csr_array((Y[seen], np.nonzero(seen)), shape=Y.shape)
    model = CollaborativeGP(likelihood, KERNELS[kind], scale=False, n_jobs=-1, **parameters)
    model.fit(ratings, item_features=movies.features[kind])
    user, item = np.nonzero(~np.isnan(Y) & ~np.isin(np.arange(Y.shape[1]), train))
    shares = model.predict_proba(item, user)
    middle, likeliest = np.full(Y.shape, np.nan), np.full(Y.shape, np.nan)
    middle[user, item] = model.levels_[(np.cumsum(shares, axis=1)[:, :-1] < 0.5).sum(axis=1)]
    likeliest[user, item] = model.levels_[shares.argmax(axis=1)]
    return middle, likeliest


def centred(movies: Movies, train: Integers) -> tuple[Floats, Floats]:
    """Training ratings minus the mean of each user, NaN elsewhere, and these means."""
    own = np.full(movies.Y.shape, np.nan)
    own[:, train] = movies.Y[:, train]
    means = np.nanmean(own, axis=1)
    return own - means[:, None], means


def alone(movies: Movies, train: Integers, kind: str, n_users: int) -> Guess:
    """GPR in the paper's form: f ~ N(0, K) for each user, and the noise that maximises the evidence."""
    K = np.asarray(as_kernel(KERNELS[kind])(movies.features[kind]))
    own, means = centred(movies, train)
    scores = np.full(own.shape, np.nan)
    for user in range(n_users):
        known = np.flatnonzero(~np.isnan(own[user]))
        values, vectors = np.linalg.eigh(K[np.ix_(known, known)])
        rotated = vectors.T @ own[user, known]

        def loss(log_noise: float, of: Floats = values, r: Floats = rotated) -> float:
            total = of + np.exp(log_noise)
            return float(np.sum(np.log(total) + r**2 / total))

        noise = np.exp(minimize_scalar(loss, bounds=(-8.0, 4.0), method="bounded").x)
        scores[user] = means[user] + K[:, known] @ (vectors @ (rotated / (values + noise)))
    return nearest_level(scores)


def papers_cgpr(movies: Movies, train: Integers, kind: str) -> Guess:
    """CGPR in the paper's form: maximum likelihood from mean 0, the kernel and sigma 0.1."""
    own, means = centred(movies, train)
    seen = ~np.isnan(own)
    ratings = sparse.csr_array((own[seen], np.nonzero(seen)), shape=own.shape)
    model = CollaborativeGP("gaussian", KERNELS[kind], scale=False, n_jobs=-1, **PAPERS)
    scores = model.fit(ratings, item_features=movies.features[kind]).predict_users(ratings)
    return nearest_level(scores + means[:, None])


def nearest_level(scores: Floats) -> Guess:
    """Return the rating nearest to each score, as both guesses."""
    nearest = np.clip(np.round(scores), LEVELS[0], LEVELS[-1])
    return nearest, nearest


def cheaply(movies: Movies, train: Integers, model: ItemMean | Collaborative) -> Guess:
    """Learn from the other users' ratings too, which are the features of the Gaussian processes."""
    Y = movies.Y
    seen = np.zeros(Y.shape, dtype=bool)
    seen[:, train] = ~np.isnan(Y[:, train])
    own = sparse.csr_array((Y[seen], np.nonzero(seen)), shape=Y.shape)
    model.fit(sparse.vstack([movies.others, own], format="csr"))
    return nearest_level(model.predict_users(own))


METHODS: dict[str, Callable[[Movies, Integers, str, int], Guess]] = {
    "GPR": lambda movies, train, kind, n_users: one_by_one(movies, train, "gaussian", kind, n_users),
    "CGPR": lambda movies, train, kind, n_users: together(movies, train, "gaussian", kind),
    "GPOR": lambda movies, train, kind, n_users: one_by_one(movies, train, "ordinal", kind, n_users),
    "CGPOR": lambda movies, train, kind, n_users: together(movies, train, "ordinal", kind),
}
PAPER_FORM: dict[str, Callable[[Movies, Integers, str, int], Guess]] = {
    "GPR, paper's form": alone,
    "CGPR, paper's form": lambda movies, train, kind, n_users: papers_cgpr(movies, train, kind),
    "GPOR, paper's form": lambda movies, train, kind, n_users: together(
        movies, train, "ordinal", kind, max_iter=0, **PAPERS
    ),
    "CGPOR, paper's form": lambda movies, train, kind, n_users: together(movies, train, "ordinal", kind, **PAPERS),
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
