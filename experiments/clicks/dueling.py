"""
DBGD and MGD: dueling bandit gradient descent, and its multileaved form.

For every list, candidates w + δ u_j are drawn around w, with uniform directions u_j of length 1. The rankings of w and
of the candidates are interleaved at random into one list, clicks are credited to the rankings that probably contributed
the clicked rows, and

    w ← w + η mean {u_j: candidate j is expected to have won more clicks than w},    η = eta0 decay^version.

DBGD (Yue and Joachims, 2009) has one candidate, MGD (Schuth et al., 2016; here with probabilistic multileaving and the
mean of all winners) several. The expectation is exact. The published code draws 10,000 assignments instead, which
leaves out more, and weaker, winners. An update depends on its impression alone. O(m n (d + log n) + m k n) for a list
of k of n rows, m rankings.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from corank.clicks.ranker import Impression, OnlineRanker, RngState, Session, kernel_rows
from corank.core.clicks.sessions import ClickProbabilities, JudgedQueries
from corank.errors import InputError
from corank.parameters import Rules, integer, number
from experiments.clicks.dueling_kernels import (
    DuelScratch,
    DuelSettings,
    duel_scratch,
    learn_duel,
    run_duels,
    show_duel,
)

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Duel(Impression):
    """
    A list that compared rankings.

    directions (n_candidates, n_features): from the ranker to each candidate.
    ranks (n_candidates + 1, n_rows): rank of each row, 0 for the best, by the ranker and by each candidate.
    """

    directions: Floats | None = None
    ranks: NDArray[np.int64] | None = None


class Dueling(OnlineRanker):
    """Base class of `DBGD` and `MGD`, which differ in the number of candidates."""

    _rules: ClassVar[Rules] = {**OnlineRanker._rules, "delta": number(0, inside="()"), "tau": number(0)}

    delta: float
    tau: float

    @property
    def _n_candidates(self) -> int:
        return 1

    @property
    def _settings(self) -> DuelSettings:
        return DuelSettings(float(self.eta0), float(self.decay), float(self.delta), float(self.tau))

    def _scratch(self, n: int, k: int) -> DuelScratch:
        return duel_scratch(n, k, self._n_candidates, self.n_features_in_, float(self.tau))

    def _draw(self, rows: Any, prior: Floats | None, rng_state: RngState, k: int) -> Impression:
        core, members, offset = kernel_rows(rows, prior)
        scratch = self._scratch(len(members), k)
        length = show_duel(core, members, offset, self.coef_, self._settings, rng_state, k, scratch)
        shown, log_propensities = scratch.shown[:length], scratch.log_propensities[:length]
        results = (self.n_learnt_, rows, scratch.scores, prior, scratch.directions, scratch.ranks)
        return Duel(0, shown, log_propensities, *results)

    def _step(self, impression: Impression, clicks: NDArray[np.bool_], w: Floats) -> None:
        if not isinstance(impression, Duel) or impression.directions is None or impression.ranks is None:
            raise InputError(
                f"the impression has no duel; pass an impression that show of {type(self).__name__} returned."
            )
        n, directions = impression.X.shape[0], impression.directions
        scratch = duel_scratch(n, len(impression), len(directions), len(w), float(self.tau))
        scratch.directions[:], scratch.ranks[:] = directions, impression.ranks
        scratch.shown[:], scratch.clicks[:] = impression.rows, clicks
        learn_duel(w, self._settings, impression.version, n, len(impression), scratch)

    def _serve_compiled(
        self, rows: Any, queries: JudgedQueries, user: ClickProbabilities, w: Floats, session: Session, ndcg: Floats
    ) -> None:
        scratch = self._scratch(int(np.diff(queries.starts).max()), session.k)
        run_duels(rows, queries, user, self._settings, w, *session, ndcg, scratch)


class DBGD(Dueling):
    """
    Dueling bandit gradient descent: compare the ranker with one candidate per list.

    Parameters
    ----------
    eta0 : float
        Length of the first step.
    delta : float
        Distance of the candidates from the ranker.
    tau : float
        A ranking contributes rows in proportion to rank^−tau.
    decay : float
        Factor of the step length from list to list.
    random_state : int, optional
        Random seed.
    """

    def __init__(
        self,
        eta0: float = 0.01,
        delta: float = 1.0,
        *,
        tau: float = 3.0,
        decay: float = 1.0,
        random_state: Any = None,
    ) -> None:
        self.eta0 = eta0
        self.delta = delta
        self.tau = tau
        self.decay = decay
        self.random_state = random_state


class MGD(Dueling):
    """
    Multileave gradient descent: compare the ranker with many candidates per list.

    Parameters
    ----------
    n_candidates : int
        Number of candidates per list.
    eta0 : float
        Length of the first step, times that of the mean of the winners.
    delta, tau, decay
        As in `DBGD`.
    random_state : int, optional
        Random seed.
    """

    _rules: ClassVar[Rules] = {**Dueling._rules, "n_candidates": integer(1)}

    def __init__(
        self,
        n_candidates: int = 49,
        eta0: float = 0.01,
        *,
        delta: float = 1.0,
        tau: float = 3.0,
        decay: float = 1.0,
        random_state: Any = None,
    ) -> None:
        self.n_candidates = n_candidates
        self.eta0 = eta0
        self.delta = delta
        self.tau = tau
        self.decay = decay
        self.random_state = random_state

    @property
    def _n_candidates(self) -> int:
        return int(self.n_candidates)
