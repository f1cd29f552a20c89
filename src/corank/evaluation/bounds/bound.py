"""Bound: an error that was observed, where the expected one lies, and what has to be true for that."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from textwrap import wrap

_WIDTH = 88


@dataclass(frozen=True)
class Bound:
    """
    Where an expected error lies, with probability 1 − delta over the draw of the data.

    Attributes
    ----------
    name : str
        Which error.
    error : float
        The error that was observed.
    low, high : float
        Ends of the interval, inside [0, `worst`].
    delta : float
        Probability of data for which the expected error is outside.
    worst : float
        The largest value the expected error can have.
    random : float
        The error of a random order, or of equal scores.
    parts : tuple of (str, float)
        What the interval was made of.
    assumptions : tuple of str
        What has to be true, a sentence each.

    Examples
    --------
    >>> Bound("disagreement", 0.2, 0.1, 0.3, 0.05, 1.0, 0.5, (("width", 0.1),), ("Rows are drawn independently.",))
    disagreement 0.2000: between 0.1000 and 0.3000 with probability 0.95
      width 0.1000; a random order has 0.5000, the worst one 1.0000
      assumed: Rows are drawn independently.
    """

    name: str
    error: float
    low: float
    high: float
    delta: float
    worst: float
    random: float
    parts: tuple[tuple[str, float], ...]
    assumptions: tuple[str, ...]

    @classmethod
    def around(
        cls,
        name: str,
        error: float,
        width: float,
        *,
        delta: float,
        worst: float,
        random: float,
        parts: tuple[tuple[str, float], ...],
        assumptions: tuple[str, ...],
    ) -> Bound:
        """
        Make an interval of equal width to both sides, cut where the error cannot lie.

        Parameters
        ----------
        name : str
            Which error.
        error, width : float
            Its middle, and how far it goes to either side; the width becomes the first part.
        delta, worst, random, parts, assumptions
            See the attributes.

        Returns
        -------
        Bound
            The interval.
        """
        low, high = max(0.0, error - width), min(worst, error + width)
        return cls(name, error, low, high, delta, worst, random, (("width", width), *parts), assumptions)

    @property
    def vacuous(self) -> bool:
        """Whether nothing is said: every possible error lies inside."""
        return self.low <= 0.0 and self.high >= self.worst

    @property
    def verdict(self) -> str:
        """Whether more is said than about any order, in a few words; empty where it is."""
        if self.vacuous:
            return "vacuous: every possible error lies inside"
        return "a random order is not excluded" if self.low <= self.random <= self.high else ""

    def __repr__(self) -> str:
        compared = f"a random order has {self.random:.4f}, the worst one {self.worst:.4f}"
        blocks = [
            self._claim(),
            *([f"  {self.verdict}"] if self.verdict else []),
            *_indented("", f"{', '.join(self._listed())}; {compared}"),
            *(line for text in self.assumptions for line in _indented("assumed: ", text)),
        ]
        return "\n".join(blocks)

    def _repr_html_(self) -> str:
        parts = "".join(f"<tr><td>{escape(name)}</td><td>{_number(value)}</td></tr>" for name, value in self.parts)
        assumed = "".join(f"<li>{escape(text)}</li>" for text in self.assumptions)
        verdict = f"<p><strong>{escape(self.verdict)}</strong></p>" if self.verdict else ""
        return f"<div><p>{escape(self._claim())}</p>{verdict}<table>{parts}</table><ul>{assumed}</ul></div>"

    def _claim(self) -> str:
        return (
            f"{self.name} {self.error:.4f}: between {self.low:.4f} and {self.high:.4f} "
            f"with probability {1.0 - self.delta:g}"
        )

    def _listed(self) -> list[str]:
        return [f"{name} {_number(value)}" for name, value in self.parts]


def _number(value: float) -> str:
    return f"{value:d}" if isinstance(value, int) else f"{value:.4f}"


def _indented(first: str, text: str) -> list[str]:
    return wrap(first + text, _WIDTH, initial_indent="  ", subsequent_indent="  " + " " * len(first))
