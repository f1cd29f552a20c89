"""
tune_bm25: k1 and b of BM25 by the average precision of judged queries, cross-validated over queries.

A setting costs one index and one search of all queries; every fold chooses among the same values, so that k folds cost
what one search of the grid costs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.errors import InputError
from corank.metrics import evaluate
from corank.parameters import check_values, rng_of, seed, whole
from corank.text.bm25 import BM25
from corank.text.corpus import Corpus

Floats = NDArray[np.float64]

K1S, BS = (0.6, 0.9, 1.2, 1.5, 2.0, 3.0), (0.3, 0.5, 0.75, 0.9)
"""Values of k1 and b that are tried by default."""


@dataclass(frozen=True, eq=False)
class Tuned:
    """
    What `tune_bm25` found.

    Attributes
    ----------
    model : BM25
        With the numbers that are best over all queries.
    held_out : float
        Mean average precision of queries, each by the numbers that are best over the queries of other folds.
    grid : dict of (k1, b) to float
        Mean average precision over all queries.
    """

    model: BM25
    held_out: float
    grid: dict[tuple[float, float], float]


def tune_bm25(
    corpus: Corpus,
    queries: Sequence[str],
    relevant: Sequence[Iterable[Any]],
    *,
    k1s: Sequence[float] = K1S,
    bs: Sequence[float] = BS,
    idf: str = "lucene",
    cv: int = 5,
    random_state: Any = 0,
) -> Tuned:
    """
    Choose k1 and b of BM25 by judged queries.

    Parameters
    ----------
    corpus : Corpus
        The documents.
    queries : sequence of str
        The queries.
    relevant : sequence of iterables of ids
        The relevant documents of each query; queries without any are left out.
    k1s, bs : sequence of float
        Values to try, each with each.
    idf : {"lucene", "robertson", "plain"}
        As in `BM25`.
    cv : int
        Number of parts that queries are dealt into; as many as there are queries where those are fewer.
    random_state : int, RandomState or None
        Seed of the parts.

    Returns
    -------
    Tuned
        The best `BM25`, and what such a choice is worth on queries that it did not see.

    Examples
    --------
    >>> from corank.text import Corpus, tune_bm25
    >>> corpus = Corpus.of(["tin tin tin", "tin mine", "tin and wheat", "wheat"], language=None)
    >>> found = tune_bm25(corpus, ["tin", "mine"], [["0"], ["1"]], k1s=(0.0, 2.0), bs=(0.0,))
    >>> found.model.k1 in (0.0, 2.0), sorted(found.grid) == [(0.0, 0.0), (2.0, 0.0)]
    (True, True)
    """
    check_values({"cv": cv, "random_state": random_state}, {"cv": whole(2), "random_state": seed})
    settings = [(float(k1), float(b)) for k1 in k1s for b in bs]
    if not settings:
        raise InputError("k1s or bs is empty; pass at least one value of each.")
    y, kept = _judged(corpus, queries, relevant)
    bags = corpus.count([queries[q] for q in kept])
    qid = np.repeat(np.arange(len(kept)), corpus.n_documents)
    values = np.array(
        [
            evaluate(y, BM25(k1, b, idf=idf).to_index(corpus).scores(bags).ravel(), qid, "AP")["AP"].values
            for k1, b in settings
        ]
    )
    best = settings[int(values.mean(axis=1).argmax())]
    grid = dict(zip(settings, values.mean(axis=1).tolist(), strict=True))
    return Tuned(BM25(*best, idf=idf), _held_out(values, cv, rng_of(random_state)), grid)


def _judged(corpus: Corpus, queries: Sequence[str], relevant: Sequence[Iterable[Any]]) -> tuple[Floats, list[int]]:
    """Return 1 for relevant documents, query after query, and the queries that have some."""
    if isinstance(queries, str):
        raise InputError("queries is one text; pass a list of them, and the relevant ids of each.")
    if len(queries) != len(relevant):
        raise InputError(
            f"relevant has {len(relevant)} entries for {len(queries)} queries; pass the relevant ids of each query."
        )
    rows, kept = [], []
    for q, names in enumerate(relevant):
        if isinstance(names, str | bytes):
            raise InputError(f"relevant is {names!r} for query {q}; pass a list of ids.")
        found = [corpus.number.get(str(name)) for name in names]
        at = [number for number in found if number is not None]
        if at:
            rows.append(np.bincount(at, minlength=corpus.n_documents) > 0)
            kept.append(q)
    if len(kept) < 2:
        raise InputError(
            f"{len(kept)} of {len(queries)} queries have a relevant document in the corpus; judge two at least."
        )
    return np.concatenate(rows).astype(np.float64), kept


def _held_out(values: Floats, n_folds: int, rng: np.random.Generator) -> float:
    """Mean of each query's value under what is best over the other folds."""
    n = values.shape[1]
    fold = rng.permutation(n) % min(n_folds, n)
    held = np.empty(n)
    for f in range(min(n_folds, n)):
        held[fold == f] = values[values[:, fold != f].mean(axis=1).argmax(), fold == f]
    return float(held.mean())
