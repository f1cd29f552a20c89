"""
OnlineRanker: a linear ranker that shows lists and learns from clicks on them.

``show`` draws a list of k rows, ``learn`` takes a step for a list and its clicks. Between the two nothing waits inside
the ranker: an `Impression` carries all that its step needs. So clicks may be lost, and may come in any order. An
impression that comes twice is ignored the second time: the ids of the last `MEMORY` learnt lists are kept, and a list
drawn more than `MEMORY` steps ago is ignored as too late, which makes that exact in bounded memory.

``fit`` learns a start from judgements. A ranker draws a above b with the odds e^(f_a − f_b) (under Plackett–Luce this
is exact), so f is fitted to such odds:

    min_w mean_P ℓ(t, s₀_a − s₀_b + w · (a − b)) + alpha/2 ‖w‖²,    ℓ logistic, t = (1 + y_a − y_b)/2,

differences of scores as shares of the widest, alpha by the rule of `corank.solvers.penalty`; with views, each by
itself. Without ``fit`` the first ``show`` starts from w = 0. ``fit`` starts anew; clicks learnt before are forgotten.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corank.clicks.impression import Impression
from corank.core.clicks.click_models import Habits
from corank.core.clicks.sessions import Collected
from corank.core.random import next_u64, seed_state
from corank.core.rows.access import as_core_rows
from corank.data.problem.inputs import as_prior
from corank.data.problem.ranking import RankingData
from corank.data.problem.rows import as_rows
from corank.errors import InputError
from corank.estimator.base import Ranker
from corank.estimator.contract import check_parameters, install
from corank.estimator.held_out import HeldOut
from corank.kernels.views import View, as_views
from corank.parameters import Rules, check_values, number, rng_of, seed, whole
from corank.solvers import smooth_loss
from corank.solvers.penalty import default_alpha
from corank.solvers.targets import in_unit, unit_range

Floats = NDArray[np.float64]

MEMORY = 65_536
"""Learnt lists whose ids are remembered, and steps after which a list is too old to be learnt."""

# rows of rng_state: one generator draws lists, one ids, so that lists do not depend on how ids are made
LISTS, IDS = 0, 1


@dataclass(frozen=True, eq=False)
class Begun:
    """What was learnt; see the attributes of `PDGD`."""

    coef: Floats
    views: list[View]
    view_coefs: Floats
    n_learnt: int
    n_ignored: int
    run: dict[str, NDArray[Any]]


class OnlineRanker(Ranker):
    """
    Base class of rankers that learn from clicks.

    A subclass says in `_draw` how lists are drawn, in `_step` what a list and its clicks teach, and in `_serve` how
    both go on list after list without leaving compiled code.
    """

    _rules: ClassVar[Rules] = {
        "eta0": number(0),
        "decay": number(0, 1, inside="(]"),
        "random_state": seed,
    }

    eta0: float
    decay: float
    random_state: Any
    coef_: Floats
    views_: list[View]
    view_coefs_: Floats
    n_learnt_: int
    n_ignored_: int
    run_: dict[str, NDArray[Any]]

    def show(
        self, X: Any, k: int = 10, *, prior: ArrayLike | None = None, rng: np.random.Generator | None = None
    ) -> Impression:
        """
        Draw a list for one query.

        Parameters
        ----------
        X : array-like, CSR matrix or DataFrame, shape (n_rows, n_features)
            The rows of the query.
        k : int
            Rows to show; all of them where there are fewer.
        prior : array-like of shape (n_rows,), optional
            Scores of these rows known before learning, such as those of the ranker in use so far; as in `predict`.
        rng : numpy.random.Generator, optional
            Dice. None throws the ranker's own, which two copies of it would throw alike: where several servers show
            lists of one model, let each bring its own.

        Returns
        -------
        Impression
            The list. A ranker that was never fitted begins here, from zero.
        """
        check_values({"k": k}, {"k": whole(1)})
        check_parameters(self)
        if not hasattr(self, "run_"):
            self._begin(X, prior)
        rows = self._checked_rows(X)
        known = as_prior(prior, rows.shape[0]) if self._check_prior(prior) else None  # type: ignore[arg-type]
        rng_state = self.run_["rng_state"].copy() if rng is None else np.stack([seed_state(rng), seed_state(rng)])
        number_of_it = int(next_u64(rng_state[IDS]))
        drawn = self._draw(rows, known, rng_state[LISTS], k)
        if rng is None:
            self.run_ = {**self.run_, "rng_state": rng_state}
        return replace(drawn, id=number_of_it)

    def learn(self, impression: Impression, clicks: ArrayLike) -> Self:
        """
        Learn from clicks on a list.

        Parameters
        ----------
        impression : Impression
            What `show` returned, of this ranker or of a copy of it.
        clicks : array-like of bool or number, shape (k,)
            For each rank, whether or how often it was clicked.

        Returns
        -------
        self
            The ranker, one step further. A list that was learnt before, or drawn more than 65,536 steps ago, changes
            nothing and is counted in `n_ignored_`.
        """
        check_parameters(self)
        clicked = impression.as_clicks(clicks)
        if not hasattr(self, "run_"):
            self._begin(impression.X, impression.prior)
        if impression.X.shape[1] != self.n_features_in_:
            raise InputError(
                f"the impression has rows of {impression.X.shape[1]} features, but this ranker has "
                f"{self.n_features_in_}; pass what its own show returned."
            )
        self._check_prior(impression.prior)
        name = np.uint64(impression.id)
        if (self.run_["ids"] == name).any() or impression.version < self.n_learnt_ - MEMORY:
            self.n_ignored_ += 1
            return self
        W = self.view_coefs_.copy()
        self._step(impression, clicked, W)
        if not np.isfinite(W).all():
            raise InputError(f"the weights overflow with eta0={self.eta0:g}; scale the columns of X, or lower eta0.")
        ids = np.append(self.run_["ids"], name)[-MEMORY:]
        learnt = {"view_coefs_": W, "coef_": W.mean(axis=0), "n_learnt_": self.n_learnt_ + 1}
        self.__dict__ = {**vars(self), **learnt, "run_": {**self.run_, "ids": ids}}
        return self

    @abstractmethod
    def _draw(self, rows: Any, prior: Floats | None, rng_state: NDArray[np.uint64], k: int) -> Impression:
        """Draw a list, without an id; `rng_state` is advanced."""

    @abstractmethod
    def _step(self, impression: Impression, clicks: NDArray[np.bool_], W: Floats) -> None:
        """Change the weights of the views, in place, by what a list teaches."""

    @abstractmethod
    def _serve(
        self, rows: Any, collected: Collected, habits: Habits, W: Floats, rng_state: tuple[Any, Any], k: int,
        n_learnt: int, worth: Floats,
    ) -> None:  # fmt: skip
        """
        Show, let click and learn, list after list; what `show`, a user and `learn` do in turns.

        rows: of all queries, as kernels see them.
        W: weights of the views, changed in place.
        rng_state: the ranker's, and those of sessions.
        worth: receives nDCG of each list.
        """

    def _score_rows(self, X: Any) -> Floats:
        """Return w · x."""
        return np.asarray(self._checked_rows(X) @ self.coef_, dtype=np.float64)

    def _fit(self, data: RankingData, held: HeldOut | None, rng: np.random.Generator) -> Begun:
        for_views, for_dice = rng.spawn(2)
        views = self._views_of(data.n_features, for_views)
        W = np.zeros((len(views), data.n_features))
        for w, view in zip(W, views, strict=True):
            problem = replace(in_unit(data, unit_range(data, False)), X=view.select(data.X))
            found = smooth_loss(problem, "logistic", alpha=default_alpha(problem), tol=1e-14)
            w[slice(None) if view.columns is None else view.columns] = found.coef
        return _begun(W, views, for_dice)

    def _begin(self, X: Any, prior: Any) -> None:
        """Start from zero, with the columns of X."""
        rows = as_rows(X)
        found = self._columns(X, rows)
        if prior is not None:
            as_prior(prior, rows.shape[0])
            found["has_prior_"] = True
        # the same random state as after fit
        for_views, for_dice = rng_of(self.random_state).spawn(2)[1].spawn(2)
        views = self._views_of(rows.shape[1], for_views)
        install(self, _begun(np.zeros((len(views), rows.shape[1])), views, for_dice), found)

    def _views_of(self, d: int, rng: np.random.Generator) -> list[View]:
        views = as_views(getattr(self, "views", 1), d, rng)
        if not all(view.kernel.is_linear for view in views):
            name = type(self).__name__
            raise InputError(f"{name} is linear in each view's columns; put Landmarks before it, or use linear views.")
        return views

    @property
    def _sees(self) -> Floats:
        """1 where a view sees a column, else 0; no columns where a single view sees all, which is quicker."""
        sees = np.zeros(self.view_coefs_.shape)
        for line, view in zip(sees, self.views_, strict=True):
            line[slice(None) if view.columns is None else view.columns] = 1.0
        return np.empty((1, 0)) if len(sees) == 1 and sees.all() else sees

    def _check_state(self) -> None:
        """Raise where what `show` and `learn` go on from is not what they leave behind."""
        rng_state, ids = self.run_["rng_state"], self.run_["ids"]
        if rng_state.shape != (2, 4) or rng_state.dtype != np.uint64 or not rng_state.any(axis=1).all():
            raise InputError("run_ holds no valid state of the random generators")
        if ids.ndim != 1 or ids.dtype != np.uint64 or len(ids) > MEMORY:
            raise InputError("the ids of learnt lists are none")
        if self.view_coefs_.shape != (len(self.views_), self.n_features_in_):
            raise InputError(f"the weights are not of {len(self.views_)} views of {self.n_features_in_} columns")
        if not np.isfinite(self.view_coefs_).all() or self.view_coefs_.dtype != np.float64:
            raise InputError("the weights are not finite")
        for count in (self.n_learnt_, self.n_ignored_):
            check_values({"count": count}, {"count": whole(0)})


def _begun(W: Floats, views: list[View], rng: np.random.Generator) -> Begun:
    run: dict[str, NDArray[Any]] = {
        "rng_state": np.stack([seed_state(rng), seed_state(rng)]), "ids": np.empty(0, dtype=np.uint64)
    }  # fmt: skip
    return Begun(W.mean(axis=0), views, W, 0, 0, run)


def rows_of(X: Any, prior: Floats | None) -> tuple[Any, NDArray[np.int64], Floats]:
    """Return the rows of one query as kernels take them: rows, their numbers, and the prior, empty where none is."""
    return as_core_rows(X), np.arange(X.shape[0]), np.empty(0) if prior is None else prior
