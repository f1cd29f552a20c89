# mypy: disable-error-code="no-untyped-call"
"""
Rankers as the code behind the published figures has them, where that is not what their papers say.

* The pairwise baseline takes, where it does not explore, the *worst* row that is left: scores are sorted upwards.
* DBGD and MGD estimate who won by 10,000 random assignments of clicks to rankings. A candidate whose chance to have
  contributed the clicked row is far below 1/10,000 cannot win, and of two about equal chances either may: with many
  candidates, winners are fewer, and luck chooses more of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.clicks import MGD, ClickedPairs
from corank.core.clicks.click_models import Habits, list_worth, read_list
from corank.core.clicks.dueling import show_duel
from corank.core.clicks.interleaving import share_clicks
from corank.core.clicks.policies import EPSILON_GREEDY
from corank.core.clicks.sessions import Collected
from corank.core.clicks.updates import ClickPlan
from corank.core.jit import jit
from corank.core.pairs.losses import HINGE
from corank.core.random import alias_table, draw_alias, next_u64, random_below
from corank.data.problem.ranking import RankingData

Floats = NDArray[np.float64]

SAMPLES = 10_000


class WorstFirst(ClickedPairs):
    """
    Pairs of equal weight, lists that exploit from the wrong end.

    With a negative rate −w is learnt, by whose order lists are made; `upside_down` turns the test rows. The rate is so
    small that the hinge stays on its straight part: only the order of scores matters.
    """

    @property
    def _plan(self) -> ClickPlan:
        return ClickPlan(EPSILON_GREEDY, HINGE, float(self.epsilon), -1e-9, float(self.decay), 0.0)


def upside_down(data: RankingData) -> RankingData:
    """Return the same rows with every sign changed."""
    return RankingData.of(-data.X, data.y, data.queries.codes)  # type: ignore[arg-type]


class SampledMGD(MGD):
    """MGD whose winners are found by random assignments of clicks; with one candidate, DBGD."""

    def _serve(
        self, rows: Any, collected: Collected, habits: Habits, W: Floats, rng_state: tuple[Any, Any], k: int,
        n_learnt: int, worth: Floats,
    ) -> None:  # fmt: skip
        room = self._room(int(np.diff(collected.starts).max()), k)
        _run(rows, collected, habits, self._plan, W[0], *rng_state, k, worth, room, SAMPLES)


@jit
def _run(rows, collected, habits, plan, w, ranker_state, rng_state, k, worth, room, n_samples):  # type: ignore[no-untyped-def]
    for t in range(len(worth)):
        q = np.int64(random_below(rng_state[0], len(collected.ideals)))
        first, last = collected.starts[q], collected.starts[q + 1]
        n = last - first
        length = show_duel(rows, collected.order[first:last], collected.prior, w, plan, ranker_state, k, room)
        worth[t] = list_worth(collected.gains[first:last], room.shown[:length], collected.ideals[q])
        for rank in range(length):
            room.grades[rank] = collected.grades[first + room.shown[rank]]
        clicks = room.clicks[:length]
        read_list(habits, room.grades[:length], rng_state[1], clicks)
        n_clicks = share_clicks(room.ranks[:, :n], room.worth, room.shown[:length], clicks, room.left[:n], room.shares)
        if n_clicks == 0:
            continue
        wins = _sampled_wins(room.shares[:n_clicks], ranker_state, n_samples)
        n_winners = (wins[1:] > 0).sum()
        for j in range(1, len(wins)):
            if wins[j] > 0:
                w += plan.eta0 / n_winners * room.directions[j - 1]


@jit
def _sampled_wins(shares, rng_state, n_samples):  # type: ignore[no-untyped-def]
    """Return how often each ranking got more of the clicks than the first, less how often fewer."""
    n_clicks, m = shares.shape
    tables = np.empty((n_clicks, m, 2), dtype=np.uint64)
    for c in range(n_clicks):
        tables[c] = alias_table(shares[c])
    wins, counts, drawn = np.zeros(m, dtype=np.int64), np.zeros(m, dtype=np.int64), np.empty(n_clicks, dtype=np.int64)
    lost_by_all = 0
    for _ in range(n_samples):
        for c in range(n_clicks):
            drawn[c] = np.int64(draw_alias(next_u64(rng_state), tables[c]))
            counts[drawn[c]] += 1
        own = counts[0]
        # who got nothing lost wherever the first got anything
        lost_by_all += own > 0
        for c in range(n_clicks):
            j = drawn[c]
            if counts[j] > 0 and j > 0:
                wins[j] += np.sign(counts[j] - own) + (own > 0)
            counts[j] = 0
    return wins - lost_by_all
