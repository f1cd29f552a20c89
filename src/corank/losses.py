"""Loss: what a margin costs and how hard it is pulled; knows one number, not pairs, data or penalties."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corank.core import sgd_parts
from corank.errors import InputError

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Loss:
    """
    A convex loss ℓ(t, m) of a target t and a margin m.

    ========================  ==============================================  =================
    name                      ℓ(t, m)                                         t(z) of a pair
    ========================  ==============================================  =================
    ``"hinge"``               max(0, 1 − t m)                                 sign z
    ``"squared"``             ½ (t − m)²                                      z
    ``"logistic"``            −t log σ(m) − (1 − t) log(1 − σ(m)), σ logistic (1 + z)/2
    ``"squared_hinge"``       ½ max(0, 1 − t m)²                              sign z
    ========================  ==============================================  =================

    z = y_a − y_b > 0 is the difference of two scores; for a single row the target is its score.

    Attributes
    ----------
    name : str
        As in the table.
    code : int
        What kernels call it.
    curvature : float
        Upper bound of ∂²ℓ/∂m², infinite for the hinge.

    Examples
    --------
    >>> Loss.of("hinge").value(1.0, [0.25, 2.0]).tolist()
    [0.75, 0.0]
    """

    name: str
    code: int
    curvature: float

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
        if self.name == "squared":
            return z
        return 0.5 * (1.0 + z) if self.name == "logistic" else np.ones_like(z)

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
        t, m = np.asarray(target, dtype=np.float64), np.asarray(margin, dtype=np.float64)
        match self.name:
            case "hinge":
                return np.maximum(0.0, 1.0 - t * m)
            case "squared":
                return 0.5 * (t - m) ** 2
            case "logistic":
                # log(1 + eᵐ) − t m, the same without overflow
                return np.asarray(np.logaddexp(0.0, m) - t * m)
            case _:
                return 0.5 * np.maximum(0.0, 1.0 - t * m) ** 2

    def pull(self, target: ArrayLike, margin: ArrayLike) -> Floats:
        """
        How hard margins are pulled up: −∂ℓ/∂m, by the same compiled function that the descent uses.

        Parameters
        ----------
        target, margin : array-like
            Targets and margins.

        Returns
        -------
        array of float64
            The negative slope at each.
        """
        t, m = np.broadcast_arrays(np.asarray(target, dtype=np.float64), np.asarray(margin, dtype=np.float64))
        out = np.empty(t.size)
        sgd_parts.pulls(self.code, t.ravel(), m.ravel(), out)
        return out.reshape(t.shape)

    def require_scores(self, y: Floats, codes: NDArray[np.int64], rows: bool) -> None:
        """
        Raise one sentence where scores are not what this loss can learn from.

        Parameters
        ----------
        y : array of float64, shape (n,)
            Scores of the scored rows.
        codes : array of int64, shape (n,)
            Query of each.
        rows : bool
            Whether scores of single rows are learnt too, not only differences inside queries.
        """
        if rows and self.name in ("hinge", "squared_hinge") and not np.isin(y, (-1.0, 1.0)).all():
            raise InputError(
                f"{self.name} loss on single rows needs scores −1 and 1, but y runs from {y.min():g} to {y.max():g}; "
                'map it, or choose loss="squared".'
            )
        if self.name != "logistic":
            return
        if rows and not ((y >= 0.0) & (y <= 1.0)).all():
            raise InputError(
                f"logistic loss needs scores in [0, 1], but y runs from {y.min():g} to {y.max():g}; "
                'map it there, or choose loss="squared".'
            )
        highest, lowest = np.full(codes.max(initial=0) + 1, -np.inf), np.full(codes.max(initial=0) + 1, np.inf)
        np.maximum.at(highest, codes, y)
        np.minimum.at(lowest, codes, y)
        widest = float((highest - lowest).max())
        if widest > 1.0 + 1e-9:
            raise InputError(
                f"logistic loss needs scores that differ by at most 1 inside a query, but some differ by {widest:g}; "
                "divide y by that."
            )


LOSSES = {
    loss.name: loss
    for loss in (
        Loss("hinge", sgd_parts.HINGE, np.inf),
        Loss("squared", sgd_parts.SQUARED, 1.0),
        Loss("logistic", sgd_parts.LOGISTIC, 0.25),
        Loss("squared_hinge", sgd_parts.SQUARED_HINGE, 1.0),
    )
}
