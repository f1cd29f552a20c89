"""
OrdinalGP: Gaussian process ordinal regression (Chu and Ghahramani, 2005), or regression on the scores.

    f ~ GP(0, k),  P(grade c | f) = Φ((b_c − f(x))/sigma) − Φ((b_{c−1} − f(x))/sigma)      likelihood="ordinal"  (GPOR)
                   y = intercept + amplitude (f(x) + noise),  noise ~ N(0, sigma²)          likelihood="gaussian" (GPR)

The kernel's parameters, sigma and the thresholds b_1 < ... < b_{r−1} maximise the evidence, by L-BFGS with the analytic
gradient (`corank.models.gp.hyper`); intercept and amplitude have closed forms. Grades determine only the ratios of
sigma and of the thresholds to the size of f: corank's kernels have k(x, x) = 1, so both are in standard deviations of
f. With the Gaussian likelihood, the predicted grade is the nearest one.

n distinct rows cost O(n³) per sweep of expectation propagation, and about ten sweeps per evaluation of the evidence;
r basis rows cost O(n r²).
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import ClassifierTags

from corank.base.docs import shared_parameters
from corank.base.held_out import HeldOut
from corank.base.kernels import Kernel, as_kernel
from corank.base.kernels.basis import require_choice
from corank.base.kernels.views import View
from corank.core.threads import blas_threads_for
from corank.data.ranking import RankingData
from corank.errors import InputError
from corank.fitted import Predictions, Relations, Shapes, is_ascending
from corank.models.gp.grades import (
    GaussianGrades,
    OrdinalGrades,
    chosen_level,
    fit_hyperparameters,
    grade_shares,
    thresholds_of,
)
from corank.models.gp.prior import DistinctRows, basis_features, basis_of, exact, on_basis
from corank.models.gp.process import PosteriorProcess, ProcessRanker
from corank.models.gp.sites import Sites
from corank.parameters import (
    Likelihood,
    Missing,
    Rules,
    boolean,
    check_values,
    integer,
    kernel,
    listing,
    none,
    number,
    one_of,
    seed,
    text,
)

Floats = NDArray[np.float64]

# number of grades that hyper-parameters are learnt from, with basis rows
_MAX_GRADES = 500


@dataclass(frozen=True, eq=False)
class FittedOrdinalGP:
    """The fitted attributes of `OrdinalGP`."""

    kernel: Kernel
    sigma: float
    levels: Floats
    thresholds: Floats
    intercept: float
    amplitude: float
    log_evidence: float
    process: PosteriorProcess
    n_iter: int


@shared_parameters
@dataclass(eq=False, repr=False)
class OrdinalGP(ProcessRanker):
    """
    Gaussian process ordinal regression: learns from grades and predicts the probability of each grade.

    All queries share one scale of grades: `qid` is used only to scale columns and to evaluate rankings, and queries
    with a single row are used too. The grades are the distinct values of y; the ordinal likelihood uses only their
    order. Rows without a score are ignored.

    Parameters
    ----------
    kernel : str, Kernel or callable
        Similarity of rows: a name, a `Kernel`, a kernel of scikit-learn, or a function. The parameters of Gaussian
        kernels, of `ARDKernel` and of scikit-learn's kernels can be learnt.
    sigma : float, optional
        Standard deviation of the noise of a judgement, in units of √k(x, x), which is 1 for Gaussian kernels. None
        learns it, with a lower bound of 0.01.
    likelihood : {"ordinal", "gaussian"}
        Whether grades are intervals between learnt thresholds, or numbers with Gaussian noise.
    {learn}
    {n_restarts}
    n_basis : int, "auto" or None
        Number of basis rows (deterministic training conditional); None means all rows, which is exact. "auto" is None
        up to 500 distinct rows, and 500 above, with a `UsageWarning`. With basis rows, hyper-parameters are learnt from
        at most 500 random grades.
    {basis}
    scale : bool
        Whether to divide columns by their standard deviation inside queries before learning.
    {missing}
    {random_state}

    Attributes
    ----------
    levels_ : array of shape (n_levels,)
        The grades, ascending.
    thresholds_ : array of shape (n_levels - 1,)
        Upper ends of the grades but the last, in units of f; with the Gaussian likelihood, halfway between grades.
    kernel_ : Kernel
        The kernel with its parameters.
    sigma_ : float
        Standard deviation of the noise.
    intercept_, amplitude_ : float
        Scores are intercept_ + amplitude_ f(x); 0 and 1 with the ordinal likelihood.
    log_evidence_ : float
        log P(grades): exact for the Gaussian likelihood, approximated by expectation propagation for the ordinal one.
    process_ : PosteriorProcess
        The posterior of f at any rows.
    n_iter_ : int
        Number of evaluations of the evidence.
    column_scale_ : array of shape (n_features,)
        Factors that columns are multiplied by (with `scale`).

    Notes
    -----
    A `prior` is on the scale of the scores that `predict` returns: that of y with the Gaussian likelihood, that of f
    with the ordinal one.

    Examples
    --------
    >>> from corank import OrdinalGP
    >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], [1, 1, 2, 2, 3, 3]
    >>> model = OrdinalGP(random_state=0).fit(X, y)
    >>> model.predict_level([[0.2], [2.4], [5.5]])
    array([1., 2., 3.])
    >>> model.predict_proba([[2.4]]).shape
    (1, 3)
    """

    _rules: ClassVar[Rules] = {
        "kernel": kernel,
        "sigma": number(0, inside="()") | none,
        "learn": boolean,
        "n_restarts": integer(0),
        "n_basis": integer(1) | one_of("auto") | none,
        "basis": text | listing,
        "scale": boolean,
        "random_state": seed,
    }

    _shapes: ClassVar[Shapes] = {"levels_": ("levels",), "thresholds_": ("levels - 1",)}
    _relations: ClassVar[Relations] = {
        "levels_ and thresholds_ ascend": lambda m: is_ascending(m.levels_) and (np.diff(m.thresholds_) >= 0.0).all(),
        "sigma_ is positive": lambda m: m.sigma_ > 0.0,
    }
    _predictions: ClassVar[Predictions] = {
        "predict_proba": lambda model, X: model.predict_proba(X),
        "predict_level": lambda model, X: model.predict_level(X),
    }

    _learns_from_differences = False
    _needs_pairs = False

    sigma_: float = field(init=False)
    levels_: Floats = field(init=False)
    thresholds_: Floats = field(init=False)
    intercept_: float = field(init=False)
    amplitude_: float = field(init=False)

    kernel: Any = "gaussian"
    sigma: float | None = None
    likelihood: Likelihood = "ordinal"
    _: KW_ONLY
    learn: bool = True
    n_restarts: int = 0
    n_basis: int | Literal["auto"] | None = "auto"
    basis: Any = "random"
    scale: bool = True
    missing: Missing = "mean"
    random_state: Any = None

    @property
    def _learns_sizes(self) -> bool:  # type: ignore[override]
        return self.likelihood == "gaussian"

    def _check_combinations(self) -> None:
        require_choice(self.basis)

    def _require_judgements(self, data: RankingData) -> None:
        if data.y is None:
            raise InputError("pairs were given, but OrdinalGP learns from grades of single rows; pass y instead.")
        if len(np.unique(data.y[data.scored_rows])) < 2:
            data.require_pairs()
        super()._require_judgements(data)

    def _fit(self, data: RankingData, held: HeldOut | None, rng: np.random.Generator) -> FittedOrdinalGP:
        with blas_threads_for(data.n_rows):
            return self._computed(data, rng)

    def _computed(self, data: RankingData, rng: np.random.Generator) -> FittedOrdinalGP:
        for_kernel, for_basis, for_learning = rng.spawn(3)
        rows = data.scored_rows
        assert data.y is not None
        items, levels = DistinctRows.of(data.X, np.isin(np.arange(data.n_rows), rows)), np.unique(data.y[rows])
        if len(items) < 2:
            raise InputError("all scored rows of X are equal, so no grades can be learnt; pass rows that differ.")
        is_ordinal = self.likelihood == "ordinal"
        grades = OrdinalGrades.of(data, items, levels) if is_ordinal else GaussianGrades.of(data, items)
        view = View(None, as_kernel(self.kernel).fit(items.rows, for_kernel))
        basis = basis_of(self, view, data.X, len(items), data.scored_rows, for_basis)
        view, sigma, free, calls = fit_hyperparameters(
            view, items, grades, self.sigma, max_grades=None if basis is None else _MAX_GRADES, learn=self.learn,
            n_restarts=self.n_restarts, rng=for_learning,
        )  # fmt: skip
        all_items = Sites.grades(np.arange(len(items)), -np.inf, np.inf, 1.0)
        if basis is None:
            features = exact(view, items, all_items)
        else:
            features = on_basis(basis_features(basis, view, data.X), items, all_items, None)
        posterior = grades.posterior(features.R, sigma, free)
        gaussian = posterior.approximation
        halfway = (0.5 * (levels[1:] + levels[:-1]) - posterior.intercept) / posterior.amplitude
        return FittedOrdinalGP(
            kernel=view.kernel, sigma=sigma, levels=levels, thresholds=thresholds_of(free) if is_ordinal else halfway,
            intercept=posterior.intercept, amplitude=posterior.amplitude, log_evidence=gaussian.log_evidence,
            process=PosteriorProcess(features.phi, gaussian.mu, gaussian.factor), n_iter=calls,
        )  # fmt: skip

    @property
    def _amplitude(self) -> float:
        return self.amplitude_

    def _from_f(self, f: Floats) -> Floats:
        return np.asarray(self.intercept_ + self.amplitude_ * f)

    def predict_proba(self, X: Any, *, prior: ArrayLike | None = None) -> Floats:
        """Compute the probability of each of `levels_`, including the noise of a judgement; each row sums to 1."""
        rows = self._scaled_rows(X)
        mean, var = self.process_.predict(rows)
        if self._check_prior(prior):
            mean = self._add_prior(self.amplitude_ * mean, prior) / self.amplitude_
        return grade_shares(mean, var, self.thresholds_, self.sigma_**2)

    def predict_level(
        self, X: Any, by: Literal["mode", "median"] = "mode", *, prior: ArrayLike | None = None
    ) -> Floats:
        """
        Predict a grade of `levels_` for each row.

        by: the most probable grade, which minimises the error rate, or the median, which minimises the mean absolute
            error.
        """
        check_values({"by": by}, {"by": one_of("mode", "median")})
        return self.levels_[chosen_level(self.predict_proba(X, prior=prior), by)]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags = ClassifierTags()  # required by scikit-learn of estimators with predict_proba
        return tags
