"""
Weighted kernel least squares on the judged records, refitted after every answer.

With t = ±1 and weights w that sum to the number of judged records and give all relevant records together ten times the
weight of the others,

    (K_JJ + λ diag(1/w)) a = t,    f = K_{·J} a.

Conjugate gradients start from the last coefficients and solve with I + S K_JJ S, S = diag(√(w/λ)), usually in three
steps. All weights change with every answer, so that a factorisation could not be updated. Cost: O(m² + n m) with the
full kernel, else O(non-zeros) per step; no m × m matrix is built then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.base import conjugate_gradients
from corank.text import split_words
from corank_lab.screening.prior import SourceWeights
from corank_lab.screening.views import Views

PENALTY, BALANCE = 4.0, 10.0
TOLERANCE, MAX_STEPS = 1e-3, 100

Floats = NDArray[np.float64]
Product = Callable[[Floats], NDArray[np.floating[Any]]]


class ScreeningModel:
    """Scores of all records by the answers so far."""

    def __init__(self, views: Views, sources: Floats | None = None) -> None:
        self.views = views
        self._weights = None if sources is None or not sources.shape[1] else SourceWeights(sources)
        n = len(views)
        self._a = np.zeros(n)  # one per record, 0 if not judged
        self._rows: list[int] = []  # records of the rows of _kernel, in this order
        self._kernel = np.empty((n, n), np.float32) if views.kernel is not None else None

    def scores(self, judged: Sequence[int], relevant: Sequence[bool]) -> NDArray[np.float32]:
        """Refit, and score every record; with prior knowledge, in units of the standard deviation."""
        scores = self._fitted(judged, relevant)
        if self._weights is None:
            return scores
        return self._weights.ordered(scores, judged, relevant, self._without).astype(np.float32)

    def _without(self, rows: NDArray[np.intp], relevant: NDArray[np.bool_]) -> Floats:
        """Score every record by some of the judged ones, from zero coefficients."""
        target, judged = np.where(relevant, 1.0, -1.0), self.views.take(rows)
        a = solve(
            lambda x: judged.times(judged, x) + judged.own * x, PENALTY / weights(target), target, np.zeros(len(rows))
        )
        return self.views.times(judged, a).astype(np.float64)

    def _fitted(self, judged: Sequence[int], relevant: Sequence[bool]) -> NDArray[np.float32]:
        rows, target, views = np.array(judged, dtype=np.intp), np.where(relevant, 1.0, -1.0), self.views
        ridge, start = PENALTY / weights(target), self._a[rows]
        self._a[:] = 0.0
        if views.kernel is not None:
            kernel = self._judged_kernel(rows)
            self._a[rows] = solve(lambda x: kernel @ x.astype(np.float32), ridge, target, start)
            return np.asarray(views.kernel @ self._a.astype(np.float32))
        judged_rows = views.take(rows)
        a = solve(lambda x: judged_rows.times(judged_rows, x) + judged_rows.own * x, ridge, target, start)
        self._a[rows] = a
        scores = views.times(judged_rows, a)
        scores[rows] += judged_rows.own * a.astype(np.float32)
        return scores

    def _judged_kernel(self, rows: NDArray[np.intp]) -> NDArray[np.float32]:
        assert self._kernel is not None
        assert self.views.kernel is not None
        n_same = 0
        for n_same, (old, new) in enumerate(zip(self._rows, rows, strict=False), 1):
            if old != new:
                n_same -= 1
                break
        for row in range(n_same, len(rows)):
            similar = self.views.kernel[rows[row], rows[: row + 1]]
            self._kernel[row, : row + 1] = similar
            self._kernel[: row + 1, row] = similar
        self._rows = rows.tolist()
        return self._kernel[: len(rows), : len(rows)]


def weights(target: Floats) -> Floats:
    """Weight the judged records: the relevant ones together ten times the others; weights sum to their number."""
    relevant = target > 0
    n_relevant, n_others = np.count_nonzero(relevant), np.count_nonzero(~relevant)
    if not (n_relevant and n_others):
        return np.ones(len(target))
    weight = np.where(relevant, 1.0, n_relevant / (BALANCE * n_others))
    return np.asarray(weight * (len(target) / weight.sum()))


def solve(product: Product, ridge: Floats, target: Floats, start: Floats) -> Floats:
    """Solve (K + diag(ridge)) a = target by conjugate gradients."""
    scale = 1.0 / np.sqrt(ridge)

    def apply(x: Floats) -> Floats:
        return x + scale * product(scale * x)

    return scale * conjugate_gradients(apply, scale * target, lambda r: r, TOLERANCE**2, MAX_STEPS, start / scale).x


def choose_first(
    views: Views, unread: NDArray[np.intp], rejected: Iterable[int], *, sources: Floats | None = None, seed: int = 0
) -> int:
    """
    Choose a record while no relevant one is known: by prior knowledge, the most typical and a random one, in turn.

    Prior knowledge prefers the largest sum of its sources. It has only its turn, since a title may share its words with
    the wrong records. A typical record is similar to many records and to few rejected ones.
    """
    irrelevant = np.array([*rejected], dtype=np.intp)
    has_prior = sources is not None and sources.shape[1] > 0
    ways = ["prior", "typical", "random"] if has_prior else ["typical", "random"]
    way = ways[len(irrelevant) % len(ways)]
    if way == "random":
        return int(np.random.default_rng([seed, len(irrelevant)]).choice(unread))
    if sources is not None and way == "prior":
        scores = sources.sum(axis=1)
    else:
        scores = views.typical
        if len(irrelevant):
            scores = scores - views.times(views.take(irrelevant), np.full(len(irrelevant), 1 / len(irrelevant)))
    return int(unread[np.argmax(scores[unread])])


def telling_words(
    views: Views, text: str, judged: Sequence[int], relevant: Sequence[bool], *, n: int
) -> list[tuple[str, float]]:
    """Return the words of a text by which relevant records differ most from the others that were read."""
    number, chosen = views.vocabulary.number, np.array(relevant, dtype=np.bool_)
    terms = {word: number[word] for word in dict.fromkeys(split_words(text.lower())) if word in number}
    if not (chosen.any() and (~chosen).any() and terms):
        return []
    rows = views.text_of(np.array(judged))[:, list(terms.values())]
    weights = np.asarray(rows[chosen].mean(axis=0) - rows[~chosen].mean(axis=0)).ravel()
    order = np.argsort(-np.abs(weights), kind="stable")[:n].tolist()
    words = list(terms)
    return [(words[i], float(weights[i])) for i in order if weights[i]]


def similar_records(views: Views, record: int, *, n: int) -> list[int]:
    """Return the records with the most similar text, of which a record may be a duplicate."""
    cosines = views.text_times(views.text_of([record]))
    cosines[record] = -1.0
    order = np.argsort(-cosines, kind="stable")[:n]
    return [number for number in order.tolist() if cosines[number] > 0]
