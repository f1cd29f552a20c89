"""SimulatedUsers: the queries and clicks of `simulate_clicks`, drawn one at a time for a ranker that runs elsewhere."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corank.clicks.click_models import ClickModel, as_click_model, as_grades, is_compiled
from corank.clicks.ranker import LISTS, initial_states
from corank.core.clicks.sessions import draw_clicks
from corank.core.random import random_below, seed_state
from corank.data.ranking import RankingData
from corank.errors import InputError
from corank.parameters import check_values, integer, rng_of, seed

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
