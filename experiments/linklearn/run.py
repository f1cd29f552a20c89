"""
LinkLearn against BM25: learnt from Wikispeedia's links, applied without retraining to Cranfield, CISI, MED and CACM.

BM25 has default parameters, or is tuned for each collection on the queries of the three others; so is the variant of
training. Other tables show every variant, and finding links themselves. Every table has a row of LinkLearn as in the
paper; `experiments.linklearn.paper` shows how it learns.
"""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import numpy as np

from corank.comparison.report import Report
from corank.metrics import wilcoxon
from corank.tables import Cell, ReportTable
from corank.text import BM25
from experiments.datasets.smart import COLLECTIONS
from experiments.linklearn.citations import citations_table
from experiments.linklearn.plot import plot_functions, shapes
from experiments.linklearn.problems import (
    METRICS,
    Variant,
    best_elsewhere,
    bm25_grid,
    everywhere,
    halves,
    link_precision,
)
from experiments.linklearn.reviews import reviews_table
from experiments.options import ExperimentOptions

REPEATS, STEPS = 3, 400
CHOSEN, BOTH = "LinkLearn, variant chosen on the others", "mean of LinkLearn and tuned BM25"
AS_IN_PAPER = "LinkLearn, as in the paper, whole articles"
LINK_GRID = ((1.2, 0.3), (1.2, 0.75), (2.0, 0.75))
QUERY = (("symmetric", False), ("use_length", False))
PLAIN = Variant("whole articles, plain tf", params=(("b", 0.0),))
PAPER = Variant("as in the paper, whole articles", is_paper=True)
QUERIES = Variant("and no f3", 150, 40, QUERY)
VARIANTS = (
    PAPER,
    PLAIN,
    Variant("tf normalised by length"),
    Variant("and articles cut to about 150 words", 150),
    Variant("cut articles, more weight at the top", 150, 0, (("at_top", True),)),
    Variant("first 40 words as queries", 150, 40),
    Variant("first 40 words as queries, asymmetric weights", 150, 40, QUERY[:1]),
    QUERIES,
    Variant("and no f3, more weight at the top", 150, 40, (*QUERY, ("at_top", True))),
    Variant("first 20 words as queries, asymmetric weights, no f3", 150, 20, QUERY),
)
"""Variants of training; all but the first two normalise tf by length."""

Values = dict[str, dict[str, list[float]]]


def run(options: ExperimentOptions) -> Report:
    """
    Run the experiment.

    options: 3 repeats by default, which part the articles anew; quick runs make 1, of four variants.
    Returns: tables by collection and by way of learning, tests, and a picture of the functions.
    """
    # a network that is not trained to the end is worse than BM25: quick runs have as many steps
    repeats, steps = options.repeats or (1 if options.quick else REPEATS), STEPS
    variants = (PAPER, PLAIN, QUERIES, VARIANTS[-1]) if options.quick else VARIANTS
    options.expect(len(bm25_grid()) + sum(repeats if variant.n_words else 1 for variant in variants))
    grid = {index: options.result({"bm25": index}, partial(everywhere, BM25(*index).to_index)) for index in bm25_grid()}
    picks = {name: list(grid)[best_elsewhere(list(grid.values()), name)] for name in COLLECTIONS}
    learnt = {
        variant: [
            options.result(
                {"learn": variant.name, "repeat": r, "steps": steps, "fused_with": picks},
                partial(learn, variant, options.seed + r, steps, picks),
            )
            for r in range(repeats if variant.n_words else 1)
        ]
        for variant in variants
    }
    results = {variant: _mean([item["collections"] for item in entries]) for variant, entries in learnt.items()}
    fused = {variant: _mean([item["fused"] for item in entries]) for variant, entries in learnt.items()}
    ours = [variant for variant in variants if not variant.is_paper]
    ways, both = (
        {name: ours[best_elsewhere([of[v] for v in ours], name)] for name in COLLECTIONS} for of in (results, fused)
    )
    rows: dict[str, Values] = {
        "BM25, k1 = 1.2, b = 0.75": grid[1.2, 0.75],
        "BM25, tuned on the others": {name: grid[picks[name]][name] for name in COLLECTIONS},
        AS_IN_PAPER: results[PAPER],
        "LinkLearn, whole articles, plain tf": results[PLAIN],
        CHOSEN: {name: results[ways[name]][name] for name in COLLECTIONS},
        BOTH: {name: fused[both[name]][name] for name in COLLECTIONS},
    }
    tuned = {name: values["AP"] for name, values in rows["BM25, tuned on the others"].items()}
    citations, by_citations = citations_table(options, repeats, steps, tuned)
    reviews, finding = reviews_table(options, repeats, steps)
    plot = options.folder / "linklearn-functions.png"
    plot_functions(learnt[QUERIES][0]["shapes"], learnt[PLAIN][0]["shapes"], plot)
    return Report(
        "LinkLearn: a similarity learnt from links, applied to other collections",
        "Wikispeedia's articles are split into two halves, with links inside a half only: one half for training, the "
        "other for early stopping. The collections are not used for training, except in the table of citations; words "
        "are stemmed, without stop words. BM25's k1 and b, and the variant, are chosen for each collection by the mean "
        f"AP over the queries of the other three. {repeats} repeats split and cut the articles again (whole articles "
        "are used once); a query's value is the mean of its repeats. Tests are Wilcoxon's over queries, two-sided.",
        (_by_collection(rows, picks, ways, both), _by_way(results, fused), _links_table(learnt), citations, reviews),
        (*_findings(rows), *by_citations, finding),
        (plot,),
    )


def learn(variant: Variant, seed: int, steps: int, picks: dict[str, tuple[float, float]]) -> dict[str, Any]:
    """
    Train one variant on one split of the articles, and search every collection.

    picks: BM25's k1 and b for each collection, whose scores are also averaged with the model's.
    """
    training, validation = halves(variant, seed)
    began = time.process_time()
    model = variant.fitted(training, validation, seed, steps)
    seconds = time.process_time() - began
    return {
        "collections": everywhere(model.to_index),
        "fused": everywhere(model.to_index, {name: BM25(*index) for name, index in picks.items()}),
        "links": link_precision(model.to_index, validation),
        "bm25": max(link_precision(BM25(k1, b).to_index, validation) for k1, b in LINK_GRID),
        "steps": model.n_iter_,
        "constraints": training.n_constraints,
        "seconds": seconds,
        "shapes": shapes(model),
    }


def _mean(parts: list[Values]) -> Values:
    return {
        # rounded, so that repeats that agree with a single run are equal to it
        name: {
            metric: np.asarray(np.mean([part[name][metric] for part in parts], axis=0)).round(9).tolist()
            for metric in METRICS
        }
        for name in COLLECTIONS
    }


def _pooled(values: Values, metric: str) -> list[float]:
    return [value for name in COLLECTIONS for value in values[name][metric]]


def _by_collection(
    rows: dict[str, Values],
    picks: dict[str, tuple[float, float]],
    ways: dict[str, Variant],
    both: dict[str, Variant],
) -> ReportTable:
    cells: list[tuple[Cell, ...]] = [
        (row, metric, *(float(np.mean(of[name][metric])) for name in COLLECTIONS), float(np.mean(_pooled(of, metric))))
        for metric in METRICS
        for row, of in rows.items()
    ]
    chosen = "; ".join(
        f"{name}: k1 = {picks[name][0]:g}, b = {picks[name][1]:g}, LinkLearn: {ways[name].name}, with BM25: "
        f"{both[name].name}"
        for name in COLLECTIONS
    )
    return ReportTable(
        "Four collections",
        ("ranker", "metric", *COLLECTIONS, "all queries"),
        tuple(cells),
        note=f"Chosen for {chosen}.",
    )


def _by_way(results: dict[Variant, Values], fused: dict[Variant, Values]) -> ReportTable:
    cells: list[tuple[Cell, ...]] = [
        (
            variant.name, *(float(np.mean(results[variant][name]["AP"])) for name in COLLECTIONS),
            *(float(np.mean(_pooled(of[variant], "AP"))) for of in (results, fused)),
        )
        for variant in results
    ]  # fmt: skip
    return ReportTable("AP of every variant", ("variant", *COLLECTIONS, "all queries", "with BM25"), tuple(cells))


def _links_table(learnt: dict[Variant, list[dict[str, Any]]]) -> ReportTable:
    cells: list[tuple[Cell, ...]] = [
        (
            variant.name,
            *(float(np.mean([item[key] for item in entries])) for key in ("bm25", "links")),
            float(np.mean([item["links"] / item["bm25"] - 1.0 for item in entries])),
            round(float(np.mean([item["steps"] for item in entries]))),
            float(np.mean([item["seconds"] for item in entries])),
        )
        for variant, entries in learnt.items()
    ]  # fmt: skip
    return ReportTable(
        "Finding links: AP on the half that was not used for training",
        ("variant", "BM25", "LinkLearn", "gain", "steps", "processor seconds"), tuple(cells), digits=3,
        note="That half was used for early stopping. BM25 is the best of k1, b = (1.2, 0.3), (1.2, 0.75), (2, 0.75) "
        "on it.",
    )  # fmt: skip


def _findings(rows: dict[str, Values]) -> list[str]:
    n = len(_pooled(rows["LinkLearn, whole articles, plain tf"], "AP"))
    sentences = []
    for row, base in (
        (BOTH, "BM25, tuned on the others"),
        (CHOSEN, "BM25, tuned on the others"),
        (CHOSEN, "BM25, k1 = 1.2, b = 0.75"),
        (AS_IN_PAPER, "BM25, tuned on the others"),
        (CHOSEN, AS_IN_PAPER),
        ("LinkLearn, whole articles, plain tf", "BM25, tuned on the others"),
    ):
        for metric in METRICS:
            a, b = (np.round(_pooled(rows[which], metric), 9) for which in (base, row))
            change = b.mean() / a.mean() - 1.0 if a.any() else np.nan
            sentences.append(
                f"{row} against {base}, {metric} of {n} queries: {b.mean():.4f} against {a.mean():.4f} "
                f"({change:+.1%}, p = {wilcoxon(b - a):.2g}; higher on {(b > a).sum()}, lower on "
                f"{(b < a).sum()})."
            )
    return sentences
