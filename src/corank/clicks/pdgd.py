"""
PDGD: pairwise differentiable gradient descent (Oosterhuis and de Rijke, 2018).

Lists are drawn from the Plackett–Luce model of the scores: P(R) = Π_r e^(f_r) / Σ over rows left at rank r of e^f. A
clicked row a is preferred to a row b that was passed over: not clicked, and not below the rank after the last click.
Each preference pulls at P(a above b) = σ(f_a − f_b), weighed so that where rows stand in the list does not matter:

    w ← w + η Σ_ab ρ_ab σ'(f_a − f_b) (a − b),    ρ_ab = P(R*) / (P(R) + P(R*)),

R* the list with a and b exchanged, η = eta0 decay^version. f and ρ are those of the moment the list was drawn; with
coupling = 0 steps add up whatever their order. O(n d + pairs · k) for a list of k of n rows; ratios of chances in
logarithms, so that no score is too large.

With M views, each learns by itself, σ'(f_v,a − f_v,b) (a − b)_v, lists are drawn by the mean of the views, and

    coupling · Σ_{v,u} mean (f_v − f_u over pairs of rows without a click)²

draws views together on rows that were not shown or not clicked: LCRA's agreement, for clicks, which its paper proposes
and leaves untested; docs/experiments/clicks.md tests it.
"""

from __future__ import annotations

from typing import Any

from corank.clicks.linear import LinearClicks
from corank.core.clicks.policies import PLACKETT_LUCE
from corank.core.clicks.updates import ClickPlan
from corank.core.pairs.losses import LOGISTIC


class PDGD(LinearClicks):
    """
    Learn from clicks without favour for the top of the list.

    Parameters
    ----------
    eta0 : float
        Rate of the first step; 0 learns nothing and only draws lists.
    decay : float
        What the rate is multiplied by from list to list.
    views : int or list
        Number of views that the columns are dealt to at random, or the columns of each (see
        `corank.kernels.views.as_views`).
    coupling : float
        Weight of the views' agreement on rows without a click (the μ of LCRA).
    random_state : int, RandomState or None
        Deals columns, and draws lists.

    Attributes
    ----------
    coef_ : array of shape (n_features,)
        Weights of the columns, the mean of the views'.
    views_ : list of View
        The columns of each view.
    view_coefs_ : array of shape (n_views, n_features)
        Weights of each view, zero where it does not see a column.
    n_learnt_, n_ignored_ : int
        Lists that were learnt from, and lists that were not, because they came twice or too late.
    run_ : dict
        Dice and ids of learnt lists, with which `show` and `learn` go on.

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

    def __init__(
        self,
        eta0: float = 0.1,
        *,
        decay: float = 0.9999977,
        views: Any = 1,
        coupling: float = 0.0,
        random_state: Any = None,
    ) -> None:
        self.eta0 = eta0
        self.decay = decay
        self.views = views
        self.coupling = coupling
        self.random_state = random_state

    @property
    def _plan(self) -> ClickPlan:
        return ClickPlan(PLACKETT_LUCE, LOGISTIC, 0.0, float(self.eta0), float(self.decay), float(self.coupling))
