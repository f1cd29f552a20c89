"""A Gaussian kernel that sees every column in a width of its own."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from corank.errors import InputError
from corank.kernels.kernel import Gram, Kernel, require_positive
from corank.kernels.radial import GaussianKernel


@dataclass(frozen=True)
class ARDKernel(Kernel):
    """
    k(x, z) = exp(−Σ_j gamma_j (x_j − z_j)²): automatic relevance determination, a width for each column.

    `PreferenceGP` learns the widths; elsewhere "median" gives all columns the one of `GaussianKernel`.

    Parameters
    ----------
    gammas : tuple of float or "median"
        One positive number a column; "median" is resolved by `fit`.

    Examples
    --------
    >>> ARDKernel((0.5, 0.125))([[0.0, 0.0]], [[1.0, 2.0]]).round(4).tolist()
    [[0.3679]]
    """

    gammas: tuple[float, ...] | str = "median"

    takes_sparse: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.gammas != "median":
            if isinstance(self.gammas, str) or not len(self.gammas):
                raise InputError(f"gammas is {self.gammas!r}; pass one positive number a column, or 'median'.")
            for gamma in self.gammas:
                require_positive(gamma, "a gamma")
            object.__setattr__(self, "gammas", tuple(map(float, self.gammas)))

    def fit(self, X: Any, rng: np.random.Generator, weights: NDArray[np.float64] | None = None) -> Kernel:
        """Replace "median" by the gamma of `GaussianKernel`, for every column."""
        if self.gammas != "median":
            return self
        common = GaussianKernel().fit(X, rng, weights)
        assert isinstance(common, GaussianKernel)
        return replace(self, gammas=(float(common.gamma),) * X.shape[1])

    def diag(self, X: Any) -> Gram:
        """Return 1 for each row."""
        return GaussianKernel(1.0).diag(X)

    def _gram(self, X: Any, Z: Any) -> Gram:
        if isinstance(self.gammas, str):
            raise InputError('gammas is "median", which depends on data; call kernel.fit(X, rng) first.')
        if len(self.gammas) != X.shape[1]:
            raise InputError(f"gammas has {len(self.gammas)} numbers for {X.shape[1]} columns; pass one a column.")
        size = np.sqrt(np.array(self.gammas))
        left = X * size
        return GaussianKernel(1.0)._gram(left, left if Z is X else Z * size)
