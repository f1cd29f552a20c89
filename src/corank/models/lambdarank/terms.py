"""
The registry of λ (`LAMBDAS`), Term: one λ of a weighted sum, and Lists: the judged rows of a problem by query.

An entry of the registry describes a λ and holds the function that adds its values for many queries. A λ of the user's
is a function of the scores and grades of one query, in Python or compiled by numba.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.core.lists.list_lambdas import AP, ERR, RR, add_ndcg, add_swaps
from corank.core.lists.pair_lambdas import LOGISTIC, RAMP, add_pairs, add_preferences, add_winner
from corank.data.queries import take_blocks
from corank.data.ranking import RankingData
from corank.errors import InputError, reason
from corank.fitted import Part
from corank.parameters import Rule, is_integer, number

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Lists:
    """
    Rows to learn from, grouped by query.

    pairs (n_pairs, 2): preferences between positions among `rows`, winner first, in order of their query; or None.
    """

    rows: Integers  # (n,): numbers of the rows in the problem
    starts: Integers  # (n_queries + 1,): where each query begins among them
    labels: Floats  # (n,): grades; zeros if preferences are given instead
    weights: Floats  # (n,): weights of the rows
    pairs: Integers | None = None
    pair_weights: Floats | None = None  # (n_pairs,): their weights, those of the two rows included
    pair_starts: Integers | None = None  # (n_queries + 1,): where the preferences of each query begin

    @classmethod
    def of(cls, data: RankingData, *, with_pairs_only: bool = False) -> Lists:
        """Select the judged rows of a problem."""
        codes = data.queries.codes
        is_wanted = np.zeros(data.n_rows, dtype=bool)
        is_wanted[data.scored_rows] = True
        if with_pairs_only and data.y is not None:
            # rows of weight zero are in no pair
            low, high = np.full(len(data.queries), np.inf), np.full(len(data.queries), -np.inf)
            np.minimum.at(low, codes[data.scored_rows], data.y[data.scored_rows])
            np.maximum.at(high, codes[data.scored_rows], data.y[data.scored_rows])
            is_wanted &= (low < high)[codes]
        rows = data.queries.order[is_wanted[data.queries.order]]
        # queries are in order of first appearance, so the codes of these rows never decrease
        kept, counts = np.unique(codes[rows], return_counts=True)
        starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        weights = data.weight_of(rows)
        if data.pairs is None:
            assert data.y is not None
            return cls(rows, starts, np.ascontiguousarray(data.y[rows]), weights)
        position = np.empty(data.n_rows, dtype=np.int64)
        position[rows] = np.arange(len(rows))
        counted = np.flatnonzero(data.pair_weight > 0.0)
        counted = counted[np.argsort(codes[data.pairs[counted, 0]], kind="stable")]
        pair_starts = np.searchsorted(codes[data.pairs[counted, 0]], np.append(kept, len(data.queries)))
        pairs = position[data.pairs[counted]]
        return cls(rows, starts, np.zeros(len(rows)), weights, pairs, data.pair_weight[counted], pair_starts)

    @classmethod
    def of_query(cls, labels: Floats) -> Lists:
        """Make one query of rows of weight 1."""
        n = len(labels)
        return cls(np.arange(n), np.array([0, n], dtype=np.int64), labels, np.ones(n))

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return len(self.starts) - 1

    @property
    def is_even(self) -> bool:
        """Whether the rows of each query have the same weight."""
        return bool((self.weights == np.repeat(self.weights[self.starts[:-1]], np.diff(self.starts))).all())

    def select(self, queries: Integers) -> tuple[Lists, Integers]:
        """Select queries."""
        positions, starts = take_blocks(self.starts, queries)
        rows, labels, weights = self.rows[positions], self.labels[positions], self.weights[positions]
        if self.pairs is None or self.pair_starts is None or self.pair_weights is None:
            return Lists(rows, starts, labels, weights), positions
        chosen, pair_starts = take_blocks(self.pair_starts, queries)
        shift = np.repeat(starts[:-1] - self.starts[queries], np.diff(pair_starts))
        pairs = self.pairs[chosen] + shift[:, None]
        return Lists(rows, starts, labels, weights, pairs, self.pair_weights[chosen], pair_starts), positions


Add = Callable[["Term", Lists, Floats, Floats, int, int], None]

# number of ranks with a discount of their own; a row of large weight takes many ranks
_MAX_RANKS = 1 << 20
_POSITIVE = number(0, inside="()")


@dataclass(frozen=True)
class LambdaKind:
    """
    A λ of the registry.

    from_grades: returns the parameter from all grades, if neither the user nor `default` sets it.
    takes_preferences: whether only the order of grades in pairs matters, so that preferences can replace grades.
    takes_row_weights: whether a row of weight 2 counts as two rows; otherwise only queries can have weights.
    """

    about: str  # the pairs or rows that it moves, and by how much
    metric: str  # the metric that it optimises
    add: Add  # adds λ and curvatures of some queries, with the parameters of `Term.add`
    parameter: str = ""  # name of its parameter, or ""
    default: float | None = None  # value of the parameter if none is given
    rule: Rule = _POSITIVE  # values that the parameter may have
    from_grades: Callable[[Floats], float] | None = None
    has_depth: bool = False  # whether ``@k`` may follow the name
    takes_preferences: bool = False
    uses_grade_values: bool = True  # whether the values of grades matter, not only their order
    needs_pairs: bool = True  # whether queries with a single grade are left out
    takes_row_weights: bool = True


@dataclass(frozen=True)
class Term(Part):
    """
    One λ of a weighted sum.

    parameter: delta of ``margin``, near of ``ndcg``, rel of ``map`` and ``mrr``, max_grade of ``err``.
    """

    name: str  # a name of `LAMBDAS`, or ``"module:function"``
    factor: float = 1.0  # its weight, above 0
    k: int | None = None  # depth of ``ndcg@k``
    parameter: float | None = None
    function: Callable[..., Any] | None = None  # the user's own function, if it was passed as an object

    def __post_init__(self) -> None:
        kind, text = self.kind, str(self)
        if not _POSITIVE.allows(self.factor):
            raise InputError(f"{text!r} has the weight {self.factor!r}; pass a number above 0.")
        if self.k is not None and not (kind.has_depth and is_integer(self.k) and self.k > 0):
            raise InputError(f"{text!r} has a depth; only 'ndcg@k' has one, with k of at least 1.")
        if self.parameter is not None and not kind.parameter:
            raise InputError(f"{text!r} has a parameter, but {self.name} takes none; leave it out.")
        is_set = bool(kind.parameter) and not (self.parameter is None and kind.default is None)
        if is_set and not kind.rule.allows(self.parameter):
            raise InputError(f"{text!r} has {kind.parameter}={self.parameter!r}; pass {kind.rule.words}.")

    @property
    def kind(self) -> LambdaKind:
        """Its entry of the registry."""
        return LAMBDAS.get(self.name, OWN)

    def __str__(self) -> str:
        factor = "" if self.factor == 1.0 else f"{self.factor:g}*"
        changed = bool(self.kind.parameter) and self.parameter != self.kind.default
        inside = f"({self.kind.parameter}={self.parameter:g})" if changed else ""
        return f"{factor}{self.name}{inside}" + ("" if self.k is None else f"@{self.k}")

    def add(self, lists: Lists, scores: Floats, out: Floats, first: int, last: int) -> None:
        """Add λ and curvatures of some queries."""
        self.kind.add(self, lists, scores, out, first, last)


def highest_grade(labels: Floats) -> float:
    """Return the highest grade, but at least 1, for ERR."""
    return max(float(labels.max(initial=0.0)), 1.0)


def discounts(lists: Lists, k: int | None) -> Floats:
    """Return the discounts 1/log2(rank + 1) of the ranks that occur."""
    ranks = np.add.reduceat(np.maximum(lists.weights, 1.0), lists.starts[:-1]) if lists.n_queries else np.ones(1)
    n = int(min(np.ceil(ranks.max()) + 1, _MAX_RANKS, np.inf if k is None else k))
    values = 1.0 / np.log2(np.arange(2, n + 2))
    return values if k is None else np.append(values, 0.0)


def _pairs(code: int, term: Term, lists: Lists, scores: Floats, out: Floats, first: int, last: int) -> None:
    delta = term.parameter or 1.0
    if lists.pairs is None:
        add_pairs(code, delta, term.factor, scores, lists.labels, lists.weights, lists.starts, out, first, last)
    elif lists.pair_starts is not None:
        ends = int(lists.pair_starts[first]), int(lists.pair_starts[last])
        add_preferences(code, delta, term.factor, scores, lists.pairs, lists.pair_weights, out, *ends)


def _ndcg(term: Term, lists: Lists, scores: Floats, out: Floats, first: int, last: int) -> None:
    rows = (scores, lists.labels, lists.weights, lists.starts, out, first, last)
    add_ndcg(term.factor, term.parameter or 0.0, discounts(lists, term.k), *rows)


def _swaps(code: int, term: Term, lists: Lists, scores: Floats, out: Floats, first: int, last: int) -> None:
    from_grades = term.kind.from_grades
    parameter = from_grades(lists.labels) if term.parameter is None and from_grades is not None else term.parameter
    add_swaps(code, parameter, term.factor, scores, lists.labels, lists.weights, lists.starts, out, first, last)


def _winner(term: Term, lists: Lists, scores: Floats, out: Floats, first: int, last: int) -> None:
    add_winner(term.factor, scores, lists.labels, lists.weights, lists.starts, out, first, last)


def _squares(to_grade: bool, term: Term, lists: Lists, scores: Floats, out: Floats, first: int, last: int) -> None:
    rows = slice(lists.starts[first], lists.starts[last])
    target = lists.labels[rows] if to_grade else 0.0
    out[0, rows] += term.factor * lists.weights[rows] * (target - scores[rows])
    out[1, rows] += term.factor * lists.weights[rows]


def find_function(path: str) -> Callable[..., Any]:
    """Import a function of the user's, named ``module:function``."""
    module, _, name = path.partition(":")
    try:
        function = getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise InputError(f"{path!r} cannot be imported ({reason(error)}); name it as module:function.") from error
    if not callable(function):
        raise InputError(f"{path!r} is a {type(function).__name__}; name a function of scores and grades.")
    return function  # type: ignore[no-any-return]


def _own(term: Term, lists: Lists, scores: Floats, out: Floats, first: int, last: int) -> None:
    """Apply a function of the user's query by query; a query has the weight of its first row."""
    function = term.function or find_function(term.name)
    own, starts = np.zeros((2, len(scores))), lists.starts
    for q in range(first, last):
        _add_query(function, scores, lists.labels, slice(starts[q], starts[q + 1]), own)
    rows = slice(starts[first], starts[last])
    if not np.isfinite(own[:, rows]).all():
        raise InputError(
            f"{_name_of(function)} returned lambdas or curvatures that are not finite; bound them for all scores."
        )
    weights = lists.weights[np.repeat(starts[first:last], np.diff(starts[first : last + 1]))]
    out[:, rows] += term.factor * weights * own[:, rows]


def _name_of(function: Callable[..., Any]) -> str:
    return f"lambda {getattr(function, '__name__', 'function')!r}"


def _add_query(function: Callable[..., Any], scores: Floats, labels: Floats, rows: slice, own: Floats) -> None:
    """
    Write λ and curvatures of one query.

    Without curvatures, |λ_i| replaces them: a Newton step is then the balance of upward and downward values.
    """
    n = rows.stop - rows.start
    # a function may write to its arguments
    result = function(scores[rows].copy(), labels[rows].copy())
    lambdas, curvatures = result if isinstance(result, tuple) and len(result) == 2 else (result, None)
    for part in (lambdas,) if curvatures is None else (lambdas, curvatures):
        if np.shape(part) != (n,) or np.asarray(part).dtype.kind not in "biuf":
            what = "None" if part is None else f"{type(part).__name__} of shape {np.shape(part)}"
            raise InputError(
                f"{_name_of(function)} returned {what}, not one number per row; return {n} lambdas, or a tuple of "
                "lambdas and curvatures."
            )
    own[0, rows] = lambdas
    own[1, rows] = np.abs(own[0, rows]) if curvatures is None else curvatures


LAMBDAS: dict[str, LambdaKind] = {
    "ranknet": LambdaKind(
        "every pair, by the gradient of the logistic loss", "disagreement", partial(_pairs, LOGISTIC),
        takes_preferences=True, uses_grade_values=False,
    ),
    "margin": LambdaKind(
        "every pair that is not in order by delta, as in the paper", "disagreement", partial(_pairs, RAMP), "delta",
        1.0, takes_preferences=True, uses_grade_values=False,
    ),
    "ndcg": LambdaKind(
        "pairs, by the change of nDCG if they are swapped", "nDCG", _ndcg, "near", 0.0, number(0), has_depth=True,
    ),
    "map": LambdaKind(
        "pairs, by the change of AP if they are swapped", "AP", partial(_swaps, AP), "rel", 1.0, number(),
        takes_row_weights=False,
    ),
    "mrr": LambdaKind(
        "pairs, by the change of the reciprocal rank if they are swapped", "RR", partial(_swaps, RR), "rel", 1.0,
        number(), takes_row_weights=False,
    ),
    "err": LambdaKind(
        "pairs, by the change of ERR if they are swapped", "ERR", partial(_swaps, ERR), "max_grade",
        from_grades=highest_grade, takes_row_weights=False,
    ),
    "wta": LambdaKind(
        "the first ranks, until a row of the highest grade is first", "WTA", _winner, uses_grade_values=False,
    ),
    "regression": LambdaKind("every row, to its grade", "MSE", partial(_squares, True), needs_pairs=False),
    "spring": LambdaKind(
        "every row, to zero: makes costs convex", "disagreement", partial(_squares, False),
        uses_grade_values=False, needs_pairs=False,
    ),
}  # fmt: skip
"""Registry of λ, by name."""

OWN = LambdaKind("as the user's function returns", "disagreement", _own, takes_row_weights=False)
"""A function of the user's."""
