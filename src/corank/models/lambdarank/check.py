"""
check_lambda checks whether LambdaRank gradients derive from a convex cost function.

By the lemma of Poincaré a cost exists if and only if J_ij = ∂λ_i/∂s_j is symmetric everywhere and λ jumps only across a
surface, not along it. The cost is convex if −J is positive semidefinite and no λ rises in a jump. (The paper, which
uses the gradient of the cost itself, has J there.) The result is numerical evidence at the scores that were tried.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corank.models.lambdarank.field import Discontinuity, LambdaField
from corank.parameters import check_values, integer, rng_of, seed

Floats = NDArray[np.float64]

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
