"""
Simulate online learning: a ranker serves users whose clicks are drawn from known grades, and learns from them.

For each list, a query is drawn uniformly, the ranker draws a list, the click model draws clicks, and the ranker learns.
For built-in click models the whole loop is compiled; it computes the same as `show`, `clicks` and `learn` in Python.
Memory does not grow with the number of lists.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corank.base.contract import check_parameters
from corank.clicks.click_models import ClickModel, as_click_model, as_grades, is_compiled
from corank.clicks.ranker import LISTS, OnlineRanker, Session, initial_states
from corank.core.clicks.sessions import JudgedQueries, draw_clicks
from corank.core.random import random_below, seed_state
from corank.core.rows.access import as_core_rows
from corank.data.ranking import RankingData
from corank.errors import InputError
from corank.metrics import evaluate
from corank.metrics.significance import standard_error
from corank.parameters import check_values, integer, number, rng_of, seed
from corank.progress import progress

Integers = NDArray[np.int64]
RANKER_SEEDS = 2**31


class SimulatedUsers:
    """
    Users who ask queries and click on lists, with the random numbers of `simulate_clicks`.

    A ranker made with ``random_state=users.ranker_seed`` that shows and learns one list after another ends with the
    same bits as in ``simulate_clicks(ranker, data, user, random_state=random_state)``, wherever it runs.

    data: Queries, with a grade for every row.
    user: Click model, as in `simulate_clicks`.
    random_state: Random seed of `simulate_clicks`.
    run: Number of the run of `simulate_clicks`, from 0.

    ranker_seed: The `random_state` of the ranker in that run.
    list_state: Initial state of the generator from which such a ranker draws its lists, for a ranking service.
    """

    def __init__(
        self, data: RankingData, user: str | ClickModel = "perfect", *, random_state: Any = None, run: int = 0
    ) -> None:
        check_values({"run": run, "random_state": random_state}, {"run": integer(0), "random_state": seed})
        self._data = data
        self._model, self._grades = graded_user(data, user)
        rng = rng_of(random_state).spawn(run + 1)[run]
        self.ranker_seed = int(rng.integers(RANKER_SEEDS))
        self.list_state = initial_states(self.ranker_seed)[LISTS]
        self._rngs = np.stack([seed_state(rng), seed_state(rng)])
        self._own_rng = np.random.default_rng(self._rngs[1])

    def ask(self) -> Integers:
        """Draw a query."""
        query = int(random_below(self._rngs[0], len(self._data.queries)))
        return self._data.queries.order[self._data.starts[query] : self._data.starts[query + 1]]

    def click(self, rows: ArrayLike) -> NDArray[np.bool_]:
        """Draw clicks on a list."""
        grades = self._grades[np.asarray(rows)]
        if not is_compiled(self._model):
            return np.asarray(self._model.clicks(grades, self._own_rng))
        clicks = np.zeros(len(grades), dtype=np.bool_)
        draw_clicks(self._model.probabilities, grades, self._rngs[1], clicks)  # type: ignore[attr-defined]
        return clicks


def graded_user(data: RankingData, user: str | ClickModel) -> tuple[ClickModel, Integers]:
    """Return the click model that fits the grades of `data`, and the grades as whole numbers."""
    if data.y is None or data.n_rows == 0 or np.isnan(data.y).any():
        raise InputError("some rows have no grade, but click models need grades; pass a grade for every row.")
    model = as_click_model(user, int(data.y.max()))
    n_grades = len(model.probabilities.click) if is_compiled(model) else None  # type: ignore[attr-defined]
    return model, as_grades(data.y, n_grades)


Floats = NDArray[np.float64]
Kind = Literal["offline", "online"]

# lists between two checks for Ctrl-C
_BATCH_SIZE = 1 << 14
_POINTS = 9


@dataclass(frozen=True, eq=False)
class ClickCurve:
    """
    Learning curve of an online ranker against the number of lists shown, returned by `simulate_clicks`.

    offline: nDCG@k of the ranker at that time, on test rows, under corank's convention: queries without a relevant row
        are left out, ties count by their expectation.
    online: Σ_t discount^(t − 1) · nDCG@k of list t, over all lists so far; a list of a query without a relevant row
        counts 0.
    """

    ranker: str  # ranker, user: the ranker and the click model
    user: str
    impressions: NDArray[np.int64]  # number of lists shown
    offline: Floats
    online: Floats
    discount: float  # factor of a list's nDCG relative to the list before
    metric: str  # the metric
    coefs: Floats  # the final weights

    def mean(self, kind: Kind = "offline") -> Floats:
        """Average over runs."""
        return np.asarray(self._values(kind).mean(axis=0))

    def error(self, kind: Kind = "offline") -> Floats:
        """Return the standard error of the mean over runs."""
        return standard_error(self._values(kind))

    def gain(self, over: ClickCurve, kind: Kind = "offline") -> tuple[Floats, Floats]:
        """Compare with another curve run by run; runs of one `random_state` use the same queries and random numbers."""
        if self.offline.shape != over.offline.shape or not np.array_equal(self.impressions, over.impressions):
            raise InputError(
                "the two curves differ in their runs or points; simulate both with the same n_runs and evaluate_at."
            )
        difference = self._values(kind) - over._values(kind)
        return np.asarray(difference.mean(axis=0)), standard_error(difference)

    def __repr__(self) -> str:
        lines = [f"{self.ranker}, {self.user}, {len(self.offline)} runs", f"{'lists':>8} {'offline':>8} {'online':>9}"]
        for count, offline, online in zip(self.impressions, self.mean(), self.mean("online"), strict=True):
            lines.append(f"{count:>8} {offline:8.4f} {online:9.2f}")
        lines.append(f"offline: {self.metric} on test rows; online: of the lists shown, discount {self.discount:g}")
        return "\n".join(lines)

    def _values(self, kind: Kind) -> Floats:
        if kind not in ("offline", "online"):
            raise InputError(f"kind is {kind!r}; pass 'offline' or 'online'.")
        return self.offline if kind == "offline" else self.online


def simulate_clicks(
    ranker: OnlineRanker,
    data: RankingData,
    user: str | ClickModel = "perfect",
    impressions: int = 10_000,
    *,
    test: RankingData | None = None,
    k: int = 10,
    discount: float = 0.9995,
    evaluate_at: ArrayLike | None = None,
    n_runs: int = 1,
    random_state: Any = None,
    verbose: bool = False,
) -> ClickCurve:
    """Let a ranker serve simulated users and learn from their clicks."""
    checked = {
        "impressions": impressions, "k": k, "discount": discount, "n_runs": n_runs, "random_state": random_state,
    }  # fmt: skip
    rules = {
        "impressions": integer(0), "k": integer(1), "discount": number(0, 1), "n_runs": integer(1),
        "random_state": seed,
    }  # fmt: skip
    check_values(checked, rules)
    if not isinstance(ranker, OnlineRanker):
        raise InputError(
            f"ranker is a {type(ranker).__name__}, which cannot learn from clicks; pass PDGD or another OnlineRanker."
        )
    model, grades = graded_user(data, user)
    compiled = is_compiled(model)
    queries = judged_queries(data, grades, k)
    points = _points(evaluate_at, impressions)
    rows, measured = as_core_rows(data.X), data if test is None else test
    if measured.n_features != data.n_features or (measured.prior is None) != (data.prior is None):
        raise InputError(
            "test differs from data in its number of features, or only one has a prior; pass both in the same form."
        )
    offline, online, coefs = [], [], []
    with progress(n_runs * impressions, "lists", verbose) as advance:
        for rng in rng_of(random_state).spawn(n_runs):
            started = _started(ranker, data, rng)
            rngs = np.stack([seed_state(rng), seed_state(rng)])
            user_rng = np.random.default_rng(rngs[1])
            w, own_rng = started.coef_.copy(), started.run_["rng_state"][LISTS].copy()
            start = started.n_learnt_
            cumulated, factor, done, sums = 0.0, 1.0, 0, []
            values = []
            for point in points:
                while done < point:
                    ndcg = np.empty(min(_BATCH_SIZE, point - done))
                    session = Session(own_rng, rngs, k, start + done)
                    if compiled:
                        started._serve_compiled(rows, queries, model.probabilities, w, session, ndcg)  # type: ignore[attr-defined]
                    else:
                        started._serve(data.X, queries, model, w, session, ndcg, user_rng)
                    cumulated += factor * float(ndcg @ discount ** np.arange(len(ndcg)))
                    factor *= discount ** len(ndcg)
                    done += len(ndcg)
                    advance(len(ndcg))
                sums.append(cumulated)
                values.append(_measure(measured, w, k))
            offline.append(values)
            online.append(sums)
            coefs.append(w)
    return ClickCurve(
        str(ranker), str(model), points, np.array(offline), np.array(online), float(discount), f"nDCG@{k}",
        np.array(coefs),
    )  # fmt: skip


def judged_queries(data: RankingData, grades: NDArray[np.int64], k: int) -> JudgedQueries:
    """Group rows by query for sessions with lists of k ranks; `grades` are checked."""
    order, starts = data.queries.order, data.starts
    of_rows = grades[order]
    gains = np.exp2(of_rows) - 1.0
    blocks = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    best = gains[np.lexsort((-gains, blocks))]
    places = np.arange(len(gains)) - np.repeat(starts[:-1], np.diff(starts))
    discounted = np.where(places < k, best / np.log2(places + 2.0), 0.0)
    ideals = np.add.reduceat(discounted, starts[:-1]) if len(starts) > 1 else np.empty(0)
    prior = np.empty(0) if data.prior is None else data.prior
    return JudgedQueries(order, starts, of_rows, gains, ideals, prior)


def _started(ranker: OnlineRanker, data: RankingData, rng: np.random.Generator) -> OnlineRanker:
    """Return a copy of the ranker with weights and the random generators of this run."""
    copy = deepcopy(ranker)
    copy.random_state = int(rng.integers(RANKER_SEEDS))
    if not hasattr(copy, "run_"):
        check_parameters(copy)
        copy._begin(data.X, data.prior)
        return copy
    copy._check_prior(data.prior)
    if data.n_features != copy.n_features_in_:
        raise InputError(f"data has {data.n_features} features, but the ranker {copy.n_features_in_}; pass the same.")
    copy.run_ = {**copy.run_, "rng_state": np.stack([seed_state(rng), seed_state(rng)])}
    return copy


def _points(evaluate_at: ArrayLike | None, impressions: int) -> NDArray[np.int64]:
    if evaluate_at is None:
        spread = np.append(0, np.rint(np.geomspace(1, max(impressions, 1), _POINTS)))
        return np.unique(np.minimum(spread, impressions)).astype(np.int64)
    points = np.asarray(evaluate_at)
    if points.ndim != 1 or not len(points) or points.dtype.kind not in "iu":
        raise InputError(f"evaluate_at is {evaluate_at!r}; pass increasing numbers of lists.")
    if (np.diff(points) <= 0).any() or points[0] < 0 or points[-1] > impressions:
        raise InputError(
            f"evaluate_at is {points.tolist()}; pass increasing numbers of lists between 0 and {impressions}."
        )
    return points.astype(np.int64)


def _measure(data: RankingData, coef: Floats, k: int) -> float:
    scores = np.asarray(data.X @ coef, dtype=np.float64) + (0.0 if data.prior is None else data.prior)
    name = f"nDCG@{k}"
    return float(evaluate(data.y, scores, data.queries.codes, name)[name].mean)  # type: ignore[arg-type]
