"""Fusion: combine the lists of several retrievers, learnt from few judged queries."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from corank.base.contract import Learner, check_columns, check_parameters, install, note_columns
from corank.data.inputs import as_scores
from corank.data.queries import Queries
from corank.data.routing import how_to_pass_qid
from corank.errors import InputError
from corank.models.fusion.definition import FusionDefinition, Term
from corank.models.fusion.lists import Floats, RetrievedLists
from corank.models.fusion.values import JudgedQueries
from corank.parameters import Rule, Rules, boolean, number, seed

_METRIC = re.compile(r"ndcg@([1-9]\d{0,3})", re.IGNORECASE)


@dataclass(frozen=True, eq=False)
class _Fitted:
    """Fitted attributes of `Fusion`."""

    definition: FusionDefinition
    n_queries: int


class Fusion(Learner):
    """
    Combine the lists of several retrievers into one.

    Parameters
    ----------
    metric : str, default "nDCG@10"
        What to improve: nDCG at some rank, with linear gains.
    k : float, default 60
        Constant of reciprocal ranks 1/(k + rank).
    allow_negative : bool, default False
        Whether weights may be negative, which most search engines cannot express.
    random_state : int, optional
        Random seed of intervals.

    Attributes
    ----------
    definition_ : FusionDefinition
        The fusion: retrievers, terms, estimate.

    Examples
    --------
    >>> X = [[7.1, np.nan], [3.2, 0.8], [np.nan, 0.5]]
    >>> fusion = Fusion().fit(X)
    >>> fusion.definition_.rule
    'RRF with k = 60'
    >>> fusion.predict(X).round(4).tolist()
    [0.0164, 0.0325, 0.0161]
    """

    __metadata_request__fit: ClassVar[dict[str, bool]] = {"qid": True}
    __metadata_request__predict: ClassVar[dict[str, bool]] = {"qid": True}
    _rules: ClassVar[Rules] = {
        "metric": Rule("'nDCG@k' with a k from 1 to 9999", lambda value: bool(_METRIC.fullmatch(str(value)))),
        "k": number(0),
        "allow_negative": boolean,
        "random_state": seed,
    }

    definition_: FusionDefinition
    n_queries_: int

    def __init__(
        self, metric: str = "nDCG@10", k: float = 60.0, allow_negative: bool = False, random_state: int | None = None
    ) -> None:
        self.metric = metric
        self.k = k
        self.allow_negative = allow_negative
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        *,
        qid: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        missed: tuple[ArrayLike, ArrayLike] | None = None,
    ) -> Self:
        """
        Choose and learn a fusion.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_rows, n_retrievers)
            Retrieval scores: one row per query and document that some retriever returned, one column per retriever,
            NaN where it did not return the document.
        y : array-like of shape (n_rows,), optional
            Grades, NaN where unjudged. Without any grade the fusion is RRF.
        qid : array-like of shape (n_rows,), optional
            One query id per row; None puts all rows in one query.
        sample_weight : array-like of shape (n_rows,), optional
            Weights of rows in learning.
        missed : tuple of two array-likes, optional
            Query ids and grades of judged documents that no retriever returned; they count in the ideal order.

        Returns
        -------
        self
            The fitted fusion.
        """
        check_parameters(self)
        lists = RetrievedLists.of(X, qid)
        notes = note_columns(X, lists.X)
        empty = np.flatnonzero(~lists.is_returned.any(axis=0))
        names = tuple(str(name) for name in notes.get("feature_names_in_", ())) or tuple(
            f"r{j + 1}" for j in range(lists.X.shape[1])
        )
        if len(empty):
            raise InputError(f"{names[empty[0]]} returned no document: its column is NaN; leave the column out.")
        grades = np.full(len(lists.X), np.nan) if y is None else as_scores(y, len(lists.X))
        judged = JudgedQueries.of(grades, lists.queries, self._cutoff, None)
        definition = FusionDefinition.rrf(names, self.k)
        if len(judged):
            definition = self._averaged(lists, judged, names)
        fitted = _Fitted(definition, len(lists.queries))
        return install(self, fitted, notes)

    def predict(self, X: Any, qid: ArrayLike | None = None) -> Floats:
        """
        Score the documents of new lists.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_rows, n_retrievers)
            Retrieval scores as in `fit`. A retriever may have returned nothing at all.
        qid : array-like of shape (n_rows,), optional
            One query id per row; needed after a fit with several queries.

        Returns
        -------
        array of shape (n_rows,)
            Fused scores in input order, higher is better.
        """
        check_is_fitted(self)
        if qid is None and self.n_queries_ > 1:
            raise InputError(
                f"Fusion was fitted with {self.n_queries_} queries, but these rows have no qid, and scores "
                f"depend on the lists of their query; {how_to_pass_qid()} (the same id for all if they are one query)."
            )
        lists = RetrievedLists.of(X, qid)
        check_columns(self, X, lists.X)
        return self.definition_.score_lists(lists)

    def rank(self, X: Any, qid: ArrayLike | None = None) -> NDArray[np.int64]:
        """
        Rank documents inside their queries.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_rows, n_retrievers)
            Retrieval scores as in `fit`.
        qid : array-like of shape (n_rows,), optional
            One query id per row; needed after a fit with several queries.

        Returns
        -------
        array of int64, shape (n_rows,)
            1 for the best document of each query; equal scores keep their input order.
        """
        return Queries.of(qid, len(X)).ranks(self.predict(X, qid))

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """
        Write the fusion to ``fusion.json``, which `load_fusion` reads.

        Parameters
        ----------
        path : str or Path
            The file.
        overwrite : bool, default False
            Whether to replace an existing file.
        """
        check_is_fitted(self)
        self.definition_.save(path, overwrite=overwrite)

    @property
    def _cutoff(self) -> int:
        match = _METRIC.fullmatch(self.metric)
        return int(match[1]) if match else 10

    def _averaged(self, lists: RetrievedLists, judged: JudgedQueries, names: tuple[str, ...]) -> FusionDefinition:
        rrf = FusionDefinition.rrf(names, self.k)
        mean = FusionDefinition(names, tuple(Term(name, "minmax", 1.0) for name in names), "mean of min-max scores")
        values = judged.ndcg(np.column_stack([rule.score_lists(lists) for rule in (rrf, mean)])).mean(axis=0)
        return (rrf, mean)[int(values.argmax())]

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "definition_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.target_tags.required = False
        return tags
