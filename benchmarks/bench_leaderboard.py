"""
Leaderboards from votes: time and error of win probabilities, against choix, evalica and a logistic regression.

Scores are drawn, votes are simulated without ties or position bias, and all libraries get the same votes. The error is
the root mean squared error of win probabilities over random pairs. choix and evalica get lists and arrays of their own
kind, made before the clock starts; the logistic regression gets a sparse design. Only corank returns errors of scores
and sets of ranks, which are included in its time.

Run: pip install choix evalica; python benchmarks/bench_leaderboard.py [--quick]
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from corank import Leaderboard
from corank.data import Votes

SIZES = ((20, 100), (20, 1000), (100, 10_000), (1000, 1_000_000))
# choix takes minutes with more votes
MAX_CHOIX = 100_000
Floats = NDArray[np.float64]


def drawn(n_items: int, n_votes: int) -> tuple[Floats, Any, Any]:
    """Return scores, winners and losers."""
    rng = np.random.default_rng(0)
    s = rng.normal(0.0, 0.8, n_items)
    a = rng.integers(0, n_items, n_votes)
    b = (a + rng.integers(1, n_items, n_votes)) % n_items
    wins = rng.random(n_votes) < 1.0 / (1.0 + np.exp(s[b] - s[a]))
    return s, np.where(wins, a, b), np.where(wins, b, a)


def libraries(n_items: int, winners: Any, losers: Any) -> dict[str, Callable[[], Callable[[Any, Any], Floats]]]:
    """Return functions that fit, and return a function of win probabilities."""
    import choix
    import evalica

    def logistic(scores: Floats) -> Callable[[Any, Any], Floats]:
        return lambda a, b: np.asarray(1.0 / (1.0 + np.exp(scores[b] - scores[a])))

    n = len(winners)
    votes = Votes(
        tuple(map(str, range(n_items))),
        winners,
        losers,
        np.zeros(n, dtype=np.int64),
        np.ones(n, dtype=np.int64),
        has_sides=False,
    )
    pairs = list(zip(winners.tolist(), losers.tolist(), strict=True)) if n <= MAX_CHOIX else []
    rows = np.tile(np.arange(n), 2)
    sign = np.where(np.arange(n) % 2, 1.0, -1.0)  # half of the votes are turned around: both classes occur
    design = sparse.csr_array(
        (np.concatenate([sign, -sign]), (rows, np.concatenate([winners, losers]))), shape=(n, n_items)
    )
    names = [winners.astype(str).tolist(), losers.astype(str).tolist(), [evalica.Winner.X] * n]

    def corank_fit() -> Callable[[Any, Any], Floats]:
        board = Leaderboard().fit(votes)
        at = np.empty(n_items, dtype=np.int64)
        at[[int(name) for name in board.items_]] = np.arange(n_items)
        return lambda a, b: board._posterior.outcomes(at[a], at[b]) @ [1.0, 0.5, 0.0]

    def evalica_fit() -> Callable[[Any, Any], Floats]:
        scores = evalica.bradley_terry(*names).scores
        return logistic(np.log(np.array([scores.get(str(at), 1e-9) for at in range(n_items)]) + 1e-12))

    found = {"corank": corank_fit, "evalica": evalica_fit}
    found["logistic regression"] = lambda: logistic(
        LogisticRegression(fit_intercept=False, max_iter=200).fit(design, sign > 0).coef_[0]
    )
    if pairs:
        found["choix"] = lambda: logistic(choix.opt_pairwise(n_items, pairs, alpha=0.5))
    return found


def main() -> None:
    """Print one JSON object per library and size."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="without the largest size")
    warnings.simplefilter("ignore")
    for n_items, n_votes in SIZES[:-1] if parser.parse_args().quick else SIZES:
        s, winners, losers = drawn(n_items, n_votes)
        rng = np.random.default_rng(1)
        a = rng.integers(0, n_items, 2000)
        b = (a + rng.integers(1, n_items, 2000)) % n_items
        truth = 1.0 / (1.0 + np.exp(s[b] - s[a]))
        for name, fit in libraries(n_items, winners, losers).items():
            began = time.process_time()
            wins = fit()
            seconds = time.process_time() - began
            error = float(np.sqrt(np.mean((wins(a, b) - truth) ** 2)))
            row = {
                "library": name,
                "items": n_items,
                "votes": n_votes,
                "seconds": round(seconds, 3),
                "error": round(error, 4),
            }
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
