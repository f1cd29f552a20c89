"""
Bounds on the k-partite ranking error (Rajaram and Agarwal, Generalization bounds for k-partite ranking, 2005).

R̂ = (1/C) Σ over pairs of rows with grades l < m of (m − l)^power [wrong + ½ tie], C the number of such pairs. Given the
grades, exchanging row i, of grade l, moves R̂ by at most c_i = Σ_{j: grade m ≠ l} |m − l|^power / C, so that McDiarmid's
inequality holds with Σ_i c_i² = Σ_l ρ_l C_l² / M in the paper's symbols. Grades count with their values, which in the
paper are 1, ..., k. Costs O(n log n) for powers 0 and 1, O(n k) more for other ones and k grades.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln, logsumexp

from corank.errors import InputError
from corank.evaluation.bounds.bound import Bound
from corank.evaluation.bounds.hoeffding import hoeffding_end
from corank.metrics.conventions import CONVENTIONS
from corank.metrics.judgements import Judgements, ratio
from corank.metrics.pairwise import pair_counts
from corank.parameters import Rules, check_values, number, whole

Floats = NDArray[np.float64]

_RULES: Rules = {
    "power": number(0),
    "delta": number(0, 1, inside="()"),
    "n_models": whole(1),
    "n_features": whole(1),
}
_CONVENTION = CONVENTIONS["corank"]
# differences of grades that are held at once, for powers other than 0 and 1
_BLOCK = 4_000_000


def kpartite_interval(
    scores: ArrayLike,
    y: ArrayLike,
    qid: ArrayLike | None = None,
    *,
    power: float = 0.0,
    delta: float = 0.05,
    n_models: int = 1,
) -> Bound:
    """
    Give an interval for the expected k-partite error of a ranker, from rows it did not learn from.

    Without `qid` rows are what was drawn (Theorem 1 of Rajaram and Agarwal; with two grades it is the interval of the
    AUC of Agarwal et al., √(ln(2/delta)/(2ρ(1 − ρ)n)) to either side). With it queries are: the rows of a query depend
    on each other, and only the errors of different queries are independent. The expectation of their mean, over
    queries that hold a pair, is bounded by Hoeffding's inequality: it lies within
    g^power √(ln(2 n_models/delta)/(2 n_queries)), g the range of the grades, and nearer where the error is small.

    Parameters
    ----------
    scores : array-like of shape (n_rows,)
        Predictions for held-out rows, higher is better; ties count ½.
    y : array-like of shape (n_rows,)
        Grades; rows with NaN are left out.
    qid : array-like of shape (n_rows,), optional
        One query id per row.
    power : float
        Weight of a pair is the difference of its grades to this power; 0 gives the disagreement error (α in the paper).
    delta : float
        Probability of data for which the interval misses.
    n_models : int
        How many models these rows chose among; the interval is for the chosen one.

    Returns
    -------
    Bound
        The interval, what it is made of, and what it assumes.

    Examples
    --------
    >>> import numpy as np
    >>> y = np.repeat([0, 1], 500)
    >>> kpartite_interval(y + np.random.default_rng(0).normal(size=1000), y)
    disagreement error 0.2441: between 0.1582 and 0.3300 with probability 0.95
      width 0.0859, rows 1000, grades 2, models 1; a random order has 0.5000, the worst one
      1.0000
      assumed: The model did not learn from these rows.
      assumed: Rows were drawn independently of each other; the rows of one search result
               are not.
      assumed: Rows to come have the same shares of grades.
    """
    check_values({"power": power, "delta": delta, "n_models": n_models}, _RULES)
    learnt = "The model did not learn from these rows."
    if n_models > 1:
        learnt = f"None of the {n_models} models learnt from these rows, which chose among them."
    return _of_models(_judged(scores, y, qid), qid is not None, power, delta, n_models, learnt)


def finite_class(
    scores: ArrayLike,
    y: ArrayLike,
    qid: ArrayLike | None = None,
    *,
    n_models: int,
    power: float = 0.0,
    delta: float = 0.05,
) -> Bound:
    """
    Bound the expected k-partite error of a ranker chosen among finitely many by these very rows (Theorem 1).

    Parameters
    ----------
    scores : array-like of shape (n_rows,)
        What the chosen ranker says of the rows it was chosen by.
    y, qid, power, delta
        As in `kpartite_interval`.
    n_models : int
        How many rankers there were to choose among, named before the rows were seen.

    Returns
    -------
    Bound
        The interval; its `vacuous` says whether it says anything.

    Examples
    --------
    >>> finite_class([0.1, 0.4, 0.3, 0.9], [0, 0, 1, 1], n_models=1000).vacuous
    True
    """
    check_values({"power": power, "delta": delta, "n_models": n_models}, _RULES)
    learnt = f"The ranker is one of {n_models} that were there before the rows were seen."
    return _of_models(_judged(scores, y, qid), qid is not None, power, delta, n_models, learnt)


def linear_class(scores: ArrayLike, y: ArrayLike, *, n_features: int, power: float = 0.0, delta: float = 0.05) -> Bound:
    """
    Bound the expected k-partite error of a linear ranker that learnt from these very rows (Theorems 2 and 3).

    √(8 (ln r + ln(4/delta)) Σ_i c_i²) to either side, r the number of ways in which linear rankers can order twice as
    many rows. Every way is a face of the arrangement of N = Σ_{l<m} 2n_l 2n_m hyperplanes, hence
    r ≤ Σ_{j ≤ d} C(N, j) 2^j for d columns. The paper's Π_{l<m} (2e n_l n_m/d)^d is larger for more than two grades,
    and falls below 1, which bounds nothing, where n_l n_m is much smaller than d.

    Parameters
    ----------
    scores : array-like of shape (n_rows,)
        What the ranker says of the rows it learnt from.
    y, power, delta
        As in `kpartite_interval`. There is no qid: the theorem is one of rows that are drawn independently.
    n_features : int
        Number of columns d, chosen before the rows were seen; an intercept is none.

    Returns
    -------
    Bound
        The interval; it is vacuous unless rows are very many and columns few.

    Examples
    --------
    >>> import numpy as np
    >>> y = np.arange(1000) % 2
    >>> bound = linear_class(y, y, n_features=46)
    >>> bound.verdict, round(dict(bound.parts)["width"], 1)
    ('vacuous: every possible error lies inside', 4.2)
    """
    check_values({"power": power, "delta": delta, "n_features": n_features}, _RULES)
    judged = _judged(scores, y, None)
    reach, error = _Reach.of(judged, power), _some_errors(judged, power)[0]
    # the theorem counts the orders of twice the rows of each grade
    log_r = log_orders(4 * reach.n_pairs, n_features)
    return Bound.around(
        _name(power), error, float(np.sqrt(8.0 * (log_r + np.log(4.0 / delta)) * reach.squares)),
        delta=delta, worst=reach.worst, random=0.5 * reach.worst,
        parts=(("rows", reach.n_rows), ("grades", reach.n_grades), ("columns", int(n_features)), ("ln r", log_r)),
        assumptions=("The ranker is linear in columns that were chosen before the rows were seen.", *_of_rows(judged)),
    )  # fmt: skip


def log_orders(n_pairs: int, n_features: int) -> float:
    """
    Bound the logarithm of the number of ways in which linear rankers order so many pairs: ln Σ_{j ≤ d} C(N, j) 2^j.

    >>> float(np.exp(log_orders(2, 2)).round(6))  # 4 quarters, 4 half lines and the point where they meet
    9.0
    """
    j = np.arange(min(n_features, n_pairs) + 1)
    return float(logsumexp(gammaln(n_pairs + 1) - gammaln(j + 1) - gammaln(n_pairs - j + 1) + j * np.log(2.0)))


def _of_models(judged: Judgements, by_query: bool, power: float, delta: float, n_models: int, learnt: str) -> Bound:
    """Theorem 1 for rows, Hoeffding's inequality for queries, and the union over models."""
    logs, models = float(np.log(2.0 * n_models / delta)), ("models", int(n_models))
    errors = _some_errors(judged, power)
    if by_query:
        return _of_queries(judged, errors, power, delta, logs, (models,), learnt)
    reach = _Reach.of(judged, power)
    return Bound.around(
        _name(power), errors[0], float(np.sqrt(0.5 * logs * reach.squares)), delta=delta, worst=reach.worst,
        random=0.5 * reach.worst, parts=(("rows", reach.n_rows), ("grades", reach.n_grades), models),
        assumptions=(learnt, *_of_rows(judged)),
    )  # fmt: skip


def _of_queries(
    judged: Judgements,
    errors: Floats,
    power: float,
    delta: float,
    logs: float,
    parts: tuple[tuple[str, float], ...],
    learnt: str,
) -> Bound:
    used, lowest, highest = ~np.isnan(errors), float(judged.grades.min()), float(judged.grades.max())
    n_queries, worst, error = int(used.sum()), (highest - lowest) ** power, float(errors[used].mean())
    low, high = (worst * hoeffding_end(min(error / worst, 1.0), n_queries, logs, end) for end in (0.0, 1.0))
    upside_down = kpartite_errors(replace(judged, scores=-judged.grades), power)
    return Bound(
        _name(power), error, low, high, delta, worst, 0.5 * float(upside_down[used].mean()),
        parts=(("queries", n_queries), *parts),
        assumptions=(
            learnt,
            "Queries were drawn independently of each other; their rows need not be.",
            f"Queries that hold no pair do not count; {n_queries} of {len(errors)} hold one.",
            *((f"No grade is below {lowest:g} or above {highest:g}.",) if power > 0.0 else ()),
            *_of_unjudged(judged),
        ),
    )  # fmt: skip


@dataclass(frozen=True)
class _Reach:
    """
    How far single rows can move the error among independent rows.

    n_rows, n_grades, n_pairs: judged rows, their grades, and pairs of different grade (C).
    squares: Σ_i c_i².
    worst: the error where every pair is ordered wrongly.
    """

    n_rows: int
    n_grades: int
    n_pairs: int
    squares: float
    worst: float

    @classmethod
    def of(cls, judged: Judgements, power: float) -> _Reach:
        levels, counts = np.unique(judged.grades, return_counts=True)
        n_rows = int(counts.sum())
        n_pairs = (n_rows**2 - int((counts.astype(object) ** 2).sum())) // 2
        moves = _moves(levels - levels[0], counts, power) / n_pairs
        return cls(n_rows, len(levels), n_pairs, float(counts @ moves**2), 0.5 * float(counts @ moves))


def _moves(levels: Floats, counts: NDArray[np.int64], power: float) -> Floats:
    """Σ_{m ≠ l} n_m |m − l|^power for each level l; levels rise."""
    if power == 0.0:
        return np.asarray(counts.sum() - counts, dtype=np.float64)
    if power == 1.0:
        below, total = np.cumsum(counts), np.cumsum(counts * levels)
        return np.asarray(levels * (2.0 * below - below[-1]) + total[-1] - 2.0 * total)
    step = max(1, _BLOCK // len(levels))
    blocks = [levels[at : at + step, None] for at in range(0, len(levels), step)]
    return np.concatenate([np.abs(block - levels) ** power @ counts for block in blocks])


def _judged(scores: ArrayLike, y: ArrayLike, qid: ArrayLike | None) -> Judgements:
    return Judgements.of(y, scores, qid, _CONVENTION)


def kpartite_errors(judged: Judgements, power: float) -> Floats:
    """The k-partite error of each query, NaN of those that hold no pair."""
    loss, pairs, _ = pair_counts(judged, judged.ranked.grades, power)
    return ratio(loss, pairs)


def _some_errors(judged: Judgements, power: float) -> Floats:
    """The same, and one sentence where no query holds a pair, or differences of grades are too large for the power."""
    with np.errstate(over="ignore", invalid="ignore"):
        errors = kpartite_errors(judged, power)
        largest = np.ptp(judged.grades) ** power if len(judged.grades) else 0.0
    if np.isnan(errors).all():
        raise InputError(
            f"none of the {len(judged.grades)} judged rows has one of another grade beside it, so that there is no "
            "pair to order; pass rows of at least two grades."
        )
    if not np.isfinite(largest * len(judged.grades)):
        raise InputError(f"differences of grades up to {np.ptp(judged.grades):g} overflow; pass smaller grades.")
    return errors


def _of_rows(judged: Judgements) -> tuple[str, ...]:
    return (
        "Rows were drawn independently of each other; the rows of one search result are not.",
        "Rows to come have the same shares of grades.",
        *_of_unjudged(judged),
    )


def _of_unjudged(judged: Judgements) -> tuple[str, ...]:
    n = judged.n_unjudged_rows
    return (f"The {n} rows without a grade, which are left out, are like the others.",) if n else ()


def _name(power: float) -> str:
    return f"k-partite error (power {power:g})" if power else "disagreement error"
