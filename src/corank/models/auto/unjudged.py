"""
How unjudged rows of judged queries are learnt from: left out, as irrelevant, or as irrelevant where the pool reached.

The judged rows of left-out queries choose. No treatment adds grades to them, so they favour none: evaluated on whole
lists, "irrelevant" would win because the evaluation makes the same assumption.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from corank.data.pools import UNJUDGED, PoolPolicy
from corank.data.ranking import RankingData
from corank.errors import InputError
from corank.models.auto.candidates import CANDIDATES, MAX_RANKED, column_correlations, n_columns, ranks_inside
from corank.models.auto.left_out import ValidationFolds
from corank.models.auto.trials import Trials, quiet

Floats = NDArray[np.float64]

TREATMENTS = ("auto", *UNJUDGED)
"""Values of the parameter `unjudged`; "auto" tries the others."""

# unjudged rows of a query that are taken as irrelevant
_MAX_ROWS = 100
# standard errors by which another treatment must be better than to leave unjudged rows out
_ERRORS = 0.5
_IN_WORDS = {
    "missing": "left out", "irrelevant": "taken as irrelevant",
    "pooled": "taken as irrelevant where the pool reached, and left out elsewhere",
}  # fmt: skip


def treat_unjudged(
    data: RankingData, left_out: ValidationFolds | None, unjudged: str, seed: int
) -> tuple[RankingData, ValidationFolds | None, str | None]:
    """Return the problem and its folds with unjudged rows as chosen, and one sentence; None if there are none."""
    if (
        data.y is None
        or not (np.isnan(data.y) & np.isin(data.queries.codes, data.queries.codes[data.scored_rows])).any()
    ):
        return data, left_out, None
    if unjudged != "auto":
        treated = _treated(data, left_out, _grades(data, unjudged, seed))
        return *treated, f"Unjudged rows of judged queries are {_IN_WORDS[unjudged]}."
    judged = data.y[data.scored_rows]
    if sparse.issparse(data.X) or data.n_rows * data.n_features > MAX_RANKED:
        return data, left_out, None
    if left_out is None or not left_out.is_by_query or judged.min() < 0.0 or judged.max() <= 0.0:
        return data, left_out, None
    grades: dict[str, Floats] = {}
    for name in UNJUDGED:
        y = _grades(data, name, seed)
        if not any(np.array_equal(y, other, equal_nan=True) for other in grades.values()):
            grades[name] = y
    values = {}
    for name, y in grades.items():
        with quiet():
            work = Trials(*_treated(data, left_out, y), seed, None)
            values[name] = left_out.values(work._left_out_scores(CANDIDATES["linear"], lambda *_: None))
    means = {name: float(np.nanmean(value)) for name, value in values.items()}
    best = max(means, key=means.__getitem__)
    gains = values[best] - values["missing"]
    gains = gains[~np.isnan(gains)]
    if len(gains) < 2 or gains.mean() <= _ERRORS * gains.std(ddof=1) / np.sqrt(len(gains)):
        best = "missing"
    others = ", ".join(f"{mean:.3f} {_IN_WORDS[name]}" for name, mean in means.items() if name != best)
    sentence = (
        f"Unjudged rows of judged queries are {_IN_WORDS[best]}: {left_out.metric_name} {means[best]:.3f} of a linear "
        f"ranker on the judged rows of left-out queries"
    )
    return *_treated(data, left_out, grades[best]), f"{sentence} ({others})." if others else f"{sentence}."


def _grades(data: RankingData, unjudged: str, seed: int) -> Floats:
    """Return the grades that a treatment makes of y."""
    assert data.y is not None
    if unjudged == "missing":
        return data.y
    ranks = None
    if unjudged == "pooled":
        if sparse.issparse(data.X) or data.n_rows * data.n_features > MAX_RANKED:
            raise InputError("unjudged is 'pooled', but X is sparse or too large to rank; pass 'missing'.")
        X = np.asarray(data.X[:, : n_columns(data)], dtype=np.float64)
        # highest first, or lowest first if the grades fall along a column
        signs = np.where(column_correlations(data) < 0.0, 1.0, -1.0)
        ranks = np.ceil(ranks_inside(signs * X, data.queries) * data.queries.sizes[data.queries.codes][:, None])
    lowest = min(0.0, float(np.nanmin(data.y)))
    policy = PoolPolicy(unjudged, grade=lowest, max_rows=_MAX_ROWS, random_state=seed)  # type: ignore[arg-type]
    return policy.apply(data.y, qid=data.queries.codes, ranks=ranks).y


def _treated(
    data: RankingData, left_out: ValidationFolds | None, y: Floats
) -> tuple[RankingData, ValidationFolds | None]:
    def graded(part: RankingData) -> RankingData:
        # rows of weight 0 stay as they are
        own = np.where(part.weight_of(np.arange(part.n_rows)) > 0.0, y, np.nan)
        changed = RankingData.of_checked(part.X, own, part.queries, part.weights).with_prior(part.prior)
        return replace(changed, has_missing=part.has_missing, filling=part.filling, names=part.names)

    return graded(data), None if left_out is None else replace(left_out, data=graded(left_out.data))
