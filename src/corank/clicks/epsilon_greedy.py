"""
ClickedPairs: pairwise learning from clicks with ε-greedy lists (Hofmann, Whiteson and de Rijke, 2013).

At each rank stands the best row that is left or, with chance ε, any of them. A clicked row a is preferred to a row b
that was passed over: not clicked, and not below the rank after the last click:

    w ← w + η Σ_ab g(f_a − f_b) (a − b),    g = −ℓ' at target 1, at the weights of today, η = eta0 decay^version.

Where a row stood is not corrected for: exploration has to outweigh it. Views and coupling as in `corank.clicks.pdgd`.
O(n d + pairs) for a list of n rows.
"""

from __future__ import annotations

from typing import Any, ClassVar

from corank.clicks.linear import LinearClicks
from corank.core.clicks.policies import EPSILON_GREEDY
from corank.core.clicks.updates import ClickPlan
from corank.pairwise.losses import LOSSES, Loss
from corank.parameters import Rules, number, one_of


class ClickedPairs(LinearClicks):
    """
    Learn from clicked and passed-over rows, pair by pair, with ε-greedy lists.

    Parameters
    ----------
    epsilon : float
        Share of exploration, between 0 and 1.
    loss : {"hinge", "squared", "logistic", "squared_hinge"}
        ℓ, see `corank.pairwise.losses.Loss`; a clicked row is asked to be 1 above one that was passed over. A small
        `eta0` keeps the hinge on its straight part, where every pair counts alike, which noisy clicks need.
    eta0 : float
        Rate of the first step.
    decay : float
        What the rate is multiplied by from list to list.
    views, coupling, random_state
        As in `PDGD`.

    Attributes
    ----------
    coef_, views_, view_coefs_, n_learnt_, n_ignored_, run_
        As in `PDGD`.

    Examples
    --------
    >>> from corank.clicks import ClickedPairs, simulate
    >>> from corank import RankingData, make_ranking
    >>> problem = make_ranking(50, 20, random_state=0)
    >>> data = RankingData.of(problem.X, problem.y, problem.qid)
    >>> curve = simulate(ClickedPairs(), data, "perfect", 1000, random_state=0)
    >>> curve.offline[0, -1] > curve.offline[0, 0]
    np.True_
    """

    _rules: ClassVar[Rules] = {**LinearClicks._rules, "epsilon": number(0, 1), "loss": one_of(*LOSSES)}

    def __init__(
        self,
        epsilon: float = 0.8,
        loss: str = "hinge",
        eta0: float = 1e-4,
        *,
        decay: float = 0.9999977,
        views: Any = 1,
        coupling: float = 0.0,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.loss = loss
        self.eta0 = eta0
        self.decay = decay
        self.views = views
        self.coupling = coupling
        self.random_state = random_state

    @property
    def _plan(self) -> ClickPlan:
        code = Loss.of(self.loss).code
        return ClickPlan(
            EPSILON_GREEDY, code, float(self.epsilon), float(self.eta0), float(self.decay), float(self.coupling)
        )
