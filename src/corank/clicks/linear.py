"""LinearClicks: what PDGD and ClickedPairs share: lists drawn from scores, views, and one compiled step."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corank.clicks.impression import Impression
from corank.clicks.ranker import OnlineRanker, rows_of
from corank.core.clicks.click_models import Habits
from corank.core.clicks.sessions import Collected, run_lists
from corank.core.clicks.updates import ClickPlan, learn_list, room_for, show_list
from corank.errors import InputError
from corank.parameters import Rules, is_whole, items, number, whole

Floats = NDArray[np.float64]


class LinearClicks(OnlineRanker):
    """Base class of `PDGD` and `ClickedPairs`, which differ in their `_plan`."""

    _rules: ClassVar[Rules] = {**OnlineRanker._rules, "views": whole(1) | items, "coupling": number(0)}

    views: Any
    coupling: float

    def predict_views(self, X: Any, *, prior: ArrayLike | None = None) -> Floats:
        """
        Score rows with each view.

        Parameters
        ----------
        X : array-like, CSR matrix or DataFrame, shape (n_rows, n_features)
            The rows.
        prior : array-like of shape (n_rows,), optional
            As in `predict`.

        Returns
        -------
        array of shape (n_rows, n_views)
            One column of scores for each view; their mean is what ``predict`` gives.
        """
        return self._add_prior(np.asarray(self._checked_rows(X) @ self.view_coefs_.T, dtype=np.float64), prior)

    @property
    def _plan(self) -> ClickPlan:
        raise NotImplementedError

    def _check_combinations(self) -> None:
        n_views = self.views if is_whole(self.views) else len(self.views)
        if self.coupling > 0.0 and n_views < 2:
            raise InputError(f"coupling is {self.coupling}, but one view agrees with itself; pass views=2.")

    def _draw(self, rows: Any, prior: Floats | None, rng_state: NDArray[np.uint64], k: int) -> Impression:
        W = self.view_coefs_
        core, members, known = rows_of(rows, prior)
        room = room_for(len(members), k, len(W), W.shape[1])
        length = show_list(core, members, known, W, self._plan, rng_state, k, room)
        shown, chances = room.shown[:length], room.log_chances[:length]
        return Impression(0, shown, chances, self.n_learnt_, rows, room.scores, room.of_views, prior)

    def _step(self, impression: Impression, clicks: NDArray[np.bool_], W: Floats) -> None:
        if impression.duel is not None or impression.view_scores.shape[1] != len(W):
            raise InputError("the impression is of another kind of ranker, or of other views; pass its own.")
        core, members, known = rows_of(impression.X, impression.prior)
        room = room_for(len(members), len(impression), len(W), W.shape[1])
        room.shown[:], room.clicks[:] = impression.rows, clicks
        room.scores[:], room.of_views[:] = impression.scores, impression.view_scores
        learn_list(core, members, known, W, self._sees, self._plan, impression.version, len(impression), room)

    def _serve(
        self, rows: Any, collected: Collected, habits: Habits, W: Floats, rng_state: tuple[Any, Any], k: int,
        n_learnt: int, worth: Floats,
    ) -> None:  # fmt: skip
        longest = int(np.diff(collected.starts).max())
        room = room_for(longest, k, len(W), W.shape[1])
        run_lists(rows, collected, habits, self._plan, W, self._sees, *rng_state, k, n_learnt, worth, room)
