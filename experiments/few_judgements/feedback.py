"""
Relevance feedback: BM25 ranks, a user judges the first five documents, and the others are ranked again.

Measured on the residual collection: judged documents are removed, and queries without a further relevant document are
skipped. Rankers learn from the query (as a relevant row), the five documents, and 100 random others that are presumed
irrelevant; BM25's score is added to theirs, each divided by its deviation. The weight of BM25, and Rocchio's β, γ and
number of words, are those that are best on the mean of the other collections.
"""

from __future__ import annotations

from functools import cache
from time import process_time
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer

from corank.base.smooth import NeighborSmoother
from corank.data.routing import fit_with_qid
from corank.metrics import evaluate
from corank.tables import Cell, ReportTable
from experiments.datasets.smart import COLLECTIONS, read_topics
from experiments.few_judgements.learners import learners
from experiments.few_judgements.retrieval import BM25Index, Feedback
from experiments.options import ExperimentOptions
from experiments.significance import p_text

N_JUDGED = 5
N_PRESUMED = 100
K1, B = 1.2, 0.75
ROCCHIO, CHANCE, BM25 = "Rocchio", "Rocchio, five random documents", "BM25, nothing judged"
SHARES = (0.0, 0.1, 0.25, 0.5, 1.0, 2.0)
"""How much of BM25's score is added."""
FEEDBACKS = tuple(
    Feedback(beta, gamma, n)
    for beta in (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
    for gamma in (0.0, 0.1, 0.3)
    for n in (30, 100, 1000)
)
TITLES = {"cran": "Cranfield", "cisi": "CISI", "med": "MED", "cacm": "CACM"}

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Collection(NamedTuple):
    """Documents and queries, as words are counted and as rows of both kinds of features, queries last."""

    bm25: BM25Index
    features: dict[str, Any]
    relevant: NDArray[np.bool_]


def feedback_table(
    options: ExperimentOptions, repeats: int, names: tuple[str, ...] = COLLECTIONS
) -> tuple[ReportTable, tuple[str, ...]]:
    """
    Compare rankers with BM25 and Rocchio.

    options: kept results.
    repeats: draws of presumed and of random documents; values of a query are means over them.
    names: collections.
    Returns: AP on the residual collections, and Wilcoxon's tests over queries against Rocchio.
    """
    options.expect(len(names) * repeats)
    cells = {name: [_cell(options, name, repeat) for repeat in range(repeats)] for name in names}
    values = {name: _tuned(cells, name) for name in names}
    rows: list[tuple[Cell, ...]] = []
    for method in (BM25, CHANCE, ROCCHIO, *learners()):
        shown: list[Cell] = []
        for name in names:
            ap, chosen = values[name][method]
            gap = ap - values[name][ROCCHIO][0]
            against = "" if method == ROCCHIO else f"{gap.mean():+.3f} ({p_text(gap, '.1g', '')})"
            shown += [float(ap.mean()), against, chosen]
        seconds = [cell[method]["seconds"] for of in cells.values() for cell in of]
        rows.append((method, *shown, f"{1000 * float(np.median(seconds)):.1f}"))
    columns = [text for name in names for text in (TITLES.get(name, name), "minus Rocchio (p)", "chosen")]
    counts = ", ".join(f"{TITLES.get(name, name)} {len(values[name][BM25][0])}" for name in names)
    table = ReportTable(
        f"Relevance feedback with {N_JUDGED} judged documents: AP on the rest",
        ("method", *columns, "ms a query"),
        tuple(rows),
        digits=3,
        note=f"Queries with a relevant document left: {counts}. Chosen on the other collections: β, γ and "
        "words of Rocchio, the weight of BM25 added to a ranker's score. Random documents are removed from their row "
        "too. ms: processor time.",
    )
    return table, tuple(_pooled(values, method) for method in learners())


def _pooled(values: dict[str, dict[str, tuple[Floats, str]]], method: str) -> str:
    gaps = {name: of[method][0] - of[ROCCHIO][0] for name, of in values.items()}
    together = np.concatenate(list(gaps.values()))
    return (
        f"Feedback, {method} minus Rocchio: {np.mean([gap.mean() for gap in gaps.values()]):+.3f} on the mean of the "
        f"collections (Wilcoxon over all {len(together)} queries {p_text(together)})."
    )


def _tuned(cells: dict[str, list[Any]], name: str) -> dict[str, tuple[Floats, str]]:
    """AP of each query by method, mean over draws, at the point that is best on the other collections."""
    results = {}
    for method in cells[name][0]:
        of = {other: np.mean([cell[method]["values"] for cell in draws], axis=0) for other, draws in cells.items()}
        others = [values.mean(axis=1) for other, values in of.items() if other != name] or [of[name].mean(axis=1)]
        position = int(np.argmax(np.mean(others, axis=0)))
        results[method] = (of[name][position], cells[name][0][method]["points"][position])
    return results


def _cell(options: ExperimentOptions, name: str, repeat: int) -> Any:
    key = {"experiment": "few-judgements", "table": "feedback", "collection": name, "repeat": repeat}
    return options.result(key, lambda: _trial(name, np.random.default_rng([options.seed, repeat])))


@cache
def _collection(name: str) -> Collection:
    topics = read_topics(name)
    vectoriser = TfidfVectorizer(sublinear_tf=True, stop_words="english")
    documents = vectoriser.fit_transform(topics.texts)
    text = sparse.csr_matrix(sparse.vstack([documents, vectoriser.transform(topics.queries)]))
    smooth = NeighborSmoother(random_state=0).fit(documents).transform(text)
    index = BM25Index.of(topics.texts, topics.queries, K1, B)
    return Collection(index, {"text": text, "smooth": smooth}, topics.relevant)


def _trial(name: str, rng: np.random.Generator) -> dict[str, Any]:
    """AP of every query at every point of every method, of shape (n_points, n_queries)."""
    collection = _collection(name)
    results: dict[str, Any] = {}
    for query, bm25 in enumerate(collection.bm25.scores()):
        y = collection.relevant[query].astype(np.float64)
        first = np.argsort(-bm25, kind="stable")[:N_JUDGED]
        rest = np.setdiff1d(np.arange(len(y)), first)
        if not y[rest].any():
            continue
        chance, presumed = rng.choice(rest, N_JUDGED, replace=False), rng.choice(rest, N_PRESUMED, replace=False)
        _add(results, BM25, [""], bm25[None], y, rest, 0.0)
        for method, judged in ((CHANCE, chance), (ROCCHIO, first)):
            scores, seconds = _rocchio(collection.bm25, query, judged, y)
            points = [f"{how.beta:g}, {how.gamma:g}, {how.n_words}" for how in FEEDBACKS]
            _add(results, method, points, scores, y, np.setdiff1d(rest, judged), seconds)
        for method, (features, estimator) in learners().items():
            began = process_time()
            f = _learnt(estimator, collection.features[features], query, first, presumed, y)
            seconds = process_time() - began
            scores = _sized(f) + np.outer(SHARES, _sized(bm25))
            _add(results, method, [f"{share:g}" for share in SHARES], scores, y, rest, seconds)
    for outcome in results.values():
        outcome["values"] = np.transpose(outcome["values"]).tolist()
        outcome["seconds"] = float(np.median(outcome["seconds"]))
    return results


def _rocchio(index: BM25Index, query: int, judged: Ints, y: Floats) -> tuple[Floats, float]:
    began = process_time()
    good, bad = judged[y[judged] > 0], judged[y[judged] == 0]
    scores = index.feedback(query, good, bad, FEEDBACKS)
    return scores, (process_time() - began) / len(FEEDBACKS)


def _learnt(estimator: Any, X: Any, query: int, judged: Ints, presumed: Ints, y: Floats) -> Floats:
    """Scores of the documents by a ranker that learnt from the query, the judged and the presumed."""
    rows = np.concatenate([[len(y) + query], judged, presumed])
    grades = np.concatenate([[1.0], y[judged], np.zeros(len(presumed))])
    model = fit_with_qid(estimator, X[rows], grades, np.zeros(len(rows)))
    return np.asarray(model.predict(X[: len(y)]))


def _sized(scores: Floats) -> Floats:
    deviation = scores.std()
    return scores / deviation if deviation > 0.0 else scores


def _add(
    results: dict[str, Any], method: str, points: list[str], scores: Floats, y: Floats, rows: Ints, seconds: float
) -> None:
    """Note the AP of each point for one query."""
    outcome = results.setdefault(method, {"points": points, "values": [], "seconds": []})
    # points stand as queries of one evaluation
    grades, of_point = np.tile(y[rows], len(scores)), np.repeat(np.arange(len(scores)), len(rows))
    values = evaluate(grades, scores[:, rows].ravel(), of_point, "AP", n_jobs=1)["AP"].values
    outcome["values"].append(np.round(values, 6).tolist())
    outcome["seconds"].append(seconds)
