"""Choice of the best of several values; values that differ by rounding errors only are ties."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corank.progress import progress

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


class EarlyStopping:
    """
    Patience with the error on held-out data.

    patience: number of checks without a lower error after which to stop; None never stops.
    errors: error of every check.
    best: index of the first of the lowest errors; errors that differ by rounding errors are equal.
    """

    def __init__(self, patience: int | None) -> None:
        self.patience = patience
        self.errors: list[float] = []
        self.best = -1

    @property
    def best_error(self) -> float:
        """The lowest error, infinite before the first check."""
        return self.errors[self.best] if self.best >= 0 else float("inf")

    @property
    def is_over(self) -> bool:
        """Whether the last `patience` checks brought no lower error."""
        return self.patience is not None and len(self.errors) - 1 - self.best >= self.patience

    def record(self, error: float) -> bool:
        """Append an error, and return whether it is lower than all earlier ones by more than rounding errors."""
        is_lower = error + ROUNDING * abs(error) < self.best_error
        self.errors.append(error)
        if is_lower:
            self.best = len(self.errors) - 1
        return is_lower


def run_training(
    step: Callable[[int], None], ends: Iterable[int], check: Callable[[], bool], piece: int = 1, verbose: bool = False
) -> bool:
    """Alternate steps and checks until the last step, a positive check, or Ctrl-C."""
    ends = [int(end) for end in ends]
    done = 0
    try:
        with progress(ends[-1] if ends else 0, "steps", verbose) as advance:
            for end in ends:
                while done < end:
                    n = min(end - done, piece)
                    step(n)
                    done += n
                    advance(n)
                if check():
                    break
    except KeyboardInterrupt:
        return True
    return False


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
