"""
Semi-supervised ranking pursuit: several views that choose terms together and must agree on unscored rows.

Each step adds one term to every view v = 1..M, so that

    J = Σ_v (r − a_v k_v)ᵀ L (r − a_v k_v) + coupling · Σ_{v,u} (a_v k̄_v − a_u k̄_u)ᵀ L̂ (a_v k̄_v − a_u k̄_u)

falls the most, L the Laplacian of the scored and L̂ that of the unscored rows, k̄ a column over the unscored rows. Then
r ← r − (1/M) Σ_v a_v k_v, and the prediction is the mean of the views. So the paper's algorithm: it asks that the two
terms of a step agree, not that the views do. With ``residual="separate"`` the paper's objective (3) itself is lowered,

    J = Σ_v (s − f_v)ᵀ L (s − f_v) + coupling · Σ_{v,u} (f̄_v − f̄_u)ᵀ L̂ (f̄_v − f̄_u),

one term a_v k_v for each f_v at a time: a view that has gone astray on the unscored rows is called back later.

Cost a step: O(M n N) and, for two views searched jointly, O(N²) (the cross terms, O(N² l), are computed once); for M
views O(M² l N) a round of the coordinate search; shared search O(M³ N).

Reference: Tsivtsivadze and Heskes, Semi-supervised ranking pursuit, 2013, section 3.1 and figure 2.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from corank.base import Ranker, as_weights, rng_of
from corank.data.ranking import RankingData
from corank.errors import InputError
from corank.kernels import is_precomputed, require_square
from corank.pursuit.choice import choose_rows, deal_views
from corank.pursuit.couple import couple, side_by_side
from corank.pursuit.coupled import Choice, Coupled
from corank.pursuit.inner import Floats, Goal
from corank.pursuit.parameters import CO_PURSUIT
from corank.pursuit.path import add_up, as_length
from corank.pursuit.stopping import Watch, best_length, hold_out
from corank.pursuit.walk import walk
from corank.views import View


class CoRankingPursuit(Ranker):
    """
    Rankers of few terms on several views that agree on unscored rows; the prediction is their mean.

    Parameters
    ----------
    n_basis : int
        P, the most terms to choose in each view.
    views : int or list
        Number of views, or one entry per view (see `corank.views.as_views`); a `View` may name its `basis`, the
        rows that its terms may stand for.
    kernel : str, Kernel or callable
        Kernel of views that name none.
    coupling : float
        ν, the weight of the disagreement on unscored rows.
    search : {"joint", "shared"}
        Whether each view chooses its own row (all pairs are tried for two views, a coordinate search is made for
        more), or all views the same.
    split : {"columns", "dictionary"}
        What is dealt at random to the views where `views` is a number: the columns of X, or the rows of the
        dictionary (the paper's experiments, and the way to views of a precomputed kernel).
    dictionary : {"scored", "all"}, int or array-like of int
        Rows that a term may stand for in views without a basis of their own (see `RankingPursuit`).
    residual : {"shared", "separate"}
        Whether all views approximate what their mean leaves over and each step's terms must agree (the paper's
        algorithm), or each view what it leaves over itself and whole views must agree (the paper's objective, which
        then never rises).
    query_weight : {"pairs", "equal", "rows"}
        How much a query counts, scored and unscored (see `corank.graphs.query_factors`).
    tol : float
        Stop when a step lowers J by no more than this share of its first value.
    early_stopping : bool
        Whether to choose the number of terms by the disagreement error on held-out queries, and then to learn that
        many from all rows.
    validation_fraction : float
        Share of the queries that hold a pair (of the rows, where there is one) held out for early stopping.
    n_iter_no_change : int
        Steps without improvement after which early stopping looks no further.
    random_state : int, RandomState or None
        Seed.

    Attributes
    ----------
    indices_ : array of int64, shape (P, M)
        Row that each view chose at each step.
    coefs_ : array of shape (P, M)
        Its coefficient.
    gains_ : array of shape (P,)
        By how much J of each step is lower with its terms than without. With ``residual="separate"`` they add up to
        the fall of the paper's objective; with ``"shared"`` each J starts from what the mean of the views left over.
    views_ : list of View
        The views, with kernels of numbers only.
    basis_rows_ : list of arrays of int64
        Rows that each view chose, ascending.
    basis_ : list
        Those rows, which predictions compare with.
    validation_errors_ : array, early stopping only
        Error on the held-out queries with 0, 1, 2, ... terms.

    Examples
    --------
    >>> from corank import CoRankingPursuit, hide_scores, make_ranking
    >>> problem = make_ranking(40, 10, random_state=0)
    >>> y = hide_scores(problem.y, fraction=0.5, random_state=0)
    >>> model = CoRankingPursuit(n_basis=20, kernel="linear", coupling=0.01, random_state=0)
    >>> model.fit(problem.X, y, qid=problem.qid).score(problem.X, problem.y, qid=problem.qid) > 0.7
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = CO_PURSUIT

    def __init__(
        self,
        n_basis: int = 50,
        views: Any = 2,
        kernel: Any = "gaussian",
        coupling: float = 1.0,
        search: str = "joint",
        *,
        split: str = "columns",
        dictionary: Any = "all",
        residual: str = "shared",
        query_weight: str = "pairs",
        tol: float = 1e-10,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        random_state: Any = None,
    ) -> None:
        self.n_basis = n_basis
        self.views = views
        self.kernel = kernel
        self.coupling = coupling
        self.search = search
        self.split = split
        self.dictionary = dictionary
        self.residual = residual
        self.query_weight = query_weight
        self.tol = tol
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.random_state = random_state

    def fit(
        self, X: Any, y: ArrayLike | None = None, *, qid: ArrayLike | None = None, sample_weight: Any = None
    ) -> Self:
        """
        Choose terms in all views.

        Parameters
        ----------
        X : array-like, CSR matrix, DataFrame, or RankingData
            The rows, or a whole problem (then y and qid stay None).
        y : array-like of shape (n_rows,)
            Scores, higher is better; NaN marks an unscored row, on which the views must agree.
        qid : array-like of shape (n_rows,), optional
            One query id per row; None puts all rows in one query.
        sample_weight : array-like of shape (n_rows,), optional
            A weight of 2 means what writing the row twice means: a pair weighs the product of its rows.

        Returns
        -------
        self
            The fitted ranker.
        """
        self._validate_params()
        data = self._problem(X, y, qid)
        weights = as_weights(sample_weight, data.n_rows)
        for_views, for_rows, for_kernel, for_holding_out = rng_of(self.random_state).spawn(4)
        goal = Goal.of(data, 0.0, self.query_weight, weights)
        dealt = self._dealt(data, weights, for_views, for_rows)
        views = [view.fit(data.X, rng) for view, rng in zip(dealt, for_kernel.spawn(len(dealt)), strict=True)]
        n_basis, errors = int(self.n_basis), None
        if self.early_stopping:
            errors = self._errors(views, data, weights, for_holding_out)
            n_basis = max(best_length(errors), 1)
        coupled = couple(views, data, weights, goal, self.query_weight, self.coupling)
        taken = self._pursue(coupled, goal, n_basis)
        self._forget()
        if errors is not None:
            self.validation_errors_ = errors
        self._store(views, data, taken)
        return self

    @property
    def _is_pairwise(self) -> bool:
        given = [] if isinstance(self.views, Integral) else self.views
        return super()._is_pairwise or any(is_precomputed(getattr(view, "kernel", view)) for view in given)

    def _dealt(
        self, data: RankingData, weights: Floats | None, for_views: np.random.Generator, for_rows: np.random.Generator
    ) -> list[View]:
        """The views, each with a basis."""
        if self.search == "shared" and self.split == "dictionary":
            raise InputError("search='shared' needs the same rows in all views; set split='columns'.")
        rows = choose_rows(self.dictionary, data, weights, for_rows)
        views = deal_views(self.views, self.split, rows, data.n_features, self.kernel, for_views)
        for view in views:
            require_square(data.X, view.kernel)
        if self.search == "shared" and any(not np.array_equal(view.basis, views[0].basis) for view in views):
            raise InputError("search='shared' needs the same basis in all views; leave basis out, or search='joint'.")
        return views

    def _errors(self, views: list[View], data: RankingData, weights: Floats | None, rng: np.random.Generator) -> Floats:
        """Error on held-out rows of every model along the path learnt from the others."""
        train, held_out = hold_out(data, weights, self.validation_fraction, rng, by_squares=False)
        seen = side_by_side(views, data.X, held_out)
        watch = Watch(seen, data, held_out, by_squares=False, patience=self.n_iter_no_change)
        goal = Goal.of(train, 0.0, self.query_weight, weights)
        coupled = couple(views, train, weights, goal, self.query_weight, self.coupling)
        self._pursue(coupled, goal, int(self.n_basis), watch)
        return np.array(watch.errors)

    def _pursue(self, coupled: Coupled, goal: Goal, n_basis: int, watch: Watch | None = None) -> list[Choice]:
        begins = np.cumsum([0, *(len(one) for one in coupled.scored[:-1])])
        taken: list[Choice] = []
        for choice in islice(walk(coupled, goal.v, self.search, self.residual), n_basis):
            if not choice.gain > self.tol * len(coupled) * goal.J:
                break
            taken.append(choice)
            if watch is not None:
                columns = np.concatenate([begins + one.columns for one in taken])
                if watch(columns, np.concatenate([one.coefs for one in taken])):
                    break
        return taken

    def _store(self, views: list[View], data: RankingData, taken: list[Choice]) -> None:
        self.views_, M = views, len(views)
        columns = np.array([choice.columns for choice in taken], dtype=np.int64).reshape(-1, M)
        self.coefs_ = np.array([choice.coefs for choice in taken], dtype=np.float64).reshape(-1, M)
        self.gains_ = np.array([choice.gain for choice in taken], dtype=np.float64)
        numbers = [view.basis[columns[:, v]] for v, view in enumerate(self.views_)]
        self.indices_ = np.stack(numbers, axis=1)
        self.basis_rows_ = [np.unique(rows) for rows in numbers]
        self.basis_ = [
            replace(view, basis=rows).basis_of(data.X) if len(rows) else None
            for view, rows in zip(self.views_, self.basis_rows_, strict=True)
        ]

    def predict(self, X: Any, n_terms: int | None = None) -> Floats:
        """
        Score rows by the mean of the views.

        Parameters
        ----------
        X : array-like, CSR matrix or DataFrame, shape (n_rows, n_features)
            The rows.
        n_terms : int, optional
            Use the first so many steps; all by default.

        Returns
        -------
        array of shape (n_rows,)
            Scores in input order, higher is better.
        """
        return np.asarray(self.predict_views(X, n_terms).mean(axis=1))

    def predict_views(self, X: Any, n_terms: int | None = None) -> Floats:
        """
        Score rows by each view: the paper's several near-optimal solutions.

        Parameters
        ----------
        X : array-like, CSR matrix or DataFrame, shape (n_rows, n_features)
            The rows.
        n_terms : int, optional
            Use the first so many steps; all by default.

        Returns
        -------
        array of shape (n_rows, M)
            Scores of each view.
        """
        rows = self._new_rows(X)
        p = as_length(n_terms, len(self.coefs_), "this model has")
        out = np.zeros((rows.shape[0], len(self.views_)))
        for v, (view, basis, numbers) in enumerate(zip(self.views_, self.basis_, self.basis_rows_, strict=True)):
            if basis is not None:
                out[:, v] = view.gram(rows, basis) @ add_up(numbers, self.indices_[:p, v], self.coefs_[:p, v])
        return out
