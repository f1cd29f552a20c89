"""
PDGD and PairwiseEpsilonGreedy: online rankers that learn from pairs of clicked and skipped rows.

A clicked row a is preferred to a skipped row b: not clicked, and not below the rank after the last click. η = eta0
decay^version is the learning rate.

**PDGD**, pairwise differentiable gradient descent (Oosterhuis and de Rijke, 2018), draws lists from the Plackett–Luce
model of the scores: P(R) = Π_r e^(f_r) / Σ over rows left at rank r of e^f. Each preference is weighted so that the
ranks at which the two rows were shown do not matter:

    w ← w + η Σ_ab ρ_ab σ'(f_a − f_b) (a − b),    ρ_ab = P(R*) / (P(R) + P(R*)),

R* the list with a and b exchanged. f and ρ are those at the time the list was drawn, so updates may be applied in any
order. O(n d + pairs · k) for a list of k of n rows; ratios of probabilities are computed in logarithms, so that no
score is too large.

**PairwiseEpsilonGreedy** (Hofmann, Whiteson and de Rijke, 2013) shows at each rank the best row left or, with
probability ε, any of them, and does not correct for the rank:

    w ← w + η Σ_ab g(f_a − f_b) (a − b),    g = −ℓ' at target 1, at the current weights.

O(n d + pairs) for a list of n rows. Agreement of two views on rows without a click (section 5.3 of Tsivtsivadze,
Hofmann and Heskes, 2012) was measured for both and did not help: see docs/experiments/clicks.md.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from corank.base.docs import shared_parameters
from corank.base.pairs.losses import Loss
from corank.clicks.ranker import Impression, OnlineRanker, RngState, Session, kernel_rows
from corank.core.clicks.sessions import ClickProbabilities, JudgedQueries, run_lists
from corank.core.clicks.updates import (
    EPSILON_GREEDY,
    PLACKETT_LUCE,
    UpdateSettings,
    learn_list,
    list_scratch,
    show_list,
)
from corank.core.pairs.losses import LOGISTIC
from corank.parameters import LossName, Rules, number

Floats = NDArray[np.float64]


class _PairwiseRanker(OnlineRanker):
    """Base class of `PDGD` and `PairwiseEpsilonGreedy`, which differ in their `_settings`."""

    @property
    def _settings(self) -> UpdateSettings:
        raise NotImplementedError

    def _draw(self, rows: Any, prior: Floats | None, rng_state: RngState, k: int) -> Impression:
        core, members, offset = kernel_rows(rows, prior)
        scratch = list_scratch(len(members), k)
        length = show_list(core, members, offset, self.coef_, self._settings, rng_state, k, scratch)
        shown, log_propensities = scratch.shown[:length], scratch.log_propensities[:length]
        return Impression(0, shown, log_propensities, self.n_learnt_, rows, scratch.scores, prior)

    def _step(self, impression: Impression, clicks: NDArray[np.bool_], w: Floats) -> None:
        core, members, offset = kernel_rows(impression.X, impression.prior)
        scratch = list_scratch(len(members), len(impression))
        scratch.shown[:], scratch.clicks[:], scratch.scores[:] = impression.rows, clicks, impression.scores
        learn_list(core, members, offset, w, self._settings, impression.version, len(impression), scratch)

    def _serve_compiled(
        self, rows: Any, queries: JudgedQueries, user: ClickProbabilities, w: Floats, session: Session, ndcg: Floats
    ) -> None:
        scratch = list_scratch(int(np.diff(queries.starts).max()), session.k)
        run_lists(rows, queries, user, self._settings, w, *session, ndcg, scratch)


@shared_parameters
class PDGD(_PairwiseRanker):
    """
    Pairwise differentiable gradient descent: learn from clicks, corrected for position bias.

    Parameters
    ----------
    eta0 : float
        Learning rate of the first update; 0 learns nothing and only draws lists.
    decay : float
        Factor of the learning rate from list to list.
    {random_state}

    Attributes
    ----------
    coef_ : array of shape (n_features,)
        Weights of the columns.
    n_learnt_, n_ignored_ : int
        Number of lists learnt, and of lists ignored because they were repeated or too old.
    run_ : dict
        States of the random generators and ids of learnt lists, from which `show` and `learn` continue.

    Examples
    --------
    >>> import numpy as np
    >>> from corank import PDGD, make_ranking
    >>> from corank.clicks import CascadeClicks
    >>> problem = make_ranking(50, 20, random_state=0)
    >>> user, rng, ranker = CascadeClicks("navigational", 5), np.random.default_rng(0), PDGD(random_state=0)
    >>> for query in rng.integers(50, size=1000):
    ...     rows = np.flatnonzero(problem.qid == query)
    ...     impression = ranker.show(problem.X[rows])
    ...     clicks = user.clicks(problem.y[rows][impression.rows], rng)
    ...     ranker = ranker.learn(impression, clicks)
    >>> ranker.score(problem.X, problem.y, qid=problem.qid) > 0.7
    True
    """

    def __init__(self, eta0: float = 0.1, *, decay: float = 0.9999977, random_state: Any = None) -> None:
        self.eta0 = eta0
        self.decay = decay
        self.random_state = random_state

    @property
    def _settings(self) -> UpdateSettings:
        return UpdateSettings(PLACKETT_LUCE, LOGISTIC, 0.0, float(self.eta0), float(self.decay))


@shared_parameters
class PairwiseEpsilonGreedy(_PairwiseRanker):
    """
    Learn from pairs of clicked and skipped rows, with ε-greedy lists.

    Parameters
    ----------
    epsilon : float
        Probability of exploration, between 0 and 1.
    {loss}
        The target margin of a clicked over a skipped row is 1. A small `eta0` keeps the hinge on its linear part,
        where all pairs have equal weight, which noisy clicks need.
    eta0 : float
        Learning rate of the first update.
    decay : float
        Factor of the learning rate from list to list.
    {random_state}

    Attributes
    ----------
    coef_, n_learnt_, n_ignored_, run_
        As in `PDGD`.

    Examples
    --------
    >>> from corank import RankingData, make_ranking
    >>> from corank.clicks import PairwiseEpsilonGreedy, simulate_clicks
    >>> problem = make_ranking(50, 20, random_state=0)
    >>> data = RankingData.of(problem.X, problem.y, problem.qid)
    >>> curve = simulate_clicks(PairwiseEpsilonGreedy(), data, "perfect", 1000, random_state=0)
    >>> curve.offline[0, -1] > curve.offline[0, 0]
    np.True_
    """

    _rules: ClassVar[Rules] = {**OnlineRanker._rules, "epsilon": number(0, 1)}

    def __init__(
        self,
        epsilon: float = 0.8,
        loss: LossName = "hinge",
        eta0: float = 1e-4,
        *,
        decay: float = 0.9999977,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.loss = loss
        self.eta0 = eta0
        self.decay = decay
        self.random_state = random_state

    @property
    def _settings(self) -> UpdateSettings:
        code = Loss.of(self.loss).code
        return UpdateSettings(EPSILON_GREEDY, code, float(self.epsilon), float(self.eta0), float(self.decay))
