"""Spectrum: how items are liked together, as directions of all users' residuals, and features made of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import svds

Floats = NDArray[np.float64]

# the smaller side of a matrix up to which all directions are computed, in multiples of those that are wanted
_FEW = 3
# rows that are dense at a time
_BLOCK = 4096


@dataclass(frozen=True, eq=False)
class Spectrum:
    """
    The largest eigenvalues of EᵀE and their directions, E the residuals with zeros where there is no rating.

    values (q,): eigenvalues, falling.
    directions (N, q): eigenvectors, one row an item.
    shares (N,): share of the ratings that each item has.
    """

    values: Floats
    directions: Floats
    shares: Floats

    @classmethod
    def of(cls, residuals: Any, n_basis: int) -> Spectrum:
        """
        Decompose; never dense, but for the Gram matrix of the smaller side where that is small.

        residuals: CSR matrix of users × items.
        n_basis: most directions.
        """
        if min(residuals.shape) <= _FEW * n_basis:
            values, directions = _by_gram(residuals)
        else:
            # a start of our own: the same data, the same bits
            start = np.random.default_rng(0).standard_normal(min(residuals.shape))
            _, sigmas, V = svds(residuals, n_basis, v0=start, return_singular_vectors="vh")
            values, directions = sigmas**2, V.T
        order = np.argsort(-values, kind="stable")[:n_basis]
        order = order[values[order] > 1e-12 * values.max(initial=0.0)]
        counts = np.bincount(residuals.indices, minlength=residuals.shape[1])
        return cls(values[order], np.ascontiguousarray(directions[:, order]), counts / counts.sum())

    def features(self, power: float) -> Floats:
        """
        Return features Z (N, q) of the items, with ZZᵀ = K = V diag(values^power) Vᵀ.

        K is scaled so that the mean of K_ii over ratings is 1.
        """
        if not len(self.values):
            return np.zeros((len(self.directions), 0))
        Z = self.directions * (self.values / self.values[0]) ** (power / 2.0)
        return np.asarray(Z / np.sqrt(self.shares @ np.einsum("ij,ij->i", Z, Z)))


def _by_gram(E: Any) -> tuple[Floats, Floats]:
    """All eigenvalues of EᵀE that are not zero by rounding, and their directions."""
    tall = E if E.shape[0] >= E.shape[1] else E.T.tocsr()
    G = np.zeros((tall.shape[1], tall.shape[1]))
    for first in range(0, tall.shape[0], _BLOCK):
        block = tall[first : first + _BLOCK].toarray()
        G += block.T @ block
    values, V = np.linalg.eigh(G)
    kept = values > 1e-12 * values.max(initial=0.0)
    values, V = values[kept], V[:, kept]
    return values, (V if tall is E else np.asarray(E.T @ V) / np.sqrt(values))
