"""Bound: an interval for an expected error with its assumptions; Hoeffding's inequality."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from math import inf, log
from textwrap import wrap

_WIDTH = 88


@dataclass(frozen=True)
class Bound:
    """An interval that contains an expected error with probability 1 − delta over the draw of the data."""

    name: str  # name of the error
    error: float  # observed error
    low: float  # low, high: ends of the interval, within [0, `worst`]
    high: float
    delta: float  # probability that the expected error is outside the interval
    worst: float  # largest possible expected error
    random: float  # error of a random order, or of equal scores
    parts: tuple[tuple[str, float], ...]  # terms of the bound
    assumptions: tuple[str, ...]  # assumptions, one sentence each

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
        """Return a symmetric interval, clipped to [0, worst]."""
        low, high = max(0.0, error - width), min(worst, error + width)
        return cls(name, error, low, high, delta, worst, random, (("width", width), *parts), assumptions)

    @property
    def vacuous(self) -> bool:
        """Whether the interval contains every possible error."""
        return self.low <= 0.0 and self.high >= self.worst

    @property
    def verdict(self) -> str:
        """A remark if the bound is vacuous or does not exclude a random order, else ""."""
        if self.vacuous:
            return "vacuous: the interval contains every possible error"
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


# bisections until doubles no longer change
_HALVINGS = 64


def hoeffding_end(mean: float, n: int, logs: float, towards: float) -> float:
    """
    Return an end of the confidence interval n kl(mean, p) ≤ logs of an expectation (Hoeffding, 1963, Theorem 1).

    kl(a, p) = a ln(a/p) + (1 − a) ln((1 − a)/(1 − p)) ≥ 2(a − p)², which gives the better known width √(logs/(2n)).
    Near 0 and 1 this interval is much narrower. Each side fails with probability at most exp(−logs).
    """
    inside, outside = mean, towards
    for _ in range(_HALVINGS):
        middle = 0.5 * (inside + outside)
        if n * _entropy(mean, middle) <= logs:
            inside = middle
        else:
            outside = middle
    return outside


def _entropy(a: float, p: float) -> float:
    return _share(a, p) + _share(1.0 - a, 1.0 - p)


def _share(a: float, p: float) -> float:
    return 0.0 if a == 0.0 else inf if p == 0.0 else a * log(a / p)
