"""JudgementList: answers of judges about documents of queries, graded or not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from corank.data.judges import JudgeGrades

Texts = NDArray[np.object_]

GRADED, UNRATEABLE, LATER = "grade", "unrateable", "later"
"""Kinds of answers; the last two have no grade, and are not the grade 0."""


@dataclass(frozen=True, eq=False)
class JudgementList:
    """Answers of judges, one per row; made by `read_judgements`."""

    y: NDArray[np.float64]  # grades; NaN if the judge gave none
    qid: Texts | None  # qid, docids: query and document of each row
    docids: Texts
    judges: Texts | None = None  # judge of each row; None if the file does not name them
    answers: Texts | None = None  # "grade", "unrateable" or "later"; None if all rows are grades or empty
    notes: Texts | None = None  # explanation of each answer, "" for none
    query_texts: Mapping[str, str] = field(default_factory=dict)  # words of queries whose ids are not their words

    def __len__(self) -> int:
        return len(self.y)

    def text_of(self, query: str) -> str:
        """Return the words of a query, or its id if they are unknown."""
        return self.query_texts.get(query) or query

    def count(self, answer: str) -> int:
        """Return the number of answers of a kind."""
        return 0 if self.answers is None else int(np.count_nonzero(self.answers == answer))

    def final(self, rule: str) -> JudgementList:
        """Return one grade per document, without judges, notes and documents without grade."""
        grades = JudgeGrades.of(self.y, self.qid, self.docids, self._named_judges())
        y = grades.aggregate(rule)
        first, y = grades.first[~np.isnan(y)], y[~np.isnan(y)]
        return JudgementList(
            y, None if self.qid is None else self.qid[first], self.docids[first], query_texts=self.query_texts
        )

    def _named_judges(self) -> Texts | None:
        # `JudgeGrades` refuses a grade without a judge
        return None if self.judges is None or (self.judges == "").any() else self.judges
