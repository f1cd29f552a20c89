"""Question: two things side by side, of which somebody says which is better."""

from __future__ import annotations

from typing import NamedTuple


class Question(NamedTuple):
    """
    Two things, by number.

    Attributes
    ----------
    left, right : int
        What stands on each side.
    by : {"start", "model", "repeat"}
        How the two were chosen: at random before the first answer, as worth asking, or as asked before.
    """

    left: int
    right: int
    by: str = "model"
