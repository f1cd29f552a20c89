"""Loss: the loss functions of a margin, with gradient and curvature."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corank.core.pairs import losses as kernels
from corank.errors import InputError

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Loss:
    """
    A convex loss ℓ(t, m) of a target t and a margin m.

    ========================  =================================================  ==============
    name                      ℓ(t, m)                                            t(z) of a pair
    ========================  =================================================  ==============
    ``"hinge"``               max(0, 1 − t m)                                    sign z
    ``"squared"``             ½ (t − m)²                                         z
    ``"logistic"``            −t log σ(m) − (1 − t) log(1 − σ(m)), σ logistic    (1 + z)/2
    ``"squared_hinge"``       ½ max(0, 1 − t m)²                                 sign z
    ========================  =================================================  ==============

    z = y_a − y_b > 0 is the difference of two scores; for a single row the target is its score. The formulas are in
    `corank.core.pairs.losses`, one branch per loss; the other properties of a loss are in its line of `LOSSES`.

    name: Name, as in the table.
    code: Code of the loss in kernels.
    curvature: Upper bound of ∂²ℓ/∂m²; infinite if ℓ is not differentiable.
    scores: Allowed scores: any; −1 and 1 for single rows; or in [0, 1] (for pairs, differences of at most 1).
    exact: Exact solver over all pairs: a linear system; truncated Newton with sums over pairs by sorting or by visiting
        every pair; or None if ℓ is piecewise linear, for which Newton's method does not work.

    >>> Loss.of("hinge").value(1.0, [0.25, 2.0]).tolist()
    [0.75, 0.0]
    """

    name: str
    code: int
    curvature: float
    scores: str
    exact: str | None

    @classmethod
    def of(cls, name: str) -> Loss:
        """Return a loss by its name."""
        if name not in LOSSES:
            raise InputError(f"loss is {name!r}; choose one of {', '.join(LOSSES)}.")
        return LOSSES[name]

    def pair_target(self, gap: ArrayLike) -> Floats:
        """Return the targets of pairs whose scores differ by `gap`."""
        z = np.asarray(gap, dtype=np.float64)
        out = np.empty(z.size)
        kernels.pair_targets(self.code, z.ravel(), out)
        return out.reshape(z.shape)

    def value(self, target: ArrayLike, margin: ArrayLike) -> Floats:
        """Return the loss of margins."""
        return np.asarray(self.costs(target, margin)[0])

    def negative_gradient(self, target: ArrayLike, margin: ArrayLike) -> Floats:
        """Return −∂ℓ/∂m."""
        return np.asarray(self.costs(target, margin)[1])

    def costs(self, target: ArrayLike, margin: ArrayLike) -> Floats:
        """Return value, negative gradient and second derivative, computed by the kernel that estimators use."""
        t, m = np.broadcast_arrays(np.asarray(target, dtype=np.float64), np.asarray(margin, dtype=np.float64))
        out = np.empty((3, t.size))
        kernels.costs(self.code, t.ravel(), m.ravel(), out)
        return out.reshape(3, *t.shape)

    def require_scores(self, y: Floats, codes: NDArray[np.int64], rows: bool) -> None:
        """Raise `InputError` if this loss cannot learn from the scores."""
        if rows and self.scores == "signs" and not np.isin(y, (-1.0, 1.0)).all():
            raise InputError(
                f"{self.name} loss on single rows needs scores −1 and 1, but y runs from {y.min():g} to {y.max():g}; "
                'map them to −1 and 1, or choose loss="squared".'
            )
        if self.scores != "unit":
            return
        if rows and not ((y >= 0.0) & (y <= 1.0)).all():
            raise InputError(
                f"{self.name} loss needs scores in [0, 1], but y runs from {y.min():g} to {y.max():g}; "
                'map them to [0, 1], or choose loss="squared".'
            )
        highest, lowest = np.full(codes.max(initial=0) + 1, -np.inf), np.full(codes.max(initial=0) + 1, np.inf)
        np.maximum.at(highest, codes, y)
        np.minimum.at(lowest, codes, y)
        widest = float((highest - lowest).max())
        if widest > 1.0 + 1e-9:
            raise InputError(
                f"{self.name} loss needs scores that differ by at most 1 within a query, but some differ by "
                f"{widest:g}; divide y by {widest:g}."
            )


LOSSES = {
    loss.name: loss
    for loss in (
        Loss("hinge", kernels.HINGE, np.inf, "signs", None),
        Loss("squared", kernels.SQUARED, 1.0, "any", "system"),
        Loss("logistic", kernels.LOGISTIC, 0.25, "unit", "pairs"),
        Loss("squared_hinge", kernels.SQUARED_HINGE, 1.0, "signs", "sorted"),
    )
}
"""The losses by name, the valid values of parameters called `loss`."""
