"""
Lambda: gradients by the scores of a query, instead of a cost (Burges, Ranking as learning structured outputs, 2005).

λ_i(s, y) = −∂C/∂s_i is the rate at which the score of row i should rise, for a query with scores s and grades y,
whether or not a cost C with this gradient exists. Each λ comes with a curvature, −∂λ_i/∂s_i or a bound of it, for
Newton steps. Every λ costs O(n²) for a query of n rows; ``ndcg@k`` O(nk + n log n), ``wta``, ``regression`` and
``spring`` O(n).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corank.core.threads import cut, n_threads, parallel_map
from corank.data.inputs import as_scores
from corank.errors import InputError, suggest_names
from corank.fitted import Part
from corank.models.lambdarank.terms import LAMBDAS, OWN, Lists, Term

Floats = NDArray[np.float64]

_TERM = re.compile(
    r"(?:(?P<factor>[^*\s]+)\s*\*\s*)?(?P<name>[A-Za-z_][\w.]*(?::[A-Za-z_]\w*)?)(\((?P<inside>[^()]*)\))?(@(?P<k>\d+))?"
)


@dataclass(frozen=True)
class Lambda(Part):
    """
    LambdaRank gradients: a weighted sum of λ of the registry `LAMBDAS` and of the user's functions.

    Called with the scores and grades of one query, it returns λ of each row; positive values raise its score.
    """

    terms: tuple[Term, ...]  # the summands; `Lambda.of` parses them from a string

    @classmethod
    def of(cls, lambdas: Any) -> Lambda:
        """Parse a description of λ."""
        if isinstance(lambdas, Lambda):
            return lambdas
        if callable(lambdas):
            return cls((Term(getattr(lambdas, "__name__", "function"), function=lambdas),))
        if not isinstance(lambdas, str):
            raise InputError(
                f"lambdas is {lambdas!r}; pass a name such as 'ndcg@10', a Lambda, or a function of scores and grades."
            )
        return cls(tuple(_term(part.strip(), lambdas) for part in re.split(r"(?<![eE(=])\+", lambdas)))

    def __str__(self) -> str:
        return " + ".join(map(str, self.terms))

    def __add__(self, other: Lambda) -> Lambda:
        return Lambda((*self.terms, *other.terms))

    def __rmul__(self, factor: float) -> Lambda:
        return Lambda(tuple(replace(term, factor=factor * term.factor) for term in self.terms))

    def __call__(self, scores: ArrayLike, labels: ArrayLike) -> Floats:
        """Return λ of one query from the scores and grades of its rows."""
        return self.with_curvatures(scores, labels)[0]

    def with_curvatures(self, scores: ArrayLike, labels: ArrayLike) -> tuple[Floats, Floats]:
        """Return λ and curvatures of one query."""
        s = np.ascontiguousarray(scores, dtype=np.float64)
        out = self.of_lists(Lists.of_query(as_scores(labels, len(s))), s)
        return out[0], out[1]

    def of_lists(self, lists: Lists, scores: Floats, n_jobs: int | None = None) -> Floats:
        """Return λ and curvatures of the rows of many queries."""
        out = np.zeros((2, len(scores)))

        def add(first: int, last: int) -> None:
            for term in self.terms:
                term.add(lists, scores, out, first, last)

        threads = 1 if n_jobs is None else n_threads(n_jobs)
        parallel_map(add, cut(lists.starts, 1 if threads == 1 else 8 * threads), threads)
        return out

    @property
    def metric(self) -> str:
        """The metric that the first term optimises."""
        first = self.terms[0]
        return first.kind.metric + ("" if first.k is None else f"@{first.k}")

    @property
    def takes_preferences(self) -> bool:
        """Whether preferences can replace grades."""
        return all(term.kind.takes_preferences for term in self.terms)

    @property
    def uses_grade_values(self) -> bool:
        """Whether the values of grades matter, not only their order."""
        return any(term.kind.uses_grade_values for term in self.terms)

    @property
    def needs_pairs(self) -> bool:
        """Whether queries with a single grade are left out."""
        return all(term.kind.needs_pairs for term in self.terms)

    def check_lists(self, lists: Lists) -> None:
        """Raise `InputError` if λ is not defined for some rows."""
        highest = lists.labels.max(initial=0.0)
        for term in self.terms:
            if not term.kind.takes_row_weights and not lists.is_even:
                raise InputError(
                    f"sample_weight differs inside a query, but {str(term)!r} is a function of whole lists; give all "
                    "rows of a query the same weight, or choose 'ranknet', 'ndcg' or 'wta'."
                )
            if term.kind.from_grades is not None and term.parameter is not None and highest > term.parameter:
                raise InputError(
                    f"y has the grade {highest:g}, above {term.kind.parameter} of {str(term)!r}; raise "
                    f"{term.kind.parameter}."
                )

    def for_grades(self, labels: Floats) -> Lambda:
        """Set the parameters that depend on all grades: the highest grade, for ``err``."""
        terms = [
            replace(term, parameter=term.kind.from_grades(labels))
            if term.kind.from_grades is not None and term.parameter is None
            else term
            for term in self.terms
        ]
        return Lambda(tuple(terms))


def _term(text: str, description: str) -> Term:
    match = _TERM.fullmatch(text)
    name = match["name"] if match else text
    if match is None or (name not in LAMBDAS and ":" not in name):
        names = suggest_names(name, [*LAMBDAS, "module:function"])
        raise InputError(f"{description!r} has the unknown λ {text!r}; {names}.")
    kind = LAMBDAS.get(name, OWN)
    try:
        factor = float(match["factor"] or 1.0)
        key, equals, value = (match["inside"] or "").rpartition("=")
        parameter = float(value) if value else kind.default
    except ValueError:
        raise InputError(
            f"{description!r} has {text!r}, whose weight or parameter is not a number; write 0.1*margin(0.5)."
        ) from None
    if equals and key.strip() != kind.parameter:
        takes = f"it takes {kind.parameter}" if kind.parameter else "it takes none"
        raise InputError(f"{description!r} has the parameter {key.strip()!r}, which {name} does not have; {takes}.")
    return Term(name, factor, int(match["k"]) if match["k"] else None, parameter)
