"""
Model: weighted kernel least squares on the judged records, refitted after every answer.

With t = ±1, weights w that sum to the number judged and let all relevant records together weigh ten times the others,

    (K_JJ + λ diag(1/w)) a = t,    f = K_{·J} a.

Solved by conjugate gradients from the last coefficients on I + S K_JJ S, S = diag(√(w/λ)): three steps as a rule. All
weights change with every answer, so that a decomposition could not be updated. O(m² + n m) with the whole kernel, else
O(non-zeros) a step: no m × m matrix is ever held.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.judging.screening.views import Views

PENALTY, BALANCE = 4.0, 10.0
TOLERANCE, MOST_STEPS = 1e-3, 100

Floats = NDArray[np.float64]
Product = Callable[[Floats], NDArray[np.floating[Any]]]


class Model:
    """
    What the answers so far say of every record.

    views: the records.
    """

    def __init__(self, views: Views) -> None:
        self.views = views
        n = len(views)
        self._a = np.zeros(n)  # of all records, 0 where not judged
        self._rows: list[int] = []  # whose similarities the corner below holds, in this order
        self._corner = np.empty((n, n), np.float32) if views.whole is not None else None

    def scores(self, judged: Sequence[int], relevant: Sequence[bool]) -> NDArray[np.float32]:
        """
        Refit, and score every record.

        judged: numbers of the judged records; cheap where it begins as in the last call.
        relevant: the answer for each.
        """
        rows, target, views = np.array(judged, dtype=np.intp), np.where(relevant, 1.0, -1.0), self.views
        ridge, start = PENALTY / weights(target), self._a[rows]
        self._a[:] = 0.0
        if views.whole is not None:
            corner = self._corner_of(rows)
            self._a[rows] = solve(lambda x: corner @ x.astype(np.float32), ridge, target, start)
            return np.asarray(views.whole @ self._a.astype(np.float32))
        few = views.take(rows)
        a = solve(lambda x: few.times(few, x) + few.own * x, ridge, target, start)
        self._a[rows] = a
        found = views.times(few, a)
        found[rows] += few.own * a.astype(np.float32)
        return found

    def _corner_of(self, rows: NDArray[np.intp]) -> NDArray[np.float32]:
        assert self._corner is not None
        assert self.views.whole is not None
        kept = 0
        for kept, (old, new) in enumerate(zip(self._rows, rows, strict=False), 1):
            if old != new:
                kept -= 1
                break
        for at in range(kept, len(rows)):
            similar = self.views.whole[rows[at], rows[: at + 1]]
            self._corner[at, : at + 1] = similar
            self._corner[: at + 1, at] = similar
        self._rows = rows.tolist()
        return self._corner[: len(rows), : len(rows)]


def weights(target: Floats) -> Floats:
    """
    Weigh the judged records: relevant ones together ten times the others, which sums to their number.

    target: ±1; where all are alike, all weigh 1.
    """
    relevant = target > 0
    found, others = np.count_nonzero(relevant), np.count_nonzero(~relevant)
    if not (found and others):
        return np.ones(len(target))
    weight = np.where(relevant, 1.0, found / (BALANCE * others))
    return np.asarray(weight * (len(target) / weight.sum()))


def solve(product: Product, ridge: Floats, target: Floats, start: Floats) -> Floats:
    """
    Solve (K + diag(ridge)) a = target by conjugate gradients.

    product: multiplies by K.
    start: where to begin.
    """
    scale = 1.0 / np.sqrt(ridge)

    def apply(x: Floats) -> Floats:
        return x + scale * product(scale * x)

    b = start / scale
    residual = scale * target - apply(b)
    direction, size = residual.copy(), residual @ residual
    enough = TOLERANCE**2 * ((scale * target) @ (scale * target))
    for _ in range(MOST_STEPS):
        if size <= enough:
            break
        image = apply(direction)
        step = size / (direction @ image)
        b += step * direction
        residual -= step * image
        size, last = residual @ residual, size
        direction = residual + (size / last) * direction
    return scale * b
