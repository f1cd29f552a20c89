"""
PreferenceGP: Gaussian process preference learning (Chu and Ghahramani, 2005).

    f ~ GP(0, k),  P(a ≻ b | f) = Φ((f(a) − f(b)) / (√2 sigma))                            (eq. 6)

The posterior is approximated by expectation propagation (`corank.models.gp.propagation`). Rows without preferences
can enter through a graph: with L the Laplacian of the `graph_neighbors` nearest neighbours and c its weight, the prior
of all rows is (K⁻¹ + c L)⁻¹ (eq. 5), and that of new rows is the warped kernel of Sindhwani, Chu and Keerthi (2007)

    k̃(x, z) = k(x, z) − k_xᵀ (I + c L K)⁻¹ c L k_z.

Few answers leave sigma and the kernel open, so the posterior is an average over them, weighted by the evidence
(`corank.models.gp.averaging`). Preferences determine only the ratio of sigma to the size of f: learnt
kernels are scaled so that f has variance 1 over the rows, and sigma is in standard deviations of f.

For n named rows (all rows with a graph) and m distinct answers, a sweep costs O(min(n, m)³), or O(n³) with a graph;
with r basis rows O((n + m) r²).
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corank.base.contract import check_parameters, install, kept_columns
from corank.base.docs import shared_parameters
from corank.base.held_out import HeldOut
from corank.base.kernels import ARDKernel, GaussianKernel, Kernel, as_kernel
from corank.base.kernels.basis import require_choice
from corank.base.kernels.views import View
from corank.core.threads import blas_threads_for
from corank.data.inputs import as_pairs, as_weights
from corank.data.ranking import RankingData
from corank.errors import InputError
from corank.fitted import Relations, Shapes, are_below
from corank.models.gp.averaging import (
    MANY,
    Candidate,
    Grid,
    candidates,
    fit_hyperparameters,
    most_probable,
    preferences_of,
)
from corank.models.gp.preference_posterior import FittedPreferenceGP, Part, PreferencePosterior, joined
from corank.models.gp.prior import (
    DistinctRows,
    PriorFeatures,
    basis_features,
    basis_of,
    exact,
    on_basis,
    on_graph,
    precision_on_basis,
    require_items,
)
from corank.models.gp.sites import NOISES, Sites
from corank.parameters import (
    Missing,
    Rules,
    boolean,
    integer,
    kernel,
    listing,
    none,
    number,
    one_of,
    rng_of,
    seed,
    text,
)

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
WeightedPairs = tuple[Integers, Floats, Floats]

# with basis rows, hyper-parameters are learnt from the answers about this many items if they are at least as many, else
# from this many answers; and from at most so many
_SAMPLE, _MAX_ANSWERS = 300, 1500
# one width per column is tried from this number of answers on (or one per column), and up to this number of columns
_MIN_ANSWERS, _MAX_WIDTHS = 12, 30
# attributes that `partial_fit` keeps, in addition to the notes on columns
_KEPT = ("column_scale_", "has_prior_", "missing_columns_", "missing_means_")


@shared_parameters
@dataclass(eq=False, repr=False)
class PreferenceGP(PreferencePosterior):
    """
    Gaussian process preference learning: learns from preferences and predicts with error bars.

    Scores are compared inside their queries, and only their order is used. A tie can be passed as two preferences, one
    in each direction, of weight ½. Answers may contradict each other and may be repeated at no cost. What is learnt is
    not one value of the hyper-parameters but an average over plausible ones: over the noise, and over kernels with one
    width or with one for each column, since some columns may say nothing.
    Each row may have a part of its value that its features do not explain: probabilities stay calibrated with few
    answers.

    Parameters
    ----------
    kernel : str, Kernel or callable
        Similarity of rows: a name, a `Kernel`, a kernel of scikit-learn, or a function. The parameters of Gaussian
        kernels, of `ARDKernel` and of scikit-learn's kernels can be learnt. "auto" averages over "gaussian" and, from
        12 answers on and for 2 to 30 columns (and at least as many answers), "ard": one width for each column.
    sigma : float, optional
        Standard deviation of the noise of a judgement: in standard deviations of f over the rows with `learn`, else on
        the scale of the kernel. None averages over it.
    likelihood : {"probit", "logistic"}
        Distribution of the noise of an answer: Gaussian, or logistic with the same variance 2 sigma², as in Bradley and
        Terry's model, which takes an answer against a large difference more lightly.
    learn : bool
        Whether to average over the width of a Gaussian kernel and over the share of f that features explain, and to
        learn the parameters of other kernels by the evidence. Otherwise the kernel stays as given, or as set by the
        median distance.
    graph_neighbors : int, optional
        Number of nearest neighbours in the graph over all rows, judged or not; None uses no graph.
    graph_weight : float
        Weight of the graph's Laplacian in the prior precision.
    {n_restarts}
    max_pairs : int
        Largest number of pairs made from scores; if queries have more, this many are drawn at random.
    n_basis : int, "auto" or None
        Number of basis rows (deterministic training conditional); None means all rows, which is exact. "auto" is None
        up to 500 named rows or answers, and 500 above, with a `UsageWarning`. With basis rows, hyper-parameters are
        learnt from a sample of the answers, and rows have no values of their own.
    {basis}
    scale : bool
        Whether to divide columns by their standard deviation inside queries before learning.
    {missing}
    {random_state}

    Attributes
    ----------
    kernel_ : Kernel
        The most probable kernel, with its parameters.
    sigma_ : float
        Standard deviation of the noise; root mean square if the model averages over it.
    log_evidence_ : float
        log P(answers), averaged over the hyper-parameters and approximated by expectation propagation.
    process_ : ProcessMixture
        The posterior of f at any rows: processes with different hyper-parameters, and their weights.
    rows_ : DistinctRows
        The distinct rows of X.
    sites_ : Sites
        The distinct answers, with their weights.
    site_tau_, site_nu_ : arrays of shape (n_processes, n_sites)
        Natural parameters of the sites; `partial_fit` starts from them.
    graph_ : CSR matrix
        Laplacian of the graph, times its weight (with `graph_neighbors`).
    prior_precision_ : tuple of arrays of shape (r, r)
        Prior precision of the features' weights, for each kernel (with `graph_neighbors`).
    is_exact_ : bool
        Whether all rows are used, without a basis.
    n_iter_ : int
        Number of evaluations of the evidence, or of sweeps if all hyper-parameters are fixed.
    column_scale_ : array of shape (n_features,)
        Factors that columns are multiplied by (with `scale`).

    Examples
    --------
    >>> from corank import PreferenceGP
    >>> model = PreferenceGP(sigma=0.1, learn=False).fit([[0.0], [1.0], [2.0], [3.0]], pairs=[[1, 0], [2, 1]])
    >>> mean, std = model.predict([[0.0], [2.0], [9.0]], return_std=True)
    >>> bool(mean[1] > mean[0]), bool(std[2] > std[1])
    (True, True)
    >>> model.predict_pair([[0.0], [2.0]], [[1, 0]]).round(1).tolist()
    [0.9]
    >>> model = model.partial_fit(pairs=[[2, 3]])
    >>> len(model.sites_)
    3
    """

    _rules: ClassVar[Rules] = {
        "kernel": kernel,
        "sigma": number(0, inside="()") | none,
        "likelihood": one_of(*NOISES),
        "learn": boolean,
        "graph_neighbors": integer(1) | none,
        "graph_weight": number(0),
        "n_restarts": integer(0),
        "max_pairs": integer(1),
        "n_basis": integer(1) | one_of("auto") | none,
        "basis": text | listing,
        "scale": boolean,
        "random_state": seed,
    }

    _shapes: ClassVar[Shapes] = {
        "site_tau_": ("parts", "sites"),
        "site_nu_": ("parts", "sites"),
        "graph_": ("items", "items"),
    }
    _relations: ClassVar[Relations] = {
        "sigma_ is positive": lambda m: m.sigma_ > 0.0,
        "site_tau_ has the sites": lambda m: (
            m.site_tau_.shape == (len(m.process_.mu), len(m.sites_)) and (m.site_tau_ >= 0.0).all()
        ),
        "prior_precision_ has the maps": lambda m: not hasattr(m, "prior_precision_") or _are_precisions(m),
        "sites_ names items": lambda m: (
            are_below(m.sites_.left, len(m.rows_)) and are_below(m.sites_.right, len(m.rows_))
        ),
        "rows_ has the columns of X": lambda m: m.rows_.rows.ndim == 1 or m.rows_.rows.shape[1] == m._n_columns,
        "graph_ has the items": lambda m: not hasattr(m, "graph_") or m.graph_.shape[0] == len(m.rows_),
    }

    _learns_sizes = False

    is_exact_: bool = field(init=False)
    site_tau_: Floats = field(init=False)
    site_nu_: Floats = field(init=False)

    kernel: Any = "auto"
    sigma: float | None = None
    _: KW_ONLY
    likelihood: str = "probit"
    learn: bool = True
    graph_neighbors: int | None = None
    graph_weight: float = 1.0
    n_restarts: int = 0
    max_pairs: int = 20_000
    n_basis: int | Literal["auto"] | None = "auto"
    basis: Any = "random"
    scale: bool = True
    missing: Missing = "mean"
    random_state: Any = None

    def _check_combinations(self) -> None:
        require_choice(self.basis)

    def _fit(self, data: RankingData, held: HeldOut | None, rng: np.random.Generator) -> FittedPreferenceGP:
        with blas_threads_for(data.n_rows):
            return self._computed(data, rng)

    def _computed(self, data: RankingData, rng: np.random.Generator) -> FittedPreferenceGP:
        for_kernel, for_pairs, for_basis, for_learning = rng.spawn(4)
        has_weight = np.ones(data.n_rows, dtype=bool) if data.weights is None else data.weights > 0.0
        items = DistinctRows.of(data.X, has_weight)
        rows, weight = preferences_of(data, self.max_pairs, for_pairs)
        answers = items.pairs(rows, weight, data.prior_gap(rows))
        if not len(answers[0]):
            raise InputError(
                "every pair compares two equal rows, which orders nothing; pass rows that differ, or rank items "
                "without features by corank.Leaderboard."
            )
        views = [View(None, kernel) for kernel in self._initial_kernels(items, len(answers[0]), for_kernel)]
        view, L = views[0], None
        if self.graph_neighbors is not None:
            L = self.graph_weight * items.laplacian(view, self.graph_neighbors)
        sites = self._sites(answers)
        size = len(items) if L is not None else min(len(sites.compacted()[0]), len(sites))
        candidates = np.flatnonzero(has_weight) if L is not None else data.scored_rows
        basis = basis_of(self, view, data.X, size, candidates, for_basis)
        families: list[tuple[list[Candidate], float]] = []
        n_calls = 0
        for entry in views:
            of_kernel, calls = self._candidates(entry, items, answers, L, basis is None, for_learning)
            families += of_kernel
            n_calls += calls
        result = most_probable(families)

        def prior_of(view: View) -> PriorFeatures:
            if basis is not None:
                phi = basis_features(basis, view, data.X)
                return on_basis(phi, items, sites, None if L is None else precision_on_basis(phi, items, L))
            return exact(view, items, sites) if L is None else on_graph(view, items, sites, L)

        priors = {id(item.view): prior_of(item.view) for item in {id(item.view): item for item in result}.values()}
        parts = [
            Part.of(priors[id(item.view)], item.sigma, item.log_prior, item.start if basis is None else None)
            for item in result
        ]
        return joined(parts, n_calls, rows=items, sites=sites, graph=L, is_exact=basis is None)

    def _candidates(
        self, view: View, items: DistinctRows, answers: WeightedPairs, L: Any, is_exact: bool, rng: np.random.Generator
    ) -> tuple[list[tuple[list[Candidate], float]], int]:
        """Kernels and noises to average over with logarithms of weights (`nodes`), and the number of evaluations."""
        if self.sigma is not None and not self.learn:
            return [([Candidate(view, self.sigma)], 0.0)], 0
        sample, graph = self._sites(answers if is_exact else _sampled(answers, rng)), L if is_exact else None
        n_theta, best, n_calls, views = len(view.kernel.theta), None, 0, [(view, 0.0)]
        if self.learn and (n_theta > 1 or (n_theta == 1 and len(sample) > MANY)):
            options: dict[str, Any] = {"n_restarts": self.n_restarts, "rng": rng}
            views, best, n_calls = fit_hyperparameters(view, items, sample, graph, self.sigma, **options)
        families = []
        for item, log_weight in views:
            grid = Grid.of(item, items, self.sigma, learn=self.learn, has_own=is_exact, best=best, rng=rng)
            result, n_averaged = candidates(grid, sample, graph)
            families.append((result, log_weight))
            n_calls += n_averaged
        return families, n_calls

    def _initial_kernels(self, items: DistinctRows, n_answers: int, rng: np.random.Generator) -> list[Kernel]:
        """The kernels to start from; "auto" is a Gaussian kernel, and one with a width per column if possible."""
        if self.kernel != "auto":
            return [as_kernel(self.kernel).fit(items.rows, rng)]
        common = GaussianKernel().fit(items.rows, rng)
        n_columns = items.rows.shape[1] if items.rows.ndim == 2 else 0
        if not self.learn or not 1 < n_columns <= _MAX_WIDTHS or n_answers < max(_MIN_ANSWERS, n_columns):
            return [common]
        return [common, ARDKernel((float(common.gamma),) * n_columns)]

    def _problem(self, X: Any, y: Any, qid: Any, pairs: Any) -> Any:
        if pairs is not None and (X is None or np.shape(X)[1:] == (0,)):
            raise InputError(
                "X has no features, so that answers about some rows say nothing about others; use corank.Leaderboard, "
                "which ranks items from votes alone, or pass features."
            )
        return super()._problem(X, y, qid, pairs)

    def _sites(self, answers: WeightedPairs) -> Sites:
        """Pairs of items, their weights, and prior means of their differences as sites with sigma 1."""
        return Sites.preferences(answers[0], 1.0, *answers[1:], likelihood=self.likelihood)

    @property
    def _kernels(self) -> list[Any]:
        return ["gaussian"] if self.kernel == "auto" else [self.kernel]

    def partial_fit(
        self,
        X: Any = None,
        y: ArrayLike | None = None,
        *,
        qid: ArrayLike | None = None,
        sample_weight: Any = None,
        pairs: ArrayLike | None = None,
        pair_weight: Any = None,
        prior: ArrayLike | None = None,
    ) -> Self:
        """
        Learn from further answers about the rows of ``fit``, with the same kernels and noises.

        The result is that of ``fit`` with all answers and these hyper-parameters, whose weights change; expectation
        propagation starts from the earlier answers. The first call is ``fit``.

        Parameters
        ----------
        X : array-like, CSR matrix, DataFrame or sequence of objects, optional
            The rows of ``fit``, or None for them.
        y, qid, sample_weight
            Scores instead of pairs, as in ``fit``; they require X.
        pairs : array-like of int, shape (n_pairs, 2)
            Numbers of rows of the X that was fitted, the preferred row first.
        pair_weight : array-like of shape (n_pairs,), optional
            Weights of the answers.
        prior : array-like of shape (n_rows,), optional
            Prior scores of the rows of ``fit``; required if and only if ``fit`` had a prior.

        Returns
        -------
        self
            The model.
        """
        check_parameters(self)
        if not hasattr(self, "process_"):
            if X is None:
                raise InputError("the first call of partial_fit has no X; pass the rows that the answers refer to.")
            answers: dict[str, Any] = {"pairs": pairs, "pair_weight": pair_weight, "prior": prior}
            return self.fit(X, y, qid=qid, sample_weight=sample_weight, **answers)
        items, old, L = self.rows_, self.sites_, getattr(self, "graph_", None)
        rows, weight = self._further(X, y, qid, sample_weight, pairs, pair_weight)
        require_items(items.of_row[rows])
        s0 = self._add_prior(np.zeros(len(items.of_row)), prior)
        further, weights, offset = items.pairs(rows, weight, s0[rows[:, 0]] - s0[rows[:, 1]])
        all_pairs = np.concatenate([np.column_stack([old.left, old.right]), further])
        weighted = np.concatenate([old.weight, weights]), np.concatenate([0.0 - old.lo, offset])
        sites, mixture = self._sites((all_pairs, *weighted)), self.process_
        if self.is_exact_ and L is None:
            priors = [exact(phi.view, items, sites) for phi in mixture.maps]
        else:
            precisions = getattr(self, "prior_precision_", None) or [None] * len(mixture.maps)
            both = zip(mixture.maps, precisions, strict=True)
            priors = [on_basis(phi, items, sites, precision) for phi, precision in both]
        starts = [
            (sites.carry_over(old, tau), sites.carry_over(old, nu))
            for tau, nu in zip(self.site_tau_, self.site_nu_, strict=True)
        ]
        each = zip(
            mixture.map_numbers.tolist(), mixture.sigma.tolist(), mixture.log_prior.tolist(), starts, strict=True
        )
        with blas_threads_for(len(items)):
            parts = [Part.of(priors[number], sigma, log_prior, start) for number, sigma, log_prior, start in each]
        notes = {**kept_columns(self), **{name: value for name, value in vars(self).items() if name in _KEPT}}
        return install(self, joined(parts, 0, rows=items, sites=sites, graph=L, is_exact=self.is_exact_), notes)

    def _further(
        self, X: Any, y: Any, qid: Any, sample_weight: Any, pairs: Any, pair_weight: Any
    ) -> tuple[Integers, Floats]:
        """Further answers as pairs of rows of ``fit`` and weights."""
        items = self.rows_
        if X is not None:
            scaled = self._scaled_rows(X)
            if scaled.shape[0] != len(items.of_row) or not items.are_in(scaled):
                raise InputError("X differs from the X of fit; pass the same rows, or None, or call fit with all rows.")
        elif y is not None:
            raise InputError("y was given without X; pass the rows of fit too, or pairs of row numbers.")
        if y is not None:
            data = self._problem(X, y, qid, pairs)[0].weighted(sample_weight, pair_weight)
            data.require_pairs()
            return preferences_of(data, self.max_pairs, rng_of(self.random_state))
        if pairs is None:
            raise InputError("neither pairs nor y was given; pass answers to learn from.")
        rows = as_pairs(pairs, np.zeros(len(items.of_row), dtype=np.int64))
        weight = (
            np.ones(len(rows)) if pair_weight is None else as_weights(pair_weight, len(rows), "pair", "pair_weight")
        )
        return rows, weight


def _sampled(answers: WeightedPairs, rng: np.random.Generator) -> WeightedPairs:
    """
    A random sample of the answers: those among `_SAMPLE` items, or `_SAMPLE` of all if these are more.

    A sweep costs the cube of the number of items or of answers, the smaller one: answers about few items are cheap.
    """
    pairs, weight, offset = answers
    if len(pairs) <= _SAMPLE:
        return answers
    named = np.unique(pairs)
    among = np.flatnonzero(np.isin(pairs, rng.permutation(named)[:_SAMPLE]).all(axis=1))
    chosen = among if len(among) >= _SAMPLE else rng.permutation(len(pairs))[:_SAMPLE]
    chosen = np.sort(rng.permutation(chosen)[:_MAX_ANSWERS])
    return pairs[chosen], weight[chosen], offset[chosen]


def _are_precisions(model: Any) -> bool:
    """Return whether there is one prior precision for each map of a mixture."""
    each = zip(model.process_.maps, model.prior_precision_, strict=True)
    return all(P.shape == (phi.n_features,) * 2 and np.isfinite(P).all() for phi, P in each)
