"""
The collections of `bench_auto.py`: rows with whole grades from 0 to 4 in many queries, real and synthetic.

Rankers are chosen on one half of them (`DEVELOPMENT`) and judged on the other (`JUDGING`). Ratings, labels and texts
become rows with features of the kind that a search or recommender system has: mean ratings, votes of neighbours, BM25.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer

from corank import make_ranking
from corank.data.durable.text import open_text
from corank.data.io.letor_reader import read_letor
from corank.models.fusion.lists import RetrievedLists
from experiments.datasets import jester as jester_data
from experiments.datasets import movielens as movielens_data
from experiments.datasets.catalog import dataset
from experiments.datasets.mq2008 import read_parts
from experiments.datasets.reuters import read_modapte
from experiments.datasets.smart import read_topics
from experiments.fusion.problems import CORE, runs_of
from experiments.label_ranking.sets import read_multilabel, read_rankings

Floats = NDArray[np.float64]

# rows of a query, test queries and training queries at most
MOST_ROWS, MOST_TEST, MOST_TRAIN = 40, 120, 300
# lexical, neural and duet runs of TREC DL 2019
EIGHT_OF_2019 = (
    "bm25tuned_p", "UNH_bm25", "ms_duet_passage", "srchvrs_ps_run1", "TUW19-p1-f", "bm25base_ax_p", "idst_bert_p1",
    "ICT-CKNRM_B50",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Rows:
    """
    Rows of queries.

    known: columns whose mean orders rows without judgements; None if no column is known to.
    group: queries that must not be split between training and test; None if there are none.
    """

    X: Floats
    y: Floats
    qid: NDArray[np.int64]
    known: tuple[int, ...] | None = None
    group: NDArray[np.int64] | None = None

    def queries(self, ids: NDArray[np.int64]) -> Rows:
        """Return some queries."""
        kept = np.isin(self.qid, ids)
        return Rows(self.X[kept], self.y[kept], self.qid[kept], self.known)


def split(rows: Rows, n_queries: int | None, draw: int) -> tuple[Rows, Rows]:
    """Draw training queries (all of them for None) and test queries, the same test queries for every number."""
    rng = np.random.default_rng(1000 + draw)
    group = rows.qid if rows.group is None else rows.group
    groups = rng.permutation(np.unique(group))
    of_test = groups[: int(0.4 * len(groups))]
    test = rng.permutation(np.unique(rows.qid[np.isin(group, of_test)]))[:MOST_TEST]
    train = rng.permutation(np.unique(rows.qid[~np.isin(group, of_test)]))[:MOST_TRAIN]
    has_pair = np.array([np.ptp(rows.y[rows.qid == q]) > 0 for q in train])
    # queries with a pair first, so that five judged queries are five that can be learnt from
    train = np.concatenate([train[has_pair], train[~has_pair]]) if n_queries is not None else train
    return rows.queries(train[:n_queries]), rows.queries(test)


def _capped(rows: Rows) -> Rows:
    rng, kept = np.random.default_rng(0), []
    for q in np.unique(rows.qid):
        at = np.flatnonzero(rows.qid == q)
        kept.append(np.sort(rng.permutation(at)[:MOST_ROWS]))
    at = np.concatenate(kept)
    group = None if rows.group is None else rows.group[at]
    return Rows(rows.X[at], rows.y[at], rows.qid[at], rows.known, group)


def mq2008() -> Rows:
    rows = read_parts()
    return _capped(Rows(np.asarray(rows.X), rows.y, np.unique(rows.qid, return_inverse=True)[1], tuple(range(20, 25))))


def mslr() -> Rows:
    entry = dataset("mslr-sample")
    paths = [entry.path(f"msn1.fold1.{part}.5k.txt") for part in ("train", "test")]
    rows = read_letor(paths, dtype=np.float64, layout="dense")
    return _capped(
        Rows(np.asarray(rows.X), rows.y, np.unique(rows.qid, return_inverse=True)[1], tuple(range(105, 110)))
    )


def _ratings(ratings: NDArray[np.float32], thresholds: list[float], extra: Floats | None, seed: int) -> Rows:
    """
    Return users as queries and items as rows, from ratings of which part is known.

    Features of an item for a user: mean, deviation and number of the ratings of 2,000 other users; votes of the 20 and
    100 most similar of them; similarity to items that the user rated, times their ratings; further columns of the item
    (genres) and the mean of the user's known ratings in them.
    """
    rng = np.random.default_rng(seed)
    enough = np.flatnonzero((~np.isnan(ratings)).sum(axis=1) >= 36)
    users = rng.permutation(enough)
    reference, targets = ratings[users[:2000]].astype(np.float64), ratings[users[2000:2500]].astype(np.float64)
    rated = ~np.isnan(reference)
    mean = np.where(rated.any(axis=0), np.nansum(reference, axis=0) / np.maximum(rated.sum(axis=0), 1), 0.0)
    spread = np.sqrt(np.nansum((reference - mean) ** 2, axis=0) / np.maximum(rated.sum(axis=0), 1))
    R = np.where(rated, reference - mean, 0.0)
    norms = np.linalg.norm(R, axis=1) + 1e-9
    items = R.T @ R
    items /= np.sqrt(np.outer(np.diag(items), np.diag(items))) + 10.0
    X, y, qid = [], [], []
    for q, row in enumerate(targets):
        seen = rng.permutation(np.flatnonzero(~np.isnan(row)))
        known, asked = seen[: len(seen) // 3], seen[len(seen) // 3 :][:30]
        own = row[known] - mean[known]
        similar = R[:, known] @ own / norms
        order = np.argsort(-similar)
        votes = [R[order[:k]][:, asked].sum(axis=0) / (rated[order[:k]][:, asked].sum(axis=0) + 2.0) for k in (20, 100)]
        like = items[np.ix_(asked, known)]
        parts = [
            mean[asked], spread[asked], np.log1p(rated.sum(axis=0)[asked]), *votes,
            like @ own / (np.abs(like).sum(axis=1) + 0.1), like.max(axis=1),
            np.full(len(asked), own.mean()), np.full(len(asked), own.std()),
        ]  # fmt: skip
        if extra is not None:
            taste = (extra[known] * own[:, None]).sum(axis=0) / (extra[known].sum(axis=0) + 2.0)
            parts += [*extra[asked].T, extra[asked] @ taste]
        X.append(np.column_stack(parts))
        y.append(np.digitize(row[asked], thresholds).astype(np.float64))
        qid.append(np.full(len(asked), q))
    return Rows(np.concatenate(X), np.concatenate(y), np.concatenate(qid), (0,))


def jester() -> Rows:
    return _ratings(jester_data.read_ratings(), [-5.0, 0.0, 4.0, 7.0], None, 1)


def movielens() -> Rows:
    text = open_text(dataset("movielens-1m").path("item_genres.csv")).read().tobytes().decode()
    table = [line.split(",") for line in text.splitlines()[1:]]
    genres = np.array([[float(value) for value in line[1:]] for line in table]) if len(table[0]) > 2 else None
    return _ratings(movielens_data.read_ratings(), [1.5, 2.5, 3.5, 4.5], genres, 2)


def _ordinal(name: str, n_rows: int = 20) -> Rows:
    """Return rows of an ordinal set in random queries; grades are five parts of its labels."""
    text = open_text(dataset("ordinal").path(f"chu_gagolews/{name}.csv")).read().tobytes().decode().replace('"', "")
    values = np.loadtxt(text.splitlines()[1:], delimiter=",")
    order = np.random.default_rng(3).permutation(len(values))[: 450 * n_rows]
    values = values[order[: len(order) // n_rows * n_rows]]
    labels = np.unique(values[:, 0], return_inverse=True)[1]
    y = np.floor(labels * min(5, labels.max() + 1) / (labels.max() + 1))
    return Rows(values[:, 1:], y, np.repeat(np.arange(len(y) // n_rows), n_rows))


def _labels(X: Floats, gains: Floats, n_reference: int, seed: int) -> Rows:
    """
    Return instances as queries and labels as rows.

    Features of a label for an instance: its mean gain among the 3, 10 and 30 nearest of the reference instances and
    among all, distance to the mean of the instances where it is above average, which label it is, and the features
    of the instance (the first 20).
    """
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(X))
    X = (X - X.mean(axis=0)) / (X.std(axis=0) + 1e-9)
    reference, asked = order[:n_reference], order[n_reference : n_reference + 450]
    A, G, L = X[reference], gains[reference], gains.shape[1]
    high = G.mean(axis=0) < G
    centres = np.stack([A[high[:, j]].mean(axis=0) if high[:, j].any() else A.mean(axis=0) for j in range(L)])
    X_rows, y, qid = [], [], []
    for q, i in enumerate(asked):
        near = np.argsort(np.sum((A - X[i]) ** 2, axis=1))
        votes = [G[near[:k]].mean(axis=0) for k in (3, 10, 30)]
        far = np.sqrt(np.sum((centres - X[i]) ** 2, axis=1))
        own = np.repeat(X[i][None, :20], L, axis=0)
        X_rows.append(np.column_stack([*votes, G.mean(axis=0), far, np.eye(L), own]))
        y.append(gains[i])
        qid.append(np.full(L, q))
    return Rows(np.concatenate(X_rows), np.concatenate(y), np.concatenate(qid), (1,))


def yeast() -> Rows:
    data = read_multilabel("Yeast")
    return _labels(data.X, data.y.astype(np.float64), 400, 4)


def vowel() -> Rows:
    data = read_rankings("vowel")
    k = data.y.shape[1]
    return _labels(data.X, np.floor((k - data.y) * 5 / k), 78, 6)


class _Matcher:
    """Features of documents for queries of words."""

    def __init__(self, texts: list[str]) -> None:
        pattern = r"[A-Za-z]{2,}"
        self.words = CountVectorizer(stop_words="english", token_pattern=pattern)
        self.counts = self.words.fit_transform(texts).astype(np.float64).tocsc()
        self.tfidf = TfidfVectorizer(stop_words="english", token_pattern=pattern, sublinear_tf=True, ngram_range=(1, 2))
        self.rows = self.tfidf.fit_transform(texts).tocsr()
        self.letters = TfidfVectorizer(analyzer="char_wb", ngram_range=(4, 4), sublinear_tf=True, min_df=2)
        self.letter_rows = self.letters.fit_transform(texts).tocsr()
        self.space = TruncatedSVD(80, random_state=0)
        topics = self.space.fit_transform(self.rows)
        self.topics = topics / (np.linalg.norm(topics, axis=1, keepdims=True) + 1e-9)
        self.n, self.names = len(texts), self.tfidf.get_feature_names_out()
        self.lengths = np.asarray(self.counts.sum(axis=1)).ravel()
        self.frequency = np.asarray((self.counts > 0).sum(axis=0)).ravel()
        self.idf = np.log(1.0 + (self.n - self.frequency + 0.5) / (self.frequency + 0.5))
        self.share = np.asarray(self.counts.sum(axis=0)).ravel() / self.lengths.sum()

    def features(self, query: str) -> Floats:
        """Return one row for each document; column 0 is BM25."""
        terms = self.words.transform([query]).indices
        tf = self.counts[:, terms].toarray()
        relative = (self.lengths / self.lengths.mean())[:, None]
        bm25 = [
            (tf * (k1 + 1) / (tf + k1 * (1 - b + b * relative)) * self.idf[terms]).sum(axis=1)
            for k1, b in ((1.2, 0.75), (1.2, 0.0), (0.3, 0.75))
        ]
        mu = 300.0
        likelihood = np.log1p(tf / (mu * self.share[terms] + 1e-12)).sum(axis=1)
        likelihood -= max(len(terms), 1) * np.log1p(self.lengths / mu)
        has = tf > 0
        asked = self.tfidf.transform([query])
        topic = self.space.transform(asked)[0]
        return np.column_stack([
            *bm25, likelihood, (self.rows @ asked.T).toarray().ravel(),
            (self.letter_rows @ self.letters.transform([query]).T).toarray().ravel(),
            self.topics @ topic / (np.linalg.norm(topic) + 1e-9),
            has.mean(axis=1) if len(terms) else np.zeros(self.n), has @ self.idf[terms],
            (has * self.idf[terms]).max(axis=1, initial=0.0), tf.sum(axis=1), np.log1p(self.lengths),
            np.full(self.n, float(len(terms))), np.full(self.n, self.idf[terms].mean() if len(terms) else 0.0),
        ])  # fmt: skip


def _texts(name: str) -> Rows:
    topics = read_topics(name)
    match = _Matcher(topics.texts)
    X, y, qid = [], [], []
    for q, query in enumerate(topics.queries):
        features = match.features(query)
        top = np.argsort(-features[:, 0], kind="stable")[:MOST_ROWS]
        if topics.relevant[q, top].any():
            X.append(features[top])
            y.append(topics.relevant[q, top].astype(np.float64))
            qid.append(np.full(len(top), q))
    return Rows(np.concatenate(X), np.concatenate(y), np.concatenate(qid), (0,))


def _runs(year: str, names: tuple[str, ...]) -> Rows:
    """Return judged documents that some of eight runs found; a column is the scores of a run, its lowest if absent."""
    problem = runs_of(year, names)
    lists = RetrievedLists.of(problem.X, problem.qid)
    filled = np.where(np.isnan(problem.X), lists.lowest[lists.queries.codes], problem.X)
    kept = ~np.isnan(problem.y)
    return _capped(Rows(np.nan_to_num(filled)[kept], problem.y[kept], problem.qid[kept], tuple(range(len(names)))))


def reuters() -> Rows:
    """Return topics as queries of a few stories; the rows are stories that share words with them."""
    stories, rng = read_modapte(), np.random.default_rng(7)
    chosen = np.sort(rng.permutation(len(stories.texts))[:4000])
    texts, topics = [stories.texts[i][:1000] for i in chosen], [stories.topics[i] for i in chosen]
    match, names = _Matcher(texts), sorted(set().union(*topics))
    X, y, qid, group = [], [], [], []
    for t, name in enumerate(names):
        about = np.flatnonzero([name in of for of in topics])
        for _ in range(4 if len(about) >= 15 else 0):
            seeds = rng.choice(about, 3, replace=False)
            words = np.asarray(match.rows[seeds].sum(axis=0)).ravel()
            best = np.argsort(-words)[:12]
            features = match.features(" ".join(match.names[best]))
            near = (match.rows @ match.rows[seeds].T).toarray()
            close = match.topics @ match.topics[seeds].T
            features = np.column_stack([features, near.mean(axis=1), near.max(axis=1), close.mean(axis=1),
                                        close.max(axis=1), close.min(axis=1)])  # fmt: skip
            ranked = np.setdiff1d(np.argsort(-features[:, 0], kind="stable")[:120], seeds)
            top = rng.permutation(ranked)[:MOST_ROWS]
            grades = np.isin(top, about).astype(np.float64)
            if 0 < grades.sum() < len(top):
                X.append(features[top])
                y.append(grades)
                qid.append(np.full(len(top), len(X)))
                group.append(np.full(len(top), t))
    return Rows(np.concatenate(X), np.concatenate(y), np.concatenate(qid), (0,), np.concatenate(group))


def _graded(X: Floats, u: Floats, n_rows: int) -> Rows:
    y = np.digitize(u, np.quantile(u, [0.5, 0.75, 0.9, 0.97])).astype(np.float64)
    return Rows(X, y, np.repeat(np.arange(len(y) // n_rows), n_rows))


def bends() -> Rows:
    """Return grades of sines, products and absolute values of mixtures of columns, plus noise."""
    rng = np.random.default_rng(99)
    X = rng.normal(size=(450 * 20, 12))
    z = X @ (rng.normal(size=(12, 5)) / np.sqrt(12))
    u = np.sin(2.0 * z[:, 0]) + 1.5 * z[:, 1] * z[:, 2] + np.abs(z[:, 3]) + z[:, 4] + 0.5 * rng.normal(size=len(X))
    return _graded(X, u, 20)


def steps() -> Rows:
    """Return grades of saturating and stepwise functions of single columns of many scales, with idle columns."""
    rng = np.random.default_rng(98)
    z = rng.normal(size=(450 * 20, 30))
    u = np.tanh(2.0 * z[:, :6]).sum(axis=1) + 1.5 * (z[:, 6:10] > 0.7).sum(axis=1) + np.minimum(z[:, 10:14], 0.3).sum(1)
    X = np.where(np.arange(30) % 3 == 0, np.exp(z), z) * 10.0 ** rng.integers(-2, 3, 30)
    return _graded(X, u + rng.normal(size=len(u)), 20)


def linear() -> Rows:
    problem = make_ranking(400, 20, features_per_view=15, random_state=97)
    return Rows(np.asarray(problem.X), problem.y, problem.qid)


DEVELOPMENT: dict[str, Callable[[], Rows]] = {
    "MQ2008": mq2008,
    "Cranfield": lambda: _texts("cran"),
    "Jester": jester,
    "yeast": yeast,
    "abalone": lambda: _ordinal("abalone"),
    "cement": lambda: _ordinal("cement_strength", 10),
    "bends": bends,
}
JUDGING: dict[str, Callable[[], Rows]] = {
    "MSLR": mslr,
    "CISI": lambda: _texts("cisi"),
    "CACM": lambda: _texts("cacm"),
    "MovieLens": movielens,
    "Reuters": reuters,
    "vowel": vowel,
    "wine": lambda: _ordinal("winequality-white"),
    "fireman": lambda: _ordinal("fireman_example"),
    "steps": steps,
    "linear": linear,
    "MED": lambda: _texts("med"),
    "DL 2019": lambda: _runs("trec_dl2019", EIGHT_OF_2019),
    "DL 2021": lambda: _runs("trec_dl2021", CORE),
}


@cache
def collection(name: str) -> Rows:
    """Return a collection by name."""
    rows: Any = {**DEVELOPMENT, **JUDGING}[name]()
    return rows
