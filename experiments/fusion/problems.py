"""Sets of retrievers with judged queries: TREC Deep Learning, and four collections with BM25 and vectors."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from corank.data import read_qrels, read_run
from corank.errors import InputError
from corank.models.fusion.judged import JudgedQueries
from corank.models.fusion.lists import RetrievedLists
from experiments.datasets.catalog import data_root
from experiments.datasets.smart import read_topics

Floats = NDArray[np.float64]
Lists = dict[str, dict[str, float]]

CORE = ("p_bm25", "p_bm25rm3", "paug_bm25", "paug_bm25rm3", "p_tct0", "p_tct1", "TUW_TAS-B_768", "p_unicoil0")
NAMED = {
    "trec_dl2021": (("paug_bm25", "TUW_TAS-B_768"), ("p_bm25", "p_tct1"), CORE),
    "trec_dl2019": (
        ("bm25tuned_p", "ms_duet_passage"),
        ("bm25tuned_p", "UNH_bm25", "ms_duet_passage", "srchvrs_ps_run1", "TUW19-p1-f", "bm25base_ax_p"),
    ),
}
N_RANDOM = {"trec_dl2021": 10, "trec_dl2019": 6}
# other sets than those on which the prior was chosen
SEED = 2026
COLLECTIONS = ("cran", "cisi", "med", "cacm")


@dataclass(frozen=True, eq=False)
class Problem:
    """
    Lists of several retrievers, and all judgements.

    X, qid, y: as `corank.Fusion` takes them; queries are numbered.
    missed: numbers of queries and grades of judged documents that no list has.
    """

    X: Floats
    qid: NDArray[np.int64]
    y: Floats
    missed: tuple[NDArray[np.int64], Floats]

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return int(self.qid[-1]) + 1

    @cached_property
    def judged(self) -> JudgedQueries:
        """All queries for evaluation."""
        return JudgedQueries.of(self.y, RetrievedLists.of(self.X, self.qid).queries, 10, self.missed)

    @cached_property
    def features(self) -> tuple[Floats, Floats]:
        """Min-max scores and 60/(60 + rank), 0 where absent; equal scores of a list keep the order of documents."""
        lists = RetrievedLists.of(self.X, self.qid)
        codes = lists.queries.codes
        F = (self.X - lists.lowest[codes]) / (lists.highest - lists.lowest + 1e-9)[codes]
        return np.nan_to_num(F), np.where(lists.ranks > 0, 60 / (60 + lists.ranks), 0.0)

    def ndcg(self, scores: Floats) -> Floats:
        """Return nDCG@10 (n_queries, n_columns) of scores of all rows; NaN for queries without a relevant document."""
        out = np.full((self.n_queries, scores.shape[1]), np.nan)
        out[self.judged.codes] = self.judged.ndcg(scores)
        return out

    @cached_property
    def baselines(self) -> dict[str, Floats]:
        """NDCG@10 of RRF, of the mean of min-max scores and of each retriever, by query."""
        F, K = self.features
        scores = np.column_stack([K.sum(axis=1), F.mean(axis=1), K])
        names = ("RRF", "min-max mean", *(f"retriever {j + 1}" for j in range(K.shape[1])))
        return dict(zip(names, self.ndcg(scores).T, strict=True))

    @cached_property
    def grid(self) -> Floats:
        """NDCG@10 (n_queries, variants) of OpenSearch's grid: 66 variants for two retrievers."""
        F, _ = self.features
        m = F.shape[1]
        near = [np.full(m, 1 / m)] + [np.where(np.arange(m) == j, 2, 1) / (m + 1) for j in range(m)]
        weights = [np.array([w, 1 - w]) for w in np.linspace(0, 1, 11)] if m == 2 else near
        squares = np.add.reduceat(F**2, np.flatnonzero(np.diff(self.qid, prepend=-1)), axis=0)
        unit = F / np.maximum(np.sqrt(squares), 1e-12)[self.qid]
        scores = [
            _combined(G, w, mean) for w in weights for G in (F, unit) for mean in ("sum", "geometric", "harmonic")
        ]
        return self.ndcg(np.column_stack(scores))


def _combined(G: Floats, w: Floats, mean: str) -> Floats:
    if mean == "sum":
        return G @ w
    there = G > 0  # OpenSearch leaves out zeros in geometric and harmonic means
    total = np.maximum((there * w).sum(axis=1), 1e-12)
    if mean == "geometric":
        return np.where(there.any(axis=1), np.exp((np.log(np.where(there, G, 1)) * w).sum(axis=1) / total), 0.0)
    return np.where(
        there.any(axis=1), total / np.maximum((np.where(there, w / np.where(there, G, 1), 0)).sum(axis=1), 1e-12), 0.0
    )


def sets_of_runs(year: str) -> list[tuple[str, ...]]:
    """Return the named sets of runs of a year, and random ones of 2 to 8 runs."""
    names = sorted(path.name.removesuffix(".run.gz") for path in (_folder(year) / "runs").glob("*.run.gz"))
    rng = np.random.default_rng(SEED)
    drawn = [
        tuple(names[i] for i in rng.choice(len(names), int(rng.integers(2, 9)), replace=False))
        for _ in range(N_RANDOM[year])
    ]
    return [*NAMED[year], *drawn]


@cache
def runs_of(year: str, names: tuple[str, ...]) -> Problem:
    """Return the problem of some runs."""
    qrels: dict[str, dict[str, float]] = defaultdict(dict)
    found = read_qrels(_folder(year) / "qrels.txt.gz")
    for q, d, grade in zip(found.qid.tolist(), found.docids.tolist(), found.y.tolist(), strict=True):
        qrels[q][d] = grade
    return _problem([_run(year, name) for name in names], qrels)


@cache
def _run(year: str, name: str) -> Lists:
    lists: Lists = defaultdict(dict)
    run = read_run(_folder(year) / "runs" / f"{name}.run.gz")
    for q, d, score in zip(run.qid.tolist(), run.docids.tolist(), run.scores.tolist(), strict=True):
        lists[q][d] = score
    return lists


@cache
def collection(name: str) -> Problem:
    """Return BM25 (k1 1.5, b .75) and dense vectors on a collection, the first 100 documents of each."""
    topics = read_topics(name)
    words = [Counter(re.findall(r"[a-z0-9]+", text.lower())) for text in topics.texts]
    length, n = np.array([sum(counts.values()) for counts in words]), len(words)
    df = Counter(word for counts in words for word in counts)
    stored = np.load(_folder("ir_vectors") / f"{name}.npz")
    place = {d: i for i, d in enumerate(stored["document_ids"].tolist())}
    D = stored["documents"].astype(np.float32)[[place[d] for d in topics.document_ids]]
    asked = {q: i for i, q in enumerate(stored["query_ids"].tolist())}
    runs: tuple[Lists, Lists] = ({}, {})
    for q, text in zip(topics.query_ids, topics.queries, strict=True):
        lexical = np.zeros(n)
        for word in re.findall(r"[a-z0-9]+", text.lower()):
            if df[word]:
                tf = np.array([counts[word] for counts in words])
                idf = np.log(1 + (n - df[word] + 0.5) / (df[word] + 0.5))
                lexical += idf * tf * 2.5 / (tf + 1.5 * (0.25 + 0.75 * length / length.mean()))
        for run, s in zip(runs, (lexical, D @ stored["queries"].astype(np.float32)[asked[q]]), strict=True):
            run[q] = {topics.document_ids[i]: float(s[i]) for i in np.argsort(-s, kind="stable")[:100].tolist()}
    qrels = {
        q: {topics.document_ids[i]: 1.0 for i in np.flatnonzero(row).tolist()}
        for q, row in zip(topics.query_ids, topics.relevant, strict=True)
    }
    return _problem(list(runs), qrels)


def _problem(runs: list[Lists], qrels: dict[str, dict[str, float]]) -> Problem:
    X, qid, y, missed_qid, missed = [], [], [], [], []
    number = 0
    for q in sorted(qrels):
        lists = [run.get(q, {}) for run in runs]
        docs = sorted(set().union(*lists))
        if not docs:
            continue
        X += [[scores.get(d, np.nan) for scores in lists] for d in docs]
        y += [qrels[q].get(d, np.nan) for d in docs]
        qid += [number] * len(docs)
        others = [grade for d, grade in qrels[q].items() if d not in set(docs)]
        missed_qid += [number] * len(others)
        missed += others
        number += 1
    return Problem(np.array(X), np.array(qid), np.array(y), (np.array(missed_qid, dtype=np.int64), np.array(missed)))


def _folder(name: str) -> Path:
    folder = data_root() / name
    if not folder.is_dir():
        raise InputError(f"{folder} is missing; set CORANK_DATA to the folder that holds {name}/.")
    return folder
