"""Rows averaged with their nearest rows, by cosine, a block of rows at a time on threads."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.core.threads import spread

BLOCK = 1 << 22
"""Numbers that a thread holds: similarities, and the neighbours of its rows."""

_SAME = 1.0 - 1e-5  # cosine of rows that are one and the same, but for rounding in float32


def unit(rows: NDArray[Any]) -> NDArray[Any]:
    """Scale rows to norm 1, in place; rows of zeros stay."""
    norms = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    norms[norms == 0.0] = 1.0
    rows /= norms[:, None]
    return rows


def averaged(u: NDArray[Any], among: NDArray[Any], k: int) -> NDArray[Any]:
    """
    Average each row with the mean of the k rows nearest to it.

    A row is no neighbour of its own: of the rows that look exactly like it, one is passed over.

    u: rows of norm 1; those of zeros have no neighbours, and stay.
    among: rows of norm 1, of which neighbours are taken.
    k: all but one where there are fewer.
    Returns: rows of norm 1.
    """
    k = min(k, len(among) - 1)
    if k < 1:
        return u
    z = np.empty_like(u)

    def work(first: int, last: int) -> None:
        here = u[first:last]
        z[first:last] = here + among[_nearest(here, among, k)].mean(axis=1)

    step = max(1, BLOCK // max(len(among), k * u.shape[1]))
    spread(work, [(first, min(first + step, len(u))) for first in range(0, len(u), step)])
    z[~u.any(axis=1)] = 0.0
    return unit(z)


def _nearest(u: NDArray[Any], among: NDArray[Any], k: int) -> NDArray[np.int64]:
    """Numbers of the k rows nearest to each row, one that is the row itself passed over."""
    cosines = u @ among.T
    near = np.argpartition(cosines, -(k + 1), axis=1)[:, -(k + 1) :]
    values = np.take_along_axis(cosines, near, axis=1)
    best = values.argmax(axis=1)
    is_there = np.take_along_axis(values, best[:, None], axis=1)[:, 0] >= _SAME
    passed_over = np.where(is_there, best, values.argmin(axis=1))
    kept = np.arange(k + 1) != passed_over[:, None]
    return np.asarray(near[kept].reshape(len(u), k))
