"""
CoRankingPursuit: semi-supervised ranking pursuit, with several views that must agree on unjudged rows.

Each step adds one term to every view v = 1..M, so that

    J = Σ_v (r − a_v k_v)ᵀ L (r − a_v k_v) + coupling · Σ_{v,u} (a_v k̄_v − a_u k̄_u)ᵀ L̂ (a_v k̄_v − a_u k̄_u)

falls the most, L the Laplacian of the scored and L̂ that of the unjudged rows, k̄ a column over the unjudged rows. Then
r ← r − (1/M) Σ_v a_v k_v, and the prediction is the mean of the views. This is the paper's algorithm: the terms of a
step must agree, not the views. ``residual="separate"`` lowers the paper's objective (3) itself,

    J = Σ_v (s − f_v)ᵀ L (s − f_v) + coupling · Σ_{v,u} (f̄_v − f̄_u)ᵀ L̂ (f̄_v − f̄_u),

one term a_v k_v for each f_v at a time, so later steps correct views that disagree on the unjudged rows.

Cost per step: O(M n N) and, for two views searched jointly, O(N²) (the cross terms, O(N² l), are computed once); for M
views O(M² l N) per round of coordinate ascent; shared search O(M³ N).

Reference: Tsivtsivadze and Heskes, Semi-supervised ranking pursuit, 2013, section 3.1 and figure 2.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from itertools import islice
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corank.base.contract import warn_of_no_agreement
from corank.base.docs import shared_parameters
from corank.base.held_out import HeldOut
from corank.base.kernels.basis import Basis, Terms
from corank.base.kernels.views import View, kernels_of
from corank.data.ranking import RankingData
from corank.errors import InputError
from corank.fitted import Predictions, Relations, Shapes, is_ascending
from corank.models.pursuit.coupled import CoupledViews, JointStep, couple_views, coupled_steps, stacked_views
from corank.models.pursuit.dictionary import Floats, Target, choose_rows, require_columns, split_views
from corank.models.pursuit.path import PathValidation, as_n_terms, sum_terms
from corank.models.pursuit.ranking_pursuit import ROWS, Pursuit
from corank.parameters import Rules, integer, items, number, one_of
from corank.progress import progress

Residual = Literal["shared", "separate"]


@dataclass(frozen=True, eq=False)
class FittedCoPursuit:
    """The fitted attributes of `CoRankingPursuit`."""

    terms: NDArray[np.int64]
    term_coefs: Floats
    gains: Floats
    views: list[View]
    view_bases: list[Basis]
    validation_errors: Floats | None


@shared_parameters
@dataclass(eq=False, repr=False)
class CoRankingPursuit(Pursuit):
    """
    Sparse rankers on several views that agree on unjudged rows; the prediction is their mean.

    Parameters
    ----------
    n_basis : int
        P, the largest number of terms of each view.
    views : int or list
        Number of views, or one entry per view (see `corank.base.kernels.views.as_views`); the `basis` of a `View` holds
        the candidates for its terms.
    kernel : str, Kernel or callable
        Kernel of views without one.
    coupling : float
        ν, the weight of the disagreement on unjudged rows, limited to 1e8 times the weight of the scores.
    search : {"joint", "shared"}
        Whether each view chooses its own row (from all pairs for two views, by coordinate ascent for more), or all
        views the same row.
    split : {"columns", "dictionary"}
        What is split at random into views if `views` is a number: the columns of X, or the rows of the dictionary (as
        in the paper's experiments; required for a precomputed kernel).
    dictionary : {"scored", "all"}, int or array-like of int
        Candidates for terms in views without a basis (see `RankingPursuit`); the cost of a step is quadratic in them.
    residual : {"shared", "separate"}
        Whether all views approximate the residual of their mean and the terms of a step must agree (the paper's
        algorithm), or each view its own residual and whole views must agree (the paper's objective, which then never
        increases).
    {query_weight}
    scale : bool
        Whether to divide columns by their standard deviation inside queries before learning.
    {missing}
    tol : float
        Stop when a step lowers J by at most this share of its initial value.
    early_stopping : bool
        Whether to choose the number of terms by the disagreement error on held-out judgements, and then to learn this
        number of terms from all judgements.
    validation_fraction : float
        Share of the queries with a pair that early stopping holds out; with a single such query, of its judgements.
    {n_iter_no_change}
    {random_state}
    {verbose}

    Attributes
    ----------
    terms_ : array of int64, shape (P, M)
        Row that each view chose at each step.
    term_coefs_ : array of shape (P, M)
        Its coefficient.
    gains_ : array of shape (P,)
        Decrease of J at each step. With ``residual="separate"`` their sum is the decrease of the paper's objective;
        with ``"shared"`` each J starts from the residual of the mean of the views.
    views_ : list of View
        The views, with the parameters of their kernels.
    view_bases_ : list of Basis
        Rows that each view chose.
    validation_errors_ : array, early stopping only
        Held-out error with 0, 1, 2, ... terms.

    Examples
    --------
    >>> from corank import CoRankingPursuit, make_ranking
    >>> from corank.data import mask_scores
    >>> problem = make_ranking(40, 10, random_state=0)
    >>> y = mask_scores(problem.y, fraction=0.5, random_state=0)
    >>> model = CoRankingPursuit(n_basis=20, kernel="linear", coupling=0.01, random_state=0)
    >>> model.fit(problem.X, y, qid=problem.qid).score(problem.X, problem.y, qid=problem.qid) > 0.7
    True
    """

    _rules: ClassVar[Rules] = {
        **Pursuit._rules,
        "views": integer(1) | items,
        "coupling": number(0, float(np.finfo(np.float64).max)),
        "dictionary": one_of("scored", "all") | ROWS,
    }

    _shapes: ClassVar[Shapes] = {"terms_": ("terms", "views"), "term_coefs_": ("terms", "views"), "gains_": ("terms",)}
    _relations: ClassVar[Relations] = {
        "every view has a basis": lambda m: len(m.views_) == len(m.view_bases_) == m.terms_.shape[1] > 0,
        "terms_ names basis rows": lambda m: all(
            np.isin(m.terms_[:, v], basis.numbers).all() and is_ascending(basis.numbers)
            for v, basis in enumerate(m.view_bases_)
        ),
    }
    _predictions: ClassVar[Predictions] = {
        "predict_views": lambda model, X: model.predict_views(X),
    }

    n_basis: int = 50
    views: Any = 2
    kernel: Any = "gaussian"
    _: KW_ONLY
    coupling: float = 1.0
    search: Literal["joint", "shared"] = "joint"
    split: Literal["columns", "dictionary"] = "columns"
    dictionary: Any = 1000
    residual: Residual = "shared"

    @property
    def _kernels(self) -> list[Any]:
        return kernels_of(self.views, self.kernel)

    def _check_combinations(self) -> None:
        if self.search == "shared" and self.split == "dictionary":
            raise InputError("search='shared' requires the same rows in all views; set split='columns'.")

    def _fit(self, data: RankingData, held: HeldOut | None, rng: np.random.Generator) -> FittedCoPursuit:
        for_views, for_rows, for_kernel = rng.spawn(3)
        warn_of_no_agreement(data, self.coupling)
        target = Target.of(data, 0.0, self.query_weight)
        split = self._make_views(data, for_views, for_rows)
        views = [
            Basis.of(view.fit(data.X, own_rng, data.weights), data.X, view.basis)
            for view, own_rng in zip(split, for_kernel.spawn(len(split)), strict=True)
        ]
        for basis in views:
            basis.check(data.X)
        require_columns(len(target.rows) + len(data.unscored_rows), sum(map(len, views)), data.X)
        n_basis, errors = int(self.n_basis), None
        if held is not None:
            validation = self._validated(views, data, held)
            n_basis, errors = validation.best_length, validation.errors
        coupled = couple_views(views, data, target, self.query_weight, self.coupling)
        with progress(n_basis, "terms", self.verbose) as advance:
            taken = self._pursue(coupled, target, n_basis, advance=advance)
        return _fitted(views, taken, errors)

    def _make_views(
        self, data: RankingData, for_views: np.random.Generator, for_rows: np.random.Generator
    ) -> list[View]:
        """The views, each with its dictionary as basis."""
        rows = choose_rows(self.dictionary, data, for_rows)
        n_features = data.n_features if data.X.ndim == 2 else 0
        views = split_views(self.views, self.split, rows, n_features, self.kernel, for_views, data.names)
        if self.search == "shared" and any(not np.array_equal(view.basis, views[0].basis) for view in views):
            raise InputError("search='shared' requires the same basis in all views; pass no basis, or search='joint'.")
        return views

    def _validated(self, views: list[Basis], data: RankingData, held: HeldOut) -> PathValidation:
        """Held-out errors along the path that is learnt from the other judgements."""
        validation = PathValidation(stacked_views(views, data.X, held.rows), held, self.n_iter_no_change)
        target = Target.of(held.train, 0.0, self.query_weight)
        coupled = couple_views(views, held.train, target, self.query_weight, self.coupling)
        with progress(int(self.n_basis), "terms tried", self.verbose) as advance:
            self._pursue(coupled, target, int(self.n_basis), validation, advance)
        return validation

    def _pursue(
        self,
        coupled: CoupledViews,
        target: Target,
        n_basis: int,
        validation: PathValidation | None = None,
        advance: Callable[[int], object] = id,
    ) -> list[JointStep]:
        begins = np.cumsum([0, *(len(dictionary) for dictionary in coupled.scored[:-1])])
        taken: list[JointStep] = []
        for choice in islice(coupled_steps(coupled, target.v, self.search, self.residual), n_basis):
            if not choice.gain > self.tol * len(coupled) * target.J:
                break
            taken.append(choice)
            advance(1)
            if validation is not None:
                columns = np.concatenate([begins + step.columns for step in taken])
                if validation(columns, np.concatenate([step.coefs for step in taken])):
                    break
        return taken

    def predict(self, X: Any, n_terms: int | None = None, *, prior: ArrayLike | None = None) -> Floats:
        """Score rows by the mean of the views after `n_terms` steps; all by default."""
        return self._add_prior(self._score_rows(X, n_terms), prior)

    def _score_rows(self, X: Any, n_terms: int | None = None) -> Floats:
        return np.asarray(self._views_of(X, n_terms).mean(axis=1))

    def predict_views(self, X: Any, n_terms: int | None = None, *, prior: ArrayLike | None = None) -> Floats:
        """Score rows by each view, shape (n_rows, M): the paper's several near-optimal solutions."""
        return self._add_prior(self._views_of(X, n_terms), prior)

    def _views_of(self, X: Any, n_terms: int | None = None) -> Floats:
        rows = self._scaled_rows(X)
        p = as_n_terms(n_terms, len(self.term_coefs_), "this model has")
        out = np.zeros((rows.shape[0], len(self.views_)))
        for v, basis in enumerate(self.view_bases_):
            out[:, v] = basis.score(rows, sum_terms(basis.numbers, self.terms_[:p, v], self.term_coefs_[:p, v]))
        return out

    def _terms(self, X: Any, qid: ArrayLike | None, rows: NDArray[np.int64]) -> list[Terms]:
        scaled, share = self._scale_rows(self._checked_rows(X)[rows]), 1.0 / len(self.views_)
        return [
            basis.terms(scaled, share * sum_terms(basis.numbers, self.terms_[:, v], self.term_coefs_[:, v]), v)
            for v, basis in enumerate(self.view_bases_)
        ]


def _fitted(views: list[Basis], taken: list[JointStep], errors: Floats | None) -> FittedCoPursuit:
    M = len(views)
    columns = np.array([choice.columns for choice in taken], dtype=np.int64).reshape(-1, M)
    return FittedCoPursuit(
        terms=np.stack([basis.numbers[columns[:, v]] for v, basis in enumerate(views)], axis=1),
        term_coefs=np.array([choice.coefs for choice in taken], dtype=np.float64).reshape(-1, M),
        gains=np.array([choice.gain for choice in taken], dtype=np.float64),
        views=[basis.view for basis in views],
        view_bases=[basis.subset(columns[:, v]) for v, basis in enumerate(views)],
        validation_errors=errors,
    )
