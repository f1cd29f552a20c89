"""When to stop: patience with the errors on judgements that were set aside."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from corank.estimator.held_out import HeldOut
from corank.pursuit.dictionary import Dictionary


class Watch:
    """
    Judge each model of a path; true when enough steps went by without improvement.

    seen: the dictionary over ``held.rows``.
    held: what was set aside.
    patience: steps without improvement.
    level: what predictions add to the dictionary's terms.
    errors: error with 0, 1, 2, ... terms.
    """

    def __init__(self, seen: Dictionary, held: HeldOut, patience: int, level: float = 0.0) -> None:
        self._seen, self._held, self._patience, self._level = seen, held, patience, level
        self.errors = [held.error(np.full(len(held.rows), level))]

    def __call__(self, indices: NDArray[np.int64], coefs: NDArray[np.float64]) -> bool:
        """Note the error of the model, and say whether to stop."""
        f = np.asarray(self._seen.D[:, indices] @ coefs, dtype=np.float64)
        self.errors.append(self._held.error(f + self._level))
        return len(self.errors) - 1 - self.best_length >= self._patience

    @property
    def best_length(self) -> int:
        """Number of terms of the shortest model among the best."""
        return int(np.argmin(self.errors))
