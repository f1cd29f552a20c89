"""Sites: what was observed of items, each an interval of one value or of the difference of two."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Sites:
    """
    Intervals of f_left − f_right + noise, each observed `weight` times.

    left, right (m,): items; right is −1 where the value of one item is seen.
    lo, hi (m,): ends of the intervals, less the prior mean of the difference where that is not 0.
    noise (m,): variance of the noise.
    weight (m,): how often each was observed; any number above 0.
    """

    left: Integers
    right: Integers
    lo: Floats
    hi: Floats
    noise: Floats
    weight: Floats

    @classmethod
    def preferences(
        cls, pairs: ArrayLike, sigma: float, weight: ArrayLike | None = None, known: ArrayLike | None = None
    ) -> Sites:
        """
        Preferences, the preferred item first: (−known, ∞) of the difference, noise of variance 2 sigma².

        Equal ones become one site with the sum of their weights, in the order of the items: an answer costs once
        however often it was given, and the order of answers does not matter.

        known (m,): by how much the preferred item is better before anything is learnt; 0 by default.
        """
        given = np.asarray(pairs, dtype=np.int64).reshape(-1, 2)
        weights = np.ones(len(given)) if weight is None else np.asarray(weight, dtype=np.float64)
        gaps = np.zeros(len(given)) if known is None else np.asarray(known, dtype=np.float64)
        keys = np.column_stack([given, gaps])[weights > 0.0]
        distinct, at = np.unique(keys, axis=0, return_inverse=True)
        summed = np.bincount(at.ravel(), weights[weights > 0.0], len(distinct)).astype(np.float64)
        left, right = (np.ascontiguousarray(distinct[:, side]).astype(np.int64) for side in (0, 1))
        m = len(distinct)
        return cls(left, right, 0.0 - distinct[:, 2], np.full(m, np.inf), np.full(m, 2.0 * sigma**2), summed)

    @classmethod
    def grades(cls, items: ArrayLike, lo: ArrayLike, hi: ArrayLike, noise: ArrayLike, weight: ArrayLike = 1.0) -> Sites:
        """Intervals of the values of single items, such as grades."""
        left = np.ascontiguousarray(items, dtype=np.int64)
        parts = (
            np.broadcast_to(np.asarray(part, dtype=np.float64), left.shape).copy() for part in (lo, hi, noise, weight)
        )
        return cls(left, np.full(len(left), -1), *parts)

    def __len__(self) -> int:
        return len(self.left)

    @property
    def intervals(self) -> tuple[Floats, Floats, Floats]:
        """`lo`, `hi` and `noise`, as kernels want them."""
        return self.lo, self.hi, self.noise

    def among_named(self) -> tuple[Integers, Sites]:
        """The items that sites name, ascending, and the sites with places among them for items."""
        items = np.unique(np.concatenate([self.left, self.right[self.right >= 0]]))
        right = np.where(self.right >= 0, np.searchsorted(items, self.right), -1)
        return items, replace(self, left=np.searchsorted(items, self.left), right=right)

    def taken_over(self, old: Sites, values: Floats) -> Floats:
        """Values that belong to other preferences, for those of them that are here; 0 for the rest."""
        keys = np.concatenate([np.column_stack([part.left, part.right, part.lo]) for part in (self, old)])
        distinct, at = np.unique(keys, axis=0, return_inverse=True)
        found = np.zeros(len(distinct))
        found[at.ravel()[len(self) :]] = values
        return found[at.ravel()[: len(self)]]

    def shift(self, nu: Floats, n: int) -> Floats:
        """Bᵀ(weight ν), over n items."""
        push, is_pair = self.weight * nu, self.right >= 0
        of_left = np.bincount(self.left, push, n)
        return np.asarray(of_left - np.bincount(self.right[is_pair], push[is_pair], n))

    def precision(self, tau: Floats, n: int) -> Any:
        """S = Bᵀ diag(weight τ) B, over n items."""
        t, is_pair = self.weight * tau, self.right >= 0
        i, j, both = self.left[is_pair], self.right[is_pair], t[is_pair]
        S = np.zeros((n, n))
        np.add.at(S, (self.left, self.left), t)
        np.add.at(S, (j, j), both)
        np.add.at(S, (i, j), -both)
        np.add.at(S, (j, i), -both)
        return S
