"""The training loop of stochastic methods: steps, checks, early stopping, Ctrl-C."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from corank.base.solvers.choice import ROUNDING
from corank.progress import progress


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
