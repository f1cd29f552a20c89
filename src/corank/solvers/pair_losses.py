"""Losses over all pairs as functions of the scores of rows, with their first and second derivatives."""

from __future__ import annotations

import numpy as np

from corank.core.pairs.all_pairs import visit, visit_bend
from corank.core.pairs.squared_hinge import Block, bend, sweep
from corank.core.threads import cut, spread, threads_for
from corank.data.problem.ranking import RankingData
from corank.pairwise.losses import Loss
from corank.solvers.newton import Evaluate, Slopes
from corank.solvers.solution import Floats

# queries are summed in a fixed number of pieces, so that sums do not depend on the number of threads
_PIECES = 16


def pair_loss(data: RankingData, loss: Loss, scale: float) -> Evaluate:
    """
    Return ``scale`` times the mean over pairs of a loss, as a function of scores.

    data: the problem, weighted by query. Scores are those of the scored rows in the order of ``data.order``, or of all
        rows where preference pairs are given.
    loss: twice differentiable, but for corners of its slope.
    Returns: for `corank.solvers.newton.minimise`.
    """
    if data.pairs is not None:
        return _listed(data, loss, scale)
    block, total = block_of(data)
    return _sorted(block, scale / total) if loss.exact == "sorted" else _visited(block, loss.code, scale / total)


def row_loss(y: Floats, w: Floats, loss: Loss, scale: float) -> Evaluate:
    """
    Return ``scale`` times the weighted mean over rows of a loss, as a function of scores.

    w: row weights.
    loss: as in `pair_loss`.
    Returns: for `corank.solvers.newton.minimise`.
    """
    share = scale * w / w.sum()

    def evaluate(u: Floats) -> Slopes:
        value, pull, curve = loss.costs(y, u)
        return Slopes(float(share @ value), -share * pull, lambda z: share * curve * z)

    return evaluate


def block_of(data: RankingData) -> tuple[Block, float]:
    """Return the scored rows sorted by (query, score), as ``data.order`` has them, and the weight of their pairs."""
    assert data.y is not None
    order = data.order[data.is_scored[data.order]]
    w = data.weight_of(order)
    starts = np.append(0, np.cumsum(data.scored_stops - data.starts[:-1]))
    sizes = data.grade_stops - data.grade_starts
    grade = np.repeat(np.arange(len(sizes)), sizes)
    lowest = np.repeat(data.query_grades[:-1], np.diff(starts))
    W_q, W_g = np.bincount(data.queries.codes[order], weights=w), np.bincount(grade, weights=w)
    return Block(starts, grade - lowest, data.y[order], w), 0.5 * float(W_q @ W_q - W_g @ W_g)


def _sorted(block: Block, factor: float) -> Evaluate:
    runs = cut(block.starts, _PIECES)
    n = len(block.weight)
    # sorting a row costs about as much as reading this many numbers
    n_jobs = threads_for(16 * n)

    def evaluate(u: Floats) -> Slopes:
        order, slope, degree = np.empty(n, dtype=np.int64), np.empty(n), np.empty(n)
        losses = spread(lambda first, last: sweep(block, u, first, last, order, slope, degree), runs, n_jobs)

        def second(z: Floats) -> Floats:
            out = np.empty(n)
            spread(lambda first, last: bend(block, u, z, first, last, order, degree, out), runs, n_jobs)
            return factor * out

        return Slopes(factor * sum(losses), factor * slope, second)

    return evaluate


def _visited(block: Block, code: int, factor: float) -> Evaluate:
    runs = cut(block.starts, _PIECES)
    n, n_jobs = len(block.weight), threads_for(int(np.sum(np.diff(block.starts) ** 2)))

    def evaluate(u: Floats) -> Slopes:
        slope = np.empty(n)
        losses = spread(lambda first, last: visit(code, block, u, first, last, slope), runs, n_jobs)

        def second(z: Floats) -> Floats:
            out = np.empty(n)
            spread(lambda first, last: visit_bend(code, block, u, z, first, last, out), runs, n_jobs)
            return factor * out

        return Slopes(factor * sum(losses), factor * slope, second)

    return evaluate


def _listed(data: RankingData, loss: Loss, scale: float) -> Evaluate:
    """Preferences: scores that differ by 1."""
    assert data.pairs is not None
    n, (winners, losers) = data.n_rows, data.pairs.T
    evaluate_pairs = row_loss(loss.pair_target(np.ones(len(winners))), data.pair_weight, loss, scale)

    def to_rows(h: Floats) -> Floats:
        return np.asarray(np.bincount(winners, h, n) - np.bincount(losers, h, n))

    def evaluate(u: Floats) -> Slopes:
        value, slope, bend = evaluate_pairs(u[winners] - u[losers])
        return Slopes(value, to_rows(slope), lambda z: to_rows(bend(z[winners] - z[losers])))

    return evaluate
