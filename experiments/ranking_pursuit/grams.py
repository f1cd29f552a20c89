"""Gram matrices of a drawn catalogue for one width of the Gaussian kernel."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from corank.core.threads import n_threads, parallel_map
from experiments.ranking_pursuit.users import Floats, UsersRepeat

# smaller numbers have subnormal squares, which make arithmetic a hundred times slower
_MIN = float(np.sqrt(np.finfo(np.float64).tiny))


@dataclass(frozen=True, eq=False)
class Grams:
    """
    Similarities exp(−d²/(2 width²)), computed on access.

    width: of the Gaussian.
    """

    drawn: UsersRepeat
    width: float

    @cached_property
    def whole(self) -> Floats:
        """By all reference users, shape (N, N)."""
        return self._of(self.drawn.distances)

    @cached_property
    def halves(self) -> tuple[Floats, Floats]:
        """By each half of the reference users."""
        first, second = self.drawn.halves
        return self._of(first), self._of(second)

    @property
    def is_blind(self) -> bool:
        """Whether the similarity of any two distinct items is 0, so that predictions are constant."""
        return bool(np.exp(self.drawn.nearest / (-2.0 * self.width**2)) < _MIN)

    def _of(self, distances: Floats) -> Floats:
        K = np.empty_like(distances)

        def fill(first: int, last: int) -> None:
            part = K[first:last]
            np.exp(np.multiply(distances[first:last], -0.5 / self.width**2, out=part), out=part)
            part[part < _MIN] = 0.0

        parallel_map(fill, list(pairwise(np.linspace(0, len(K), 4 * n_threads() + 1).astype(int).tolist())))
        return K
