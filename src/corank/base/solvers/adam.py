"""Adam (Kingma and Ba, 2015): moving averages of gradients and of their squares."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_BETA1, _BETA2, _EPSILON = 0.9, 0.999, 1e-8


class Adam(NamedTuple):
    """
    State of Adam after t steps.

    first, second: moving averages of the gradients and of their squares, one array per parameter array.
    """

    n_steps: int  # t
    first: list[Floats]
    second: list[Floats]

    @classmethod
    def start(cls, parameters: Sequence[Floats]) -> Adam:
        """Begin with zero moments."""
        zeros = [np.zeros_like(theta) for theta in parameters]
        return cls(0, zeros, zeros)

    def update(self, gradients: Sequence[Floats]) -> Adam:
        """Return the state after one more gradient."""
        return Adam(
            self.n_steps + 1,
            [_BETA1 * m + (1.0 - _BETA1) * g for m, g in zip(self.first, gradients, strict=True)],
            [_BETA2 * v + (1.0 - _BETA2) * g * g for v, g in zip(self.second, gradients, strict=True)],
        )

    def directions(self, rate: float = 1.0) -> list[Floats]:
        """
        Return rate · m̂ / (√v̂ + ε) for every parameter array, with bias-corrected moments m̂ and v̂.

        Subtract it from the parameters to minimise; add it to maximise. For decoupled weight decay (Loshchilov and
        Hutter, 2019) take rate 1 and step by rate · (direction − decay · θ).
        """
        m_share, v_share = 1.0 - _BETA1**self.n_steps, 1.0 - _BETA2**self.n_steps
        return [
            rate * (m / m_share) / (np.sqrt(v / v_share) + _EPSILON)
            for m, v in zip(self.first, self.second, strict=True)
        ]
