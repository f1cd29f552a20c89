# mypy: disable-error-code="no-untyped-call"
"""
Rankers as the code behind the published figures implements them, where it differs from the papers.

* The pairwise baseline takes, when it does not explore, the *worst* row left: scores are sorted in ascending order.
* DBGD and MGD estimate the winners from 10,000 random assignments of clicks to rankings. A candidate that contributed
  the clicked row with a probability far below 1/10,000 cannot win, and of two with about equal probabilities either
  may: with many candidates, there are fewer winners, and more of them are chosen by chance.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.clicks import PairwiseEpsilonGreedy
from corank.clicks.ranker import Session
from corank.core.clicks.sessions import ClickProbabilities, JudgedQueries, draw_clicks, list_ndcg
from corank.core.clicks.updates import EPSILON_GREEDY, UpdateSettings
from corank.core.jit import jit
from corank.core.pairs.losses import HINGE
from corank.core.random import alias_table, draw_alias, next_u64, random_below
from corank.data.ranking import RankingData
from experiments.clicks.dueling import MGD
from experiments.clicks.dueling_kernels import show_duel
from experiments.clicks.interleaving_kernels import assign_clicks

Floats = NDArray[np.float64]

SAMPLES = 10_000


class WorstFirst(PairwiseEpsilonGreedy):
    """
    PairwiseEpsilonGreedy that exploits the worst row instead of the best.

    A negative learning rate learns −w, which orders the lists; `upside_down` negates the test rows. The rate is so
    small
    that the hinge stays on its linear part: only the order of scores matters.
    """

    @property
    def _settings(self) -> UpdateSettings:
        return UpdateSettings(EPSILON_GREEDY, HINGE, float(self.epsilon), -1e-9, float(self.decay))


def upside_down(data: RankingData) -> RankingData:
    """Return the same rows with every sign changed."""
    return RankingData.of(-data.X, data.y, data.queries.codes)  # type: ignore[arg-type]


class SampledMGD(MGD):
    """MGD that estimates the winners from random assignments of clicks; with one candidate, DBGD."""

    def _serve_compiled(
        self, rows: Any, queries: JudgedQueries, user: ClickProbabilities, w: Floats, session: Session, ndcg: Floats
    ) -> None:
        scratch = self._scratch(int(np.diff(queries.starts).max()), session.k)
        _run(rows, queries, user, self._settings, w, *session[:3], ndcg, scratch, SAMPLES)


@jit
def _run(rows, queries, user, settings, w, own_rng, rngs, k, ndcg, scratch, n_samples):  # type: ignore[no-untyped-def]
    for t in range(len(ndcg)):
        q = np.int64(random_below(rngs[0], len(queries.ideals)))
        first, last = queries.starts[q], queries.starts[q + 1]
        n = last - first
        length = show_duel(rows, queries.order[first:last], queries.prior, w, settings, own_rng, k, scratch)
        shown, clicks = scratch.shown[:length], scratch.clicks[:length]
        ndcg[t] = list_ndcg(queries.gains[first:last], shown, queries.ideals[q])
        for rank in range(length):
            scratch.grades[rank] = queries.grades[first + shown[rank]]
        draw_clicks(user, scratch.grades[:length], rngs[1], clicks)
        n_clicks = assign_clicks(scratch.ranks[:, :n], scratch.softmax, shown, clicks, scratch.left[:n], scratch.shares)
        if n_clicks == 0:
            continue
        wins = _sampled_wins(scratch.shares[:n_clicks], own_rng, n_samples)
        n_winners = (wins[1:] > 0).sum()
        for j in range(1, len(wins)):
            if wins[j] > 0:
                w += settings.eta0 / n_winners * scratch.directions[j - 1]


@jit
def _sampled_wins(shares, rng_state, n_samples):  # type: ignore[no-untyped-def]
    """Return how often each ranking got more clicks than the first, minus how often fewer."""
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
        # a ranking without a click lost wherever the first has one
        lost_by_all += own > 0
        for c in range(n_clicks):
            j = drawn[c]
            if counts[j] > 0 and j > 0:
                wins[j] += np.sign(counts[j] - own) + (own > 0)
            counts[j] = 0
    return wins - lost_by_all
