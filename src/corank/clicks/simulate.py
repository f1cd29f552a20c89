"""
Simulate: a ranker serves users whose clicks are drawn from known grades, and learns from them.

Per list: a query is drawn, all alike; the ranker draws a list; the user reads it; the ranker learns. The loop is
compiled as a whole, and gives what `show` and `learn` give, list by list. Memory does not grow with their number.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corank.clicks.click_models import User, as_grades, as_user
from corank.clicks.curve import ClickCurve
from corank.clicks.ranker import LISTS, OnlineRanker
from corank.core.clicks.sessions import Collected
from corank.core.random import seed_state
from corank.core.rows.access import as_core_rows
from corank.data.problem.ranking import RankingData
from corank.errors import InputError
from corank.estimator.contract import check_parameters
from corank.metrics import evaluate
from corank.parameters import check_values, number, rng_of, seed, whole
from corank.progress import progress

Floats = NDArray[np.float64]

# lists between two looks at the keyboard
_AT_ONCE = 1 << 14
_POINTS = 9


def simulate(
    ranker: OnlineRanker,
    data: RankingData,
    user: str | User = "perfect",
    impressions: int = 10_000,
    *,
    test: RankingData | None = None,
    k: int = 10,
    discount: float = 0.9995,
    at: ArrayLike | None = None,
    n_runs: int = 1,
    random_state: Any = None,
    verbose: bool = False,
) -> ClickCurve:
    """
    Let a ranker serve and learn from simulated users.

    Parameters
    ----------
    ranker : OnlineRanker
        Who learns; it is not changed. One that is fitted goes on from its weights, in every run.
    data : RankingData
        Queries to serve, with a grade for every row, and a prior where the ranker shall have one.
    user : str or User
        "perfect", "navigational", "informational" or "almost_random", which are `CascadeClicks` that stop after a
        click, or a user of your own.
    impressions : int
        Lists to show.
    test : RankingData, optional
        Queries to measure the ranker on; `data` by default.
    k : int
        Ranks of a list, and depth of nDCG.
    discount : float
        What a list is worth less than the one before, in the online performance.
    at : array-like of int, optional
        Numbers of lists after which to measure; by default 0 and some up to `impressions`, evenly spread in proportion.
    n_runs : int
        Runs, each with dice of its own.
    random_state : int, RandomState or None
        Seed; the same one gives two rankers the same queries and users the same random draws, run by run.
    verbose : bool
        Whether to show a progress bar, on a terminal or in a notebook.

    Returns
    -------
    ClickCurve
        Offline and online performance.

    Examples
    --------
    >>> from corank import PDGD, RankingData, make_ranking
    >>> from corank.clicks import simulate
    >>> problem = make_ranking(50, 20, random_state=0)
    >>> data = RankingData.of(problem.X, problem.y, problem.qid)
    >>> curve = simulate(PDGD(), data, "navigational", 1000, n_runs=3, random_state=0)
    >>> curve.offline.shape, curve.mean()[-1] > curve.mean()[0]
    ((3, 10), np.True_)
    """
    given = {
        "impressions": impressions, "k": k, "discount": discount, "n_runs": n_runs, "random_state": random_state,
    }  # fmt: skip
    rules = {
        "impressions": whole(0), "k": whole(1), "discount": number(0, 1), "n_runs": whole(1), "random_state": seed,
    }  # fmt: skip
    check_values(given, rules)
    if not isinstance(ranker, OnlineRanker):
        raise InputError(f"ranker is a {type(ranker).__name__}, which cannot learn from clicks; pass PDGD, say.")
    reader = as_user(user, _highest(data))
    grades = as_grades(data.y, reader.habits)  # type: ignore[arg-type]
    collected = collect(data, grades, k)
    points = _points(at, impressions)
    rows, measured = as_core_rows(data.X), data if test is None else test
    if measured.n_features != data.n_features or (measured.prior is None) != (data.prior is None):
        raise InputError("test differs from data in its number of features, or only one has a prior; make them alike.")
    offline, online, coefs = [], [], []
    with progress(n_runs * impressions, "lists", verbose) as advance:
        for rng in rng_of(random_state).spawn(n_runs):
            begun = _begun(ranker, data, rng)
            rng_state = np.stack([seed_state(rng), seed_state(rng)])
            W, own = begun.view_coefs_.copy(), begun.run_["rng_state"][LISTS].copy()
            earned, worth, done, sums = 0.0, 1.0, 0, []
            values = []
            for point in points:
                while done < point:
                    lists = np.empty(min(_AT_ONCE, point - done))
                    begun._serve(rows, collected, reader.habits, W, (own, rng_state), k, begun.n_learnt_ + done, lists)
                    earned += worth * float(lists @ discount ** np.arange(len(lists)))
                    worth *= discount ** len(lists)
                    done += len(lists)
                    advance(len(lists))
                sums.append(earned)
                values.append(_measure(measured, W.mean(axis=0), k))
            offline.append(values)
            online.append(sums)
            coefs.append(W.mean(axis=0))
    return ClickCurve(
        str(ranker), str(reader), points, np.array(offline), np.array(online), float(discount), f"nDCG@{k}",
        np.array(coefs),
    )  # fmt: skip


def collect(data: RankingData, grades: NDArray[np.int64], k: int) -> Collected:
    """
    Bring queries into the order in which sessions read them.

    grades (n_rows,): checked.
    k: ranks of a list.
    """
    order, starts = data.queries.order, data.starts
    of_rows = grades[order]
    gains = np.exp2(of_rows) - 1.0
    best = order_inside(gains, starts)
    places = np.arange(len(gains)) - np.repeat(starts[:-1], np.diff(starts))
    worth = np.where(places < k, best / np.log2(places + 2.0), 0.0)
    ideals = np.add.reduceat(worth, starts[:-1]) if len(starts) > 1 else np.empty(0)
    prior = np.empty(0) if data.prior is None else data.prior
    return Collected(order, starts, of_rows, gains, ideals, prior)


def order_inside(values: Floats, starts: NDArray[np.int64]) -> Floats:
    """Sort values inside blocks, the highest first."""
    blocks = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    return np.asarray(values[np.lexsort((-values, blocks))])


def _begun(ranker: OnlineRanker, data: RankingData, rng: np.random.Generator) -> OnlineRanker:
    """A copy of the ranker that has weights, and dice of this run."""
    copy = deepcopy(ranker)
    copy.random_state = int(rng.integers(2**31))
    if not hasattr(copy, "run_"):
        check_parameters(copy)
        copy._begin(data.X, data.prior)
        return copy
    copy._check_prior(data.prior)
    if data.n_features != copy.n_features_in_:
        raise InputError(f"data has {data.n_features} features, but the ranker {copy.n_features_in_}; pass the same.")
    copy.run_ = {**copy.run_, "rng_state": np.stack([seed_state(rng), seed_state(rng)])}
    return copy


def _highest(data: RankingData) -> int:
    if data.y is None or data.n_rows == 0 or np.isnan(data.y).any():
        raise InputError("simulated users click by grades, and some rows have none; pass a grade for every row.")
    return int(data.y.max())


def _points(at: ArrayLike | None, impressions: int) -> NDArray[np.int64]:
    if at is None:
        spread = np.append(0, np.rint(np.geomspace(1, max(impressions, 1), _POINTS)))
        return np.unique(np.minimum(spread, impressions)).astype(np.int64)
    points = np.asarray(at)
    if points.ndim != 1 or not len(points) or points.dtype.kind not in "iu":
        raise InputError(f"at is {at!r}; pass rising numbers of lists.")
    if (np.diff(points) <= 0).any() or points[0] < 0 or points[-1] > impressions:
        raise InputError(f"at is {points.tolist()}; pass rising numbers of lists between 0 and {impressions}.")
    return points.astype(np.int64)


def _measure(data: RankingData, coef: Floats, k: int) -> float:
    scores = np.asarray(data.X @ coef, dtype=np.float64) + (0.0 if data.prior is None else data.prior)
    name = f"nDCG@{k}"
    return float(evaluate(data.y, scores, data.queries.codes, name)[name].mean)  # type: ignore[arg-type]
