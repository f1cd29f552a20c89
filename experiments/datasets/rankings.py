"""
Collections of many judged queries: web search, text retrieval, ratings, ordinal sets and synthetic rows.

Text retrieval: the 60 documents of a query with the highest BM25 are its rows; 14 columns count, weigh and match its
words. Ratings: each user is a query; the columns of an item are its mean, its number of ratings, eight factors of the
ratings of other users, and genres. Ordinal sets: random groups of 20 rows are queries. Synthetic rows: sines, products
and steps of mixed columns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import svds
from sklearn.feature_extraction.text import CountVectorizer

from corank import make_ranking
from corank.data.durable.text import open_text
from corank.data.io.letor_reader import read_letor
from experiments.datasets import jester, movielens
from experiments.datasets.catalog import dataset
from experiments.datasets.mq2008 import read_parts
from experiments.datasets.smart import read_topics

Floats = NDArray[np.float64]

# rows of a query at most, users of ratings, and rows of an ordinal query
_MAX_ROWS, _USERS, _GROUP = 60, 400, 20


@dataclass(frozen=True, eq=False)
class Rankings:
    """
    Judged rows.

    X, y, qid: rows, grades 0, 1, ..., and query ids; every query has two grades.
    """

    X: Floats
    y: Floats
    qid: NDArray[np.int64]

    @classmethod
    def of(cls, X: Any, y: Any, qid: Any) -> Rankings:
        """Number the queries, take at most 60 random rows of each, and drop queries of one grade."""
        codes = np.unique(qid, return_inverse=True)[1]
        rng = np.random.default_rng(0)
        rows = []
        for q in range(codes.max() + 1):
            here = np.flatnonzero(codes == q)
            if len(here) > _MAX_ROWS:
                here = np.sort(rng.choice(here, _MAX_ROWS, replace=False))
            if np.ptp(y[here]) > 0:
                rows.append(here)
        kept = np.concatenate(rows)
        return cls(np.asarray(X, dtype=np.float64)[kept], np.asarray(y, dtype=np.float64)[kept], codes[kept])

    def some(self, queries: Any) -> Rankings:
        """Return the rows of some queries."""
        kept = np.isin(self.qid, queries)
        return Rankings(self.X[kept], self.y[kept], self.qid[kept])


def mq2008() -> Rankings:
    """Return all parts of MQ2008."""
    rows = read_parts((1, 2, 3, 4, 5))
    return Rankings.of(rows.X, rows.y, rows.qid)


def mslr() -> Rankings:
    """Return the sample of MSLR-WEB30K."""
    paths = [dataset("mslr-sample").path(f"msn1.fold1.{part}.5k.txt") for part in ("train", "test")]
    rows = read_letor(paths, dtype=np.float64, layout="dense")
    return Rankings.of(rows.X, rows.y, rows.qid)


def text(name: str) -> Rankings:
    """Return a collection of `experiments.datasets.smart`, relevant documents having grade 1."""
    topics = read_topics(name)
    words = CountVectorizer(stop_words="english", token_pattern=r"[A-Za-z]{2,}")
    D = words.fit_transform(topics.texts).tocsr().astype(np.float64)
    Q = words.transform(topics.queries).tocsr().astype(np.float64)
    n, length = D.shape[0], np.maximum(np.asarray(D.sum(axis=1)).ravel(), 1.0)
    in_documents, total = np.bincount(D.indices, minlength=D.shape[1]), np.asarray(D.sum(axis=0)).ravel()
    idf = np.log(1.0 + (n - in_documents + 0.5) / (in_documents + 0.5))
    X, y, qid = [], [], []
    for q in range(Q.shape[0]):
        index = Q[q].indices
        if not len(index):
            continue
        tf, p = D[:, index].toarray(), total[index] / total.sum()
        bm25 = [
            (idf[index] * tf * (k + 1.0) / (tf + k * (1.0 - b + b * length[:, None] / length.mean()))).sum(axis=1)
            for k, b in ((1.2, 0.75), (0.6, 0.3), (2.0, 1.0))
        ]
        # language models: Dirichlet and Jelinek-Mercer
        dirichlet = np.log((tf + 500.0 * p) / (length[:, None] + 500.0)).sum(axis=1)
        mercer = np.log(0.7 * tf / length[:, None] + 0.3 * p).sum(axis=1)
        columns = [
            *bm25, dirichlet, mercer, tf.sum(axis=1), np.log1p(tf).sum(axis=1), (idf[index] * tf).sum(axis=1),
            (tf > 0).mean(axis=1), ((tf > 0) * idf[index]).sum(axis=1), (tf / length[:, None]).sum(axis=1),
            tf.max(axis=1), length, np.full(n, len(index)),
        ]  # fmt: skip
        best = np.argsort(-bm25[0], kind="stable")[:_MAX_ROWS]
        X.append(np.column_stack(columns)[best])
        y.append(topics.relevant[q, best])
        qid.append(np.full(len(best), q))
    return Rankings.of(np.concatenate(X), np.concatenate(y).astype(np.float64), np.concatenate(qid))


def ratings(table: NDArray[np.float32], extra: Floats | None, edges: list[float]) -> Rankings:
    """Return users as queries: factors come from users other than those of the queries."""
    order = np.random.default_rng(1).permutation(len(table))
    users, others = order[:_USERS], table[order[_USERS:]]
    with np.errstate(invalid="ignore"):
        count = (~np.isnan(others)).sum(axis=0)
        mean = np.where(count > 0, np.nansum(others, axis=0) / np.maximum(count, 1), np.nanmean(others))
    centred = sparse.csr_array(np.where(np.isnan(others), 0.0, others - mean))
    _, values, vectors = svds(centred.astype(np.float64), 8, v0=np.ones(min(centred.shape)))
    factors = vectors.T * values
    items = np.column_stack([mean, np.log1p(count), factors, *([] if extra is None else [extra])])
    user, item = np.nonzero(~np.isnan(table[users]))
    return Rankings.of(items[item], np.digitize(table[users][user, item], edges).astype(np.float64), user)


def jester_users() -> Rankings:
    """Return ratings of jokes, in five grades."""
    return ratings(jester.read_ratings(), None, [-5.0, 0.0, 3.0, 6.0])


def movielens_users() -> Rankings:
    """Return ratings of movies, with 18 genres."""
    data = open_text(dataset("movielens-1m").path("item_genres.csv")).read().tobytes().decode()
    genres = np.array([line.split(",")[1:] for line in data.split()[1:]], dtype=np.float64)
    return ratings(movielens.read_ratings(), genres, [1.5, 2.5, 3.5, 4.5])


def ordinal(name: str) -> Rankings:
    """Return a set of ordinal regression in random groups."""
    content = open_text(dataset("ordinal").path(f"chu_gagolews/{name}.csv")).read().tobytes().decode().replace('"', "")
    values = np.loadtxt(content.splitlines()[1:], delimiter=",")
    values = values[np.random.default_rng(2).permutation(len(values))[:8000]]
    # the top grades of some sets are many: gains of 2^y need few
    grades = np.digitize(values[:, 0], np.quantile(values[:, 0], [0.4, 0.65, 0.85, 0.95]))
    return Rankings.of(values[:, 1:], grades, np.arange(len(values)) // _GROUP)


def bends(seed: int, n_queries: int = 400, n_columns: int = 20) -> Rankings:
    """Return grades of a sum of sine, product, step, absolute value and line of mixed columns, plus noise."""
    rng = np.random.default_rng(seed)
    n = n_queries * 30
    X = rng.normal(size=(n, n_columns))
    z = X @ (rng.normal(size=(n_columns, 6)) / np.sqrt(n_columns))
    u = np.sin(2 * z[:, 0]) + 1.5 * z[:, 1] * z[:, 2] + (z[:, 3] > 0.5) + np.abs(z[:, 4]) + z[:, 5]
    u += 0.5 * rng.normal(size=n)
    y = np.digitize(u, np.quantile(u, [0.5, 0.75, 0.9, 0.97]))
    return Rankings.of(X, y, np.repeat(np.arange(n_queries), 30))


def steps(seed: int, n_queries: int = 400) -> Rankings:
    """Return grades of steps and bends of single columns, of units from 1e-3 to 1e3, among irrelevant columns."""
    rng = np.random.default_rng(seed)
    n = n_queries * 25
    X = rng.normal(size=(n, 15))
    u = (X[:, 0] > 0.3) + np.minimum(X[:, 1], 0.0) + X[:, 2] ** 2 / 2 + (X[:, 3] > 0) * X[:, 4] + np.tanh(2 * X[:, 5])
    u += 0.7 * rng.normal(size=n)
    y = np.digitize(u, np.quantile(u, [0.5, 0.75, 0.9, 0.97]))
    return Rankings.of(np.exp(X / 2) * 10.0 ** rng.uniform(-3, 3, 15), y, np.repeat(np.arange(n_queries), 25))


def linear(n_queries: int = 300) -> Rankings:
    """Return `corank.make_ranking`."""
    problem = make_ranking(n_queries, (10, 30), random_state=5)
    return Rankings.of(problem.X, problem.y, problem.qid)


DEVELOPMENT: dict[str, Callable[[], Rankings]] = {
    "MQ2008": mq2008,
    "Cranfield": partial(text, "cran"),
    "Jester": jester_users,
    "cement": partial(ordinal, "cement_strength"),
    "abalone": partial(ordinal, "abalone"),
    "bends 1": partial(bends, 1),
    "linear": linear,
}
"""Collections on which defaults are chosen."""

JUDGING: dict[str, Callable[[], Rankings]] = {
    "MSLR": mslr,
    "CISI": partial(text, "cisi"),
    "CACM": partial(text, "cacm"),
    "MovieLens": movielens_users,
    "wine": partial(ordinal, "winequality-white"),
    "fireman": partial(ordinal, "fireman_example"),
    "bends 2": partial(bends, 2, n_columns=12),
    "steps": partial(steps, 3),
}
"""Collections on which they are judged."""


@cache
def read_rankings(name: str) -> Rankings:
    """
    Read a collection.

    name: a key of `DEVELOPMENT` or `JUDGING`.
    """
    return {**DEVELOPMENT, **JUDGING}[name]()
