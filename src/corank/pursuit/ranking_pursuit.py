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

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corank.core.rows.scaled import factors_of
from corank.data.problem.ranking import RankingData
from corank.errors import InputError, warn
from corank.estimator.base import Ranker
from corank.estimator.held_out import HeldOut
from corank.kernels import Basis, Kernel, Terms
from corank.parameters import Rules
from corank.progress import progress
from corank.pursuit.dictionary import Candidates
from corank.pursuit.fits import alternatives, steps
from corank.pursuit.inner import Floats, Goal, without_mean
from corank.pursuit.parameters import PURSUIT
from corank.pursuit.path import (
    Path,
    TermContribution,
    Watch,
    as_length,
    coefs_of,
    path_table,
    sum_terms,
    term_contributions,
)


@dataclass(frozen=True, eq=False)
class _Pursued:
    """What `RankingPursuit` found; see its attributes."""

    intercept: float
    solutions: list[dict[str, Any]]
    terms: NDArray[np.int64]
    term_coefs: Floats
    gains: Floats
    objective_path: Floats
    kernel: Kernel | None
    basis: Basis | None
    validation_errors: Floats | None


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
        How much a query counts (see `corank.pairwise.query_factors`).
    scale : bool
        Whether columns are divided by their deviation inside queries before rows are compared.
    fit_intercept : bool
        Whether the mean score is subtracted before terms are chosen, and added to predictions; with mix=0 the level is
        free, and stays as the terms have it.
    tol : float
        Stop when a step lowers J by no more than this share of its first value.
    early_stopping : bool
        Whether to choose the number of terms by the disagreement error (the squared error with mix=1) on judgements set
        aside, and then to learn that many terms from all.
    validation_fraction : float
        Share of the queries that hold a pair (of the judgements, where there is one) set aside for early stopping.
    n_iter_no_change : int
        Steps without improvement after which early stopping looks no further.
    n_solutions : int
        Number of near-optimal models; each may choose only what no earlier one chose.
    random_state : int, RandomState or None
        Seed of the random rows of the dictionary, of what is set aside, and of the kernel's "median".
    verbose : bool
        Whether to show a progress bar, on a terminal or in a notebook.

    Attributes
    ----------
    intercept_ : float
        The mean score, or 0.
    terms_ : array of int64, shape (P,)
        Rows (or columns) chosen, in order.
    term_coefs_ : array of shape (P,)
        Their coefficients; of columns as they were given.
    term_path_ : array of shape (P, P)
        ``term_path_[p - 1, :p]`` are the coefficients of the model of the first p terms; made when it is asked for.
    gains_ : array of shape (P,)
        By how much J fell at each step.
    objective_path_ : array of shape (P + 1,)
        J before the first step and after each.
    solutions_ : list of dict
        ``terms``, ``path`` and ``gains`` of each of `n_solutions` models, or of as many as there was something left
        to choose for; the first is the one above. ``path`` holds what is not zero of `term_path_`, row after row; of
        basic fitting, whose coefficients stay, the last row.
    kernel_ : Kernel
        The kernel with numbers only; not with ``dictionary="columns"``.
    basis_ : Basis
        All rows that some model chose, which predictions compare with; not with ``dictionary="columns"``.
    validation_errors_ : array, early stopping only
        Error on what was set aside with 0, 1, 2, ... terms.

    Examples
    --------
    >>> from corank import RankingPursuit, make_ranking
    >>> problem = make_ranking(40, 10, random_state=0)
    >>> model = RankingPursuit(n_basis=20, kernel="linear", random_state=0)
    >>> model.fit(problem.X, problem.y, qid=problem.qid).score(problem.X, problem.y, qid=problem.qid) > 0.75
    True
    >>> model.predict(problem.X, n_terms=3).shape, len(model.terms_)
    ((400,), 20)
    """

    _rules: ClassVar[Rules] = PURSUIT

    intercept_: float
    solutions_: list[dict[str, Any]]
    basis_: Basis

    def __init__(
        self,
        n_basis: int = 50,
        kernel: Any = "gaussian",
        mix: float = 0.0,
        *,
        fitting: str = "basic",
        dictionary: Any = "scored",
        query_weight: str = "pairs",
        scale: bool = True,
        fit_intercept: bool = True,
        tol: float = 1e-10,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        n_solutions: int = 1,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.n_basis = n_basis
        self.kernel = kernel
        self.mix = mix
        self.fitting = fitting
        self.dictionary = dictionary
        self.query_weight = query_weight
        self.scale = scale
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.n_solutions = n_solutions
        self.random_state = random_state
        self.verbose = verbose

    @property
    def _learns_from_differences(self) -> bool:  # type: ignore[override]
        return self.mix == 0.0

    @property
    def _needs_pairs(self) -> bool:  # type: ignore[override]
        return self.mix < 1.0

    @property
    def _kernels(self) -> list[Any]:
        by_columns = isinstance(self.dictionary, str) and self.dictionary == "columns"
        return [] if by_columns else [self.kernel]

    def _fit(self, data: RankingData, held: HeldOut | None, rng: np.random.Generator) -> _Pursued:
        intercept, centred = self._centred(data)
        for_kernel, for_rows = rng.spawn(2)
        goal = Goal.of(centred, self.mix, self.query_weight)
        candidates = Candidates.of(self.dictionary, self.kernel, data, for_rows, for_kernel)
        n_basis, errors = int(self.n_basis), None
        if held is not None:
            watch = self._watched(data, held, candidates)
            n_basis, errors = max(watch.best_length, 1), np.array(watch.errors)
        dictionary = candidates.over(data.X, goal.rows)
        with progress(n_basis * self.n_solutions, "terms", self.verbose) as advance:
            paths = alternatives(dictionary, goal, self.fitting, n_basis, self.tol, self.n_solutions, advance)
        if len(paths) < self.n_solutions:
            warn(
                f"n_solutions is {self.n_solutions}, but after {len(paths)} nothing is left to choose; pass fewer, a "
                "smaller n_basis, or a larger dictionary."
            )
        return self._found(data, goal, candidates, paths, intercept, errors)

    def _centred(self, data: RankingData) -> tuple[float, RankingData]:
        return without_mean(data) if self.fit_intercept and self.mix > 0.0 else (0.0, data)

    def _watched(self, data: RankingData, held: HeldOut, candidates: Candidates) -> Watch:
        """Errors on what was set aside of every model along the path learnt from the rest."""
        level, train = self._centred(held.train)
        watch = Watch(candidates.over(data.X, held.rows), held, self.n_iter_no_change, level)
        goal = Goal.of(train, self.mix, self.query_weight)
        dictionary = candidates.over(data.X, goal.rows)
        walk = steps(dictionary, goal, dictionary.squares(goal.inner), self.fitting)
        Path.follow(walk, self.n_basis, self.tol * goal.J, watch)
        return watch

    def _found(
        self,
        data: RankingData,
        goal: Goal,
        candidates: Candidates,
        paths: list[Path],
        intercept: float,
        errors: Floats | None,
    ) -> _Pursued:
        factors = factors_of(data.X) if candidates.basis is None else None
        solutions: list[dict[str, Any]] = [
            {
                "terms": candidates.numbers[path.indices],
                "path": path.coefs if factors is None else path.scaled(factors[path.indices]),
                "gains": path.gains,
            }
            for path in paths
        ]
        first, basis = solutions[0], candidates.basis
        if basis is not None:
            basis = basis.subset(np.concatenate([path.indices for path in paths]))
        return _Pursued(
            intercept=intercept, solutions=solutions, terms=first["terms"],
            term_coefs=coefs_of(first["path"], len(first["terms"]), len(first["terms"])).copy(), gains=first["gains"],
            objective_path=goal.J - np.append(0.0, np.cumsum(first["gains"])),
            kernel=None if basis is None else basis.view.kernel, basis=basis, validation_errors=errors,
        )  # fmt: skip

    @property
    def term_path_(self) -> Floats:
        """The coefficients of the model of the first p terms in row p − 1, zeros behind them."""
        return path_table(self.solutions_[0]["path"], len(self.solutions_[0]["terms"]))

    def predict(
        self, X: Any, n_terms: int | None = None, solution: int = 0, *, prior: ArrayLike | None = None
    ) -> Floats:
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
        prior : array-like of shape (n_rows,), optional
            Scores of these rows known before learning; wanted where ``fit`` had a prior, and only there.

        Returns
        -------
        array of shape (n_rows,)
            Scores in input order, higher is better.
        """
        return self._add_prior(self._score_rows(X, n_terms, solution), prior)

    def _score_rows(self, X: Any, n_terms: int | None = None, solution: int = 0) -> Floats:
        rows = self._checked_rows(X)
        terms, coefs = self._model(n_terms, solution)
        if not hasattr(self, "basis_"):
            return np.asarray(rows @ sum_terms(np.arange(rows.shape[1]), terms, coefs) + self.intercept_)
        return self.basis_.score(self._scale_rows(rows), sum_terms(self.basis_.numbers, terms, coefs)) + self.intercept_

    def explain(self, x: ArrayLike, n_terms: int | None = None, solution: int = 0) -> list[TermContribution]:
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
        list of TermContribution
            The strongest pull upwards first, the strongest downwards last; with `intercept_`, and the prior if there is
            one, the contributions sum to the score.

        Examples
        --------
        >>> model = RankingPursuit(1, "linear").fit([[0.0], [1.0], [2.0]], [0, 1, 2])
        >>> [(pull.chosen, round(pull.contribution, 6)) for pull in model.explain([3.0])]
        [(1, 3.0)]
        """
        row = self._checked_rows(x if np.ndim(x) > 1 else [x])
        if row.shape[0] != 1:
            raise InputError(f"x has {row.shape[0]} rows; explain one row at a time.")
        terms, coefs = self._model(n_terms, solution)
        if not hasattr(self, "basis_"):
            chosen = np.unique(terms)
            return term_contributions(chosen, sum_terms(chosen, terms, coefs), row[:, chosen])
        numbers = self.basis_.numbers
        return term_contributions(
            numbers, sum_terms(numbers, terms, coefs), self.basis_.similarities(self._scale_rows(row)[:])
        )

    def _terms(self, X: Any, qid: ArrayLike | None, rows: NDArray[np.int64]) -> list[Terms]:
        chosen = self._checked_rows(X)[rows]
        terms, coefs = self._model(None, 0)
        if not hasattr(self, "basis_"):
            return [Terms.of_columns(chosen, sum_terms(np.arange(chosen.shape[1]), terms, coefs))]
        return [self.basis_.terms(self._scale_rows(chosen), sum_terms(self.basis_.numbers, terms, coefs))]

    def _model(self, n_terms: int | None, solution: int) -> tuple[NDArray[np.int64], Floats]:
        """Terms and coefficients of the model that the user asks for."""
        if not 0 <= solution < len(self.solutions_):
            raise InputError(f"solution is {solution}; this model has solutions 0 to {len(self.solutions_) - 1}.")
        terms, path = self.solutions_[solution]["terms"], self.solutions_[solution]["path"]
        p = as_length(n_terms, len(terms), "this model has")
        return terms[:p], coefs_of(path, len(terms), p)
