"""Who judges: scores of the rows that folds left out, against their grades, query by query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.data.problem.queries import Queries
from corank.errors import InputError
from corank.evaluation.compare.problem import Problem
from corank.metrics import Convention, Evaluation, evaluate

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Jury:
    """
    The judged rows of a problem.

    problem, queries: the rows, and the ids of their queries.
    docids: documents of the rows of the data, or None.
    convention: how metrics are read.
    """

    problem: Problem
    queries: Queries
    docids: Any
    convention: Convention

    @cached_property
    def ids(self) -> NDArray[Any]:
        """What each judged row's query is called."""
        units = self.problem.units[self.problem.judged]
        codes = self.problem.codes[self.problem.judged]
        if not np.array_equal(units, codes):
            return np.array([f"part {unit + 1}" for unit in units])
        return np.asarray(self.queries.ids[codes])

    @cached_property
    def sizes(self) -> dict[Any, tuple[int, int]]:
        """Rows and scored rows of each judged query."""
        found = Queries.of(self.ids, len(self.ids))
        scored = np.bincount(found.codes, weights=~np.isnan(self.problem.y[self.problem.judged]))
        return {query: (int(n), int(m)) for query, n, m in zip(found.ids.tolist(), found.sizes, scored, strict=True)}

    def evaluate(self, scores: Floats, metrics: Sequence[str]) -> Evaluation:
        """Hold scores of the judged rows against their grades."""
        rows = self.problem.judged
        docids = None if self.docids is None else np.asarray(self.docids)[rows]
        return evaluate(self.problem.y[rows], scores, self.ids, metrics, convention=self.convention, docids=docids)

    def require(self, metrics: Sequence[str]) -> None:
        """Raise one sentence, before anything is learnt, where grades do not suit a metric."""
        found = self.evaluate(np.zeros(len(self.problem.judged)), metrics)
        if not found[metrics[0]].n_used:
            raise InputError(f"{metrics[0]} is defined for no judged query; choose another with metrics=.")
