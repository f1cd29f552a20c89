"""
The three fits of a pursuit (Vincent and Bengio, Kernel matching pursuit, 2002) in the inner product of L̃.

With r = s − f the residue, v = L̃r, and k_γ a column of the dictionary:

* basic: γ maximises (k_γᵀv)² / k_γᵀL̃k_γ; its coefficient is k_γᵀv / k_γᵀL̃k_γ, all others stay;
* back: γ is chosen as in basic, then all coefficients are solved for again;
* pre: γ maximises the decrease after all coefficients are solved for again, (k_γᵀv)² / ‖k_γ − its projection‖².

Back and pre keep an L̃-orthonormal basis q_1..q_p of the span. The new direction q gives both the residue's
correlations, Dᵀv ← Dᵀv − (qᵀv) DᵀL̃q, and the norms outside the span, which fall by (DᵀL̃q)². Hence each of the
three costs one product over the dictionary a step, O(nN), plus O(n p) for the basis. The coefficients of the first p
terms are R⁻¹t, where K_S = QR and t = QᵀL̃s.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from corank.pairwise import QueryLaplacian
from corank.pursuit.dictionary import Dictionary
from corank.pursuit.inner import Floats, Goal, Inner
from corank.pursuit.path import Path, Step

FITTINGS = ("basic", "back", "pre")

# share of its norm that a column must keep outside the span of the chosen ones, in units of rounding, to be taken
_OUTSIDE = 1e4
# ... and to be tried: what is kept is known for all columns only as well as the dictionary is
_TRIED = 16.0


def steps(dictionary: Dictionary, goal: Goal, squares: Floats, fitting: str) -> Iterator[Step]:
    """
    Choose terms without end, or until no column is left.

    goal: what to approximate.
    squares (N,): kᵀL̃k of each column; 0 for one that may not be chosen.
    fitting {"basic", "back", "pre"}: see the module.
    """
    if fitting == "basic":
        return _basic(dictionary, goal, squares)
    return _orthogonal(dictionary, goal, squares, by_outside=fitting == "pre")


def _basic(dictionary: Dictionary, goal: Goal, squares: Floats) -> Iterator[Step]:
    v, usable = goal.v.copy(), squares > 0.0
    coefs: list[float] = []
    while usable.any():
        c = dictionary.correlate(v)
        gains = np.divide(c * c, squares, out=np.full(len(c), -np.inf), where=usable)
        j = int(np.argmax(gains))
        coefs.append(float(c[j] / squares[j]))
        v -= coefs[-1] * goal.inner.apply(dictionary.column(j))
        yield Step(j, np.array(coefs), float(gains[j]))


def _orthogonal(dictionary: Dictionary, goal: Goal, squares: Floats, by_outside: bool) -> Iterator[Step]:
    v, outside = goal.v.copy(), squares.copy()
    tried = _TRIED * np.finfo(dictionary.D.dtype).eps * squares
    least = np.maximum(_OUTSIDE * np.finfo(np.float64).eps * squares, dictionary.rounding(goal.inner))
    seen = _without_means(goal.inner)
    c = dictionary.correlate(v)
    Q, R, t = np.empty((4, len(v))), np.zeros((4, 4)), np.empty(4)
    p = 0
    while (usable := (outside > tried) & (squares > 0.0)).any():
        scores = np.divide(c * c, outside if by_outside else squares, out=np.full(len(c), -np.inf), where=usable)
        j = int(np.argmax(scores))
        if p == len(t):
            Q, R, t = np.resize(Q, (2 * p, len(v))), np.pad(R, ((0, p), (0, p))), np.resize(t, 2 * p)
        k = seen(dictionary.column(j))
        R[:p, p] = 0.0
        for _ in range(2):  # the second pass removes what rounding left of the first
            h = Q[:p] @ goal.inner.apply(k)
            k -= h @ Q[:p]
            R[:p, p] += h
        R[p, p] = np.sqrt(goal.inner.squares(k[:, None])[0])
        if not R[p, p] ** 2 > least[j]:
            outside[j] = 0.0
            continue
        Q[p] = k / R[p, p]
        Lq = goal.inner.apply(Q[p])
        t[p] = Q[p] @ v
        w = dictionary.correlate(Lq)
        v -= t[p] * Lq
        c -= t[p] * w
        outside -= w * w
        outside[j] = 0.0
        p += 1
        yield Step(j, solve_triangular(R[:p, :p], t[:p]), float(t[p - 1] ** 2))


def _without_means(inner: Inner) -> Callable[[Floats], Floats]:
    """
    Return what takes from a column the means of its queries where only differences count.

    L̃ does not see them, but carried along they would be magnified with every direction that is scaled to norm 1.
    """
    L = inner.L
    if inner.mix > 0.0 or not isinstance(L, QueryLaplacian):
        return lambda k: k
    query = np.full(L.n, len(L.scale))  # rows alone in their query stand together at the end
    query[L.order] = np.repeat(np.arange(len(L.scale)), np.diff(L.starts))
    w = np.ones(L.n)
    if len(L.weights):
        w[L.order] = L.weights
    total = np.bincount(query, weights=w)
    return lambda k: np.asarray(k - (np.bincount(query, weights=w * k) / total)[query])


def alternatives(
    dictionary: Dictionary,
    goal: Goal,
    fitting: str,
    n_basis: int,
    tol: float,
    n_solutions: int,
    advance: Callable[[int], object],
) -> list[Path]:
    """
    Follow one pursuit after the other, each without what the earlier ones chose.

    goal: what to approximate.
    fitting {"basic", "back", "pre"}: see `corank.pursuit.fits`.
    n_basis: most terms of each.
    tol: A step that lowers J by no more than this share of its first value is not taken.
    n_solutions: most pursuits.
    advance: is told of each term.
    Returns: the first, which may have no term, and those after it that found one.
    """

    def told(indices: NDArray[np.int64], coefs: NDArray[np.float64]) -> bool:
        advance(1)
        return False

    squares = dictionary.squares(goal.inner)
    paths: list[Path] = []
    while len(paths) < n_solutions:
        walk = steps(dictionary, goal, squares, fitting)
        path = Path.follow(walk, n_basis, tol * goal.J, told)
        if paths and not len(path.indices):
            break
        paths.append(path)
        squares[path.indices] = 0.0
    return paths
