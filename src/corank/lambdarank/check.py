"""
check_lambda: is there a cost that these forces are slopes of, and is it convex?

By the lemma of Poincaré there is one exactly where J_ij = ∂λ_i/∂s_j is symmetric everywhere and, where forces jump,
they jump across the place only, not along it. It is convex where −J is positive semidefinite and no force rises in a
jump. (The paper, which speaks of the slopes of the cost itself, has J there.) What is found is evidence: at the scores
that were looked at.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corank.lambdarank.field import Break, Field
from corank.parameters import check_values, rng_of, seed, whole

Floats = NDArray[np.float64]

# what is taken for zero, as a share of the size of the forces
_ZERO = 1e-5
# lines that are searched for jumps and kinks, and ways around that are walked
_LINES, _LOOPS, _AT_TIES = 12, 5, 3


@dataclass(frozen=True, eq=False)
class Verdict:
    """
    What `check_lambda` found; printed, it is a page that says so.

    Attributes
    ----------
    name : str
        The forces.
    labels : array
        Grades of the query that was looked at.
    n_points : int
        Scores at which the Jacobian was taken.
    conservative : bool
        Whether nothing speaks against a cost.
    convex : bool
        Whether nothing speaks against a convex cost.
    asymmetry : float
        Largest |J_ij − J_ji|, as a share of the largest |J_ij|.
    asymmetric_pair, asymmetric_at : (int, int), array
        Rows and scores that show it.
    sideways : float
        Largest jump along a tie, not across it, as a share of the size of the forces.
    sideways_pair, sideways_at : (int, int), array
        Rows that are tied and the scores that show it.
    circulation : float
        Largest |∮ λ·ds| around a triangle, as a share of its length times the size of the forces: the work that a
        conservative field returns.
    eigenvalue : float
        Largest eigenvalue of (J + Jᵀ)/2, above zero where no cost is convex.
    eigenvalue_at : array
        Scores that show it.
    rising : float
        Largest rise of a force in the direction in which a jump is crossed, as a share of the size of the forces.
    jumps, kinks : tuples of str
        Where forces jump or have a kink, in words.
    total_force : float
        Largest |Σ_i λ_i|, as a share of the largest force: zero where a query as a whole is not pulled.
    shift : float
        Largest change of a force when a constant is added to all scores, as such a share.
    scaling : str
        What doubling all scores does to the forces.
    spring : float
        The least α that makes −J of ``λ + α*spring`` positive semidefinite at the scores looked at; infinite where a
        force rises in a jump.
    """

    name: str
    labels: Floats
    n_points: int
    conservative: bool
    convex: bool
    asymmetry: float
    asymmetric_pair: tuple[int, int]
    asymmetric_at: Floats
    sideways: float
    sideways_pair: tuple[int, int]
    sideways_at: Floats
    circulation: float
    eigenvalue: float
    eigenvalue_at: Floats
    rising: float
    jumps: tuple[str, ...]
    kinks: tuple[str, ...]
    total_force: float
    shift: float
    scaling: str
    spring: float

    def __str__(self) -> str:
        def rows(pair: tuple[int, int]) -> str:
            return f"rows {pair[0] + 1} and {pair[1] + 1}"

        def at(scores: Floats) -> str:
            return "s = (" + ", ".join(f"{s:.3g}" for s in scores) + ")"

        cost = "a cost exists" if self.conservative else "no cost has these slopes"
        shape = "convex" if self.convex else "not convex" if self.conservative else "there is none to be convex"
        whole = "zero" if self.total_force <= _ZERO else f"up to {self.total_force:.2g} of the largest"
        shifted = "changes nothing" if self.shift <= _ZERO else f"changes forces by {self.shift:.2g} of them"
        lines = [
            f"{self.name}: {cost}; {shape}.",
            f"  looked at {self.n_points} scores of a query with grades ({', '.join(f'{y:g}' for y in self.labels)})",
            f"  symmetry of ∂λ_i/∂s_j   worst difference {self.asymmetry:.2g} of the largest entry"
            + (f", {rows(self.asymmetric_pair)}, {at(self.asymmetric_at)}" if self.asymmetry > _ZERO else ""),
            f"  jumps along ties        worst {self.sideways:.2g} of the forces"
            + (f", where {rows(self.sideways_pair)} meet, {at(self.sideways_at)}" if self.sideways > _ZERO else ""),
            f"  work around triangles   worst {self.circulation:.2g} of length times force",
            f"  largest eigenvalue      {self.eigenvalue:.2g}"
            + (f", {at(self.eigenvalue_at)}" if self.eigenvalue > _ZERO else ""),
            f"  forces that rise in a jump  {self.rising:.2g} of the forces",
            f"  jumps                   {'; '.join(self.jumps) or 'none found'}",
            f"  kinks                   {'; '.join(self.kinks) or 'none found'}",
            f"  total force             {whole}",
            f"  a constant added        {shifted}",
            f"  scores doubled          {self.scaling}",
        ]
        if self.eigenvalue > _ZERO and np.isfinite(self.spring):
            lines.append(f"  '{self.name} + {self.spring:.2g}*spring' has no such eigenvalue at these scores")
        return "\n".join(lines)


def check_lambda(
    forces: Any,
    labels: ArrayLike | None = None,
    *,
    n: int = 6,
    n_points: int = 100,
    jacobian: Callable[[Floats, Floats], Any] | None = None,
    random_state: Any = 0,
) -> Verdict:
    """
    Look for evidence against a cost with these slopes, and against its being convex.

    Parameters
    ----------
    forces : str, Lambda or callable
        As `LambdaRank` takes them.
    labels : array-like, optional
        Grades of the query to look at; by default `n` rows of grades 0, 1, 2, 0, ...
    n : int
        Rows of the query, where no labels are given.
    n_points : int
        Scores to look at, drawn from a normal law.
    jacobian : callable, optional
        Takes scores and grades and returns ∂λ_i/∂s_j; by default finite differences, away from kinks.
    random_state : int, RandomState or None
        Seed of the scores.

    Returns
    -------
    Verdict
        What was found.

    Examples
    --------
    >>> from corank import check_lambda
    >>> verdict = check_lambda("ranknet", [2, 1, 0], n_points=20)
    >>> verdict.conservative, verdict.convex
    (True, True)
    """
    rules = {"n": whole(2), "n_points": whole(1), "random_state": seed}
    check_values({"n": n, "n_points": n_points, "random_state": random_state}, rules)
    field, rng = Field.of(forces, labels, n, jacobian), rng_of(random_state)
    points = list(field.smooth_points(n_points, rng))
    pulls = np.array([field(s) for s, _ in points])
    size = float(np.abs(pulls).max()) or 1.0
    entry = max(float(np.abs(J).max()) for _, J in points)
    unequal = [np.abs(J - J.T) for _, J in points]
    worst = int(np.argmax([A.max() for A in unequal]))
    pair = np.unravel_index(int(np.argmax(unequal[worst])), unequal[worst].shape)
    eigenvalues = [float(np.linalg.eigvalsh(0.5 * (J + J.T))[-1]) for _, J in points]
    steepest = int(np.argmax(eigenvalues))
    at_ties = list(field.jumps_at_ties(_AT_TIES, rng))
    aside = [_along(one) / size for one in at_ties]
    slipped = at_ties[int(np.argmax(aside))]
    breaks = [one for _ in range(_LINES) for one in field.breaks_on_a_line(rng, size)]
    jumped = [one for one in (*at_ties, *breaks) if np.abs(one.jump).max() > 1e-3 * size]
    rising = max((float(one.jump @ one.direction) / size for one in jumped), default=0.0)
    asymmetry = float(unequal[worst].max()) / entry if entry > 0.0 else 0.0
    circulation = max(_circulation(field, rng) for _ in range(_LOOPS)) / size
    conservative = asymmetry <= _ZERO and max(aside) <= 1e-4 and circulation <= _ZERO
    # sizes of finite differences: what is below is rounding
    is_bent_up = eigenvalues[steepest] > 1e-6 * max(entry, size) or rising > 1e-4
    return Verdict(
        name=str(field.forces), labels=field.labels, n_points=n_points, conservative=bool(conservative),
        convex=bool(conservative and not is_bent_up),
        asymmetry=asymmetry, asymmetric_pair=(int(pair[0]), int(pair[1])), asymmetric_at=points[worst][0],
        sideways=max(aside), sideways_pair=slipped.pair, sideways_at=slipped.scores, circulation=circulation,
        eigenvalue=eigenvalues[steepest], eigenvalue_at=points[steepest][0], rising=max(rising, 0.0),
        jumps=_said(jumped), kinks=_said([one for one in breaks if not one.jump.any()]),
        total_force=float(np.abs(pulls.sum(axis=1)).max()) / size,
        shift=max(float(np.abs(field(s + 1.7) - field(s)).max()) for s, _ in points) / size,
        scaling=_scaling(field, points, size), spring=np.inf if rising > 1e-4 else max(eigenvalues[steepest], 0.0),
    )  # fmt: skip


def _along(one: Break) -> float:
    """Size of the part of a jump that lies along the place where it happens."""
    return float(np.abs(one.jump - (one.jump @ one.direction) * one.direction).max())


def _circulation(field: Field, rng: np.random.Generator) -> float:
    corners = rng.normal(size=(3, field.n))
    ways = [(corners[k], corners[(k + 1) % 3]) for k in range(3)]
    length = sum(float(np.linalg.norm(end - start)) for start, end in ways)
    return abs(sum(field.work(start, end) for start, end in ways)) / length


def _said(breaks: list[Break]) -> tuple[str, ...]:
    """Where breaks are, each place once, in words."""
    places = sorted({round(abs(one.gap), 3) for one in breaks})
    ties = ["where two scores are equal"] if places and places[0] < 0.002 else []
    others = [gap for gap in places if gap >= 0.002]
    if len(others) > 3:
        return (*ties, "elsewhere, too")
    return (*ties, *(f"where two scores differ by {gap:g}" for gap in others))


def _scaling(field: Field, points: list[tuple[Floats, Floats]], size: float) -> str:
    before, after = (np.array([field(factor * s) for s, _ in points]) for factor in (1.0, 2.0))
    if np.abs(after - before).max() <= _ZERO * size:
        return "changes nothing: forces know the order only"
    if np.abs(after - 2.0 * before).max() <= _ZERO * size:
        return "doubles the forces"
    ratio = float(np.abs(after).mean() / max(np.abs(before).mean(), 1e-300))
    return f"makes forces {ratio:.2f} times as large on average"
