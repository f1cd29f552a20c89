"""
Screening with stems against plain words, on queries of the SMART collections, which were not used to design the model.

Each query with at least eight relevant documents (the first 40 of a collection) is screened as a small review from one
relevant and one irrelevant document, without references. Wilcoxon's p treats queries of one collection as independent,
which they are not quite. Needs CORANK_DATA (ir_collections). Run: python benchmarks/bench_stems.py
"""

from __future__ import annotations

import json

import numpy as np
from scipy.stats import wilcoxon
from threadpoolctl import threadpool_limits

from bench_asreview import run_corank
from corank.data.records.records import Records
from corank.judging.screening import make_views
from corank.judging.screening.stems import stem
from experiments.datasets.smart import COLLECTIONS, read_topics

MIN_RELEVANT, MAX_QUERIES = 8, 40


def atd_of_queries(name: str) -> dict[str, list[float]]:
    """Mean position of the relevant documents for each query, by kind of term."""
    topics = read_topics(name)
    chosen = np.flatnonzero(topics.relevant.sum(axis=1) >= MIN_RELEVANT)[:MAX_QUERIES]
    n, found = len(topics.texts), {}
    for kind, key in (("words", str), ("stems", stem)):
        plain = Records([str(at) for at in range(n)], topics.texts, [""] * n)
        views = make_views(plain, key=key)
        judged = (
            Records(plain.ids, plain.titles, plain.abstracts, labels=topics.relevant[q].astype(float)) for q in chosen
        )
        found[kind] = [run_corank(records, views, 0).atd for records in judged]
    return found


def show(name: str, found: dict[str, list[float]]) -> None:
    words, stems = np.array(found["words"]), np.array(found["stems"])
    line = {"collection": name, "queries": len(words), "words": round(words.mean(), 4), "stems": round(stems.mean(), 4)}
    line |= {"lower": int((stems < words).sum()), "higher": int((stems > words).sum())}
    print(json.dumps({**line, "p": float(f"{wilcoxon(stems, words).pvalue:.2g}")}), flush=True)


def main() -> None:
    together: dict[str, list[float]] = {"words": [], "stems": []}
    with threadpool_limits(1):
        for name in COLLECTIONS:
            found = atd_of_queries(name)
            show(name, found)
            for kind, values in found.items():
                together[kind] += values
    show("all", together)


if __name__ == "__main__":
    main()
