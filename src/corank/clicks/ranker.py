"""
OnlineRanker: a linear ranker that shows lists and learns from clicks on them.

``show`` draws a list of k rows, ``learn`` updates the weights from a list and its clicks. The ranker keeps no state
between the two: an `Impression` carries everything that the update needs, so clicks may be lost or arrive in any order.
A repeated impression is ignored: the ids of the last `MEMORY` learnt lists are stored, and a list drawn more than
`MEMORY` updates ago is ignored as too old. That is exact, in bounded memory.

``fit`` learns initial weights from judgements. A ranker draws a above b with the odds e^(f_a − f_b) (exactly so under
Plackett–Luce), so f is fitted to such odds:

    min_w mean_P ℓ(t, s₀_a − s₀_b + w · (a − b)) + alpha/2 ‖w‖²,    ℓ logistic, t = (1 + y_a − y_b)/2,

with differences of scores relative to the largest, and alpha by the rule of `corank.base.solvers.penalty`. Without
``fit`` the first ``show`` starts from w = 0. ``fit`` discards what was learnt from clicks.
"""

from __future__ import annotations

from abc import abstractmethod
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corank.base.base import Ranker
from corank.base.contract import check_parameters, install
from corank.base.held_out import HeldOut
from corank.base.solvers import smooth_loss
from corank.base.solvers.penalty import default_alpha
from corank.base.solvers.solution import in_unit, unit_range
from corank.clicks.click_models import ClickModel
from corank.core.clicks.sessions import ClickProbabilities, JudgedQueries, list_ndcg
from corank.core.random import next_u64, random_below, seed_state
from corank.core.rows.access import as_core_rows
from corank.data.inputs import as_prior, require_range
from corank.data.ranking import RankingData
from corank.data.rows import as_rows, encode_categories
from corank.data.scoring import score_columns
from corank.errors import InputError
from corank.fitted import Predictions
from corank.parameters import Rules, check_values, integer, number, rng_of, seed

Floats = NDArray[np.float64]
RngState = NDArray[np.uint64]

MEMORY = 65_536
"""Number of learnt lists whose ids are stored, and of updates after which a list is too old to be learnt."""

# lines of `rng_state`: one generator draws lists, one ids, so that lists do not depend on how ids are made
LISTS, IDS = 0, 1


@dataclass(frozen=True, eq=False)
class Impression:
    """
    One list that was shown.

    It is self-contained: the ranker keeps no part of it. Clicks may arrive late, in any order, twice or never.

    log_propensities: Logarithm of the probability that each of them was shown at its rank, given the rows above it.
        Rows that were not shown have no entry; their probability is not zero.
    """

    id: int  # a random 64-bit number that identifies the impression
    rows: NDArray[np.int64]  # numbers of the rows of X that were shown, from the top
    log_propensities: Floats
    version: int  # number of lists that the ranker had learnt when it drew this one
    X: Any  # all rows of the query. They are not copied, so do not change them.
    scores: Floats  # score of each row when the list was drawn, prior included
    prior: Floats | None = None  # scores known before learning

    def __post_init__(self) -> None:
        for part in (self.rows, self.log_propensities, self.scores):
            part.setflags(write=False)

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return f"Impression({len(self.rows)} of {self.X.shape[0]} rows, version {self.version}, id {self.id:#018x})"

    def as_clicks(self, clicks: ArrayLike) -> NDArray[np.bool_]:
        """Check clicks on this list."""
        checked = as_clicks(clicks, len(self.rows))
        if not (np.asarray(clicks) >= 0).all():
            raise InputError("clicks holds a number below 0 or NaN; pass for each rank whether it was clicked.")
        return checked


def as_clicks(clicks: ArrayLike, n_rows: int) -> NDArray[np.bool_]:
    """Return whether each of the n_rows ranks of a list was clicked; raise `InputError` for another shape or type."""
    values = np.asarray(clicks)
    if values.shape != (n_rows,) or values.dtype.kind not in "biuf":
        raise InputError(
            f"clicks has shape {values.shape} and type {values.dtype} for a list of {n_rows} rows; pass for each rank, "
            "from the top, whether it was clicked."
        )
    return np.asarray(values > 0)


@dataclass(frozen=True, eq=False)
class FittedOnline:
    """The fitted attributes of an `OnlineRanker`."""

    coef: Floats
    n_learnt: int
    n_ignored: int
    run: dict[str, NDArray[Any]]


class Session(NamedTuple):
    """Generators and constants of a simulation."""

    own_rng: RngState  # own_rng (4,), rngs (2, 4): states of the generators that draw lists, and queries and clicks
    rngs: RngState
    k: int  # ranks of a list
    n_learnt: int  # lists learnt before


class OnlineRanker(Ranker):
    """
    Base class of rankers that learn from clicks.

    A subclass implements `_draw`, which draws a list, and `_step`, which updates the weights. `_serve_compiled` is an
    optional fast loop of both for click models that are tables of probabilities.
    """

    _rules: ClassVar[Rules] = {
        "eta0": number(0),
        "decay": number(0, 1, inside="(]"),
        "random_state": seed,
    }
    _predictions: ClassVar[Predictions] = {
        "show": lambda model, X: copy(model).show(X, rng=np.random.default_rng(0)).scores,
    }

    eta0: float
    decay: float
    random_state: Any
    coef_: Floats
    n_learnt_: int
    n_ignored_: int
    run_: dict[str, NDArray[Any]]

    def show(
        self, X: Any, k: int = 10, *, prior: ArrayLike | None = None, rng: np.random.Generator | None = None
    ) -> Impression:
        """
        Draw a list for one query. A ranker that was not fitted starts from zero weights.

        X, k: rows of the query, with values from -1e15 to 1e15, and how many of them to show; all if there are fewer.
        prior: scores of these rows known before learning, such as those of the ranker in use so far; as in `predict`.
        rng: None uses the ranker's own generator, and copies of the ranker then draw the same numbers: if several
            servers show lists of one model, pass a different generator in each.
        """
        check_values({"k": k}, {"k": integer(1)})
        check_parameters(self)
        started = self._started(X, prior)
        rows = started._checked_rows(X)
        prior_scores = as_prior(prior, rows.shape[0]) if started._check_prior(prior) else None  # type: ignore[arg-type]
        require_range(rows, prior_scores)
        states = started.run_["rng_state"].copy() if rng is None else np.stack([seed_state(rng), seed_state(rng)])
        identifier = int(next_u64(states[IDS]))
        drawn = started._draw(rows, prior_scores, states[LISTS], k)
        if not np.isfinite(drawn.scores).all():
            raise InputError("the weights of this ranker are so large that scores overflow; fit it again.")
        run = started.run_ if rng is not None else {**started.run_, "rng_state": states}
        self.__dict__ = {**vars(started), "run_": run}
        return replace(drawn, id=identifier)

    def learn(self, impression: Impression, clicks: ArrayLike) -> Self:
        """
        Learn from clicks on a list.

        impression: what `show` of this ranker or of a copy of it returned. A list that was learnt before, or drawn more
            than 65,536 updates ago, changes nothing and is counted in `n_ignored_`.
        clicks: for each rank, whether or how often it was clicked.
        """
        check_parameters(self)
        clicked = impression.as_clicks(clicks)
        started = self._started(impression.X, impression.prior)
        if impression.X.shape[1] != started.n_features_in_:
            raise InputError(
                f"the impression has {impression.X.shape[1]} features, but this ranker has {started.n_features_in_}; "
                "pass an impression that its own show returned."
            )
        started._check_prior(impression.prior)
        require_range(impression.X, impression.prior)
        identifier = np.uint64(impression.id)
        if (started.run_["ids"] == identifier).any() or impression.version < started.n_learnt_ - MEMORY:
            self.__dict__ = {**vars(started), "n_ignored_": started.n_ignored_ + 1}
            return self
        w = started.coef_.copy()
        started._step(impression, clicked, w)
        if not np.isfinite(w).all():
            raise InputError(f"the weights overflow with eta0={self.eta0:g}; scale the columns of X, or lower eta0.")
        ids = np.append(started.run_["ids"], identifier)[-MEMORY:]
        learnt = {"coef_": w, "n_learnt_": started.n_learnt_ + 1}
        self.__dict__ = {**vars(started), **learnt, "run_": {**started.run_, "ids": ids}}
        return self

    @abstractmethod
    def _draw(self, rows: Any, prior: Floats | None, rng_state: RngState, k: int) -> Impression:
        """Draw a list, without an id; `rng_state` is advanced."""

    @abstractmethod
    def _step(self, impression: Impression, clicks: NDArray[np.bool_], w: Floats) -> None:
        """Update the weights in place from a list and its clicks."""

    @abstractmethod
    def _serve_compiled(
        self, rows: Any, queries: JudgedQueries, user: ClickProbabilities, w: Floats, session: Session, ndcg: Floats
    ) -> None:
        """Do what `_serve` does, in compiled code."""

    def _serve(
        self, X: Any, queries: JudgedQueries, user: ClickModel, w: Floats, session: Session, ndcg: Floats,
        rng: np.random.Generator,
    ) -> None:  # fmt: skip
        """Show a list, let the user click and learn, once for each entry of `ndcg`."""
        self.coef_ = w
        for t in range(len(ndcg)):
            q = int(random_below(session.rngs[0], len(queries.ideals)))
            first, last = queries.starts[q], queries.starts[q + 1]
            members = queries.order[first:last]
            prior = queries.prior[members] if len(queries.prior) else None
            self.n_learnt_ = session.n_learnt + t
            impression = self._draw(X[members], prior, session.own_rng, session.k)
            ndcg[t] = list_ndcg(queries.gains[first:last], impression.rows, queries.ideals[q])
            clicks = user.clicks(queries.grades[first:last][impression.rows], rng)
            self._step(impression, impression.as_clicks(clicks), w)

    def _score_rows(self, X: Any) -> Floats:
        """Return w · x."""
        return score_columns(self._checked_rows(X), self.coef_)

    def _fit(self, data: RankingData, held: HeldOut | None, rng: np.random.Generator) -> FittedOnline:
        problem = in_unit(data, unit_range(data, False))
        solution = smooth_loss(problem, "logistic", alpha=default_alpha(problem), tol=1e-14)
        return _fitted(solution.coef, _states(rng.spawn(2)[1]))

    def _started(self, X: Any, prior: Any) -> Self:
        """Return this ranker, or if it was never fitted a copy that starts from zero."""
        if hasattr(self, "run_"):
            return self
        started = copy(self)
        started._begin(X, prior)
        return started

    def _begin(self, X: Any, prior: Any) -> None:
        """Start from zero weights, with the columns of X."""
        X = encode_categories(X)
        rows = as_rows(X)
        notes = self._columns(X, rows)
        if prior is not None:
            as_prior(prior, rows.shape[0])
            notes["has_prior_"] = True
        install(self, _fitted(np.zeros(rows.shape[1]), initial_states(self.random_state)), notes)

    def _check_state(self) -> None:
        """Raise if a loaded model cannot continue: wrong generators, ids or weights."""
        states, ids = self.run_["rng_state"], self.run_["ids"]
        if states.shape != (2, 4) or states.dtype != np.uint64 or not states.any(axis=1).all():
            raise InputError("run_ has no valid states of random generators")
        if ids.ndim != 1 or ids.dtype != np.uint64 or len(ids) > MEMORY:
            raise InputError("run_ has no valid ids of learnt lists")
        if self.coef_.shape != (self.n_features_in_,):
            raise InputError(f"coef_ has shape {self.coef_.shape} for {self.n_features_in_} columns")
        if not np.isfinite(self.coef_).all() or self.coef_.dtype != np.float64:
            raise InputError("coef_ holds weights that are not finite")
        for count in (self.n_learnt_, self.n_ignored_):
            check_values({"count": count}, {"count": integer(0)})


def initial_states(random_state: Any) -> RngState:
    """Return the states of the generators of a ranker that starts from zero weights; `fit` leaves the same."""
    return _states(rng_of(random_state).spawn(2)[1].spawn(2)[1])


def _states(rng: np.random.Generator) -> RngState:
    return np.stack([seed_state(rng), seed_state(rng)])


def _fitted(w: Floats, states: RngState) -> FittedOnline:
    run: dict[str, NDArray[Any]] = {"rng_state": states, "ids": np.empty(0, dtype=np.uint64)}
    return FittedOnline(w, 0, 0, run)


def kernel_rows(X: Any, prior: Floats | None) -> tuple[Any, NDArray[np.int64], Floats]:
    """Return the rows of one query for kernels: rows, their numbers, and the prior, empty if there is none."""
    return as_core_rows(X), np.arange(X.shape[0]), np.empty(0) if prior is None else prior
