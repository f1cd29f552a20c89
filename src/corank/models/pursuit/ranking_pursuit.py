"""
RankingPursuit: ranking pursuit, kernel matching pursuit, and their combination (CRRP).

From a dictionary of functions k_1..k_N, terms are added one at a time to f_P(x) = Σ_p a_p k_{γ_p}(x), so that

    J = (s − f)ᵀ L̃ (s − f),    L̃ = mix · I + (1 − mix) · L

falls the most, L the Laplacian of the compared pairs: mix=0 is ranking pursuit, mix=1 kernel matching pursuit, and
values between are combined ranking and regression pursuit. L of a query of n_q rows has eigenvalues n_q with
``query_weight="pairs"``, the paper's form and the default, so ranking outweighs regression n_q times at mix=0.5; with
``query_weight="rows"`` both parts have equal weight for any n_q.

Cost: O(nN) memory and O(nN) time per step, one product over the dictionary, for each of the three fits.

Reference: Tsivtsivadze and Heskes, Semi-supervised ranking pursuit, 2013, sections 3 and 4.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corank.base.base import Ranker
from corank.base.docs import shared_parameters
from corank.base.held_out import HeldOut
from corank.base.kernels import Kernel
from corank.base.kernels.basis import Basis, Terms
from corank.core.rows.access import factors_of
from corank.data.ranking import RankingData
from corank.data.scoring import score_columns
from corank.errors import InputError, warn
from corank.fitted import Relations, Shapes, are_below
from corank.models.pursuit.dictionary import Candidates, Floats, Target, require_columns, without_mean
from corank.models.pursuit.path import (
    Path,
    PathValidation,
    as_n_terms,
    coefs_of,
    disjoint_paths,
    path_table,
    steps,
    sum_terms,
)
from corank.parameters import Missing, QueryWeight, Rules, boolean, integer, kernel, listing, number, one_of, seed
from corank.progress import progress

Fitting = Literal["basic", "back", "pre"]

ROWS = integer(1) | listing
"""Allowed row numbers, or a number of rows."""


@dataclass(eq=False, repr=False)
class Pursuit(Ranker):
    """Parameters of both pursuits."""

    _rules: ClassVar[Rules] = {
        "n_basis": integer(1),
        "kernel": kernel,
        "scale": boolean,
        "tol": number(0, 1, inside="[)"),
        "early_stopping": boolean,
        "validation_fraction": number(0, 1, inside="()"),
        "n_iter_no_change": integer(1),
        "random_state": seed,
        "verbose": boolean,
    }

    _: KW_ONLY
    query_weight: QueryWeight = "pairs"
    scale: bool = True
    missing: Missing = "mean"
    tol: float = 1e-10
    early_stopping: bool = False
    validation_fraction: float = 0.1
    n_iter_no_change: int = 5
    random_state: Any = None
    verbose: bool = False


@dataclass(frozen=True, eq=False)
class FittedPursuit:
    """The fitted attributes of `RankingPursuit`."""

    intercept: float
    solutions: list[dict[str, Any]]
    terms: NDArray[np.int64]
    term_coefs: Floats
    gains: Floats
    objective_path: Floats
    kernel: Kernel | None
    basis: Basis | None
    validation_errors: Floats | None


@shared_parameters
@dataclass(eq=False, repr=False)
class RankingPursuit(Pursuit):
    """
    A sparse ranker, whose terms are chosen greedily.

    Parameters
    ----------
    n_basis : int
        P, the largest number of terms.
    {kernel}
    mix : float
        β, the share of regression: 0 is pure ranking, 1 pure regression.
    fitting : {"basic", "back", "pre"}
        Whether earlier coefficients do not change, are refitted after each choice, or also in the choice (see
        `corank.models.pursuit.path`). Only ``"basic"`` may choose a row twice.
    dictionary : {"auto", "scored", "all", "columns"}, int or array-like of int
        Candidates for terms: the scored rows of X (those of pairs, if pairs are passed), all rows, a number of random
        rows, or row numbers; "columns" are the columns of X, without a kernel. "auto" means the scored rows up to
        5,000, and 2,000 random ones of them above, with a `UsageWarning`.
    {query_weight}
    scale : bool
        Whether to divide columns by their standard deviation inside queries before learning.
    {missing}
    fit_intercept : bool
        Whether to subtract the mean score before terms are chosen and to add it to predictions. It has no effect with
        mix=0, which does not determine the level of the scores.
    tol : float
        Stop when a step lowers J by at most this share of its initial value.
    early_stopping : bool
        Whether to choose the number of terms by the disagreement error (the squared error with mix=1) on held-out
        judgements, and then to learn this number of terms from all judgements.
    validation_fraction : float
        Share of the queries with a pair that early stopping holds out; with a single such query, of its judgements.
    {n_iter_no_change}
    n_solutions : int
        Number of near-optimal models; each may choose only terms that no earlier one chose.
    {random_state}
    {verbose}

    Attributes
    ----------
    intercept_ : float
        The mean score, or 0.
    terms_ : array of int64, shape (P,)
        Rows (or columns) chosen, in order.
    term_coefs_ : array of shape (P,)
        Their coefficients; for columns, in the scale of X.
    term_path_ : array of shape (P, P)
        ``term_path_[p - 1, :p]`` are the coefficients of the model of the first p terms; computed on access.
    gains_ : array of shape (P,)
        Decrease of J at each step.
    objective_path_ : array of shape (P + 1,)
        J before the first step and after each.
    solutions_ : list of dict
        ``terms``, ``path`` and ``gains`` of each of the `n_solutions` models (fewer if the dictionary is exhausted);
        the first is the one above. ``path`` holds the lower triangle of `term_path_`, row by row; for basic fitting,
        only the last row.
    kernel_ : Kernel
        The kernel with its parameters; not with ``dictionary="columns"``.
    basis_ : Basis
        All rows that some model chose; not with ``dictionary="columns"``.
    validation_errors_ : array, early stopping only
        Held-out error with 0, 1, 2, ... terms.

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

    _rules: ClassVar[Rules] = {
        **Pursuit._rules,
        "mix": number(0, 1),
        "fit_intercept": boolean,
        "dictionary": one_of("auto", "scored", "all", "columns") | ROWS,
        "n_solutions": integer(1),
    }

    _shapes: ClassVar[Shapes] = {"terms_": ("terms",), "term_coefs_": ("terms",), "gains_": ("terms",)}
    _relations: ClassVar[Relations] = {
        "solutions_ holds terms and coefficients": lambda m: _are_solutions(m),
    }
    intercept_: float = field(init=False)
    basis_: Basis = field(init=False)

    n_basis: int = 50
    kernel: Any = "gaussian"
    mix: float = 0.0
    _: KW_ONLY
    fitting: Fitting = "basic"
    dictionary: Any = "auto"
    fit_intercept: bool = True
    n_solutions: int = 1

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

    def _fit(self, data: RankingData, held: HeldOut | None, rng: np.random.Generator) -> FittedPursuit:
        intercept, centred = self._centred(data)
        for_kernel, for_rows = rng.spawn(2)
        target = Target.of(centred, self.mix, self.query_weight)
        candidates = Candidates.of(self.dictionary, self.kernel, data, for_rows, for_kernel)
        if candidates.basis is not None:
            require_columns(len(target.rows), len(candidates.basis), data.X)
        n_basis, errors = int(self.n_basis), None
        if held is not None:
            validation = self._validated(data, held, candidates)
            n_basis, errors = validation.best_length, validation.errors
        dictionary = candidates.over(data.X, target.rows)
        with progress(n_basis * self.n_solutions, "terms", self.verbose) as advance:
            paths = disjoint_paths(dictionary, target, self.fitting, n_basis, self.tol, self.n_solutions, advance)
        if len(paths) < self.n_solutions:
            warn(
                f"n_solutions is {self.n_solutions}, but the dictionary is exhausted after {len(paths)}; pass fewer "
                "solutions, a smaller n_basis, or a larger dictionary."
            )
        return self._fitted(data, target, candidates, paths, intercept, errors)

    def _centred(self, data: RankingData) -> tuple[float, RankingData]:
        return without_mean(data) if self.fit_intercept and self.mix > 0.0 else (0.0, data)

    def _validated(self, data: RankingData, held: HeldOut, candidates: Candidates) -> PathValidation:
        """Held-out errors along the path that is learnt from the other judgements."""
        level, train = self._centred(held.train)
        validation = PathValidation(candidates.over(data.X, held.rows), held, self.n_iter_no_change, level)
        target = Target.of(train, self.mix, self.query_weight)
        dictionary = candidates.over(data.X, target.rows)
        path = steps(dictionary, target, dictionary.squares(target.inner), self.fitting)
        Path.follow(path, self.n_basis, self.tol * target.J, validation)
        return validation

    def _fitted(
        self,
        data: RankingData,
        target: Target,
        candidates: Candidates,
        paths: list[Path],
        intercept: float,
        errors: Floats | None,
    ) -> FittedPursuit:
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
        return FittedPursuit(
            intercept=intercept, solutions=solutions, terms=first["terms"],
            term_coefs=coefs_of(first["path"], len(first["terms"]), len(first["terms"])).copy(), gains=first["gains"],
            objective_path=target.J - np.append(0.0, np.cumsum(first["gains"])),
            kernel=None if basis is None else basis.view.kernel, basis=basis, validation_errors=errors,
        )  # fmt: skip

    @property
    def term_path_(self) -> Floats:
        """The coefficients of the model of the first p terms in row p − 1, filled up with zeros."""
        return path_table(self.solutions_[0]["path"], len(self.solutions_[0]["terms"]))

    def predict(
        self, X: Any, n_terms: int | None = None, solution: int = 0, *, prior: ArrayLike | None = None
    ) -> Floats:
        """Score rows by the first `n_terms` terms (all by default) of one of the `n_solutions` models."""
        return self._add_prior(self._score_rows(X, n_terms, solution), prior)

    def _score_rows(self, X: Any, n_terms: int | None = None, solution: int = 0) -> Floats:
        rows = self._checked_rows(X)
        terms, coefs = self._model(n_terms, solution)
        if not hasattr(self, "basis_"):
            return score_columns(rows, sum_terms(np.arange(rows.shape[1]), terms, coefs)) + self.intercept_
        return self.basis_.score(self._scale_rows(rows), sum_terms(self.basis_.numbers, terms, coefs)) + self.intercept_

    def _terms(self, X: Any, qid: ArrayLike | None, rows: NDArray[np.int64]) -> list[Terms]:
        chosen = self._checked_rows(X)[rows]
        terms, coefs = self._model(None, 0)
        if not hasattr(self, "basis_"):
            return [Terms.of_columns(chosen, sum_terms(np.arange(chosen.shape[1]), terms, coefs))]
        return [self.basis_.terms(self._scale_rows(chosen), sum_terms(self.basis_.numbers, terms, coefs))]

    def _model(self, n_terms: int | None, solution: int) -> tuple[NDArray[np.int64], Floats]:
        """Terms and coefficients of one model."""
        if not 0 <= solution < len(self.solutions_):
            raise InputError(f"solution is {solution}; pass one from 0 to {len(self.solutions_) - 1}.")
        terms, path = self.solutions_[solution]["terms"], self.solutions_[solution]["path"]
        p = as_n_terms(n_terms, len(terms), "this model has")
        return terms[:p], coefs_of(path, len(terms), p)


def _are_solutions(model: Any) -> bool:
    d, chosen = model._n_columns, model.basis_.numbers if hasattr(model, "basis_") else None
    for solution in model.solutions_:
        terms, path, gains = (solution[name] for name in ("terms", "path", "gains"))
        if terms.dtype != np.int64 or path.dtype != np.float64 or (terms.ndim, path.ndim) != (1, 1):
            return False
        P = len(terms)
        if len(path) not in (P, P * (P + 1) // 2) or gains.shape != (P,) or not np.isfinite(path).all():
            return False
        if not (np.isin(terms, chosen).all() if chosen is not None else are_below(terms, d)):
            return False
    return len(model.solutions_) > 0
