"""Loss: the loss functions of a margin, with gradient and curvature."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corank.core.pairs import losses as kernels
from corank.data.ranking import RankingData
from corank.errors import InputError

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Loss:
    """
    A convex loss ℓ(t, m) of a target t and a margin m.

    ========================  =================================================  ==============
    name                      ℓ(t, m)                                            t(z) of a pair
    ========================  =================================================  ==============
    ``"hinge"``               max(0, 1 − t m)                                    sign z
    ``"squared"``             ½ (t − m)²                                         z
    ``"logistic"``            −t log σ(m) − (1 − t) log(1 − σ(m)), σ logistic    (1 + z)/2
    ``"squared_hinge"``       ½ max(0, 1 − t m)²                                 sign z
    ========================  =================================================  ==============

    z = y_a − y_b > 0 is the difference of two scores; for a single row the target is its score. The formulas are in
    `corank.core.pairs.losses`, one branch per loss; the other properties of a loss are in its line of `LOSSES`.

    name: Name, as in the table.
    code: Code of the loss in kernels.
    curvature: Upper bound of ∂²ℓ/∂m²; infinite if ℓ is not differentiable.
    scores: Allowed scores: any; −1 and 1 for single rows; or in [0, 1] (for pairs, differences of at most 1).
    exact: Exact solver over all pairs: a linear system; truncated Newton with sums over pairs by sorting or by visiting
        every pair; or None if ℓ is piecewise linear, for which Newton's method does not work.

    >>> Loss.of("hinge").value(1.0, [0.25, 2.0]).tolist()
    [0.75, 0.0]
    """

    name: str
    code: int
    curvature: float
    scores: str
    exact: str | None

    @classmethod
    def of(cls, name: str) -> Loss:
        """Return a loss by its name."""
        if name not in LOSSES:
            raise InputError(f"loss is {name!r}; choose one of {', '.join(LOSSES)}.")
        return LOSSES[name]

    def pair_target(self, gap: ArrayLike) -> Floats:
        """Return the targets of pairs whose scores differ by `gap`."""
        z = np.asarray(gap, dtype=np.float64)
        out = np.empty(z.size)
        kernels.pair_targets(self.code, z.ravel(), out)
        return out.reshape(z.shape)

    def value(self, target: ArrayLike, margin: ArrayLike) -> Floats:
        """Return the loss of margins."""
        return np.asarray(self.costs(target, margin)[0])

    def negative_gradient(self, target: ArrayLike, margin: ArrayLike) -> Floats:
        """Return −∂ℓ/∂m."""
        return np.asarray(self.costs(target, margin)[1])

    def costs(self, target: ArrayLike, margin: ArrayLike) -> Floats:
        """Return value, negative gradient and second derivative, computed by the kernel that estimators use."""
        t, m = np.broadcast_arrays(np.asarray(target, dtype=np.float64), np.asarray(margin, dtype=np.float64))
        out = np.empty((3, t.size))
        kernels.costs(self.code, t.ravel(), m.ravel(), out)
        return out.reshape(3, *t.shape)

    def require_scores(self, y: Floats, codes: NDArray[np.int64], rows: bool) -> None:
        """Raise `InputError` if this loss cannot learn from the scores."""
        if rows and self.scores == "signs" and not np.isin(y, (-1.0, 1.0)).all():
            raise InputError(
                f"{self.name} loss on single rows needs scores −1 and 1, but y runs from {y.min():g} to {y.max():g}; "
                'map them to −1 and 1, or choose loss="squared".'
            )
        if self.scores != "unit":
            return
        if rows and not ((y >= 0.0) & (y <= 1.0)).all():
            raise InputError(
                f"{self.name} loss needs scores in [0, 1], but y runs from {y.min():g} to {y.max():g}; "
                'map them to [0, 1], or choose loss="squared".'
            )
        highest, lowest = np.full(codes.max(initial=0) + 1, -np.inf), np.full(codes.max(initial=0) + 1, np.inf)
        np.maximum.at(highest, codes, y)
        np.minimum.at(lowest, codes, y)
        widest = float((highest - lowest).max())
        if widest > 1.0 + 1e-9:
            raise InputError(
                f"{self.name} loss needs scores that differ by at most 1 within a query, but some differ by "
                f"{widest:g}; divide y by {widest:g}."
            )


LOSSES = {
    loss.name: loss
    for loss in (
        Loss("hinge", kernels.HINGE, np.inf, "signs", None),
        Loss("squared", kernels.SQUARED, 1.0, "any", "system"),
        Loss("logistic", kernels.LOGISTIC, 0.25, "unit", "pairs"),
        Loss("squared_hinge", kernels.SQUARED_HINGE, 1.0, "signs", "sorted"),
    )
}
"""The losses by name, the valid values of parameters called `loss`."""


QUERY_WEIGHTS = ("pairs", "equal", "rows")


def query_factors(sizes: ArrayLike, query_weight: str, twice_pairs: ArrayLike | None = None) -> NDArray[np.float64]:
    """
    Return c_q, the factor of the Laplacian of each query.

    sizes (n_queries,): n_q, the number of compared rows; with row weights their sum W_q.
    query_weight {"pairs", "equal", "rows"}: equal weight of pairs, c_q = 1; of queries, 1 / (n_q (n_q − 1)); or of
        rows, 1 / n_q.
    twice_pairs (n_queries,): replaces n_q (n_q − 1) if rows have weights (W_q² − Σ w²) or if equal scores are not
        compared. Two copies of a row form a pair, one row of weight 2 does not, so that "equal" treats them slightly
        differently.
    Returns (n_queries,): c_q; 0 for a query without pairs, unless `query_weight` is "pairs".
    """
    require_query_weight(query_weight)
    n_q = np.asarray(sizes, dtype=np.float64)
    if query_weight == "pairs":
        return np.ones_like(n_q)
    pairs = n_q * (n_q - 1) if twice_pairs is None else np.asarray(twice_pairs, dtype=np.float64)
    # rounding may leave a tiny weight in a query without pairs
    return np.divide(
        1.0, pairs if query_weight == "equal" else n_q, out=np.zeros_like(n_q), where=pairs > 1e-12 * n_q**2
    )


def weigh_queries(data: RankingData, query_weight: str, *, ties: bool = False, rows: str = "scored") -> RankingData:
    """
    Multiply the weights of a problem by c_q, so that plain sums over its pairs follow `query_weight`.

    query_weight {"pairs", "equal", "rows"}: c_q = 1; 1 / (twice the weight of the query's pairs); or 1 / (the weight of
        its compared rows).
    ties: whether rows of equal score are compared.
    rows {"scored", "unscored"}: rows whose pairs are used; preferences belong to scored rows.
    Returns: row weights are multiplied by √c_q, or weights of preferences by c_q (and row weights are 1).
    """
    require_query_weight(query_weight)
    if query_weight == "pairs":
        return data
    codes, n_queries = data.queries.codes, len(data.queries)
    members = data.scored_rows if rows == "scored" else data.unscored_rows
    w = data.weight_of(members)
    W_q = np.bincount(codes[members], w, n_queries)
    if rows == "scored" and data.pairs is not None:
        query = codes[data.pairs[:, 0]]
        of_pairs = np.bincount(query, data.pair_weight, n_queries)
        size = 2.0 * of_pairs if query_weight == "equal" else W_q
        c = np.divide(1.0, size, out=np.zeros(n_queries), where=of_pairs > 0.0)
        return replace(data, weights=None, pair_weights=data.pair_weight * c[query])
    if ties or rows == "unscored":
        same = np.bincount(codes[members], w * w, n_queries)
    else:
        grade = np.repeat(np.arange(len(data.grade_starts)), data.grade_stops - data.grade_starts)
        W_g = np.bincount(grade, data.weight_of(data.order[data.is_scored[data.order]]))
        same = np.bincount(np.repeat(np.arange(n_queries), np.diff(data.query_grades)), W_g**2, n_queries)
    c = query_factors(W_q, query_weight, W_q**2 - same)
    return replace(data, weights=np.sqrt(c)[codes] * data.weight_of(np.arange(data.n_rows)))


def drawn_weight(data: RankingData, query_weight: str, rows: str = "scored") -> float:
    """
    Return the total weight of all pairs of rows of one query, including each row with itself: Σ_q c_q W_q² / 2.

    A mean over these pairs does not change if a row of weight 2 is replaced by two copies.

    query_weight {"pairs", "equal", "rows"}: c_q, see `query_factors`.
    """
    members = data.scored_rows if rows == "scored" else data.unscored_rows
    codes, w = data.queries.codes[members], data.weight_of(members)
    W_q = np.bincount(codes, w)
    if query_weight == "rows":
        return float(W_q.sum()) / 2
    return float(query_factors(W_q, query_weight, W_q**2 - np.bincount(codes, w * w)) @ W_q**2) / 2


def require_query_weight(query_weight: str) -> None:
    """Raise `InputError` unless a query weight is one of `QUERY_WEIGHTS`."""
    if query_weight not in QUERY_WEIGHTS:
        raise InputError(f"query_weight is {query_weight!r}; choose one of {', '.join(QUERY_WEIGHTS)}.")
