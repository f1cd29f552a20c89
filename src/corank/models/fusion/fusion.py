"""
Fusion: combine the lists of several retrievers, learnt from few judged queries.

The floor is what needs no judgement: equal weights of reciprocal ranks or of min-max scores. `Fusion` averages several
hundred simple fusions, from equal weights to one retriever alone, and some least-squares solutions, each weighted by
its metric on the judged queries (`corank.models.fusion.posterior`). The average of weights is again one weighted sum.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from corank.base.contract import Estimator, check_columns, check_parameters, install, note_columns
from corank.data.inputs import as_scores, as_weights
from corank.data.queries import Queries
from corank.data.routing import how_to_pass_qid
from corank.errors import InputError
from corank.metrics.significance import sign_flip
from corank.models.fusion.candidates import FORMS, Features, Prior, Squares, shared_documents
from corank.models.fusion.definition import EngineForm, Estimate, FusionDefinition
from corank.models.fusion.judged import JudgedQueries, TreatedGrades, treat_unjudged
from corank.models.fusion.lists import Floats, RetrievedLists
from corank.models.fusion.posterior import Evidence
from corank.parameters import Rule, Rules, boolean, number, rng_of, seed

_METRIC = re.compile(r"ndcg@([1-9]\d{0,3})", re.IGNORECASE)
_LEVEL = 0.95
PRIOR, CONDENSED = Prior(), 0.5
"""Prior, and the factor of the evidence of condensed lists."""
FUSION, RRF, MEAN = "fusion", "RRF", "mean of min-max scores"


@dataclass(frozen=True, eq=False)
class _Fitted:
    """Fitted attributes of `Fusion`."""

    definition: FusionDefinition
    n_queries: int
    left_out_values: dict[str, Floats]
    is_condensed: bool = False


class Fusion(Estimator):
    """
    Combine the lists of several retrievers into one.

    Without judgements this is reciprocal rank fusion (RRF). Judged queries move it towards what they show to be better:
    another rule, unequal weights, one retriever alone, or weights learnt by least squares. The fusion is the average of
    all of these, weighted by their metric on the judged queries, and is again a weighted sum of normalised scores,
    reciprocal ranks and presence.

    Parameters
    ----------
    metric : str, default "nDCG@10"
        What to improve: nDCG at some rank, with linear gains.
    k : float, default 60
        Constant of the reciprocal ranks 1/(k + rank) of RRF; k/6 is tried, too.
    unjudged : {"auto", "missing", "irrelevant", "pooled"}
        How unjudged documents count, see `corank.data.PoolPolicy`. "irrelevant" evaluates whole lists. "missing" and
        "pooled" leave documents that nobody looked at out of the lists (condensed lists). "auto" takes "irrelevant" if
        the tops of all lists were judged about equally and at most a tenth of RRF's top is unjudged, else "pooled".
    pool : int, mapping, table or None
        What was judged, as in `corank.data.PoolPolicy`; None estimates it from the ranks of judged documents.
    allow_negative : bool, default False
        Whether weights may be negative, which most search engines cannot express.
    random_state : int, optional
        Random seed of the candidates; None draws the same ones in each fit.

    Attributes
    ----------
    definition_ : FusionDefinition
        The fusion: retrievers, terms, estimate, forms for engines.
    n_queries_ : int
        Number of queries in ``fit``.
    left_out_values_ : dict of str to array of shape (n_judged,)
        Metric of each judged query: of the fusion learnt without the query, of RRF, of the mean of min-max scores, and
        of each retriever. Empty without judgements.
    is_condensed_ : bool
        Whether these values are those of condensed lists.

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
        "k": number(0, 1e6),
        "allow_negative": boolean,
        "random_state": seed,
    }

    definition_: FusionDefinition
    n_queries_: int
    left_out_values_: dict[str, Floats]
    is_condensed_: bool

    def __init__(
        self,
        metric: str = "nDCG@10",
        k: float = 60.0,
        unjudged: Literal["auto", "missing", "irrelevant", "pooled"] = "auto",
        pool: Any = None,
        allow_negative: bool = False,
        random_state: int | None = None,
    ) -> None:
        self.metric = metric
        self.k = k
        self.unjudged = unjudged
        self.pool = pool
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
        m = lists.X.shape[1]
        names = tuple(str(name) for name in notes.get("feature_names_in_", [f"r{j + 1}" for j in range(m)]))
        empty = np.flatnonzero(~lists.is_returned.any(axis=0))
        if len(empty):
            raise InputError(f"{names[empty[0]]} returned no document: its column is NaN; leave the column out.")
        grades = np.full(len(lists.X), np.nan) if y is None else as_scores(y, len(lists.X))
        weights = np.ones(len(grades)) if sample_weight is None else as_weights(sample_weight, len(grades))
        unseen = None if missed is None else _as_missed(missed, lists.queries)
        fitted = self._learn(lists, np.where(weights > 0, grades, np.nan), weights, unseen, names)
        return install(self, fitted, notes)

    def _learn(
        self,
        lists: RetrievedLists,
        grades: Floats,
        weights: Floats,
        missed: tuple[NDArray[np.int64], Floats] | None,
        names: tuple[str, ...],
    ) -> _Fitted:
        """Average the candidates by the evidence of the judged queries; RRF if there is none."""
        plain = JudgedQueries.of(grades, lists.queries, self._cutoff, missed)
        if not len(plain):
            why = "no query has a judged document" if np.isnan(grades).all() else "no judged document is relevant"
            note = f"Nothing was learnt, since {why}; equal weights of reciprocal ranks need no judgement."
            m = len(names)
            forms = tuple(EngineForm(form, self.k if form == "rrf" else None, (1.0 / m,) * m) for form in FORMS)
            definition = FusionDefinition.rrf(names, self.k, notes=(note,), engine_forms=forms)
            return _Fitted(definition, len(lists.queries), {})
        used = lists.take(plain.codes)
        rows = np.isin(lists.queries.codes, plain.codes)
        treated = treat_unjudged(
            used, grades[rows], weights[rows], names, self.unjudged, self.pool, rrf_k=self.k, k=self._cutoff
        )
        if missed is not None:  # queries have other codes now
            place = np.full(len(lists.queries), -1)
            place[plain.codes] = np.arange(len(plain))
            missed = place[missed[0]], missed[1]
        features = Features.of(used, self.k)
        queries = JudgedQueries.of(
            treated.y, used.queries, self._cutoff, missed, condensed=treated.is_condensed, weights=treated.weights
        )
        evidence, n = self._evidence(features, used, treated, queries), len(queries)
        fused = evidence.left_out_values([features.unit(evidence.weights(q)) for q in range(n)]) if n > 1 else None
        values = _rule_values(features, queries, names)
        n_lists = f"{n} judged queries" + (" (condensed lists)" if treated.is_condensed else "")
        definition = FusionDefinition(
            names, features.terms(evidence.weights(), names), f"{evidence.summary()}; by {self.metric} of {n_lists}",
            None if fused is None else _estimate(self.metric, fused),
            treated.sentence, treated.notes, tuple(self._form(evidence, form, fused) for form in FORMS),
        )  # fmt: skip
        left_out = values if fused is None else {FUSION: fused, **values}
        return _Fitted(definition, len(lists.queries), left_out, treated.is_condensed)

    def _evidence(
        self, features: Features, lists: RetrievedLists, grades: TreatedGrades, queries: JudgedQueries
    ) -> Evidence:
        # condensed lists say less about the top of whole lists
        prior = replace(PRIOR, evidence=PRIOR.evidence * (CONDENSED if grades.is_condensed else 1.0))
        whole = grades.y if grades.is_condensed else np.nan_to_num(grades.y)
        return Evidence.of(
            features, queries, Squares.of(features, lists, whole, grades.weights, queries), prior,
            shared_documents(lists), rng_of(0 if self.random_state is None else self.random_state),
            sources=grades.sources, nonnegative=not self.allow_negative,
        )  # fmt: skip

    def _form(self, evidence: Evidence, form: str, fused: Floats | None) -> EngineForm:
        """Return the nearest fusion of an engine form, and what it loses on left-out queries."""
        shares, column = evidence.shares(form)
        k = evidence.features.columns[column][1]
        if fused is None:
            return EngineForm(form, k, tuple(shares.tolist()))
        own = []
        for q in range(len(evidence)):
            p, name = evidence.shares(form, q)
            own.append(evidence.features.mixed({name: 1.0}, p[None])[:, 0])
        gap = fused - evidence.left_out_values(own)
        test = sign_flip(gap, level=_LEVEL)
        return EngineForm(form, k, tuple(shares.tolist()), float(gap.mean()), _finite(test.low), _finite(test.high))

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

    def summary(self) -> str:
        """
        Return what was chosen, in a few lines of text.

        Returns
        -------
        str
            The rule, weights, values on left-out queries, and how unjudged documents were treated.
        """
        check_is_fitted(self)
        definition, values = self.definition_, self.left_out_values_
        lines = [definition.rule[0].upper() + definition.rule[1:] + "."]
        for name in definition.retrievers:
            parts = [
                f"{term.weight:.3g} {term.transform}" if term.k is None else f"{term.weight:.3g} / ({term.k:g} + rank)"
                for term in definition.terms
                if term.retriever == name
            ]
            lines.append(f"  {name}: {', '.join(parts) or 'not used'}")
        if definition.estimate is not None:
            own = values[FUSION]
            lines.append(f"{self.metric}, {len(own)} queries, each left out in turn: {own.mean():.3f}")
            lines += [
                f"  {(own - values[other]).mean():+.3f} against {other} ({values[other].mean():.3f}), better with "
                f"probability {p_better(own - values[other]):.2f}"
                for other in (RRF, best_retriever(values, definition.retrievers))
            ]
        return "\n".join([*lines, *filter(None, (definition.pool, *definition.notes))])

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "definition_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.target_tags.required = False
        return tags


def p_better(differences: Floats) -> float:
    """
    Return the probability that a mean is above 0, given normal differences with a flat prior: Student's t.

    >>> round(p_better(np.array([0.1, 0.2, 0.0, 0.1])), 3)
    0.954
    """
    from scipy.stats import t

    n, spread = len(differences), float(differences.std(ddof=1)) if len(differences) > 1 else 0.0
    mean = float(differences.mean())
    if spread == 0.0:
        return 0.5 if mean == 0.0 or n < 2 else float(mean > 0.0)
    return float(t.cdf(mean / spread * np.sqrt(n), n - 1))


def best_retriever(values: dict[str, Floats], retrievers: tuple[str, ...]) -> str:
    """Return the retriever with the highest mean."""
    return max(retrievers, key=lambda name: float(values[name].mean()))


def _as_missed(missed: tuple[ArrayLike, ArrayLike], queries: Queries) -> tuple[NDArray[np.int64], Floats]:
    """Return codes of queries and grades; queries that no list has are left out."""
    ids, given = list(np.asarray(missed[0]).tolist()), missed[1]
    grades = as_scores(given, len(ids))
    code = {query: q for q, query in enumerate(queries.ids.tolist())}
    known = np.array([query in code for query in ids], dtype=bool)
    return np.array([code[query] for query in ids if query in code], dtype=np.int64), grades[known]


def _rule_values(features: Features, judged: JudgedQueries, names: tuple[str, ...]) -> dict[str, Floats]:
    """Return the metric of RRF, of the mean of min-max scores and of each retriever, by query."""
    flat, scaled = features.values[:, features.places("flat")], features.values[:, features.places("minmax")]
    values = judged.ndcg(np.column_stack([flat.sum(axis=1), scaled.sum(axis=1), flat]))
    return dict(zip((RRF, MEAN, *names), values.T, strict=True))


def _estimate(metric: str, values: Floats) -> Estimate:
    test = sign_flip(values, level=_LEVEL)
    low, high = _finite(test.low), _finite(test.high)
    low, high = None if low is None else max(low, 0.0), None if high is None else min(high, 1.0)
    return Estimate(metric, float(values.mean()), low, high, _LEVEL, len(values))


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
