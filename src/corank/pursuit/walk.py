"""The steps of a pursuit in several views, one after the other."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from corank.pursuit.coupled import Choice, Coupled
from corank.pursuit.inner import Floats

RESIDUALS = ("shared", "separate")


def walk(coupled: Coupled, v: Floats, how: str, residual: str) -> Iterator[Choice]:
    """
    Yield one choice after another, each made after the earlier ones were taken.

    how {"joint", "shared"}: see `Coupled.search`.
    residual {"shared", "separate"}: whether all views approximate what their mean leaves over and steps must agree, or
        each what it leaves over itself and whole views must agree.
    Yields: the next step.
    """
    M = len(coupled)
    left = [v] * M
    so_far = [np.zeros(coupled.agreement.n)] * M if residual == "separate" else None
    while True:
        choice = coupled.search(coupled.correlate(left, so_far), how)
        yield choice
        taken = list(zip(choice.columns, choice.coefs, strict=True))
        moves = [coupled.inner.apply(a * one.column(j)) for one, (j, a) in zip(coupled.scored, taken, strict=True)]
        if so_far is None:
            moves = [np.mean(moves, axis=0)] * M
        else:
            so_far = [f + a * one.column(j) for f, one, (j, a) in zip(so_far, coupled.unscored, taken, strict=True)]
        left = [one - move for one, move in zip(left, moves, strict=True)]
