"""The posterior of a Gaussian process: at any rows, and as a joint Gaussian over some of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg
from scipy.special import softmax

from corank.base.base import Ranker
from corank.base.kernels.basis import FeatureMap, Terms, as_doubles
from corank.data.scoring import first_equals, repeat_first
from corank.fitted import Part, Predictions, Relations, Shapes
from corank.memory import require_memory

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Posterior:
    """
    A joint Gaussian over the values of items, N(m, A).

    Comparisons determine differences of values but not their level, whose variance is that of the prior. So the
    standard deviation of an item is that of its difference to the mean of all n items: with C = I − 11ᵀ/n,

        std_i² = Var(f_i − Σ_j f_j / n) = (C A C)_ii = A_ii − 2 Σ_j A_ij / n + Σ_jk A_jk / n².
    """

    mean: Floats  # means
    covariance: Floats  # covariances

    def __len__(self) -> int:
        return len(self.mean)

    @property
    def std(self) -> Floats:
        """Standard deviation of each item's difference to the mean of all items."""
        centred = self.covariance - self.covariance.mean(axis=0)
        return np.asarray(np.sqrt(np.maximum(np.diagonal(centred - centred.mean(axis=1)[:, None]), 0.0)))

    def differences(self, pairs: ArrayLike) -> tuple[Floats, Floats]:
        """Return mean and variance of the differences of two values, first minus second."""
        i, j = np.asarray(pairs).T
        A = self.covariance
        return self.mean[i] - self.mean[j], np.maximum(A[i, i] + A[j, j] - 2.0 * A[i, j], 0.0)


# arrays as large as the covariance that exist at the same time
_SQUARES = 4
# entries of a Gram matrix that may be computed per requested pair
_PER_PAIR = 1024


@dataclass(frozen=True, eq=False)
class PosteriorProcess(Part):
    """f = Φ w + the part of the prior outside Φ, w ~ N(mu, (factor factorᵀ)⁻¹)."""

    _shapes: ClassVar[Shapes] = {"mu": ("k",), "factor": ("k", "k")}
    _relations: ClassVar[Relations] = {
        "mu has the features of phi": lambda p: p.phi.basis is not None and len(p.mu) == p.phi.n_features,
        "factor is triangular with a positive diagonal": lambda p: (np.diagonal(p.factor) > 0.0).all(),
    }

    phi: FeatureMap  # maps rows to Φ
    mu: Floats  # mu (r,), factor (r, r): mean of w, and the lower Cholesky factor of its precision
    factor: Floats

    def predict(self, rows: Any) -> tuple[Floats, Floats]:
        """Mean and variance of f for each row, in blocks of rows."""
        mean, var = np.empty(rows.shape[0]), np.empty(rows.shape[0])
        for piece, Phi, outside in _blocks(self.phi, rows):
            mean[piece], var[piece] = Phi @ self.mu, outside + np.sum(self.deviations(Phi) ** 2, axis=1)
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

    def deviations(self, Phi: Floats) -> Floats:
        """V with V Vᵀ the covariance of Φ w."""
        return np.asarray(linalg.solve_triangular(self.factor, Phi.T, lower=True, check_finite=False).T)


@dataclass(frozen=True, eq=False)
class ProcessMixture(Part):
    """
    Processes with different hyper-parameters, weighted by the posterior probabilities of these.

    Means and covariances are those of the mixture: m = Σ_c w_c m_c, and Σ_c w_c (C_c + (m_c − m)(m_c − m)ᵀ).
    """

    _shapes: ClassVar[Shapes] = dict.fromkeys(("map_numbers", "sigma", "log_prior", "log_evidence"), ("parts",))
    _relations: ClassVar[Relations] = {
        "every process fits its map": lambda p: _are_processes(p),
        "sigma is positive": lambda p: (p.sigma > 0.0).all(),
    }

    maps: tuple[FeatureMap, ...]  # the distinct maps to Φ
    map_numbers: NDArray[np.int64]  # (c,): the map of each of the c processes
    mu: tuple[Floats, ...]  # mu, factor: c arrays each, as in `PosteriorProcess`
    factor: tuple[Floats, ...]
    sigma: Floats  # (c,): standard deviation of the noise of each process
    log_prior: Floats  # log_prior, log_evidence (c,): of each; w_c is proportional to exp(log_prior + log_evidence)
    log_evidence: Floats

    @property
    def weights(self) -> Floats:
        """w, which sum to 1."""
        return np.asarray(softmax(self.log_prior + self.log_evidence))

    @property
    def parts(self) -> list[PosteriorProcess]:
        """The c processes."""
        return [
            PosteriorProcess(self.maps[number], mu, factor)
            for number, mu, factor in zip(self.map_numbers.tolist(), self.mu, self.factor, strict=True)
        ]

    def predict(self, rows: Any) -> tuple[Floats, Floats]:
        """Mean and variance of f for each row, in blocks of rows."""
        means, variances = np.empty((len(self.mu), rows.shape[0])), np.empty((len(self.mu), rows.shape[0]))
        for phi, numbers in self._by_map():
            for piece, Phi, outside in _blocks(phi, rows):
                for number, part in numbers:
                    means[number, piece] = Phi @ part.mu
                    variances[number, piece] = outside + np.sum(part.deviations(Phi) ** 2, axis=1)
        w = self.weights
        mean = w @ means
        both = repeat_first(rows, np.column_stack([mean, w @ (variances + (means - mean) ** 2)]))
        return both[:, 0], both[:, 1]

    def deviations(self, rows: Any, reference: Any) -> Floats:
        """
        Standard deviation of f(x) − f̄ for each row x, where f̄ is the mean of f over the reference rows z_1, ..., z_n.

        With o the covariance of the part of f outside Φ, and V Vᵀ that of Φ w, the variance of one process is

            ‖V(φ(x) − φ̄)‖² + o(x, x) − 2 Σ_j o(x, z_j) / n + Σ_jk o(z_j, z_k) / n²

        and that of the mixture adds the variance of the means of f(x) − f̄.
        """
        shape = len(self.mu), rows.shape[0]
        means, variances = np.empty(shape), np.empty(shape)
        for phi, numbers in self._by_map():
            Phi, outside = _features(phi, reference)
            level, of_level = Phi.mean(axis=0), float(outside.mean())
            for piece, Psi, alone in _blocks(phi, rows):
                shared = 0.0
                if not phi.view.kernel.is_precomputed:
                    K = np.asarray(phi.view.kernel(as_doubles(rows[piece]), as_doubles(reference)), dtype=np.float64)
                    shared = K.mean(axis=1) - Psi @ level
                for number, part in numbers:
                    means[number, piece] = (Psi - level) @ part.mu
                    inside = np.sum(part.deviations(Psi - level) ** 2, axis=1)
                    variances[number, piece] = np.maximum(inside + alone - 2.0 * shared + of_level, 0.0)
        w = self.weights
        var = w @ (variances + (means - w @ means) ** 2)
        std: Floats = np.sqrt(repeat_first(rows, var[:, None])[:, 0])
        return std

    def mean(self, rows: Any) -> Floats:
        """Mean of f for each row."""
        return np.asarray(sum(part.mean(rows) for part in self._means()))

    def terms(self, rows: Any, amplitude: float = 1.0) -> Terms:
        """Additive terms of the mean of f for each row; with several maps, the values are contributions."""
        each = [part.terms(rows, amplitude) for part in self._means()]
        if len(each) == 1:
            return each[0]
        numbers = np.unique(np.concatenate([terms.numbers for terms in each]))
        values = np.zeros((rows.shape[0], len(numbers)))
        for terms in each:
            values[:, np.searchsorted(numbers, terms.numbers)] += terms.values * terms.weights
        return Terms("row", numbers, np.ones(len(numbers)), values)

    def joint(self, rows: Any) -> Posterior:
        """Mean and covariance of f over rows."""
        n = rows.shape[0]
        require_memory(n, 8.0 * _SQUARES * n**2, "pass fewer rows")
        covariance, means, w = np.zeros((n, n)), np.empty((len(self.mu), n)), self.weights
        for phi, numbers in self._by_map():
            Phi, outside = _features(phi, rows)
            covariance += w[[number for number, _ in numbers]].sum() * outside
            for number, part in numbers:
                V, means[number] = part.deviations(Phi), Phi @ part.mu
                covariance += w[number] * (V @ V.T)
        mean = w @ means
        away = np.sqrt(w)[:, None] * (means - mean)
        covariance += away.T @ away
        covariance, first = 0.5 * (covariance + covariance.T), first_equals(rows)
        return (
            Posterior(mean, covariance) if first is None else Posterior(mean[first], covariance[np.ix_(first, first)])
        )

    def differences(self, rows: Any, pairs: NDArray[np.int64]) -> tuple[Floats, Floats]:
        """Mean and variance of f(first) − f(second) for pairs of rows; equal pairs get equal bits."""
        first = first_equals(rows)
        distinct, of_pair = np.unique(pairs if first is None else first[pairs], axis=0, return_inverse=True)
        means, variances = np.empty((len(self.mu), len(distinct))), np.empty((len(self.mu), len(distinct)))
        is_dense = len(np.unique(distinct)) ** 2 <= _PER_PAIR * len(distinct)
        step = max(len(distinct), 1) if is_dense else _PER_PAIR // 4
        for phi, numbers in self._by_map():
            for start in range(0, len(distinct), step):
                piece = slice(start, start + step)
                named, positions = np.unique(distinct[piece], return_inverse=True)
                Phi, outside = _features(phi, rows[named])
                for number, part in numbers:
                    V = part.deviations(Phi)
                    joint = Posterior(Phi @ part.mu, outside + V @ V.T)
                    means[number, piece], variances[number, piece] = joint.differences(positions.reshape(-1, 2))
        return means[:, of_pair.ravel()], variances[:, of_pair.ravel()]

    def _by_map(self) -> Iterator[tuple[FeatureMap, list[tuple[int, PosteriorProcess]]]]:
        """The maps, each with the numbers of its processes and the processes."""
        parts = self.parts
        for number, phi in enumerate(self.maps):
            yield phi, [(i, parts[i]) for i in np.flatnonzero(self.map_numbers == number).tolist()]

    def _means(self) -> list[PosteriorProcess]:
        """One process for each map, whose means add up to the mean."""
        w = self.weights
        return [
            PosteriorProcess(phi, np.asarray(sum(w[i] * part.mu for i, part in numbers)), numbers[0][1].factor)
            for phi, numbers in self._by_map()
        ]


def _features(phi: FeatureMap, rows: Any) -> tuple[Floats, Floats]:
    """Φ of rows, and the covariance of the part of f outside Φ."""
    assert phi.basis is not None
    Phi, kernel = np.asarray(phi.basis.similarities(rows) @ np.asarray(phi.T)), phi.view.kernel
    if kernel.is_precomputed:  # k(x, x) of new rows is unknown: count only the part inside Φ
        return Phi, np.zeros((len(Phi), len(Phi)))
    return Phi, np.asarray(kernel(as_doubles(rows)), dtype=np.float64) - Phi @ Phi.T


def _blocks(phi: FeatureMap, rows: Any) -> Iterator[tuple[slice, Floats, Floats]]:
    """Positions of rows, their Φ, and the variance of the part of f outside Φ, in blocks."""
    assert phi.basis is not None
    kernel = phi.view.kernel
    for piece, K in phi.basis.blocks(rows):
        Phi = np.asarray(K @ np.asarray(phi.T))
        if kernel.is_precomputed:
            yield piece, Phi, np.zeros(len(Phi))
        else:
            diagonal = np.asarray(kernel.diag(as_doubles(rows[piece])), dtype=np.float64)
            yield piece, Phi, np.maximum(diagonal - np.sum(Phi**2, axis=1), 0.0)


class ProcessRanker(Ranker):
    """Base class of rankers whose scores are a linear function of a posterior Gaussian process."""

    _predictions: ClassVar[Predictions] = {"predict": lambda model, X: model.predict(X, return_std=True)[1]}

    process_: PosteriorProcess | ProcessMixture

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
        Score rows by the mean of f(x), with `return_std` also its standard deviation without the noise of a judgement.

        Scores from preferences are determined up to a constant; those of `OrdinalGP` with the Gaussian likelihood are
        on the scale of y. `prior` is on the scale of the scores, and required if and only if ``fit`` had one.
        """
        if not return_std:
            return super().predict(X, prior=prior)
        rows = self._scaled_rows(X)
        mean, var = self.process_.predict(rows)
        return self._add_prior(self._from_f(mean), prior), self._amplitude * np.sqrt(var)


def _are_processes(mixture: Any) -> bool:
    """Return whether each process of a mixture has the shapes of its map, and each map a process."""
    maps, numbers = mixture.maps, mixture.map_numbers
    if not np.array_equal(np.unique(numbers), np.arange(len(maps))) or len(maps) == 0:
        return False
    for number, mu, factor in zip(numbers, mixture.mu, mixture.factor, strict=True):
        k = maps[number].n_features
        if maps[number].basis is None or mu.shape != (k,) or factor.shape != (k, k):
            return False
        if not (np.isfinite(mu).all() and np.isfinite(factor).all() and (np.diagonal(factor) > 0.0).all()):
            return False
    return True
