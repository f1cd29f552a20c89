"""Choice of the best of several values; values that differ by rounding errors only are ties."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

ROUNDING = 4096.0 * float(np.finfo(np.float64).eps)
"""Relative difference, about 1e-12, up to which sums of the same terms in another order are equal."""


def choose(values: ArrayLike, *prefer: ArrayLike, size: float = 1.0) -> tuple[int, ...]:
    """Return the index of the largest value, whatever the order of the terms that it was summed from."""
    v = np.asarray(values, dtype=np.float64)
    known = np.isfinite(v)
    largest = float(np.nanmax(v))
    scale = max(float(np.abs(v[known]).max(initial=0.0)), size)
    tied = np.isfinite(v) & (v >= largest - ROUNDING * scale) if np.isfinite(largest) else v == largest
    for order in prefer:
        keys = np.broadcast_to(np.asarray(order, dtype=np.float64), v.shape)
        tied = tied & (keys == keys[tied].max())
    return tuple(int(i) for i in np.unravel_index(int(np.argmax(tied)), v.shape))
