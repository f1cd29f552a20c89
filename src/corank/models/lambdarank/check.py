"""
check_lambda checks whether LambdaRank gradients derive from a convex cost function.

By the lemma of Poincaré a cost exists if and only if J_ij = ∂λ_i/∂s_j is symmetric everywhere and λ jumps only across a
surface, not along it. The cost is convex if −J is positive semidefinite and no λ rises in a jump. (The paper, which
uses the gradient of the cost itself, has J there.) The result is numerical evidence at the scores that were tried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corank.data.inputs import as_scores
from corank.errors import InputError
from corank.models.lambdarank.lambdas import Lambda
from corank.parameters import check_values, integer, rng_of, seed

Floats = NDArray[np.float64]

# steps of finite differences, and the distance from a tie at which its two sides are evaluated
_STEP, _SIDE = 1e-5, 1e-7
# a Jacobian that changes by more than this share when its step is halved was taken across a kink
_SMOOTH = 1e-3
# draws after which a field is assumed to be smooth nowhere
_DRAWS = 100
# intervals of a line, the number of them that are searched further, and the width at which the search ends
_INTERVALS, _SUSPECTS, _NARROW = 200, 6, 1e-7


@dataclass(frozen=True, eq=False)
class Discontinuity:
    """A point where λ jumps or has a kink."""

    scores: Floats  # the point
    jump: Floats  # change of λ across it; zeros at a kink
    direction: Floats  # unit vector along which it was crossed
    pair: tuple[int, int]  # the two rows that are affected most

    @property
    def gap(self) -> float:
        """Difference of the scores of the pair."""
        return float(self.scores[self.pair[0]] - self.scores[self.pair[1]])


@dataclass(frozen=True, eq=False)
class LambdaField:
    """
    λ of one query as a function of its scores.

    own_jacobian: takes scores and grades and returns ∂λ_i/∂s_j, if the user provides it.
    """

    lambdas: Lambda  # takes scores and grades
    labels: Floats  # grades
    own_jacobian: Callable[[Floats, Floats], Any] | None = None

    @classmethod
    def of(cls, lambdas: Any, labels: ArrayLike | None, n: int, jacobian: Any = None) -> LambdaField:
        """Parse the arguments of `check_lambda`."""
        y = np.arange(n, dtype=np.float64) % 3 if labels is None else as_scores(labels, np.size(labels))
        if len(y) < 2 or np.isnan(y).any():
            raise InputError(f"labels has {len(y)} grades or contains NaN; pass two or more grades of one query.")
        return cls(Lambda.of(lambdas), y, jacobian)

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.labels)

    def __call__(self, scores: Floats) -> Floats:
        """Return λ at some scores."""
        return self.lambdas(scores, self.labels)

    def jacobian(self, scores: Floats, step: float = _STEP) -> Floats:
        """Return J_ij = ∂λ_i/∂s_j: by the user's function, or by central differences."""
        if self.own_jacobian is not None:
            return np.asarray(self.own_jacobian(scores, self.labels), dtype=np.float64)
        columns = [(self(scores + e) - self(scores - e)) / (2.0 * step) for e in step * np.eye(self.n)]
        return np.array(columns).T

    def smooth_points(self, n_points: int, rng: np.random.Generator) -> Iterator[tuple[Floats, Floats]]:
        """Yield random scores, none of them within a step of a kink, and the Jacobian there."""
        for _ in range(n_points):
            for _ in range(_DRAWS):
                s = rng.normal(size=self.n)
                item, other = self.jacobian(s), self.jacobian(s, 0.5 * _STEP)
                if np.abs(item - other).max() <= _SMOOTH * (1.0 + np.abs(item).max()):
                    yield s, item
                    break
            else:
                raise InputError(
                    f"'{self.lambdas}' has a kink at every point tried; check that it is a function of the scores."
                )

    def jumps_at_ties(self, n_points: int, rng: np.random.Generator) -> Iterator[Discontinuity]:
        """Yield the jumps, which may be zero, at scores where two rows are tied."""
        for a, b in combinations(range(self.n), 2):
            across = np.zeros(self.n)
            across[[a, b]] = np.array([1.0, -1.0]) / np.sqrt(2.0)
            for _ in range(n_points):
                s = rng.normal(size=self.n)
                s[[a, b]] = s[[a, b]].mean()
                yield Discontinuity(s, self(s + _SIDE * across) - self(s - _SIDE * across), across, (a, b))

    def discontinuities_on_a_line(self, rng: np.random.Generator, size: float) -> Iterator[Discontinuity]:
        """Yield jumps and kinks on a random line: intervals in which λ is far from linear."""
        start, direction = rng.normal(size=self.n), rng.normal(size=self.n)
        direction /= np.linalg.norm(direction)

        def value_at(t: float) -> Floats:
            return self(start + t * direction)

        ends = np.linspace(-3.0, 3.0, 2 * _INTERVALS + 1)
        values = np.array([value_at(t) for t in ends])
        second_differences = np.abs(values[:-2:2] - 2.0 * values[1:-1:2] + values[2::2]).max(axis=1)
        for interval in np.argsort(-second_differences)[:_SUSPECTS]:
            low, high = _narrow(value_at, ends[2 * interval], ends[2 * interval + 2])
            middle, wide = 0.5 * (low + high), 1e3 * _NARROW
            jump = value_at(high) - value_at(low)
            before = (value_at(middle - wide) - value_at(middle - 2.0 * wide)) / wide
            after = (value_at(middle + 2.0 * wide) - value_at(middle + wide)) / wide
            change = jump if np.abs(jump).max() > 1e-3 * size else after - before
            if np.abs(change).max() > 1e-2 * size or change is jump:
                is_jump = 1.0 if change is jump else 0.0
                scores = start + middle * direction
                yield Discontinuity(scores, is_jump * jump, direction, _affected_pair(scores, change))

    def work(self, start: Floats, end: Floats) -> float:
        """Return ∫ λ·ds on the straight path from `start` to `end`."""
        from scipy.integrate import quad  # takes long to import

        path = end - start
        first, second = np.triu_indices(self.n, 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            ties = -(start[first] - start[second]) / (path[first] - path[second])
        stops = np.unique(np.r_[np.linspace(0.0, 1.0, 5), ties[(ties > 0.0) & (ties < 1.0)]])

        def power(t: float) -> float:
            return float(self(start + t * path) @ path)

        total = 0.0
        for low, high in pairwise(stops):
            # exactly at a tie, λ may differ from both sides
            edge = 1e-9 * (high - low)
            first, last = low + edge, high - edge
            inside = quad(power, first, last, epsabs=1e-12, limit=200, full_output=1)[0]  # without warnings of kinks
            total += inside + edge * (power(first) + power(last))
        return total


def _affected_pair(scores: Floats, change: Floats) -> tuple[int, int]:
    """The two rows that are tied or, without ties, those whose λ change most."""
    order = np.argsort(scores)
    gaps = np.diff(scores[order])
    nearest = int(np.argmin(gaps))
    if gaps[nearest] < 1e-5:
        return int(order[nearest + 1]), int(order[nearest])
    first, second = np.argsort(-np.abs(change))[:2]
    return int(first), int(second)


def _narrow(value_at: Callable[[float], Floats], low: float, high: float) -> tuple[float, float]:
    """Halve an interval, keeping the half with the largest second difference of λ."""
    f = [value_at(t) for t in np.linspace(low, high, 5)]
    while high - low > _NARROW:
        quarter = 0.25 * (high - low)
        k = int(np.argmax([np.abs(f[k] - 2.0 * f[k + 1] + f[k + 2]).max() for k in (0, 1, 2)]))
        low, high = low + k * quarter, low + (k + 2) * quarter
        f = [f[k], value_at(low + 0.5 * quarter), f[k + 1], value_at(low + 1.5 * quarter), f[k + 2]]
    return low, high


# treated as zero, relative to the size of λ
_ZERO = 1e-5
# lines that are searched for jumps and kinks, closed paths that are integrated, and points at each tie
_LINES, _LOOPS, _AT_TIES = 12, 5, 3


@dataclass(frozen=True, eq=False)
class LambdaCheck:
    """
    Result of `check_lambda`; print it for a report.

    circulation: Largest |∮ λ·ds| around a triangle, relative to its length times the size of λ: zero for a conservative
        field.
    spring: The least α that makes −J of ``λ + α*spring`` positive semidefinite at the scores tried; infinite if λ rises
        in a jump.
    """

    name: str  # the λ
    labels: Floats  # grades of the query
    n_points: int  # number of scores at which the Jacobian was computed
    conservative: bool  # whether a cost exists, as far as the evidence goes
    convex: bool  # whether the cost is convex, as far as the evidence goes
    asymmetry: float  # largest |J_ij − J_ji|, relative to the largest |J_ij|
    asymmetric_pair: tuple[int, int]  # asymmetric_pair, asymmetric_at: rows and scores of this difference
    asymmetric_at: Floats
    sideways: float  # largest jump along a tie, not across it, relative to the size of λ
    sideways_pair: tuple[int, int]  # sideways_pair, sideways_at: tied rows and scores of this jump
    sideways_at: Floats
    circulation: float
    eigenvalue: float  # largest eigenvalue of (J + Jᵀ)/2, positive if no cost is convex
    eigenvalue_at: Floats  # scores of this eigenvalue
    rising: float  # largest rise of λ in the direction in which a jump is crossed, relative to the size of λ
    jumps: tuple[str, ...]  # jumps, kinks: where λ jumps or has a kink, in words
    kinks: tuple[str, ...]
    total: float  # largest |Σ_i λ_i|, relative to the largest λ: zero if the mean score of a query is not moved
    shift: float  # largest change of λ when a constant is added to all scores, relative to the largest λ
    scaling: str  # the effect of doubling all scores
    spring: float

    def __str__(self) -> str:
        def rows(pair: tuple[int, int]) -> str:
            return f"rows {pair[0] + 1} and {pair[1] + 1}"

        def at(scores: Floats) -> str:
            return "s = (" + ", ".join(f"{s:.3g}" for s in scores) + ")"

        cost = "a cost exists" if self.conservative else "no cost has this gradient"
        shape = "; convex" if self.convex else "; not convex" if self.conservative else ""
        total = "zero" if self.total <= _ZERO else f"up to {self.total:.2g} of the largest λ"
        shifted = "changes nothing" if self.shift <= _ZERO else f"changes λ by {self.shift:.2g} of the largest"
        lines = [
            f"{self.name}: {cost}{shape}.",
            f"  tried {self.n_points} scores of a query with grades ({', '.join(f'{y:g}' for y in self.labels)})",
            f"  symmetry of ∂λ_i/∂s_j   largest difference {self.asymmetry:.2g} of the largest entry"
            + (f", {rows(self.asymmetric_pair)}, {at(self.asymmetric_at)}" if self.asymmetry > _ZERO else ""),
            f"  jumps along ties        largest {self.sideways:.2g} of λ"
            + (f", {rows(self.sideways_pair)} tied, {at(self.sideways_at)}" if self.sideways > _ZERO else ""),
            f"  work around triangles   largest {self.circulation:.2g} of length times λ",
            f"  largest eigenvalue      {self.eigenvalue:.2g}"
            + (f", {at(self.eigenvalue_at)}" if self.eigenvalue > _ZERO else ""),
            f"  rise of λ in a jump     {self.rising:.2g} of λ",
            f"  jumps                   {'; '.join(self.jumps) or 'none found'}",
            f"  kinks                   {'; '.join(self.kinks) or 'none found'}",
            f"  sum of λ                {total}",
            f"  a constant added        {shifted}",
            f"  scores doubled          {self.scaling}",
        ]
        if self.eigenvalue > _ZERO and np.isfinite(self.spring):
            lines.append(f"  '{self.name} + {self.spring:.2g}*spring' has no positive eigenvalue at these scores")
        return "\n".join(lines)


def check_lambda(
    lambdas: Any,
    labels: ArrayLike | None = None,
    *,
    n: int = 6,
    n_points: int = 100,
    jacobian: Callable[[Floats, Floats], Any] | None = None,
    random_state: Any = 0,
) -> LambdaCheck:
    """Check numerically whether λ is the gradient of a cost function, and whether the cost is convex."""
    rules = {"n": integer(2), "n_points": integer(1), "random_state": seed}
    check_values({"n": n, "n_points": n_points, "random_state": random_state}, rules)
    field, rng = LambdaField.of(lambdas, labels, n, jacobian), rng_of(random_state)
    points = list(field.smooth_points(n_points, rng))
    values = np.array([field(s) for s, _ in points])
    size = float(np.abs(values).max()) or 1.0
    largest_entry = max(float(np.abs(J).max()) for _, J in points)
    unequal = [np.abs(J - J.T) for _, J in points]
    worst = int(np.argmax([A.max() for A in unequal]))
    pair = np.unravel_index(int(np.argmax(unequal[worst])), unequal[worst].shape)
    eigenvalues = [float(np.linalg.eigvalsh(0.5 * (J + J.T))[-1]) for _, J in points]
    steepest = int(np.argmax(eigenvalues))
    at_ties = list(field.jumps_at_ties(_AT_TIES, rng))
    sideways = [_along(ty) / size for ty in at_ties]
    worst_tie = at_ties[int(np.argmax(sideways))]
    found_on_lines = [item for _ in range(_LINES) for item in field.discontinuities_on_a_line(rng, size)]
    jumped = [item for item in (*at_ties, *found_on_lines) if np.abs(item.jump).max() > 1e-3 * size]
    rising = max((float(item.jump @ item.direction) / size for item in jumped), default=0.0)
    asymmetry = float(unequal[worst].max()) / largest_entry if largest_entry > 0.0 else 0.0
    circulation = max(_circulation(field, rng) for _ in range(_LOOPS)) / size
    conservative = asymmetry <= _ZERO and max(sideways) <= 1e-4 and circulation <= _ZERO
    # anything smaller is the rounding of finite differences
    rises = eigenvalues[steepest] > 1e-6 * max(largest_entry, size) or rising > 1e-4
    return LambdaCheck(
        name=str(field.lambdas), labels=field.labels, n_points=n_points, conservative=bool(conservative),
        convex=bool(conservative and not rises),
        asymmetry=asymmetry, asymmetric_pair=(int(pair[0]), int(pair[1])), asymmetric_at=points[worst][0],
        sideways=max(sideways), sideways_pair=worst_tie.pair, sideways_at=worst_tie.scores, circulation=circulation,
        eigenvalue=eigenvalues[steepest], eigenvalue_at=points[steepest][0], rising=max(rising, 0.0),
        jumps=_in_words(jumped), kinks=_in_words([line for line in found_on_lines if not line.jump.any()]),
        total=float(np.abs(values.sum(axis=1)).max()) / size,
        shift=max(float(np.abs(field(s + 1.7) - field(s)).max()) for s, _ in points) / size,
        scaling=_scaling(field, points, size), spring=np.inf if rising > 1e-4 else max(eigenvalues[steepest], 0.0),
    )  # fmt: skip


def _along(one: Discontinuity) -> float:
    """Size of the part of a jump that is not along its direction."""
    return float(np.abs(one.jump - (one.jump @ one.direction) * one.direction).max())


def _circulation(field: LambdaField, rng: np.random.Generator) -> float:
    corners = rng.normal(size=(3, field.n))
    paths = [(corners[k], corners[(k + 1) % 3]) for k in range(3)]
    length = sum(float(np.linalg.norm(end - start)) for start, end in paths)
    return abs(sum(field.work(start, end) for start, end in paths)) / length


def _in_words(discontinuities: list[Discontinuity]) -> tuple[str, ...]:
    """Describe where discontinuities are, each position once."""
    places = sorted({round(abs(discontinuity.gap), 3) for discontinuity in discontinuities})
    ties = ["where two scores are equal"] if places and places[0] < 0.002 else []
    others = [gap for gap in places if gap >= 0.002]
    if len(others) > 3:
        return (*ties, "elsewhere")
    return (*ties, *(f"where two scores differ by {gap:g}" for gap in others))


def _scaling(field: LambdaField, points: list[tuple[Floats, Floats]], size: float) -> str:
    before, after = (np.array([field(factor * s) for s, _ in points]) for factor in (1.0, 2.0))
    if np.abs(after - before).max() <= _ZERO * size:
        return "changes nothing: λ depends on the order only"
    if np.abs(after - 2.0 * before).max() <= _ZERO * size:
        return "doubles λ"
    ratio = float(np.abs(after).mean() / max(np.abs(before).mean(), 1e-300))
    return f"makes λ {ratio:.2f} times as large on average"
