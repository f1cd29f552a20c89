"""A field of forces over the scores of one query, probed: its Jacobian, its jumps and kinks, its work along a path."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corank.data.problem.inputs import as_scores
from corank.errors import InputError
from corank.lambdarank.lambdas import Lambda

Floats = NDArray[np.float64]

# steps of finite differences, and how far from a tie the two sides of it are looked at
_STEP, _SIDE = 1e-5, 1e-7
# a Jacobian that changes by more than this share when its step is halved was taken across a kink
_SMOOTH = 1e-3
# draws after which a field is taken to be smooth nowhere
_DRAWS = 100
# intervals of a line, the part of it that is searched further, and the width at which searching ends
_INTERVALS, _SUSPECTS, _NARROW = 200, 6, 1e-7

# Lobatto's rule of eight points: the ends, and where the slope of the seventh Legendre polynomial is zero
_LEGENDRE = np.polynomial.Legendre.basis(7)
_NODES = np.r_[-1.0, np.sort(_LEGENDRE.deriv().roots().real), 1.0]
_WEIGHTS = 2.0 / (8 * 7 * _LEGENDRE(_NODES) ** 2)


@dataclass(frozen=True, eq=False)
class Break:
    """
    A place where forces jump or have a kink.

    scores: where.
    jump: change of the forces across it; zeros at a kink.
    direction: unit vector along which it was crossed.
    pair: the two rows that feel most of it.
    """

    scores: Floats
    jump: Floats
    direction: Floats
    pair: tuple[int, int]

    @property
    def gap(self) -> float:
        """Difference of the scores of the pair."""
        return float(self.scores[self.pair[0]] - self.scores[self.pair[1]])


@dataclass(frozen=True, eq=False)
class Field:
    """
    Forces of one query as a function of its scores.

    forces: takes scores and grades.
    labels: grades.
    given_jacobian: takes scores and grades and returns ∂λ_i/∂s_j, where the user knows it.
    """

    forces: Lambda
    labels: Floats
    given_jacobian: Callable[[Floats, Floats], Any] | None = None

    @classmethod
    def of(cls, forces: Any, labels: ArrayLike | None, n: int, jacobian: Any = None) -> Field:
        """
        Read what a user asks about.

        labels: grades; by default `n` rows of grades 0, 1, 2, 0, ...
        """
        y = np.arange(n, dtype=np.float64) % 3 if labels is None else as_scores(labels, np.size(labels))
        if len(y) < 2 or np.isnan(y).any():
            raise InputError(f"labels has {len(y)} grades or holds NaN; pass two or more grades of one query.")
        return cls(Lambda.of(forces), y, jacobian)

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.labels)

    def __call__(self, scores: Floats) -> Floats:
        """Return the forces at some scores."""
        return self.forces(scores, self.labels)

    def jacobian(self, scores: Floats, step: float = _STEP) -> Floats:
        """Return J_ij = ∂λ_i/∂s_j: as given, or by central differences."""
        if self.given_jacobian is not None:
            return np.asarray(self.given_jacobian(scores, self.labels), dtype=np.float64)
        columns = [(self(scores + e) - self(scores - e)) / (2.0 * step) for e in step * np.eye(self.n)]
        return np.array(columns).T

    def smooth_points(
        self, n_points: int, rng: np.random.Generator, step: float = _STEP
    ) -> Iterator[tuple[Floats, Floats]]:
        """Yield random scores, none of them within `step` of a kink, and the Jacobian there."""
        for _ in range(n_points):
            for _ in range(_DRAWS):
                s = rng.normal(size=self.n)
                one, other = self.jacobian(s, step), self.jacobian(s, 0.5 * step)
                if np.abs(one - other).max() <= _SMOOTH * (1.0 + np.abs(one).max()):
                    yield s, one
                    break
            else:
                raise InputError(
                    f"'{self.forces}' has a kink wherever it was looked at; is it a function of the scores?"
                )

    def jumps_at_ties(self, n_points: int, rng: np.random.Generator) -> Iterator[Break]:
        """Yield what happens where two rows change places: jumps, which may be zero."""
        for a, b in combinations(range(self.n), 2):
            across = np.zeros(self.n)
            across[[a, b]] = np.array([1.0, -1.0]) / np.sqrt(2.0)
            for _ in range(n_points):
                s = rng.normal(size=self.n)
                s[[a, b]] = s[[a, b]].mean()
                yield Break(s, self(s + _SIDE * across) - self(s - _SIDE * across), across, (a, b))

    def breaks_on_a_line(self, rng: np.random.Generator, size: float) -> Iterator[Break]:
        """
        Yield jumps and kinks on a random line: where λ at the middle of an interval is not between its ends.

        size: of the forces; changes below a thousandth of it are smooth.
        """
        start, direction = rng.normal(size=self.n), rng.normal(size=self.n)
        direction /= np.linalg.norm(direction)

        def at(t: float) -> Floats:
            return self(start + t * direction)

        ends = np.linspace(-3.0, 3.0, 2 * _INTERVALS + 1)
        found = np.array([at(t) for t in ends])
        bends = np.abs(found[:-2:2] - 2.0 * found[1:-1:2] + found[2::2]).max(axis=1)
        for interval in np.argsort(-bends)[:_SUSPECTS]:
            low, high = _narrow(at, ends[2 * interval], ends[2 * interval + 2])
            middle, wide = 0.5 * (low + high), 1e3 * _NARROW
            jump = at(high) - at(low)
            before = (at(middle - wide) - at(middle - 2.0 * wide)) / wide
            behind = (at(middle + 2.0 * wide) - at(middle + wide)) / wide
            change = jump if np.abs(jump).max() > 1e-3 * size else behind - before
            if np.abs(change).max() > 1e-2 * size or change is jump:
                is_jump = 1.0 if change is jump else 0.0
                scores = start + middle * direction
                yield Break(scores, is_jump * jump, direction, _culprits(scores, change))

    def work(self, start: Floats, end: Floats) -> float:
        """Return ∫ λ·ds on the straight way from `start` to `end`."""
        way = end - start
        first, second = np.triu_indices(self.n, 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            ties = -(start[first] - start[second]) / (way[first] - way[second])
        stops = np.unique(np.r_[np.linspace(0.0, 1.0, 5), ties[(ties > 0.0) & (ties < 1.0)]])

        def power(t: float) -> float:
            return float(self(start + t * way) @ way)

        total = 0.0
        for low, high in pairwise(stops):
            # at a tie itself forces may be those of neither side
            edge = 1e-9 * (high - low)
            first, last = low + edge, high - edge
            total += _halved(power, first, last, _lobatto(power, first, last)) + edge * (power(first) + power(last))
        return total


def _lobatto(f: Callable[[float], float], low: float, high: float) -> float:
    """Integrate by Lobatto's rule, which looks at the ends too: a kink beside them would pass unseen."""
    half = 0.5 * (high - low)
    return half * float(_WEIGHTS @ [f(low + half * (1.0 + x)) for x in _NODES])


def _halved(f: Callable[[float], float], low: float, high: float, whole: float) -> float:
    """Integrate by halves until they add up to the whole; around a kink, to intervals that hold next to nothing."""
    middle = 0.5 * (low + high)
    left, right = _lobatto(f, low, middle), _lobatto(f, middle, high)
    if abs(left + right - whole) <= 1e-14 * (1.0 + abs(whole)) or high - low < 1e-8:
        return left + right
    return _halved(f, low, middle, left) + _halved(f, middle, high, right)


def _culprits(scores: Floats, change: Floats) -> tuple[int, int]:
    """The two rows that are tied or, where none are, those whose forces change most."""
    order = np.argsort(scores)
    gaps = np.diff(scores[order])
    nearest = int(np.argmin(gaps))
    if gaps[nearest] < 1e-5:
        return int(order[nearest + 1]), int(order[nearest])
    first, second = np.argsort(-np.abs(change))[:2]
    return int(first), int(second)


def _narrow(at: Callable[[float], Floats], low: float, high: float) -> tuple[float, float]:
    """Halve an interval, keeping the half in which λ bends most."""
    f = [at(t) for t in np.linspace(low, high, 5)]
    while high - low > _NARROW:
        quarter = 0.25 * (high - low)
        k = int(np.argmax([np.abs(f[k] - 2.0 * f[k + 1] + f[k + 2]).max() for k in (0, 1, 2)]))
        low, high = low + k * quarter, low + (k + 2) * quarter
        f = [f[k], at(low + 0.5 * quarter), f[k + 1], at(low + 1.5 * quarter), f[k + 2]]
    return low, high
