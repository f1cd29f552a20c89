"""The posterior of a Gaussian process: at any rows, and as a joint Gaussian over some of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg

from corank.data.problem.scoring import first_equals, repeat_first
from corank.estimator.base import Ranker
from corank.kernels.basis import Terms, as_doubles
from corank.kernels.features import FeatureMap
from corank.memory import require_memory

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Posterior:
    """
    A joint Gaussian over the values of items.

    Attributes
    ----------
    mean : array of shape (n,)
        Means.
    covariance : array of shape (n, n)
        Covariances.

    Examples
    --------
    >>> posterior = Posterior(np.array([1.0, 0.0]), np.array([[1.0, 0.9], [0.9, 1.0]]))
    >>> mean, var = posterior.differences([[0, 1]])
    >>> mean.tolist(), var.round(2).tolist(), posterior.std.tolist()
    ([1.0], [0.2], [1.0, 1.0])
    """

    mean: Floats
    covariance: Floats

    def __len__(self) -> int:
        return len(self.mean)

    @property
    def std(self) -> Floats:
        """Standard deviation of each item's value."""
        return np.asarray(np.sqrt(np.maximum(np.diagonal(self.covariance), 0.0)))

    def differences(self, pairs: ArrayLike) -> tuple[Floats, Floats]:
        """
        Return mean and variance of the differences of two values, first minus second.

        Parameters
        ----------
        pairs : array-like of int, shape (m, 2)
            Numbers of the two items of each pair.

        Returns
        -------
        mean, var : arrays of shape (m,)
            Of each pair.
        """
        i, j = np.asarray(pairs).T
        A = self.covariance
        return self.mean[i] - self.mean[j], np.maximum(A[i, i] + A[j, j] - 2.0 * A[i, j], 0.0)


# arrays as large as the covariance that exist at the same time
_SQUARES = 4
# entries of a Gram matrix that may be computed per requested pair
_PER_PAIR = 1024


@dataclass(frozen=True, eq=False)
class PosteriorProcess:
    """
    f = Φ w + the part of the prior outside Φ, w ~ N(mu, (factor factorᵀ)⁻¹).

    phi: maps rows to Φ.
    mu (r,), factor (r, r): mean of w, and the lower Cholesky factor of its precision.
    """

    phi: FeatureMap
    mu: Floats
    factor: Floats

    def predict(self, rows: Any) -> tuple[Floats, Floats]:
        """Mean and variance of f for each row, in blocks of rows."""
        assert self.phi.basis is not None
        mean, var = np.empty(rows.shape[0]), np.empty(rows.shape[0])
        for piece, K in self.phi.basis.blocks(rows):
            phi, V = self._both(K)
            mean[piece] = phi @ self.mu
            var[piece] = np.maximum(self._own(rows[piece]) - np.sum(phi**2, axis=1), 0.0) + np.sum(V**2, axis=1)
        both = repeat_first(rows, np.column_stack([mean, var]))
        return both[:, 0], both[:, 1]

    def mean(self, rows: Any) -> Floats:
        """Mean of f for each row."""
        assert self.phi.basis is not None
        return self.phi.basis.score(rows, np.asarray(self.phi.T) @ self.mu)

    def terms(self, rows: Any, amplitude: float = 1.0) -> Terms:
        """Additive terms of the mean of f for each row, times an amplitude."""
        assert self.phi.basis is not None
        return self.phi.basis.terms(rows, amplitude * (np.asarray(self.phi.T) @ self.mu))

    def joint(self, rows: Any) -> Posterior:
        """The joint Gaussian of f over rows."""
        n = rows.shape[0]
        require_memory(n, 8.0 * _SQUARES * n**2, "pass fewer rows")
        assert self.phi.basis is not None
        phi, V = self._both(self.phi.basis.similarities(rows))
        own = self._gram(rows)
        covariance = own - phi @ phi.T + V @ V.T
        mean, covariance, first = phi @ self.mu, 0.5 * (covariance + covariance.T), first_equals(rows)
        return (
            Posterior(mean, covariance) if first is None else Posterior(mean[first], covariance[np.ix_(first, first)])
        )

    def differences(self, rows: Any, pairs: NDArray[np.int64]) -> tuple[Floats, Floats]:
        """Mean and variance of f(first) − f(second) for pairs of rows; equal pairs get equal bits."""
        first = first_equals(rows)
        distinct, of_pair = np.unique(pairs if first is None else first[pairs], axis=0, return_inverse=True)
        mean, var = self._differences(rows, distinct)
        return mean[of_pair.ravel()], var[of_pair.ravel()]

    def _differences(self, rows: Any, pairs: NDArray[np.int64]) -> tuple[Floats, Floats]:
        named, positions = np.unique(pairs, return_inverse=True)
        positions = positions.reshape(pairs.shape)
        if len(named) ** 2 <= _PER_PAIR * len(pairs) or len(pairs) <= _PER_PAIR // 4:
            return self.joint(rows[named]).differences(positions)
        mean, var = np.empty(len(pairs)), np.empty(len(pairs))
        for start in range(0, len(pairs), _PER_PAIR // 4):
            piece = slice(start, start + _PER_PAIR // 4)
            mean[piece], var[piece] = self._differences(rows, pairs[piece])
        return mean, var

    def _both(self, K: Floats) -> tuple[Floats, Floats]:
        """Φ, and V with V Vᵀ its covariance."""
        phi = np.asarray(K @ np.asarray(self.phi.T))
        return phi, linalg.solve_triangular(self.factor, phi.T, lower=True, check_finite=False).T

    def _own(self, rows: Any) -> Floats:
        kernel = self.phi.view.kernel
        if kernel.is_precomputed:  # unknown for new rows: count only the part inside Φ
            return np.zeros(rows.shape[0])
        return np.asarray(kernel.diag(as_doubles(rows)), dtype=np.float64)

    def _gram(self, rows: Any) -> Floats:
        kernel = self.phi.view.kernel
        if kernel.is_precomputed:
            phi = np.asarray(self.phi(rows))
            return phi @ phi.T
        return np.asarray(kernel(as_doubles(rows)), dtype=np.float64)


class ProcessRanker(Ranker):
    """Base class of rankers whose scores are a linear function of a posterior Gaussian process."""

    process_: PosteriorProcess

    # scores are `_from_f(f)`, whose slope is `_amplitude`
    @property
    def _amplitude(self) -> float:
        return 1.0

    def _from_f(self, f: Floats) -> Floats:
        return f

    def _score_rows(self, X: Any) -> Floats:
        rows = self._scaled_rows(X)  # raises if the model is not fitted
        return self._from_f(self.process_.mean(rows))

    def _terms(self, X: Any, qid: ArrayLike | None, rows: NDArray[np.int64]) -> list[Terms]:
        chosen = self._scale_rows(self._checked_rows(X)[rows])
        return [self.process_.terms(chosen, self._amplitude)]

    def predict(self, X: Any, return_std: bool = False, *, prior: ArrayLike | None = None) -> Any:
        """
        Score rows by the mean of f(x); higher is better.

        Parameters
        ----------
        X : array-like, CSR matrix, DataFrame or sequence of objects
            The rows.
        return_std : bool
            Whether to return the standard deviation of the score too, without the noise of a judgement.
        prior : array-like of shape (n_rows,), optional
            Prior scores of these rows, on the scale of the scores; required if and only if ``fit`` had a prior.

        Returns
        -------
        array of shape (n_rows,), or two of them
            Scores in input order, and their standard deviations. Scores from preferences are determined up to a
            constant; those of `OrdinalGP` with the Gaussian likelihood are on the scale of y.
        """
        if not return_std:
            return super().predict(X, prior=prior)
        rows = self._scaled_rows(X)
        mean, var = self.process_.predict(rows)
        return self._add_prior(self._from_f(mean), prior), self._amplitude * np.sqrt(var)
