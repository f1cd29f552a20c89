"""Potential: the cost that forces are slopes of, rebuilt: C(s) = −∫₀¹ Σ_i λ_i(ts) s_i dt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corank.data.problem.inputs import as_numbers
from corank.errors import InputError
from corank.lambdarank.field import Field
from corank.parameters import check_values, rng_of, seed, whole

Floats = NDArray[np.float64]

_STEP = 1e-4
# above this share of the forces, slopes of the rebuilt cost are other slopes
_WRONG = 1e-5


@dataclass(frozen=True, eq=False)
class Potential:
    """
    The cost of one query's scores, zero where all of them are; called with scores, it returns a number.

    Attributes
    ----------
    name : str
        The forces.
    labels : array
        Grades of the query.
    error : float
        Largest difference between forces and finite differences of the cost at random scores, as a share of the largest
        force.
    path_error : float
        Largest difference between what the cost falls by and the work along the straight way, from random scores to
        others, as a share of its length times the largest force: forces may be slopes in every order of the rows, but
        of another cost in each.
    """

    name: str
    labels: Floats
    error: float
    path_error: float
    _field: Field

    def __call__(self, scores: ArrayLike) -> float:
        """Return the cost of some scores."""
        s = as_numbers(scores, "scores", "score")
        if len(s) != len(self.labels) or not np.isfinite(s).all():
            raise InputError(f"scores is {scores!r}; pass {len(self.labels)} finite scores, one for each label.")
        return _cost(self._field, s)


def potential(forces: Any, labels: ArrayLike, *, n_points: int = 10, random_state: Any = 0) -> Potential:
    """
    Rebuild the cost of which forces are the slopes, and verify it.

    Parameters
    ----------
    forces : str, Lambda or callable
        As `LambdaRank` takes them; such that have a cost, see `check_lambda`.
    labels : array-like
        Grades of the query.
    n_points : int
        Random scores at which the slopes of the cost are held against the forces.
    random_state : int, RandomState or None
        Seed of those scores.

    Returns
    -------
    Potential
        The cost. An `InputError` says where its slopes are not the forces: there is no cost then.

    Examples
    --------
    >>> from corank import potential
    >>> cost = potential("ranknet", [1, 0])
    >>> bool(abs(cost([2.0, -1.0]) - (np.log1p(np.exp(-3.0)) - np.log(2.0))) < 1e-8)
    True
    """
    check_values({"n_points": n_points, "random_state": random_state}, {"n_points": whole(1), "random_state": seed})
    field, rng = Field.of(forces, labels, 0), rng_of(random_state)
    points = [s for s, _ in field.smooth_points(n_points, rng, _STEP)]
    pulls = np.array([field(s) for s in points])
    size = float(np.abs(pulls).max()) or 1.0
    errors = [np.abs(_slopes(field, s) - pull).max() / size for s, pull in zip(points, pulls, strict=True)]
    ways = [_path_error(field, s, rng.normal(size=field.n)) / size for s in points]
    if max(*errors, *ways) > _WRONG:
        what, found = ("slopes of", errors) if max(errors) > _WRONG else ("falls of", ways)
        where = ", ".join(f"{x:.3g}" for x in points[int(np.argmax(found))])
        raise InputError(
            f"'{field.forces}' has no cost: {what} what its work adds up to differ from the forces by {max(found):.2g} "
            f"of them at s = ({where}); see check_lambda."
        )
    return Potential(str(field.forces), field.labels, float(max(errors)), float(max(ways)), field)


def _slopes(field: Field, scores: Floats) -> Floats:
    steps = _STEP * np.eye(field.n)
    return np.array([_cost(field, scores - e) - _cost(field, scores + e) for e in steps]) / (2.0 * _STEP)


def _path_error(field: Field, start: Floats, end: Floats) -> float:
    gap = _cost(field, start) - _cost(field, end) - field.work(start, end)
    return abs(gap) / float(np.linalg.norm(end - start))


def _cost(field: Field, scores: Floats) -> float:
    return -field.work(np.zeros(field.n), scores)
