"""Rules of thumb that users know: a run of irrelevant records, SAFE, and the knee of the gain curve."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from corank_lab.screening.stopping.rule import StoppingRule

RUN = 50
"""Length of a run of irrelevant records after which users commonly stop."""


class ConsecutiveRule(StoppingRule):
    """
    Fifty irrelevant records in a row.

    The most common rule of thumb. It ignores target and confidence.
    """

    name = "consecutive"
    assumes = "No relevant record comes after fifty irrelevant ones in a row."

    def is_reached(self, finds: Sequence[int], read: int, known: int) -> bool:
        """Compare the run since the last find with fifty."""
        return read - (finds[-1] if finds else 0) >= RUN

    @property
    def looks(self) -> range:
        """After every record."""
        return range(1, self.n)


class SafeRule(ConsecutiveRule):
    """
    A tenth of the records and fifty irrelevant ones in a row, the second stage of SAFE (Boetje and Van de Schoot,
    2024).

    Their other conditions (key papers, a second model, a check of the excluded) need more than the finds. It ignores
    target and confidence.
    """

    name = "safe"
    assumes = "No relevant record comes after a tenth of the records and fifty irrelevant ones in a row."

    def is_reached(self, finds: Sequence[int], read: int, known: int) -> bool:
        """Demand a tenth of the records too."""
        return read >= 0.1 * self.n and super().is_reached(finds, read, known)


class KneeRule(StoppingRule):
    """
    The knee method (Cormack and Grossman, 2016).

    With f(i) finds among the first i of s records read, the knee is the i that is farthest above the line from the
    origin to (s, f(s)). Reading stops if the slope before the knee is at least 156 − min(f(s), 150) times that after
    it,

        f(i)/i · (s − i)/(1 + f(s) − f(i)).

    Their minimum of 1,000 records is left out here. It ignores target and confidence.
    """

    name = "knee"
    assumes = "Few relevant records come after the knee of the gain curve."

    def is_reached(self, finds: Sequence[int], read: int, known: int) -> bool:
        """Find the knee, which is at a find, and compare the slopes."""
        if not finds:
            return False
        places, counts = np.array(finds), np.arange(1, len(finds) + 1)
        knee = int(np.argmax(counts - places * len(finds) / read))
        i, f = int(places[knee]), int(counts[knee])
        return f / i * (read - i) / (1 + len(finds) - f) >= 156 - min(len(finds), 150)
