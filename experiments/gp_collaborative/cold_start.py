"""
New items on MovieLens 1M: ratings of movies with no ratings, or very few, so far.

Users rated known movies; of the new movies, only the genres and k ratings of random users are known. The other ratings
of the new movies are predicted (the induction of Yu, Yu and Tresp, 2005).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.linear_model import Ridge

from corank.comparison.report import Report
from corank.data.durable.text import open_text
from corank.metrics import wilcoxon
from corank.models.gp import CollaborativeGP
from corank.models.ratings import Collaborative, ItemMean
from corank.tables import Cell, ReportTable
from experiments.datasets.catalog import dataset
from experiments.datasets.movielens import read_ratings
from experiments.options import ExperimentOptions

Floats = NDArray[np.float64]

REPEATS, KNOWN_RATINGS = 3, (0, 3, 10)
N_USERS, N_MOVIES, N_NEW = 150, 200, 50
METHODS = ("Item mean", "Collaborative", "Content only", "CGPR")
WORDS = {"absolute": "Mean absolute error", "wrong": "Share of pairs in the wrong order"}


def run(options: ExperimentOptions) -> Report:
    """
    Run the experiment.

    options: 3 draws of users and movies by default; quick runs make 1.
    Returns: errors by method and number of known ratings.
    """
    repeats = options.repeats or (1 if options.quick else REPEATS)
    options.expect(len(KNOWN_RATINGS) * repeats)
    outcomes = {k: [_result(options, k, repeat) for repeat in range(repeats)] for k in KNOWN_RATINGS}
    return Report(
        "New items: features only, or a few ratings",
        f"{repeats} draws of {N_USERS} users with at least 30 ratings of the {N_MOVIES} drawn movies, of which {N_NEW} "
        "are new: k random ratings of each are known, and the others are predicted. Features are the 18 genres. Item "
        "mean: shrunk means and user levels. Content only: ridge regression of each user's ratings on the genres. "
        "CGPR: CollaborativeGP('gaussian') with the genres. Means over users; p: Wilcoxon's test over users of CGPR "
        "against the method.",
        tuple(_table(measure, outcomes) for measure in WORDS),
        tuple(_finding(k, results) for k, results in outcomes.items()),
    )


def _result(options: ExperimentOptions, k: int, repeat: int) -> dict[str, Any]:
    key = {"experiment": "cold-start", "ratings": k, "repeat": repeat}
    value: dict[str, Any] = options.result(key, lambda: predicted(k, [options.seed, repeat]))
    return value


def predicted(k: int, seed: list[int]) -> dict[str, dict[str, list[float]]]:
    """Both errors of each user, by method."""
    rng = np.random.default_rng(seed)
    ratings = read_ratings()
    text = open_text(dataset("movielens-1m").path("item_genres.csv")).read().tobytes().decode()
    genres = np.array([line.split(",")[1:] for line in text.split()[1:]], dtype=np.float64)
    often = np.argsort(-(~np.isnan(ratings)).sum(axis=0), kind="stable")[: 4 * N_MOVIES]
    movies = rng.permutation(often)[:N_MOVIES]
    Y, X = ratings[:, movies].astype(np.float64), genres[movies]
    Y = Y[rng.permutation(np.flatnonzero((~np.isnan(Y)).sum(axis=1) >= 30))[:N_USERS]]
    known = ~np.isnan(Y)
    for new in range(N_NEW):
        users = rng.permutation(np.flatnonzero(known[:, new]))
        known[users[k:], new] = False
    asked = ~np.isnan(Y) & ~known
    R = sparse.csr_array((Y[known], np.nonzero(known)), shape=Y.shape)
    user, item = np.nonzero(asked)
    scores = {}
    for name, model in (("Item mean", ItemMean()), ("Collaborative", Collaborative(random_state=0))):
        scores[name] = model.fit(R).predict_users(R)
    scores["Content only"] = np.array(
        [Ridge(10.0).fit(X[seen], y[seen]).predict(X) for y, seen in zip(Y, known, strict=True)]
    )
    gp = CollaborativeGP("gaussian", max_iter=10, random_state=0).fit(R, item_features=X)
    scores["CGPR"] = np.full(Y.shape, np.nan)
    scores["CGPR"][user, item] = gp.predict(item, user)
    return {name: _errors(of, Y, asked) for name, of in scores.items()}


def _errors(scores: Floats, Y: Floats, asked: NDArray[np.bool_]) -> dict[str, list[float]]:
    absolute, wrong = [], []
    for f, y, index in zip(scores, Y, asked, strict=True):
        f, y = np.clip(f[index], 1.0, 5.0), y[index]
        i, j = np.triu_indices(len(y), 1)
        differs = y[i] != y[j]
        share = 0.5 - 0.5 * np.sign(f[i] - f[j]) * np.sign(y[i] - y[j])
        absolute.append(float(np.mean(np.abs(f - y))) if len(y) else np.nan)
        wrong.append(float(np.mean(share[differs])) if differs.any() else np.nan)
    return {"absolute": absolute, "wrong": wrong}


def _values(results: list[dict[str, Any]], name: str, measure: str) -> Floats:
    return np.concatenate([np.array(entry[name][measure], dtype=np.float64) for entry in results])


def _table(measure: str, outcomes: dict[int, list[dict[str, Any]]]) -> ReportTable:
    rows: list[tuple[Cell, ...]] = []
    for name in METHODS:
        cells: list[Cell] = [name]
        for results in outcomes.values():
            values = _values(results, name, measure)
            cells.append(float(np.nanmean(values)))
            gaps = _values(results, "CGPR", measure) - values
            cells.append("" if name == "CGPR" else f"{wilcoxon(gaps[~np.isnan(gaps)]):.1g}")
        rows.append(tuple(cells))
    columns = ["method"]
    for k in outcomes:
        columns += [f"{k} ratings", f"p, {k} ratings"]
    return ReportTable(f"{WORDS[measure]} of ratings of new movies", tuple(columns), tuple(rows))


def _finding(k: int, results: list[dict[str, Any]]) -> str:
    means = {name: float(np.nanmean(_values(results, name, "absolute"))) for name in METHODS}
    listed = ", ".join(f"{name} {value:.3f}" for name, value in means.items())
    return f"{k} ratings of each new movie, absolute error: {listed}."
