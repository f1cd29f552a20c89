"""Judged collections as queries of at most some rows, all with two different grades."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import normalize

import corank
from corank.comparison.problem import comparable
from corank.data.durable.text import open_text
from experiments.datasets import jester, movielens
from experiments.datasets.catalog import dataset
from experiments.datasets.mq2008 import read_parts
from experiments.datasets.reuters import read_modapte, read_topic_names
from experiments.datasets.smart import read_topics
from experiments.gp_ordinal.run import read_set
from experiments.lambdarank.problems import Judged, made, mslr

Floats = NDArray[np.float64]

ROWS, GROUP = 25, 15
"""Most rows of a query, and the rows of a group that replaces one in sets without queries."""

QUERIES = 300
"""Most queries of a collection."""

# users whose ratings are the features of items
_REFERENCE = 30


def _capped(judged: Judged, n_rows: int = ROWS) -> Judged:
    """Keep at most `QUERIES` queries with two different grades and `n_rows` rows of each, drawn at random."""
    rng = np.random.default_rng(0)
    order = np.lexsort((rng.random(len(judged.y)), judged.qid))
    starts = np.flatnonzero(np.r_[True, np.diff(judged.qid[order]) != 0])
    place = np.arange(len(order)) - np.repeat(starts, np.diff(np.r_[starts, len(order)]))
    rows = np.sort(order[place < n_rows])
    holds = comparable(judged.y[rows], judged.qid[rows])
    rows = rows[np.isin(judged.qid[rows], rng.permutation(holds)[:QUERIES])]
    return Judged(judged.X[rows], judged.y[rows], judged.qid[rows])


def _web() -> Judged:
    split = mslr()
    both = (split.train, split.test)
    qid = np.concatenate([2 * one.qid + at for at, one in enumerate(both)])
    # raw counts of words and links: a logarithm, as users of this set take it
    X = np.concatenate([one.X for one in both])
    return _capped(Judged(np.sign(X) * np.log1p(np.abs(X)), np.concatenate([one.y for one in both]), qid), 40)


def _letor() -> Judged:
    rows = read_parts()
    return _capped(Judged(np.asarray(rows.X), rows.y, np.asarray(rows.qid)))


def _grouped(name: str) -> Judged:
    """Return random groups of rows of a set of ordinal regression."""
    X, y = read_set(name)
    order = np.random.default_rng(1).permutation(len(y))
    order = order[: len(order) // GROUP * GROUP]
    return _capped(Judged(X[order], y[order] - y.min(), np.arange(len(order)) // GROUP))


def _linear() -> Judged:
    found = corank.make_ranking(QUERIES, 20, random_state=5)
    return _capped(Judged(found.X, found.y, found.qid))


def _bent() -> Judged:
    return _capped(made(7, QUERIES).train)


def _rated(ratings: Floats, features: Floats, users: NDArray[np.int64], grades: Floats) -> Judged:
    """Return one query per user; rows are rated items, and features those of the item."""
    user, item = np.nonzero(~np.isnan(ratings[users]))
    y = np.digitize(ratings[users[user], item], grades).astype(np.float64)
    return _capped(Judged(features[item], y, user.astype(np.int64)), 20)


def _jokes() -> Judged:
    ratings = np.asarray(jester.read_ratings(), dtype=np.float64)
    rng, complete = np.random.default_rng(2), ~np.isnan(ratings).any(axis=1)
    others = rng.permutation(np.flatnonzero(complete))[:_REFERENCE]
    users = rng.permutation(np.setdiff1d(np.flatnonzero((~np.isnan(ratings)).sum(axis=1) >= 40), others))[:QUERIES]
    return _rated(ratings, ratings[others].T, users, np.array([-5.0, -1.0, 3.0, 7.0]))


def _movies() -> Judged:
    ratings = np.asarray(movielens.read_ratings(), dtype=np.float64)
    lines = open_text(dataset("movielens-1m").path("item_genres.csv")).read().tobytes().splitlines()[1:]
    table = np.array([line.split(b",") for line in lines], dtype=np.int64)
    genres = np.zeros((ratings.shape[1], table.shape[1] - 1))
    genres[table[:, 0] - 1] = table[:, 1:]
    order = np.random.default_rng(3).permutation(len(ratings))
    known = ratings[order[QUERIES:][:200]]
    n = (~np.isnan(known)).sum(axis=0)
    mean = (np.nansum(known, axis=0) + 3.5) / (n + 1)
    parts = [np.nansum(half - 3.5, axis=0) / (3.0 + (~np.isnan(half)).sum(axis=0)) for half in np.split(known, 10)]
    features = np.column_stack([genres, np.log1p(n), mean, *parts])
    return _rated(ratings, features, order[:QUERIES], np.array([2.0, 3.0, 4.0, 5.0]))


def _features(queries: Sequence[str], texts: Sequence[str], row: NDArray[np.int64], doc: NDArray[np.int64]) -> Floats:
    """Return similarities of queries and texts: query `row[i]` and text `doc[i]`."""
    columns = []
    for options in ({"sublinear_tf": True, "stop_words": "english"}, {"analyzer": "char_wb", "ngram_range": (3, 4)}):
        vectoriser = TfidfVectorizer(min_df=2, max_features=30_000, **options)
        X = vectoriser.fit_transform(texts)
        Q = vectoriser.transform(queries)
        columns += [_inner(Q, X, row, doc), _inner((Q > 0).astype(float), (X > 0).astype(float), row, doc)]
        svd = TruncatedSVD(60, random_state=0).fit(X)
        latent, asked = normalize(svd.transform(X)), normalize(svd.transform(Q))
        columns += [_inner(asked, latent, row, doc), _inner(asked[:, :15], latent[:, :15], row, doc)]
    begin = [text[:120] for text in texts]
    head = TfidfVectorizer(sublinear_tf=True).fit(texts)
    columns.append(_inner(head.transform(queries), head.transform(begin), row, doc))
    size = np.log1p([len(text) for text in texts])
    digits = np.array([sum(map(str.isdigit, text)) / (1 + len(text)) for text in texts])
    return np.column_stack([*columns, size[doc], digits[doc], latent[doc][:, :8]])


def _inner(Q: object, X: object, row: NDArray[np.int64], doc: NDArray[np.int64]) -> Floats:
    product = Q[row].multiply(X[doc]).sum(axis=1) if sparse.issparse(Q) else (Q[row] * X[doc]).sum(axis=1)  # type: ignore[index]
    return np.asarray(product, dtype=np.float64).ravel()


def _topics(queries: Sequence[str], texts: Sequence[str], relevant: NDArray[np.bool_]) -> Judged:
    """Return at most 8 relevant texts of each query, 8 others that are similar to it, and 8 random ones."""
    rng = np.random.default_rng(4)
    vectoriser = TfidfVectorizer(sublinear_tf=True, stop_words="english").fit(texts)
    similar = (vectoriser.transform(queries) @ vectoriser.transform(texts).T).toarray()
    rows, docs = [], []
    for at, good in enumerate(relevant):
        near = np.argsort(-np.where(good, -1.0, similar[at]), kind="stable")[:8]
        far = rng.choice(np.setdiff1d(np.flatnonzero(~good), near), 8, replace=False)
        chosen = np.concatenate([rng.permutation(np.flatnonzero(good))[:8], near, far])
        rows.append(np.full(len(chosen), at))
        docs.append(chosen)
    row, doc = np.concatenate(rows), np.concatenate(docs)
    X = _features(queries, texts, row, doc)
    return _capped(Judged(X, relevant[row, doc].astype(np.float64), row.astype(np.int64)))


def _stories() -> Judged:
    stories, names = read_modapte(), read_topic_names()
    topics = sorted({topic for of in stories.topics for topic in of})
    relevant = np.array([stories.about(topic) > 0 for topic in topics])
    some = np.flatnonzero(relevant.any(axis=0) | (np.random.default_rng(6).random(len(stories.texts)) < 0.1))
    some = np.random.default_rng(7).permutation(some)[:4000]
    kept = np.flatnonzero(relevant[:, some].any(axis=1))
    return _topics(
        [names.get(topics[at], topics[at]) for at in kept],
        [stories.texts[at] for at in some],
        relevant[np.ix_(kept, some)],
    )


def _searches(name: str) -> Judged:
    found = read_topics(name)
    return _topics(found.queries, found.texts, found.relevant)


COLLECTIONS: dict[str, Callable[[], Judged]] = {
    "MSLR sample": _web,
    "white wine": partial(_grouped, "winequality-white"),
    "made, linear": _linear,
    "made, bent": _bent,
    "Cranfield": partial(_searches, "cran"),
    "MQ2008": _letor,
    "Jester": _jokes,
    "Reuters": _stories,
    "MovieLens 1M": _movies,
    "abalone": partial(_grouped, "abalone"),
    "CISI": partial(_searches, "cisi"),
    "CACM": partial(_searches, "cacm"),
    "red wine": partial(_grouped, "winequality-red"),
    "cement": partial(_grouped, "cement_strength"),
}
"""The collections; what a rule assumes about one of them is learnt from the others."""


@cache
def collection(name: str) -> Judged:
    """Read a collection by its name."""
    return COLLECTIONS[name]()
