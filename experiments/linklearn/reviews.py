"""Does a similarity learnt from the citations of some systematic reviews help to find relevant records of another?"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_extraction.text import TfidfTransformer

from corank.core.text.postings import Bags
from corank.metrics import evaluate, wilcoxon
from corank.tables import Cell, ReportTable
from corank.text import BM25, Corpus, Index, Links, split_links
from corank_lab.records.records import Records, read_records
from experiments.datasets.catalog import data_root
from experiments.linklearn.problems import Variant
from experiments.options import ExperimentOptions

REVIEWS = ("Donners_2021", "Sep_2021", "Nelson_2002", "Meijboom_2021", "Oud_2018", "Menon_2022")
K1S = (0.9, 1.2, 2.0)
LEARNT = (
    Variant("LinkLearn"),
    Variant("LinkLearn, more weight at the top", params=(("at_top", True),)),
    Variant("LinkLearn, as in the paper", is_paper=True),
)
WAYS = ("tf-idf, cosine", "BM25, tuned on the others", *(way.name for way in LEARNT))


@cache
def _read(name: str) -> tuple[Records, Corpus]:
    records = read_records(data_root() / "synergy_reviews" / f"{name}.csv.gz")
    texts = (f"{title}\n{abstract}" for title, abstract in zip(records.titles, records.abstracts, strict=True))
    return records, Corpus.of(texts, records.ids)


def from_one_relevant(name: str, similarity: Callable[[NDArray[np.int64]], NDArray[np.float64]]) -> float:
    """
    Mean AP of the other relevant records, where each relevant record in turn is all that is known.

    similarity: takes numbers of records, and returns how similar all are to each, (n_records, n_all).
    """
    labels = np.asarray(_read(name)[0].labels)
    known = np.flatnonzero(labels == 1.0)
    grades = np.tile(np.where(labels == 1.0, 1.0, 0.0), (len(known), 1))
    grades[np.arange(len(known)), known] = np.nan
    qid = np.repeat(np.arange(len(known)), len(labels))
    return float(evaluate(grades.ravel(), similarity(known).ravel(), qid, "AP")["AP"].mean)


def compare_review(name: str, seed: int, steps: int) -> dict[str, float]:
    """Search one review by tf-idf, by BM25 tuned on the others, and by LinkLearn fitted to citations of the others."""
    corpus, others = _read(name)[1], [other for other in REVIEWS if other != name]
    tuned = max(K1S, key=lambda k1: sum(_by_bm25(other, k1) for other in others))
    training, validation = _citations(others, seed)
    results = {WAYS[0]: from_one_relevant(name, _cosines(corpus)), WAYS[1]: _by_bm25(name, tuned)}
    for way in LEARNT:
        model = way.fitted(training, validation, seed, steps)
        results[way.name] = from_one_relevant(name, _by_index(model.to_index(corpus)))
    return results


@cache
def _by_bm25(name: str, k1: float) -> float:
    return from_one_relevant(name, _by_index(BM25(k1).to_index(_read(name)[1])))


def _by_index(index: Index) -> Callable[[NDArray[np.int64]], NDArray[np.float64]]:
    def similarity(chosen: NDArray[np.int64]) -> NDArray[np.float64]:
        rows = index.corpus.counts[chosen]
        parts = (rows.indptr.astype(np.uint64), rows.indices.astype(np.uint32), rows.data.astype(np.uint32))
        return index.scores(Bags(*parts))

    return similarity


def _cosines(corpus: Corpus) -> Callable[[NDArray[np.int64]], NDArray[np.float64]]:
    X = TfidfTransformer(sublinear_tf=True).fit_transform(corpus.counts)
    return lambda chosen: np.asarray((X[chosen] @ X.T).toarray())


def _citations(names: list[str], seed: int) -> tuple[Links, Links]:
    """Return the records of several reviews as one corpus, and their citations."""
    texts, ids, pairs = [], [], []
    for name in names:
        records = _read(name)[0]
        for position, own in enumerate(records.ids):
            texts.append(f"{records.titles[position]}\n{records.abstracts[position]}")
            ids.append(f"{name} {own}")
            pairs += [(f"{name} {own}", f"{name} {cited}") for cited in records.references[position]]
    return split_links(Corpus.of(texts, ids), pairs, 0.3, random_state=seed)


def reviews_table(options: ExperimentOptions, repeats: int, steps: int) -> tuple[ReportTable, str]:
    """
    Search every review.

    Returns: a table of means over repeats, and a finding.
    """
    options.expect(len(REVIEWS) * repeats)
    values = np.array(
        [
            np.mean(
                [
                    list(
                        options.result(
                            {"review": name, "repeat": r, "steps": steps},
                            partial(compare_review, name, options.seed + r, steps),
                        ).values()
                    )
                    for r in range(repeats)
                ],
                axis=0,
            )
            for name in REVIEWS
        ]
    )
    rows: list[tuple[Cell, ...]] = [
        (way, *map(float, of), float(of.mean())) for way, of in zip(WAYS, values.T, strict=True)
    ]
    gap = values[:, 2] - values[:, :2].max(axis=1)
    table = ReportTable(
        "Six reviews: AP of the relevant records from one that is known", ("ranker", *REVIEWS, "mean"), tuple(rows),
        digits=3, note="LinkLearn is learnt from the citations inside the other five reviews.",
    )  # fmt: skip
    finding = (
        f"LinkLearn learnt from citations of other reviews against the better of tf-idf and BM25, review by review: "
        f"{gap.mean():+.3f} AP, ahead in {(gap > 0).sum()} of {len(gap)} (p = {wilcoxon(gap):.2g}, over reviews)."
    )
    return table, finding
