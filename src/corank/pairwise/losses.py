"""Loss: what a margin costs and how hard it is pulled; knows one number, not pairs, data or penalties."""

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
    `corank.core.pairs.losses`, one branch a loss; what else has to be known of a loss is its line of `LOSSES`.

    Attributes
    ----------
    name : str
        As in the table.
    code : int
        Its branch in kernels.
    curvature : float
        Upper bound of ∂²ℓ/∂m², infinite where ℓ has corners.
    scores : {"any", "signs", "unit"}
        What it learns from: any scores; single rows of scores −1 and 1; scores in [0, 1] (in pairs, differences of
        at most 1).
    exact : {"system", "sorted", "pairs", None}
        How the optimum over all pairs is found: one linear system; truncated Newton that counts pairs by sorting, or
        that visits every pair; not at all, where ℓ pulls along a straight line and Newton's method finds no bend.

    Examples
    --------
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
        """
        Look a loss up by its name.

        Parameters
        ----------
        name : str
            One of `LOSSES`.

        Returns
        -------
        Loss
            The loss.
        """
        if name not in LOSSES:
            raise InputError(f"loss is {name!r}; choose one of {', '.join(LOSSES)}.")
        return LOSSES[name]

    def pair_target(self, gap: ArrayLike) -> Floats:
        """
        Target of a pair whose scores differ by `gap`.

        Parameters
        ----------
        gap : array-like
            y_a − y_b, positive.

        Returns
        -------
        array of float64
            t(gap).
        """
        z = np.asarray(gap, dtype=np.float64)
        out = np.empty(z.size)
        kernels.pair_targets(self.code, z.ravel(), out)
        return out.reshape(z.shape)

    def value(self, target: ArrayLike, margin: ArrayLike) -> Floats:
        """
        What margins cost.

        Parameters
        ----------
        target, margin : array-like
            Targets and margins.

        Returns
        -------
        array of float64
            ℓ of each.
        """
        return np.asarray(self.costs(target, margin)[0])

    def negative_gradient(self, target: ArrayLike, margin: ArrayLike) -> Floats:
        """
        How hard margins are pulled up: −∂ℓ/∂m.

        Parameters
        ----------
        target, margin : array-like
            Targets and margins.

        Returns
        -------
        array of float64
            The negative slope at each.
        """
        return np.asarray(self.costs(target, margin)[1])

    def costs(self, target: ArrayLike, margin: ArrayLike) -> Floats:
        """
        Value, pull and second derivative, by the same compiled function that the learners use.

        Parameters
        ----------
        target, margin : array-like
            Targets and margins.

        Returns
        -------
        array of float64, shape (3, ...)
            ℓ, −∂ℓ/∂m and ∂²ℓ/∂m² of each.
        """
        t, m = np.broadcast_arrays(np.asarray(target, dtype=np.float64), np.asarray(margin, dtype=np.float64))
        out = np.empty((3, t.size))
        kernels.costs(self.code, t.ravel(), m.ravel(), out)
        return out.reshape(3, *t.shape)

    def require_scores(self, y: Floats, codes: NDArray[np.int64], rows: bool) -> None:
        """
        Raise `InputError` if scores are not what this loss can learn from.

        Parameters
        ----------
        y : array of float64, shape (n,)
            Scores of the scored rows.
        codes : array of int64, shape (n,)
            Query of each.
        rows : bool
            Whether scores of single rows are learnt too, not only differences inside queries.
        """
        if rows and self.scores == "signs" and not np.isin(y, (-1.0, 1.0)).all():
            raise InputError(
                f"{self.name} loss on single rows needs scores −1 and 1, but y runs from {y.min():g} to {y.max():g}; "
                'map it, or choose loss="squared".'
            )
        if self.scores != "unit":
            return
        if rows and not ((y >= 0.0) & (y <= 1.0)).all():
            raise InputError(
                f"{self.name} loss needs scores in [0, 1], but y runs from {y.min():g} to {y.max():g}; "
                'map it there, or choose loss="squared".'
            )
        highest, lowest = np.full(codes.max(initial=0) + 1, -np.inf), np.full(codes.max(initial=0) + 1, np.inf)
        np.maximum.at(highest, codes, y)
        np.minimum.at(lowest, codes, y)
        widest = float((highest - lowest).max())
        if widest > 1.0 + 1e-9:
            raise InputError(
                f"{self.name} loss needs scores that differ by at most 1 inside a query, but some differ by "
                f"{widest:g}; divide y by that."
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
"""Every loss by its name: what parameters called `loss` may be."""
