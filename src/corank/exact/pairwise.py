"""Losses over all pairs as functions of the scores of rows, with their first and second derivatives."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from corank.core.hinge_pairs import Block, bend, sweep
from corank.core.logistic_pairs import likely_bend, likely_sweep
from corank.core.threads import cut, spread
from corank.data.ranking import RankingData
from corank.exact.newton import Evaluate, Slopes
from corank.exact.solution import Floats

# queries are summed in a fixed number of pieces, so that sums do not depend on the number of threads
_PIECES = 16


def pair_loss(data: RankingData, name: str, scale: float) -> Evaluate:
    """
    Return ``scale`` times the mean over pairs of a loss, as a function of scores.

    Parameters
    ----------
    data : RankingData
        The problem. Scores are those of the scored rows in the order of ``data.order``, or of all rows where
        preference pairs are given.
    name : {"squared_hinge", "logistic"}
        The loss.
    scale : float
        The factor.

    Returns
    -------
    callable
        For `corank.exact.newton.minimise`.
    """
    if data.pairs is not None:
        return _listed(data, name, scale)
    block, total = _block(data)
    return _hinge(block, scale / total) if name == "squared_hinge" else _logistic(block, scale / total)


def row_loss(y: Floats, w: Floats, scale: float) -> Evaluate:
    """
    Return ``scale`` times the weighted mean over rows of the logistic loss, as a function of scores.

    Parameters
    ----------
    y : array of float64
        Targets between 0 and 1.
    w : array of float64
        Row weights.
    scale : float
        The factor.

    Returns
    -------
    callable
        For `corank.exact.newton.minimise`.
    """
    share = scale * w / w.sum()

    def evaluate(u: Floats) -> Slopes:
        p = expit(u)
        return Slopes(
            float(share @ (np.logaddexp(0.0, u) - y * u)), share * (p - y), lambda z: share * p * (1.0 - p) * z
        )

    return evaluate


def _block(data: RankingData) -> tuple[Block, float]:
    """The scored rows sorted by (query, score), and the total weight of their pairs."""
    assert data.y is not None
    order = data.order[data.is_scored[data.order]]
    w = data.weight_of(order)
    starts = np.append(0, np.cumsum(data.scored_stops - data.starts[:-1]))
    sizes = data.grade_stops - data.grade_starts
    grade = np.repeat(np.arange(len(sizes)), sizes)
    lowest = np.repeat(data.query_grades[:-1], np.diff(starts))
    W_q, W_g = np.bincount(data.queries.codes[order], weights=w), np.bincount(grade, weights=w)
    return Block(starts, grade - lowest, data.y[order], w), 0.5 * float(W_q @ W_q - W_g @ W_g)


def _hinge(block: Block, factor: float) -> Evaluate:
    runs = cut(block.starts, _PIECES)
    n = len(block.weight)

    def evaluate(u: Floats) -> Slopes:
        order, slope, degree = np.empty(n, dtype=np.int64), np.empty(n), np.empty(n)
        losses = spread(lambda first, last: sweep(block, u, first, last, order, slope, degree), runs)

        def second(z: Floats) -> Floats:
            out = np.empty(n)
            spread(lambda first, last: bend(block, u, z, first, last, order, degree, out), runs)
            return factor * out

        return Slopes(factor * sum(losses), factor * slope, second)

    return evaluate


def _logistic(block: Block, factor: float) -> Evaluate:
    runs = cut(block.starts, _PIECES)
    n = len(block.weight)

    def evaluate(u: Floats) -> Slopes:
        slope = np.empty(n)
        losses = spread(lambda first, last: likely_sweep(block, u, first, last, slope), runs)

        def second(z: Floats) -> Floats:
            out = np.empty(n)
            spread(lambda first, last: likely_bend(block, u, z, first, last, out), runs)
            return factor * out

        return Slopes(factor * sum(losses), factor * slope, second)

    return evaluate


def _listed(data: RankingData, name: str, scale: float) -> Evaluate:
    """Preferences: the target of every pair is 1."""
    assert data.pairs is not None
    n, (winners, losers), w = data.n_rows, data.pairs.T, data.pair_weight
    share = scale * w / w.sum()

    def to_rows(h: Floats) -> Floats:
        return np.asarray(np.bincount(winners, h, n) - np.bincount(losers, h, n))

    def evaluate(u: Floats) -> Slopes:
        m = u[winners] - u[losers]
        if name == "squared_hinge":
            short = np.maximum(1.0 - m, 0.0)
            value, slope, curvature = 0.5 * short**2, -short, (short > 0.0).astype(np.float64)
        else:
            p = expit(m)
            value, slope, curvature = np.logaddexp(0.0, -m), p - 1.0, p * (1.0 - p)
        return Slopes(
            float(share @ value),
            to_rows(share * slope),
            lambda z: to_rows(share * curvature * (z[winners] - z[losers])),
        )

    return evaluate
