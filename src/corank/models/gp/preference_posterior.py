"""Posteriors of preferences for several choices of the hyper-parameters, and predictions from them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp
from sklearn.utils.validation import check_is_fitted

from corank.base.kernels import Kernel
from corank.data.inputs import as_pairs
from corank.errors import InputError
from corank.fitted import Predictions
from corank.models.gp.averaging import Start
from corank.models.gp.prior import DistinctRows, PriorFeatures
from corank.models.gp.process import Posterior, ProcessMixture, ProcessRanker
from corank.models.gp.propagation import Approximation, propagate
from corank.models.gp.sites import IntervalProbability, Sites

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# largest number of rows of fit whose mean standard deviations refer to
_REFERENCE = 300


@dataclass(frozen=True, eq=False)
class FittedPreferenceGP:
    """The fitted attributes of `PreferenceGP`."""

    kernel: Kernel
    sigma: float
    log_evidence: float
    process: ProcessMixture
    rows: DistinctRows
    sites: Sites
    site_tau: Floats
    site_nu: Floats
    n_iter: int
    is_exact: bool
    graph: Any = None
    prior_precision: tuple[Floats, ...] | None = None


@dataclass(frozen=True, eq=False)
class Part:
    """
    The posterior with one choice of the hyper-parameters.

    prior, sigma, log_prior: the prior of f, the noise, and the logarithm of their probability before the answers.
    """

    prior: PriorFeatures
    sigma: float
    log_prior: float
    gaussian: Approximation  # the approximation of the posterior

    @classmethod
    def of(cls, prior: PriorFeatures, sigma: float, log_prior: float, start: Start | None) -> Part:
        """Run expectation propagation."""
        sites = replace(prior.sites, noise=np.full(len(prior.sites), 2.0 * sigma**2))
        return cls(prior, sigma, log_prior, propagate(prior.R, sites, precision=prior.precision, start=start))


def joined(parts: list[Part], n_calls: int, *, sites: Sites, **more: Any) -> FittedPreferenceGP:
    """Return the fitted attributes from the posteriors of all choices."""
    priors = list({id(part.prior): part.prior for part in parts}.values())
    each = [part.gaussian for part in parts]
    mixture = ProcessMixture(
        maps=tuple(prior.phi for prior in priors),
        map_numbers=np.array([[prior is part.prior for prior in priors].index(True) for part in parts]),
        mu=tuple(gaussian.mu for gaussian in each), factor=tuple(gaussian.factor for gaussian in each),
        sigma=np.array([part.sigma for part in parts]), log_prior=np.array([part.log_prior for part in parts]),
        log_evidence=np.array([gaussian.log_evidence for gaussian in each]),
    )  # fmt: skip
    best = parts[int(mixture.weights.argmax())]
    sigma = float(np.sqrt(mixture.weights @ mixture.sigma**2)) if len(parts) > 1 else best.sigma
    return FittedPreferenceGP(
        kernel=best.prior.phi.view.kernel, sigma=sigma, process=mixture,
        log_evidence=float(logsumexp(mixture.log_prior + mixture.log_evidence)),
        sites=replace(sites, noise=np.full(len(sites), 2.0 * sigma**2)),
        site_tau=np.array([gaussian.tau for gaussian in each]), site_nu=np.array([gaussian.nu for gaussian in each]),
        n_iter=n_calls or max(gaussian.n_sweeps for gaussian in each),
        prior_precision=tuple(prior.precision for prior in priors if prior.precision is not None) or None, **more,
    )  # fmt: skip


class PreferencePosterior(ProcessRanker):
    """Base class of `PreferenceGP`: predictions from its fitted attributes."""

    _predictions: ClassVar[Predictions] = {
        "predict_pair": lambda model, X: model.predict_pair(X, [[0, 1]]),
        "posterior": lambda model, X: model.posterior(X).covariance,
        "answered": lambda model, X: model.answered(),
    }

    process_: ProcessMixture
    rows_: DistinctRows
    sites_: Sites
    sigma_: float

    def predict(self, X: Any, return_std: bool = False, *, prior: ArrayLike | None = None) -> Any:
        """
        Score rows by the mean of f(x); scores are determined up to a constant.

        Preferences determine differences of scores, not their level. So the standard deviation of a score is that of
        f(x) − f̄, where f̄ is the mean of f over the n rows of ``fit`` (300 rows spread over them if there are more):
        with the posterior covariance A of f,

            std(x)² = A(x, x) − 2 Σ_j A(x, x_j) / n + Σ_jk A(x_j, x_k) / n².

        For the rows of ``fit`` these are the diagonal elements of C A C with C = I − 11ᵀ/n, as in ``posterior().std``.
        """
        scores = super().predict(X, prior=prior)
        if not return_std:
            return scores
        return scores, self.process_.deviations(self._scaled_rows(X), self._reference())

    def _reference(self) -> Any:
        """Rows of fit to whose mean standard deviations refer; a row of weight 0 is not stored, and left out."""
        items = self.rows_
        stored = items.of_row[items.of_row >= 0]
        if len(stored) > _REFERENCE:
            stored = stored[np.linspace(0, len(stored) - 1, _REFERENCE).astype(np.int64)]
        return items.rows[stored]

    def predict_pair(self, X: Any, pairs: ArrayLike, *, prior: ArrayLike | None = None) -> Floats:
        """Compute the probability that the first row of each pair is preferred, including the noise of a judgement."""
        rows = self._scaled_rows(X)
        checked = as_pairs(pairs, np.zeros(rows.shape[0], dtype=np.int64))
        mixture = self.process_
        mean, var = mixture.differences(rows, checked)
        s0 = self._add_prior(np.zeros(rows.shape[0]), prior)
        gap = s0[checked[:, 0]] - s0[checked[:, 1]]
        noise = 2.0 * mixture.sigma[:, None] ** 2
        each = IntervalProbability(noise=noise, likelihood=self.sites_.likelihood).probability(mean + gap, var)
        # a product would round differently in different columns
        return np.asarray((mixture.weights[:, None] * each).sum(axis=0))

    def posterior(self, X: Any = None, *, prior: ArrayLike | None = None) -> Posterior:
        """Return the joint Gaussian of f over rows (those of ``fit`` by default), averaged over hyper-parameters."""
        joint = self._joint(X)
        return replace(joint, mean=self._add_prior(joint.mean, prior))

    def _joint(self, X: Any) -> Posterior:
        """Return the joint Gaussian of f without the prior."""
        check_is_fitted(self)
        if X is not None:
            return self.process_.joint(self._scaled_rows(X))
        items = self.rows_
        if items.of_row.min() < 0:
            raise InputError("some rows of fit had weight 0 and were not stored; pass the rows as X.")
        of_items = self.process_.joint(items.rows)
        return Posterior(of_items.mean[items.of_row], of_items.covariance[np.ix_(items.of_row, items.of_row)])

    def answered(self) -> Integers:
        """
        List the distinct answers so far as row numbers of ``fit``, the preferred row first; the first of equal rows.
        """
        check_is_fitted(self)
        return np.asarray(np.column_stack([self.rows_.numbers[part] for part in (self.sites_.left, self.sites_.right)]))
