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

from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corank.data.problem.ranking import RankingData
from corank.errors import InputError
from corank.estimator.advice import warn_of_no_agreement
from corank.estimator.base import Ranker
from corank.estimator.held_out import HeldOut
from corank.kernels import Basis, Terms
from corank.kernels.views import View, kernels_of
from corank.parameters import Rules
from corank.progress import progress
from corank.pursuit.coupled import Choice, Coupled, couple, side_by_side, walk
from corank.pursuit.dictionary import choose_rows, deal_views
from corank.pursuit.inner import Floats, Goal
from corank.pursuit.parameters import CO_PURSUIT
from corank.pursuit.path import Watch, as_length, sum_terms


@dataclass(frozen=True, eq=False)
class _CoPursued:
    """What `CoRankingPursuit` found; see its attributes."""

    terms: NDArray[np.int64]
    term_coefs: Floats
    gains: Floats
    views: list[View]
    view_bases: list[Basis]
    validation_errors: Floats | None


class CoRankingPursuit(Ranker):
    """
    Rankers of few terms on several views that agree on unscored rows; the prediction is their mean.

    Parameters
    ----------
    n_basis : int
        P, the most terms to choose in each view.
    views : int or list
        Number of views, or one entry per view (see `corank.kernels.views.as_views`); a `View` may name its `basis`, the
        rows that its terms may stand for.
    kernel : str, Kernel or callable
        Kernel of views that name none.
    coupling : float
        ν, the weight of the disagreement on unscored rows; more than lets it outweigh the scores 1e8 times counts as
        that.
    search : {"joint", "shared"}
        Whether each view chooses its own row (all pairs are tried for two views, a coordinate search is made for
        more), or all views the same.
    split : {"columns", "dictionary"}
        What is dealt at random to the views where `views` is a number: the columns of X, or the rows of the
        dictionary (the paper's experiments, and the way to views of a precomputed kernel).
    dictionary : {"scored", "all"}, int or array-like of int
        Rows that a term may stand for in views without a basis of their own (see `RankingPursuit`); a step compares
        each with each.
    residual : {"shared", "separate"}
        Whether all views approximate what their mean leaves over and each step's terms must agree (the paper's
        algorithm), or each view what it leaves over itself and whole views must agree (the paper's objective, which
        then never rises).
    query_weight : {"pairs", "equal", "rows"}
        How much a query counts, scored and unscored (see `corank.pairwise.query_factors`).
    scale : bool
        Whether columns are divided by their deviation inside queries before rows are compared.
    tol : float
        Stop when a step lowers J by no more than this share of its first value.
    early_stopping : bool
        Whether to choose the number of terms by the disagreement error on judgements set aside, and then to learn that
        many from all.
    validation_fraction : float
        Share of the queries that hold a pair (of the judgements, where there is one) set aside for early stopping.
    n_iter_no_change : int
        Steps without improvement after which early stopping looks no further.
    random_state : int, RandomState or None
        Seed.
    verbose : bool
        Whether to show a progress bar, on a terminal or in a notebook.

    Attributes
    ----------
    terms_ : array of int64, shape (P, M)
        Row that each view chose at each step.
    term_coefs_ : array of shape (P, M)
        Its coefficient.
    gains_ : array of shape (P,)
        By how much J of each step is lower with its terms than without. With ``residual="separate"`` they add up to
        the fall of the paper's objective; with ``"shared"`` each J starts from what the mean of the views left over.
    views_ : list of View
        The views, with kernels of numbers only.
    view_bases_ : list of Basis
        Rows that each view chose, which predictions compare with.
    validation_errors_ : array, early stopping only
        Error on what was set aside with 0, 1, 2, ... terms.

    Examples
    --------
    >>> from corank import CoRankingPursuit, mask_scores, make_ranking
    >>> problem = make_ranking(40, 10, random_state=0)
    >>> y = mask_scores(problem.y, fraction=0.5, random_state=0)
    >>> model = CoRankingPursuit(n_basis=20, kernel="linear", coupling=0.01, random_state=0)
    >>> model.fit(problem.X, y, qid=problem.qid).score(problem.X, problem.y, qid=problem.qid) > 0.7
    True
    """

    _rules: ClassVar[Rules] = CO_PURSUIT

    terms_: NDArray[np.int64]
    term_coefs_: Floats
    views_: list[View]
    view_bases_: list[Basis]

    def __init__(
        self,
        n_basis: int = 50,
        views: Any = 2,
        kernel: Any = "gaussian",
        *,
        coupling: float = 1.0,
        search: str = "joint",
        split: str = "columns",
        dictionary: Any = 1000,
        residual: str = "shared",
        query_weight: str = "pairs",
        scale: bool = True,
        tol: float = 1e-10,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        random_state: Any = None,
        verbose: bool = False,
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
        self.scale = scale
        self.tol = tol
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.random_state = random_state
        self.verbose = verbose

    @property
    def _kernels(self) -> list[Any]:
        return kernels_of(self.views, self.kernel)

    def _check_combinations(self) -> None:
        if self.search == "shared" and self.split == "dictionary":
            raise InputError("search='shared' needs the same rows in all views; set split='columns'.")

    def _fit(self, data: RankingData, held: HeldOut | None, rng: np.random.Generator) -> _CoPursued:
        for_views, for_rows, for_kernel = rng.spawn(3)
        warn_of_no_agreement(data, self.coupling)
        goal = Goal.of(data, 0.0, self.query_weight)
        dealt = self._dealt(data, for_views, for_rows)
        views = [
            Basis.of(view.fit(data.X, one, data.weights), data.X, view.basis)
            for view, one in zip(dealt, for_kernel.spawn(len(dealt)), strict=True)
        ]
        for basis in views:
            basis.check(data.X)
        n_basis, errors = int(self.n_basis), None
        if held is not None:
            watch = self._watched(views, data, held)
            n_basis, errors = max(watch.best_length, 1), np.array(watch.errors)
        coupled = couple(views, data, goal, self.query_weight, self.coupling)
        with progress(n_basis, "terms", self.verbose) as advance:
            taken = self._pursue(coupled, goal, n_basis, advance=advance)
        return _found(views, taken, errors)

    def _dealt(self, data: RankingData, for_views: np.random.Generator, for_rows: np.random.Generator) -> list[View]:
        """The views, each with a basis."""
        rows = choose_rows(self.dictionary, data, for_rows)
        n_features = data.n_features if data.X.ndim == 2 else 0
        views = deal_views(self.views, self.split, rows, n_features, self.kernel, for_views)
        if self.search == "shared" and any(not np.array_equal(view.basis, views[0].basis) for view in views):
            raise InputError("search='shared' needs the same basis in all views; leave basis out, or search='joint'.")
        return views

    def _watched(self, views: list[Basis], data: RankingData, held: HeldOut) -> Watch:
        """Errors on what was set aside of every model along the path learnt from the rest."""
        watch = Watch(side_by_side(views, data.X, held.rows), held, self.n_iter_no_change)
        goal = Goal.of(held.train, 0.0, self.query_weight)
        coupled = couple(views, held.train, goal, self.query_weight, self.coupling)
        with progress(int(self.n_basis), "terms tried", self.verbose) as advance:
            self._pursue(coupled, goal, int(self.n_basis), watch, advance)
        return watch

    def _pursue(
        self,
        coupled: Coupled,
        goal: Goal,
        n_basis: int,
        watch: Watch | None = None,
        advance: Callable[[int], object] = id,
    ) -> list[Choice]:
        begins = np.cumsum([0, *(len(one) for one in coupled.scored[:-1])])
        taken: list[Choice] = []
        for choice in islice(walk(coupled, goal.v, self.search, self.residual), n_basis):
            if not choice.gain > self.tol * len(coupled) * goal.J:
                break
            taken.append(choice)
            advance(1)
            if watch is not None:
                columns = np.concatenate([begins + one.columns for one in taken])
                if watch(columns, np.concatenate([one.coefs for one in taken])):
                    break
        return taken

    def predict(self, X: Any, n_terms: int | None = None, *, prior: ArrayLike | None = None) -> Floats:
        """
        Score rows by the mean of the views.

        Parameters
        ----------
        X : array-like, CSR matrix or DataFrame, shape (n_rows, n_features)
            The rows.
        n_terms : int, optional
            Use the first so many steps; all by default.
        prior : array-like of shape (n_rows,), optional
            Scores of these rows known before learning; wanted where ``fit`` had a prior, and only there.

        Returns
        -------
        array of shape (n_rows,)
            Scores in input order, higher is better.
        """
        return self._add_prior(self._score_rows(X, n_terms), prior)

    def _score_rows(self, X: Any, n_terms: int | None = None) -> Floats:
        return np.asarray(self._views_of(X, n_terms).mean(axis=1))

    def predict_views(self, X: Any, n_terms: int | None = None, *, prior: ArrayLike | None = None) -> Floats:
        """
        Score rows by each view: the paper's several near-optimal solutions.

        Parameters
        ----------
        X : array-like, CSR matrix or DataFrame, shape (n_rows, n_features)
            The rows.
        n_terms : int, optional
            Use the first so many steps; all by default.
        prior : array-like of shape (n_rows,), optional
            As in `predict`.

        Returns
        -------
        array of shape (n_rows, M)
            Scores of each view.
        """
        return self._add_prior(self._views_of(X, n_terms), prior)

    def _views_of(self, X: Any, n_terms: int | None = None) -> Floats:
        rows = self._scaled_rows(X)
        p = as_length(n_terms, len(self.term_coefs_), "this model has")
        out = np.zeros((rows.shape[0], len(self.views_)))
        for v, basis in enumerate(self.view_bases_):
            out[:, v] = basis.score(rows, sum_terms(basis.numbers, self.terms_[:p, v], self.term_coefs_[:p, v]))
        return out

    def _terms(self, X: Any, qid: ArrayLike | None, rows: NDArray[np.int64]) -> list[Terms]:
        seen, share = self._scale_rows(self._checked_rows(X)[rows]), 1.0 / len(self.views_)
        return [
            basis.terms(seen, share * sum_terms(basis.numbers, self.terms_[:, v], self.term_coefs_[:, v]), v)
            for v, basis in enumerate(self.view_bases_)
        ]


def _found(views: list[Basis], taken: list[Choice], errors: Floats | None) -> _CoPursued:
    M = len(views)
    columns = np.array([choice.columns for choice in taken], dtype=np.int64).reshape(-1, M)
    return _CoPursued(
        terms=np.stack([basis.numbers[columns[:, v]] for v, basis in enumerate(views)], axis=1),
        term_coefs=np.array([choice.coefs for choice in taken], dtype=np.float64).reshape(-1, M),
        gains=np.array([choice.gain for choice in taken], dtype=np.float64),
        views=[basis.view for basis in views],
        view_bases=[basis.subset(columns[:, v]) for v, basis in enumerate(views)],
        validation_errors=errors,
    )
