"""
Prior knowledge: old reviews with labels, criteria in words, and probabilities of cheap judges such as language models.

Each source becomes one column of standardised scores of the records. With f the scores of the model and s those of
the sources, records are read in the order of f + Σ ρ s. The weights ρ = β/b are those of a logistic regression of the
answers so far, P(relevant) = σ(a + b f + Σ β s), where f of a judged record comes from a model that was fitted without
it. A normal prior shrinks β to `TRUST`: a source counts from the first record on, and loses its weight if the answers
do not bear it out. Until the first find, every third record is the one with the best sources.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from corank.errors import InputError, suggest_names
from corank_lab.records.records import Records
from corank_lab.screening.views import Views

TRUST, SPREAD = 0.1, 0.5
"""Mean and standard deviation of the normal prior of β, per standard deviation of a source."""
SLOPE, SLOPE_SPREAD, MIN_SLOPE = 1.5, 2.0, 0.3
"""The same of b, and its smallest value."""
FOLDS, MIN_EACH, GROWTH = 5, 3, 1.2
"""Folds of the scores out of sample, answers of each kind that they need, and growth after which weights are new."""
LIMIT, MIN_P = 3.0, 0.01
"""Largest standardised score, and smallest probability that is told from 0."""

Floats = NDArray[np.float64]
Scorer = Callable[[NDArray[np.intp], NDArray[np.bool_]], Floats]
"""Scores of all records by some judged ones and their answers."""


@dataclass(frozen=True, eq=False)
class Prior:
    """Sources of prior knowledge; each may be absent."""

    reviews: Records | None = None  # old reviews, of which the records with labels are used
    column: str = ""  # name of a column with the probability of relevance, from 0 to 1 or in percent

    def columns(self, records: Records, views: Views, criteria: str = "") -> Floats:
        """Return the standardised scores of the records, one column for each source that is given."""
        result = []
        if self.reviews is not None:
            result.append(review_scores(self.reviews, views))
        if self.column:
            result.append(column_scores(records, self.column))
        if criteria.strip():
            result.append(views.likeness(criteria).astype(np.float64))
        columns = [np.clip(standardised(scores), -LIMIT, LIMIT) for scores in result]
        return np.column_stack(columns) if columns else np.empty((len(records), 0))


def judged_rows(reviews: Records) -> tuple[NDArray[np.intp], Floats]:
    """Return the rows of the judged records of old reviews, and their labels as 1 and -1; both kinds are needed."""
    rows = np.flatnonzero(~np.isnan(reviews.labels))
    target = np.where(reviews.labels[rows] == 1, 1.0, -1.0)
    if not ((target > 0).any() and (target < 0).any()):
        n_relevant = int((target > 0).sum())
        raise InputError(
            f"the old reviews have {n_relevant} relevant and {len(target) - n_relevant} irrelevant records; pass "
            "records with labels of both kinds, in a column such as included."
        )
    return rows, target


def review_scores(reviews: Records, views: Views) -> Floats:
    """Score records by a model of their words that was fitted on old reviews."""
    from corank_lab.screening.model import PENALTY, solve, weights

    rows, target = judged_rows(reviews)
    old = views.vocabulary.rows([f"{reviews.titles[row]} {reviews.abstracts[row]}" for row in rows.tolist()])
    a = solve(lambda x: old @ (old.T @ x) + x.sum(), PENALTY / weights(target), target, np.zeros(len(rows)))
    return views.text_times(old.T @ a).astype(np.float64)


def column_scores(records: Records, column: str) -> Floats:
    """Return the logarithms of the odds in a column; records without a number have the mean."""
    names = {name.casefold(): name for fields in records.fields for name in fields}
    if column.casefold() not in names:
        raise InputError(f"the records have no column {column!r}; {suggest_names(column, list(names.values()))}.")
    name, values = names[column.casefold()], np.full(len(records), np.nan)
    is_percentage = np.zeros(len(records), dtype=bool)
    for number, fields in enumerate(records.fields):
        text = " ".join(fields.get(name, ())).strip()
        is_percentage[number] = text.endswith("%")
        try:
            values[number] = float(text.removesuffix("%")) if text else np.nan
        except ValueError:
            raise InputError(
                f"record {records.ids[number]!r} has {text[:40]!r} in the column {name!r}; expected a probability."
            ) from None
    values = np.where(is_percentage | (np.nanmax(values[~is_percentage], initial=0.0) > 1.0), values / 100, values)
    if np.isnan(values).all() or np.nanmin(values) < 0.0 or np.nanmax(values) > 1.0:
        raise InputError(f"the column {name!r} holds no probabilities; expected numbers from 0 to 1, or percentages.")
    share = np.clip(values, MIN_P, 1 - MIN_P)
    odds = np.log(share / (1 - share))
    return np.asarray(np.where(np.isnan(odds), np.nanmean(odds), odds))


def probability_columns(records: Records, n: int = 200) -> list[str]:
    """Return the columns that hold probabilities in the first records."""
    first, result = records.take(range(min(n, len(records)))), []
    for name in dict.fromkeys(name for fields in first.fields for name in fields):
        try:
            scores = column_scores(first, name)
        except InputError:
            continue
        result += [name] if np.ptp(scores) > 1e-9 else []
    return result


def standardised(scores: NDArray[np.floating]) -> Floats:
    """Return scores with mean 0 and standard deviation 1; 0 if all are equal."""
    return np.asarray((scores - scores.mean()) / (scores.std() or 1.0), dtype=np.float64)


class SourceWeights:
    """Weights ρ of the sources; they depend on the answers alone, and are new whenever these have grown by a fifth."""

    def __init__(self, sources: Floats) -> None:
        self.sources = sources
        self._last: tuple[tuple[int, ...], tuple[bool, ...], Floats] | None = None

    def ordered(
        self, scores: NDArray[np.floating], judged: Sequence[int], relevant: Sequence[bool], scorer: Scorer
    ) -> Floats:
        size = int(GROWTH ** np.floor(np.log(len(judged)) / np.log(GROWTH) + 1e-9))
        key = tuple(judged[:size]), tuple(relevant[:size])
        if self._last is None or self._last[:2] != key:
            self._last = (*key, self._weights(np.array(key[0], dtype=np.intp), np.array(key[1]), scorer))
        return standardised(scores) + self.sources @ self._last[2]

    def _weights(self, rows: NDArray[np.intp], relevant: NDArray[np.bool_], scorer: Scorer) -> Floats:
        k = self.sources.shape[1]
        if min(relevant.sum(), (~relevant).sum()) < MIN_EACH:
            return np.full(k, TRUST / SLOPE)
        fold = np.empty(len(rows), dtype=np.intp)
        for kind in (relevant, ~relevant):
            fold[kind] = np.arange(kind.sum()) % FOLDS
        outside = np.empty(len(rows))
        for number in range(FOLDS):
            left_out = fold == number
            scores = standardised(scorer(rows[~left_out], relevant[~left_out]))
            outside[left_out] = scores[rows[left_out]]
        fitted = logistic_map(
            np.column_stack([np.ones(len(rows)), outside, self.sources[rows]]), relevant.astype(np.float64),
            np.array([0.0, SLOPE, *[TRUST] * k]), np.array([1e-3, SLOPE_SPREAD**-2, *[SPREAD**-2] * k]),
        )  # fmt: skip
        return np.asarray(fitted[2:] / max(fitted[1], MIN_SLOPE))


def logistic_map(x: Floats, y: Floats, mean: Floats, precision: Floats) -> Floats:
    """Return the coefficients of a logistic regression with a normal prior, by Newton's method with short steps."""
    w = mean.copy()
    w[0] = np.log((y.sum() + 0.5) / (len(y) - y.sum() + 0.5))
    for _ in range(30):
        p = 1 / (1 + np.exp(-np.clip(x @ w, -30, 30)))
        gradient = x.T @ (y - p) - precision * (w - mean)
        step = np.linalg.solve((x * (p * (1 - p))[:, None]).T @ x + np.diag(precision), gradient)
        w = w + step * min(1.0, 2 / max(float(np.abs(step).max()), 1e-12))
        if np.abs(step).max() < 1e-8:
            break
    return w
