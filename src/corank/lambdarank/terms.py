"""Term: one λ of a weighted sum, and how its forces are computed for many queries."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.core.lists.list_lambdas import AP, ERR, RR, add_ndcg, add_swaps
from corank.core.lists.pair_lambdas import LOGISTIC, RAMP, add_pairs, add_preferences, add_winner
from corank.errors import InputError
from corank.lambdarank.kinds import KINDS, OWN, Kind
from corank.lambdarank.lists import Lists
from corank.lambdarank.own import OwnForces, find_function
from corank.parameters import is_whole, number

Floats = NDArray[np.float64]

# ranks whose discounts are told apart; a row of large weight takes many
_PLACES = 1 << 20


@dataclass(frozen=True)
class Term:
    """
    One λ of a weighted sum.

    Attributes
    ----------
    name : str
        One of `KINDS`, or ``"module:function"``.
    factor : float
        Its weight, above 0.
    k : int or None
        Depth of ``ndcg@k``.
    parameter : float or None
        delta of ``margin``, near of ``ndcg``, rel of ``map`` and ``mrr``, max_grade of ``err``.
    function : callable or None
        The user's own, where it was handed over.
    """

    name: str
    factor: float = 1.0
    k: int | None = None
    parameter: float | None = None
    function: Callable[..., Any] | None = None

    def __post_init__(self) -> None:
        kind, text = self.kind, str(self)
        if not number(0, inside="()").allows(self.factor):
            raise InputError(f"{text!r} has the weight {self.factor!r}; pass a number above 0.")
        if self.k is not None and not (kind.has_depth and is_whole(self.k) and self.k > 0):
            raise InputError(f"{text!r} has a depth; only 'ndcg@k' has one, k from 1 on.")
        if self.parameter is not None and not kind.parameter:
            raise InputError(f"{text!r} has a parameter, but {self.name} takes none; drop it.")
        if kind.parameter and not (self.parameter is None and kind.default is None):
            rule = {"rel": number(), "near": number(0)}.get(kind.parameter, number(0, inside="()"))
            if not rule.allows(self.parameter):
                raise InputError(f"{text!r} has {kind.parameter}={self.parameter!r}; pass {rule.words}.")

    @property
    def kind(self) -> Kind:
        """What is known of it."""
        return KINDS.get(self.name, OWN)

    def __str__(self) -> str:
        factor = "" if self.factor == 1.0 else f"{self.factor:g}*"
        changed = bool(self.kind.parameter) and self.parameter != self.kind.default
        inside = f"({self.kind.parameter}={self.parameter:g})" if changed else ""
        return f"{factor}{self.name}{inside}" + ("" if self.k is None else f"@{self.k}")

    def add(self, lists: Lists, scores: Floats, out: Floats, first: int, last: int) -> None:
        """
        Add forces and curvatures of some queries.

        Parameters
        ----------
        lists : Lists
            All queries.
        scores : array of shape (n_rows,)
            Scores of their rows.
        out : array of shape (2, n_rows)
            Receives forces and curvatures.
        first, last : int
            The queries, half-open.
        """
        rows = (scores, lists.labels, lists.weights, lists.starts, out, first, last)
        match self.name:
            case "ranknet" | "margin":
                code, delta = (LOGISTIC if self.name == "ranknet" else RAMP), self.parameter or 1.0
                if lists.pairs is None:
                    add_pairs(code, delta, self.factor, *rows)
                elif lists.pair_starts is not None:
                    ends = int(lists.pair_starts[first]), int(lists.pair_starts[last])
                    add_preferences(code, delta, self.factor, scores, lists.pairs, lists.pair_weights, out, *ends)
            case "ndcg":
                add_ndcg(self.factor, self.parameter or 0.0, discounts(lists, self.k), *rows)
            case "map" | "mrr":
                add_swaps(AP if self.name == "map" else RR, self.parameter, self.factor, *rows)
            case "err":
                highest = highest_grade(lists.labels) if self.parameter is None else self.parameter
                add_swaps(ERR, highest, self.factor, *rows)
            case "wta":
                add_winner(self.factor, *rows)
            case "regression" | "spring":
                some = slice(lists.starts[first], lists.starts[last])
                target = lists.labels[some] if self.name == "regression" else 0.0
                out[0, some] += self.factor * lists.weights[some] * (target - scores[some])
                out[1, some] += self.factor * lists.weights[some]
            case _:
                OwnForces(self.function or find_function(self.name)).add(lists, scores, self.factor, out, first, last)


def highest_grade(labels: Floats) -> float:
    """
    Return the highest grade there is, for ERR.

    Parameters
    ----------
    labels : array of float64
        Grades.

    Returns
    -------
    float
        At least 1.
    """
    return max(float(labels.max(initial=0.0)), 1.0)


def discounts(lists: Lists, k: int | None) -> Floats:
    """
    Return the discounts 1/log2(rank + 1) of the ranks that occur.

    Parameters
    ----------
    lists : Lists
        The queries.
    k : int or None
        The last rank that counts.

    Returns
    -------
    array
        One for each rank, the last one for all that follow: 0 beyond `k`.
    """
    places = np.add.reduceat(np.maximum(lists.weights, 1.0), lists.starts[:-1]) if lists.n_queries else np.ones(1)
    n = int(min(np.ceil(places.max()) + 1, _PLACES, np.inf if k is None else k))
    found = 1.0 / np.log2(np.arange(2, n + 2))
    return found if k is None else np.append(found, 0.0)
