"""
Lambda: forces on the documents of a query, instead of a cost (Burges, Ranking as learning structured outputs, 2005).

λ_i(s, y) = −∂C/∂s_i says how hard row i of a query with scores s and grades y is to be pulled up, whether or not there
is a cost C with these slopes. Beside each force stands a curvature, −∂λ_i/∂s_i or a bound of it, for learners that take
Newton's steps. Every λ costs O(n²) for a query of n rows; ``ndcg@k`` O(nk + n log n), ``wta``, ``regression`` and
``spring`` O(n).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corank.core.threads import cut, n_threads, spread
from corank.data.problem.inputs import as_scores
from corank.errors import InputError, suggest_names
from corank.lambdarank.kinds import KINDS, OWN
from corank.lambdarank.lists import Lists
from corank.lambdarank.terms import Term, highest_grade

Floats = NDArray[np.float64]

_TERM = re.compile(
    r"(?:(?P<factor>[^*\s]+)\s*\*\s*)?(?P<name>[A-Za-z_][\w.]*(?::[A-Za-z_]\w*)?)(\((?P<inside>[^()]*)\))?(@(?P<k>\d+))?"
)


@dataclass(frozen=True)
class Lambda:
    """
    Forces on the rows of a query: a weighted sum of shipped ones and of functions of the user's.

    Called with the scores and grades of one query, it returns a force for each row, positive upwards.

    Parameters
    ----------
    terms : tuple of Term
        What is summed; `Lambda.of` makes them from a text.

    Examples
    --------
    >>> ranknet = Lambda.of("ranknet")
    >>> ranknet([0.0, 0.0, 1.0], [1, 0, 0]).round(3).tolist()
    [1.231, -0.5, -0.731]
    >>> str(Lambda.of("ndcg@10") + 0.1 * Lambda.of("regression"))
    'ndcg@10 + 0.1*regression'
    """

    terms: tuple[Term, ...]

    @classmethod
    def of(cls, forces: Any) -> Lambda:
        """
        Read forces as users state them.

        Parameters
        ----------
        forces : str, Lambda or callable
            A name of `KINDS`, with depth or parameter (``"ndcg@10"``, ``"margin(delta=0.5)"``, ``"map(rel=2)"``), a
            weighted sum (``"ndcg@10 + 0.1*regression"``), the place of a function (``"mymodule:forces"``), or a
            function of the scores and grades of one query that returns its forces, or a tuple of its forces and
            curvatures.

        Returns
        -------
        Lambda
            The forces.
        """
        if isinstance(forces, Lambda):
            return forces
        if callable(forces):
            return cls((Term(getattr(forces, "__name__", "function"), function=forces),))
        if not isinstance(forces, str):
            raise InputError(
                f"forces is {forces!r}; pass a name such as 'ndcg@10', a Lambda, or a function of scores and grades."
            )
        return cls(tuple(_term(part.strip(), forces) for part in re.split(r"(?<![eE(=])\+", forces)))

    def __str__(self) -> str:
        return " + ".join(map(str, self.terms))

    def __add__(self, other: Lambda) -> Lambda:
        return Lambda((*self.terms, *other.terms))

    def __rmul__(self, factor: float) -> Lambda:
        return Lambda(tuple(replace(term, factor=factor * term.factor) for term in self.terms))

    def __call__(self, scores: ArrayLike, labels: ArrayLike) -> Floats:
        """
        Return the forces of one query.

        Parameters
        ----------
        scores : array-like of shape (n,)
            Scores of its rows.
        labels : array-like of shape (n,)
            Their grades.

        Returns
        -------
        array of shape (n,)
            How hard each row is pulled up.
        """
        return self.pulls(scores, labels)[0]

    def pulls(self, scores: ArrayLike, labels: ArrayLike) -> tuple[Floats, Floats]:
        """
        Return forces and curvatures of one query.

        Parameters
        ----------
        scores : array-like of shape (n,)
            Scores of its rows.
        labels : array-like of shape (n,)
            Their grades.

        Returns
        -------
        forces, curvatures : arrays of shape (n,)
            How hard each row is pulled up, and −∂λ_i/∂s_i or a bound of it.
        """
        s = np.ascontiguousarray(scores, dtype=np.float64)
        out = self.total(Lists.of_query(as_scores(labels, len(s))), s)
        return out[0], out[1]

    def total(self, lists: Lists, scores: Floats, n_jobs: int | None = None) -> Floats:
        """
        Return forces and curvatures of the rows of many queries.

        Parameters
        ----------
        lists : Lists
            The queries.
        scores : array of shape (n_rows,)
            Scores of their rows.
        n_jobs : int, optional
            Threads; None is one.

        Returns
        -------
        array of shape (2, n_rows)
            Forces and curvatures.
        """
        out = np.zeros((2, len(scores)))

        def add(first: int, last: int) -> None:
            for term in self.terms:
                term.add(lists, scores, out, first, last)

        threads = 1 if n_jobs is None else n_threads(n_jobs)
        spread(add, cut(lists.starts, 1 if threads == 1 else 8 * threads), threads)
        return out

    @property
    def metric(self) -> str:
        """The metric that the first term serves."""
        first = self.terms[0]
        return first.kind.metric + ("" if first.k is None else f"@{first.k}")

    @property
    def compares(self) -> bool:
        """Whether preferences do as well as grades."""
        return all(term.kind.compares for term in self.terms)

    @property
    def by_size(self) -> bool:
        """Whether it matters how large grades are."""
        return any(term.kind.by_size for term in self.terms)

    @property
    def needs_pairs(self) -> bool:
        """Whether a query of one grade teaches nothing."""
        return all(term.kind.needs_pairs for term in self.terms)

    def require(self, lists: Lists) -> None:
        """
        Raise one sentence where these forces cannot be had for some rows.

        Parameters
        ----------
        lists : Lists
            The rows.
        """
        highest = lists.labels.max(initial=0.0)
        for term in self.terms:
            if not term.kind.counts_rows and not lists.is_even:
                raise InputError(
                    f"sample_weight differs inside a query, but {str(term)!r} looks at whole lists, in which a row "
                    "stands once; give all rows of a query one weight, or choose 'ranknet', 'ndcg' or 'wta'."
                )
            if term.name == "err" and term.parameter is not None and highest > term.parameter:
                raise InputError(f"{str(term)!r} is told of lower grades than {highest:g} of y; raise max_grade.")

    def for_grades(self, labels: Floats) -> Lambda:
        """
        Fix what a λ reads off all grades: the highest there is, for ``err``.

        Parameters
        ----------
        labels : array of float64
            Grades of all rows.

        Returns
        -------
        Lambda
            The forces, the same for any part of these rows.
        """
        highest = highest_grade(labels)
        return Lambda(
            tuple(
                replace(term, parameter=highest) if term.name == "err" and term.parameter is None else term
                for term in self.terms
            )
        )


def _term(text: str, whole: str) -> Term:
    found = _TERM.fullmatch(text)
    name = found["name"] if found else text
    if found is None or (name not in KINDS and ":" not in name):
        raise InputError(f"{whole!r} holds no known λ {text!r}; {suggest_names(name, [*KINDS, 'module:function'])}.")
    kind = KINDS.get(name, OWN)
    try:
        factor = float(found["factor"] or 1.0)
        key, equals, value = (found["inside"] or "").rpartition("=")
        parameter = float(value) if value else kind.default
    except ValueError:
        raise InputError(
            f"{whole!r} has {text!r}, which holds no number where one is due; write 0.1*margin(0.5)."
        ) from None
    if equals and key.strip() != kind.parameter:
        takes = f"it takes {kind.parameter}" if kind.parameter else "it takes none"
        raise InputError(f"{whole!r} has the parameter {key.strip()!r}, which {name} does not know; {takes}.")
    return Term(name, factor, int(found["k"]) if found["k"] else None, parameter)
