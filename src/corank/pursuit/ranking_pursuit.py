"""
Ranking pursuit, kernel matching pursuit, and what lies between (CRRP).

From a dictionary of functions k_1..k_N, terms are added one at a time to f_P(x) = Σ_p a_p k_{γ_p}(x), so that

    J = (s − f)ᵀ L̃ (s − f),    L̃ = mix · I + (1 − mix) · L

falls the most, L the Laplacian of the compared pairs: mix=0 is ranking pursuit, mix=1 kernel matching pursuit, and
between lies combined ranking and regression pursuit. L of a query of n_q rows has eigenvalues n_q with
``query_weight="pairs"``, the paper's form and the default, so that ranking outweighs regression n_q times at mix=0.5;
with ``query_weight="rows"`` both parts weigh alike, whatever n_q.

Cost: O(nN) memory and O(nN) time a step, one product over the dictionary, for each of the three fits.

Reference: Tsivtsivadze and Heskes, Semi-supervised ranking pursuit, 2013, sections 3 and 4.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from corank.base import Ranker, as_weights, rng_of
from corank.data.ranking import RankingData
from corank.errors import InputError
from corank.pursuit.choice import Candidates
from corank.pursuit.explain import Pull, pulls
from corank.pursuit.fits import steps
from corank.pursuit.inner import Floats, Goal, without_mean
from corank.pursuit.parameters import PURSUIT
from corank.pursuit.path import Path, add_up, as_length
from corank.pursuit.solutions import alternatives
from corank.pursuit.stopping import Watch, best_length, hold_out


class RankingPursuit(Ranker):
    """
    A ranker of few terms, chosen one by one.

    Parameters
    ----------
    n_basis : int
        P, the most terms to choose.
    kernel : str, Kernel or callable
        Similarity whose columns are the dictionary (see `corank.kernels.as_kernel`).
    mix : float
        β, the share of regression: 0 ranks, 1 regresses.
    fitting : {"basic", "back", "pre"}
        Whether earlier coefficients stay, are solved for again after each choice, or also before it (see
        `corank.pursuit.fits`). ``"basic"`` may choose a row twice, the others never do.
    dictionary : {"scored", "all", "columns"}, int or array-like of int
        Rows of X that a term may stand for: the scored ones (those of pairs, where preferences are given), all, so many
        random ones, or those named; or the columns of X themselves, without a kernel.
    query_weight : {"pairs", "equal", "rows"}
        How much a query counts (see `corank.graphs.query_factors`).
    fit_intercept : bool
        Whether the mean score is subtracted before terms are chosen, and added to predictions; with mix=0 the level is
        free, and stays as the terms have it.
    tol : float
        Stop when a step lowers J by no more than this share of its first value.
    early_stopping : bool
        Whether to choose the number of terms by the disagreement error (the squared error with mix=1) on held-out
        queries, and then to learn that many terms from all rows.
    validation_fraction : float
        Share of the queries that hold a pair (of the rows, where there is one) held out for early stopping.
    n_iter_no_change : int
        Steps without improvement after which early stopping looks no further.
    n_solutions : int
        Number of near-optimal models; each may choose only what no earlier one chose.
    random_state : int, RandomState or None
        Seed of the random rows of the dictionary, of the held-out queries, and of the kernel's "median".

    Attributes
    ----------
    intercept_ : float
        The mean score, or 0.
    indices_ : array of int64, shape (P,)
        Rows (or columns) chosen, in order.
    coef_ : array of shape (P,)
        Their coefficients.
    path_ : array of shape (P, P)
        ``path_[p - 1, :p]`` are the coefficients of the model of the first p terms.
    gains_ : array of shape (P,)
        By how much J fell at each step.
    objective_ : array of shape (P + 1,)
        J before the first step and after each.
    solutions_ : list of dict
        ``indices``, ``path`` and ``gains`` of each of `n_solutions` models, or of as many as there was something left
        to choose for; the first is the one above.
    view_ : View or None
        The kernel with numbers only; None with ``dictionary="columns"``.
    basis_rows_ : array of int64
        All rows (or columns) that some model chose, ascending.
    basis_ : array, CSR matrix or None
        Those rows, which predictions compare with; None with ``dictionary="columns"``.
    validation_errors_ : array, early stopping only
        Error on the held-out queries with 0, 1, 2, ... terms.

    Examples
    --------
    >>> from corank import RankingPursuit, make_ranking
    >>> problem = make_ranking(40, 10, random_state=0)
    >>> model = RankingPursuit(n_basis=20, kernel="linear", random_state=0)
    >>> model.fit(problem.X, problem.y, qid=problem.qid).score(problem.X, problem.y, qid=problem.qid) > 0.75
    True
    >>> model.predict(problem.X, n_terms=3).shape, len(model.indices_)
    ((400,), 20)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = PURSUIT

    def __init__(
        self,
        n_basis: int = 50,
        kernel: Any = "gaussian",
        mix: float = 0.0,
        fitting: str = "basic",
        *,
        dictionary: Any = "scored",
        query_weight: str = "pairs",
        fit_intercept: bool = True,
        tol: float = 1e-10,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        n_solutions: int = 1,
        random_state: Any = None,
    ) -> None:
        self.n_basis = n_basis
        self.kernel = kernel
        self.mix = mix
        self.fitting = fitting
        self.dictionary = dictionary
        self.query_weight = query_weight
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.n_solutions = n_solutions
        self.random_state = random_state

    @property
    def _learns_from_differences(self) -> bool:  # type: ignore[override]
        return self.mix == 0.0

    def fit(
        self, X: Any, y: ArrayLike | None = None, *, qid: ArrayLike | None = None, sample_weight: Any = None
    ) -> Self:
        """
        Choose terms.

        Parameters
        ----------
        X : array-like, CSR matrix, DataFrame, or RankingData
            The rows, or a whole problem (then y and qid stay None), which may consist of preference pairs.
        y : array-like of shape (n_rows,)
            Scores, higher is better; NaN marks an unscored row.
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
        intercept, centred = self._centred(data, weights)
        for_kernel, for_rows, for_holding_out = rng_of(self.random_state).spawn(3)
        goal = Goal.of(centred, self.mix, self.query_weight, weights)
        candidates = Candidates.of(self.dictionary, self.kernel, data, weights, for_rows, for_kernel)
        n_basis, errors = int(self.n_basis), None
        if self.early_stopping:
            errors = self._errors(data, weights, candidates, for_holding_out)
            n_basis = max(best_length(errors), 1)
        dictionary = candidates.over(data.X, goal.rows)
        paths = alternatives(dictionary, goal, self.fitting, n_basis, self.tol, self.n_solutions)
        if len(paths) < self.n_solutions:
            warnings.warn(
                f"n_solutions is {self.n_solutions}, but after {len(paths)} nothing is left to choose; pass fewer, a "
                "smaller n_basis, or a larger dictionary.",
                stacklevel=2,
            )
        self._forget()
        if errors is not None:
            self.validation_errors_ = errors
        self.intercept_ = intercept
        self._store(data, goal, candidates, paths)
        return self

    def _centred(self, data: RankingData, weights: Floats | None) -> tuple[float, RankingData]:
        return without_mean(data, weights) if self.fit_intercept and self.mix > 0.0 else (0.0, data)

    @property
    def _is_pairwise(self) -> bool:
        by_columns = isinstance(self.dictionary, str) and self.dictionary == "columns"
        return super()._is_pairwise and not by_columns

    def _errors(
        self, data: RankingData, weights: Floats | None, candidates: Candidates, rng: np.random.Generator
    ) -> Floats:
        """Error on held-out rows of every model along the path learnt from the others."""
        by_squares = self.mix == 1.0
        train, held_out = hold_out(data, weights, self.validation_fraction, rng, by_squares=by_squares)
        seen = candidates.over(data.X, held_out)
        level, train = self._centred(train, weights)
        watch = Watch(seen, data, held_out, by_squares=by_squares, patience=self.n_iter_no_change, level=level)
        goal = Goal.of(train, self.mix, self.query_weight, weights)
        dictionary = candidates.over(data.X, goal.rows)
        walk = steps(dictionary, goal, dictionary.squares(goal.inner), self.fitting)
        Path.follow(walk, self.n_basis, self.tol * goal.J, watch)
        return np.array(watch.errors)

    def _store(self, data: RankingData, goal: Goal, candidates: Candidates, paths: list[Path]) -> None:
        self.view_ = candidates.view
        self.solutions_: list[dict[str, Any]] = [
            {"indices": candidates.numbers[path.indices], "path": path.coefs, "gains": path.gains} for path in paths
        ]
        first = self.solutions_[0]
        self.indices_, self.path_, self.gains_ = first["indices"], first["path"], first["gains"]
        self.coef_ = self.path_[-1].copy() if len(self.path_) else np.empty(0)
        self.objective_ = goal.J - np.append(0.0, np.cumsum(self.gains_))
        self.basis_rows_ = np.unique(np.concatenate([solution["indices"] for solution in self.solutions_]))
        self.basis_ = None
        if self.view_ is not None and len(self.basis_rows_):
            self.basis_ = replace(self.view_, basis=self.basis_rows_).basis_of(data.X)

    def predict(self, X: Any, n_terms: int | None = None, solution: int = 0) -> Floats:
        """
        Score rows.

        Parameters
        ----------
        X : array-like, CSR matrix or DataFrame, shape (n_rows, n_features)
            The rows.
        n_terms : int, optional
            Use the model of the first so many terms; all by default.
        solution : int
            Which of the `n_solutions` models.

        Returns
        -------
        array of shape (n_rows,)
            Scores in input order, higher is better.
        """
        rows = self._new_rows(X)
        coefficients = self._coefficients(n_terms, solution)
        return np.asarray(self._similarities(rows) @ coefficients + self.intercept_, dtype=np.float64)

    def explain(self, x: ArrayLike, n_terms: int | None = None, solution: int = 0) -> list[Pull]:
        """
        Say which chosen rows pull the score of one row up, and which pull it down.

        Parameters
        ----------
        x : array-like of shape (n_features,), or a table of one row
            The row.
        n_terms, solution : int
            As in `predict`.

        Returns
        -------
        list of Pull
            The strongest pull upwards first, the strongest downwards last; with `intercept_` the contributions sum to
            the score.

        Examples
        --------
        >>> model = RankingPursuit(1, "linear").fit([[0.0], [1.0], [2.0]], [0, 1, 2])
        >>> [(pull.chosen, round(pull.contribution, 6)) for pull in model.explain([3.0])]
        [(1, 3.0)]
        """
        row = self._new_rows(x if np.ndim(x) > 1 else np.asarray(x)[None])
        if row.shape[0] != 1:
            raise InputError(f"x has {row.shape[0]} rows; explain one row at a time.")
        return pulls(self.basis_rows_, self._coefficients(n_terms, solution), self._similarities(row))

    def _coefficients(self, n_terms: int | None, solution: int) -> Floats:
        """Coefficients of `basis_rows_`."""
        if not 0 <= solution < len(self.solutions_):
            raise InputError(f"solution is {solution}; this model has solutions 0 to {len(self.solutions_) - 1}.")
        indices, path = self.solutions_[solution]["indices"], self.solutions_[solution]["path"]
        p = as_length(n_terms, len(indices), "this model has")
        return add_up(self.basis_rows_, indices[:p], path[p - 1, :p] if p else np.empty(0))

    def _similarities(self, rows: Any) -> Any:
        if self.view_ is None:
            return rows[:, self.basis_rows_]
        if self.basis_ is None:
            return np.empty((rows.shape[0], 0))
        return self.view_.gram(rows, self.basis_)
