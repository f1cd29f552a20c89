"""Does a similarity learnt from the citations of one collection improve search in the others?"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from corank.metrics import wilcoxon
from corank.tables import Cell, ReportTable
from corank.text import Corpus, split_links
from experiments.datasets.smart import COLLECTIONS, read_citations, read_topics
from experiments.linklearn.problems import Variant, everywhere
from experiments.options import ExperimentOptions

SOURCES = ("cacm", "cisi")
WAYS = (
    Variant("as in the paper", is_paper=True),
    Variant("plain tf", params=(("b", 0.0),)),
    Variant("tf normalised by length"),
    Variant("asymmetric weights, no f3", params=(("symmetric", False), ("use_length", False))),
)
HELD = 0.3
"""Share of the documents for early stopping."""


def learn_citations(source: str, way: Variant, seed: int, steps: int) -> dict[str, list[float]]:
    """Learn from the citations of one collection, and return the AP of each query of the others."""
    corpus = Corpus.of(read_topics(source).texts)
    training, validation = split_links(corpus, read_citations(source), HELD, random_state=seed)
    model = way.fitted(training, validation, seed, steps)
    return {name: values["AP"] for name, values in everywhere(model.to_index).items() if name != source}


def citations_table(
    options: ExperimentOptions, repeats: int, steps: int, tuned: dict[str, list[float]]
) -> tuple[ReportTable, list[str]]:
    """
    Learn from the citations of each collection that has some.

    tuned: AP of tuned BM25 for each query of each collection.
    Returns: a table of means over repeats, and tests between the collections that have citations.
    """
    options.expect(len(SOURCES) * len(WAYS) * repeats)
    rows: list[tuple[Cell, ...]] = [
        ("BM25, tuned on the others", "", *(float(np.mean(tuned[name])) for name in COLLECTIONS))
    ]
    findings = []
    for source in SOURCES:
        for way in WAYS:
            parts = [
                options.result(
                    {"citations": source, "way": way.name, "repeat": r, "steps": steps},
                    partial(learn_citations, source, way, options.seed + r, steps),
                )
                for r in range(repeats)
            ]
            results = {name: np.mean([part[name] for part in parts], axis=0) for name in COLLECTIONS if name != source}
            shown = (float(results[name].mean()) if name in results else "" for name in COLLECTIONS)
            rows.append((f"LinkLearn, {way.name}", source, *shown))
            findings += [_against(results[to], tuned[to], source, way.name, to) for to in SOURCES if to != source]
    table = ReportTable(
        "Learnt from citations: AP of the other collections",
        ("ranker", "citations of", *COLLECTIONS),
        tuple(rows),
        note=f"CACM: citations; CISI: co-citations. {HELD:.0%} of the documents are used for early stopping.",
    )
    return table, findings


def _against(results: Any, tuned: list[float], source: str, way: str, to: str) -> str:
    # rounded, so that equal values are ties
    gap = np.round(results - np.asarray(tuned), 9)
    return (
        f"LinkLearn, {way}, learnt from the citations of {source} against tuned BM25, AP of {to}'s {len(gap)} queries: "
        f"{results.mean():.4f} against {np.mean(tuned):.4f} ({results.mean() / np.mean(tuned) - 1:+.1%}, p = "
        f"{wilcoxon(gap):.2g}; higher on {(gap > 0).sum()}, lower on {(gap < 0).sum()})."
    )
