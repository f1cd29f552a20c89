"""
The three fits of a pursuit (Vincent and Bengio, Kernel matching pursuit, 2002) in the inner product of L̃.

With r = s − f the residual, v = L̃r, and k_γ a column of the dictionary:

* basic: γ maximises (k_γᵀv)² / k_γᵀL̃k_γ; its coefficient is k_γᵀv / k_γᵀL̃k_γ, the others do not change;
* back: γ is chosen as in basic, then all coefficients are refitted;
* pre: γ maximises the decrease after refitting all coefficients, (k_γᵀv)² / ‖k_γ − its projection‖².

Back and pre keep an L̃-orthonormal basis q_1..q_p of the span. The new direction q updates the correlations with the
residual, Dᵀv ← Dᵀv − (qᵀv) DᵀL̃q, and the squared norms outside the span, which fall by (DᵀL̃q)². So each of the three
costs one product over the dictionary per step, O(nN), plus O(n p) for the basis. The coefficients of the first p terms
are R⁻¹t, where K_S = QR and t = QᵀL̃s.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from corank.base.pairs import QueryLaplacian
from corank.models.pursuit.dictionary import Dictionary, Floats, InnerProduct, Target
from corank.models.pursuit.path import Path, Step

FITTINGS = ("basic", "back", "pre")

# share of its squared norm that a column must have outside the span to be chosen, in units of rounding of float64
_OUTSIDE = 1e4
# ... and to be a candidate, in units of rounding of the dictionary
_TRIED = 16.0


def steps(dictionary: Dictionary, target: Target, squares: Floats, fitting: str) -> Iterator[Step]:
    """
    Yield steps until no column is left.

    squares (N,): kᵀL̃k of each column; 0 excludes a column.
    """
    if fitting == "basic":
        return _basic(dictionary, target, squares)
    return _orthogonal(dictionary, target, squares, by_outside=fitting == "pre")


def _basic(dictionary: Dictionary, target: Target, squares: Floats) -> Iterator[Step]:
    v, usable = target.v.copy(), squares > 0.0
    coefs: list[float] = []
    while usable.any():
        c = dictionary.correlate(v)
        gains = np.divide(c * c, squares, out=np.full(len(c), -np.inf), where=usable)
        j = int(np.argmax(gains))
        coefs.append(float(c[j] / squares[j]))
        v -= coefs[-1] * target.inner.apply(dictionary.column(j))
        yield Step(j, np.array(coefs), float(gains[j]))


def _orthogonal(dictionary: Dictionary, target: Target, squares: Floats, by_outside: bool) -> Iterator[Step]:
    v, outside = target.v.copy(), squares.copy()
    tried = _TRIED * np.finfo(dictionary.D.dtype).eps * squares
    least = np.maximum(_OUTSIDE * np.finfo(np.float64).eps * squares, dictionary.rounding(target.inner))
    centre = _without_means(target.inner)
    c = dictionary.correlate(v)
    Q, R, t = np.empty((4, len(v))), np.zeros((4, 4)), np.empty(4)
    p = 0
    while (usable := (outside > tried) & (squares > 0.0)).any():
        scores = np.divide(c * c, outside if by_outside else squares, out=np.full(len(c), -np.inf), where=usable)
        j = int(np.argmax(scores))
        if p == len(t):
            Q, R, t = np.resize(Q, (2 * p, len(v))), np.pad(R, ((0, p), (0, p))), np.resize(t, 2 * p)
        k = centre(dictionary.column(j))
        R[:p, p] = 0.0
        for _ in range(2):  # twice, for orthogonality up to rounding
            h = Q[:p] @ target.inner.apply(k)
            k -= h @ Q[:p]
            R[:p, p] += h
        R[p, p] = np.sqrt(target.inner.squares(k[:, None])[0])
        if not R[p, p] ** 2 > least[j]:
            outside[j] = 0.0
            continue
        Q[p] = k / R[p, p]
        Lq = target.inner.apply(Q[p])
        t[p] = Q[p] @ v
        w = dictionary.correlate(Lq)
        v -= t[p] * Lq
        c -= t[p] * w
        outside -= w * w
        outside[j] = 0.0
        p += 1
        yield Step(j, solve_triangular(R[:p, :p], t[:p]), float(t[p - 1] ** 2))


def _without_means(inner: InnerProduct) -> Callable[[Floats], Floats]:
    """
    Return a function that centres a column inside queries, if only differences count.

    L̃ ignores these means, but normalising directions would magnify them.
    """
    L = inner.L
    if inner.mix > 0.0 or not isinstance(L, QueryLaplacian):
        return lambda k: k
    query = np.full(L.n, len(L.scale))  # rows alone in their query form the last group
    query[L.order] = np.repeat(np.arange(len(L.scale)), np.diff(L.starts))
    w = np.ones(L.n)
    if len(L.weights):
        w[L.order] = L.weights
    total = np.bincount(query, weights=w)
    return lambda k: np.asarray(k - (np.bincount(query, weights=w * k) / total)[query])


def disjoint_paths(
    dictionary: Dictionary,
    target: Target,
    fitting: str,
    n_basis: int,
    tol: float,
    n_solutions: int,
    advance: Callable[[int], object],
) -> list[Path]:
    """
    Run several pursuits, each without the columns that the earlier ones chose.

    fitting {"basic", "back", "pre"}: see `corank.models.pursuit.fits`.
    tol: a step that lowers J by at most this share of its initial value is not taken.
    Returns: the first path, which may be empty, and the others that have a term.
    """

    def report(indices: NDArray[np.int64], coefs: NDArray[np.float64]) -> bool:
        advance(1)
        return False

    squares = dictionary.squares(target.inner)
    paths: list[Path] = []
    while len(paths) < n_solutions:
        path = Path.follow(steps(dictionary, target, squares, fitting), n_basis, tol * target.J, report)
        if paths and not len(path.indices):
            break
        paths.append(path)
        squares[path.indices] = 0.0
    return paths
