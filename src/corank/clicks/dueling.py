"""
DBGD and MGD: dueling bandit gradient descent, and its multileaved form.

For every list, candidates w + δ u_j are drawn around w, all directions u_j of length 1 alike. The rankings of w and of
the candidates are blended by chance into one list, clicks are credited to whom the clicked rows probably came from, and

    w ← w + η mean {u_j: candidate j is expected to have won more clicks than w},    η = eta0 decay^version.

DBGD (Yue and Joachims, 2009) has one candidate, MGD (Schuth et al., 2016; here with probabilistic multileaving and the
mean of all winners) several. The expectation is exact, where the published code draws 10,000 assignments: that leaves
more, and weaker, winners out. A step depends on its impression alone. O(m n (d + log n) + m k n) for a list of k of n
rows, m rankings.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from corank.clicks.impression import Duel, Impression
from corank.clicks.ranker import OnlineRanker, rows_of
from corank.core.clicks.click_models import Habits
from corank.core.clicks.dueling import DuelPlan, DuelRoom, learn_duel, room_for_duel, show_duel
from corank.core.clicks.sessions import Collected, run_duels
from corank.errors import InputError
from corank.parameters import Rules, number, whole

Floats = NDArray[np.float64]


class Dueling(OnlineRanker):
    """Base class of `DBGD` and `MGD`, which differ in the number of candidates."""

    _rules: ClassVar[Rules] = {**OnlineRanker._rules, "delta": number(0, inside="()"), "tau": number(0)}

    delta: float
    tau: float

    @property
    def _n_candidates(self) -> int:
        return 1

    @property
    def _plan(self) -> DuelPlan:
        return DuelPlan(float(self.eta0), float(self.decay), float(self.delta), float(self.tau))

    def _room(self, n: int, k: int) -> DuelRoom:
        return room_for_duel(n, k, self._n_candidates, self.n_features_in_, float(self.tau))

    def _draw(self, rows: Any, prior: Floats | None, rng_state: NDArray[np.uint64], k: int) -> Impression:
        core, members, known = rows_of(rows, prior)
        room = self._room(len(members), k)
        length = show_duel(core, members, known, self.coef_, self._plan, rng_state, k, room)
        shown, chances, scores = room.shown[:length], room.log_chances[:length], room.known
        duel = Duel(room.directions, room.ranks)
        return Impression(0, shown, chances, self.n_learnt_, rows, scores, scores[:, None], prior, duel)

    def _step(self, impression: Impression, clicks: NDArray[np.bool_], W: Floats) -> None:
        if impression.duel is None:
            raise InputError("the impression holds no duel; pass what the show of this ranker returned.")
        n, duel = impression.X.shape[0], impression.duel
        room = room_for_duel(n, len(impression), len(duel.directions), W.shape[1], float(self.tau))
        room.directions[:], room.ranks[:] = duel.directions, duel.ranks
        room.shown[:], room.clicks[:] = impression.rows, clicks
        learn_duel(W[0], self._plan, impression.version, n, len(impression), room)

    def _serve(
        self, rows: Any, collected: Collected, habits: Habits, W: Floats, rng_state: tuple[Any, Any], k: int,
        n_learnt: int, worth: Floats,
    ) -> None:  # fmt: skip
        room = self._room(int(np.diff(collected.starts).max()), k)
        run_duels(rows, collected, habits, self._plan, W[0], *rng_state, k, n_learnt, worth, room)


class DBGD(Dueling):
    """
    Learn from clicks by comparing the ranker with one neighbour at a time.

    Parameters
    ----------
    eta0 : float
        Length of the first step.
    delta : float
        How far away the candidate lies.
    tau : float
        Rows are drawn from a ranking in proportion to rank^−tau.
    decay : float
        What the length of steps is multiplied by from list to list.
    random_state : int, RandomState or None
        Draws candidates and lists.

    Attributes
    ----------
    coef_, views_, view_coefs_, n_learnt_, n_ignored_, run_
        As in `PDGD`, with one view.

    Examples
    --------
    >>> from corank.clicks import DBGD
    >>> ranker = DBGD(random_state=0)
    >>> impression = ranker.show([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], k=2)
    >>> len(impression), ranker.learn(impression, [True, False]).n_learnt_
    (2, 1)
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
    Learn from clicks by comparing the ranker with many neighbours at a time.

    Parameters
    ----------
    n_candidates : int
        Neighbours in each list.
    eta0 : float
        Length of the first step, times that of the winners' mean.
    delta, tau, decay, random_state
        As in `DBGD`.

    Attributes
    ----------
    coef_, views_, view_coefs_, n_learnt_, n_ignored_, run_
        As in `PDGD`, with one view.

    Examples
    --------
    >>> from corank.clicks import MGD
    >>> ranker = MGD(9, random_state=0)
    >>> impression = ranker.show([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    >>> impression.duel.ranks.shape
    (10, 3)
    """

    _rules: ClassVar[Rules] = {**Dueling._rules, "n_candidates": whole(1)}

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
