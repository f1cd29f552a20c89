"""
LinkLearn as in the paper, and ours, learnt from the same links: the validation curve, links, and other collections.

As in the paper: perceptrons with linear outputs of tf, log(N/df) and length, that begin at random; the sum over all
constraints; stochastic gradient descent, one text at a time; learning rate and number of iterations by the average
precision on links of other documents. Ours is `LinkLearn` with its defaults. The paper does not state the number of
hidden units that it chose, nor how it scaled inputs and began: both forms have 10 units and standardised inputs.
"""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import numpy as np

from corank.comparison.report import Report
from corank.errors import InputError
from corank.tables import Cell, ReportTable
from corank.text import BM25, Corpus, LinkLearn, Links, split_links
from corank.text.training import MAX_QUERIES, check_steps
from experiments.datasets.smart import COLLECTIONS, read_citations, read_topics
from experiments.linklearn.plot import plot_validation
from experiments.linklearn.problems import (
    METRICS,
    RATES,
    STEPS,
    Variant,
    best_elsewhere,
    bm25_grid,
    everywhere,
    halves,
    link_precision,
    paper_form,
)
from experiments.options import ExperimentOptions
from experiments.significance import p_text

SOURCES = ("cisi", "cacm", "Wikispeedia")
N_WORDS = 150
"""What articles of Wikispeedia are cut to, about."""
REPEATS = 5
PAPER, OURS, TUNED = "LinkLearn, as in the paper", "LinkLearn, ours", "BM25, tuned on the others"
LINK_GRID = ((1.2, 0.3), (1.2, 0.75), (2.0, 0.75))

Values = dict[str, dict[str, list[float]]]


def run(options: ExperimentOptions) -> Report:
    """
    Run the experiment.

    options: 5 repeats by default, which split the documents and draw the first networks; quick runs make 1, of the
        citations of one collection.
    Returns: the validation curve, and tables of links and of collections.
    """
    repeats, sources = options.repeats or (1 if options.quick else REPEATS), SOURCES[:1] if options.quick else SOURCES
    options.expect(len(bm25_grid()) + len(sources) * repeats * (len(RATES) + 1))
    grid = {index: options.result({"bm25": index}, partial(everywhere, BM25(*index).to_index)) for index in bm25_grid()}
    picks = {name: list(grid)[best_elsewhere(list(grid.values()), name)] for name in COLLECTIONS}
    tuned: Values = {name: grid[picks[name]][name] for name in COLLECTIONS}
    fits = {source: [_fits(options, source, r) for r in range(repeats)] for source in sources}
    plot = options.folder / "linklearn-validation.png"
    plot_validation({source: entries[0] for source, entries in fits.items()}, plot)
    return Report(
        "LinkLearn as in the paper, and ours",
        "Both forms learn from the same links and stop by the average precision on links of other documents: halves of "
        f"Wikispeedia's articles, cut to about {N_WORDS} words, or 70 and 30 % of the documents with citations (CACM) "
        "and co-citations (CISI). As in the paper: linear perceptrons of tf, log(N/df) and length with a random start, "
        f"the sum over all constraints, one text per step, {STEPS:,} steps at each of the rates "
        f"{', '.join(map(str, RATES))}; validation chooses the rate and the number of steps. Ours: the default form. "
        f"{repeats} {'repeat' if repeats == 1 else 'repeats'}; BM25 is tuned for each collection on the others. Tests "
        "are Wilcoxon's over queries, two-sided.",
        (_curve(fits), _links(fits), _collections(fits, tuned)),
        tuple(_findings(fits, tuned)),
        (plot,),
    )


def _fits(options: ExperimentOptions, source: str, repeat: int) -> dict[str, Any]:
    """Return ours, the paper's at every rate, and the one of these that validation chooses."""
    seed, results = options.seed + repeat, {}
    for rate in (None, *RATES):
        key = {"source": source, "rate": rate, "repeat": repeat, "steps": None if rate is None else STEPS}
        results[rate] = options.result(key, partial(learn, source, rate, seed))
    best = max(RATES, key=lambda rate: max(results[rate]["curve"], default=0.0))
    return {OURS: results[None], PAPER: {**results[best], "rate": best}, "rates": [results[rate] for rate in RATES]}


def learn(source: str, rate: float | None, seed: int) -> dict[str, Any]:
    """
    Learn from the links of one source, and search the other collections.

    rate: of the paper's stochastic gradient descent; None for ours.
    Returns: figures, and the validation curve; it is empty if the rate is too high.
    """
    training, validation = links_of(source, seed)
    began = time.process_time()
    try:
        model = _model(rate, len(training), seed).fit(training, validation)
    except InputError:  # diverged
        return {"curve": [], "texts": [], "seconds": time.process_time() - began}
    seconds = time.process_time() - began
    curve = (1.0 - model.validation_errors_).tolist()
    ends = check_steps(model.n_steps, -(-len(training) // model.batch), model.checks_per_pass)
    return {
        "collections": {name: values for name, values in everywhere(model.to_index).items() if name != source},
        "links": link_precision(model.to_index, validation),
        "bm25": max(link_precision(BM25(k1, b).to_index, validation) for k1, b in LINK_GRID),
        "curve": curve,
        "texts": [step * model.batch for step in [0, *ends][: len(curve)]],
        "n_texts": len(training),
        "seconds": seconds,
    }


def links_of(source: str, seed: int) -> tuple[Links, Links]:
    """Return links of one source to train on and to validate on."""
    if source == SOURCES[-1]:
        training, validation = halves(Variant("", N_WORDS), seed)
        # so few that early stopping uses all: the same texts for both forms
        return training, validation.take(np.random.default_rng(seed).permutation(len(validation))[:MAX_QUERIES])
    return split_links(Corpus.of(read_topics(source).texts), read_citations(source), 0.3, random_state=seed)


def _model(rate: float | None, n_texts: int, seed: int) -> LinkLearn:
    return LinkLearn(n_steps=400, random_state=seed) if rate is None else paper_form(rate, n_texts, seed)


def _curve(fits: dict[str, list[dict[str, Any]]]) -> ReportTable:
    """Return the average precision on validation links while the first repeat learns."""
    rows: list[tuple[Cell, ...]] = []
    for source, entries in fits.items():
        for form in (PAPER, OURS):
            item = entries[0][form]
            curve, texts = item["curve"], item["texts"]
            index = int(np.argmax(curve))
            shown = [curve[0], *(curve[round(share * (len(curve) - 1))] for share in (0.25, 0.5, 0.75)), curve[-1]]
            rows.append(
                (form, source, *shown, curve[index], texts[index], round(texts[index] / item["n_texts"], 2), texts[-1])
            )
    return ReportTable(
        "Validation during training (the paper's Figure 1): AP of links of other documents",
        ("form", "links of", "start", "1/4", "1/2", "3/4", "end", "best", "texts until then", "passes", "texts in all"),
        tuple(rows), digits=3,
        note="Texts are counted as often as they are used: an iteration of the paper is one text. The paper stopped "
        "after 54,000 of 300,000 iterations, 0.36 passes. Ours stops after five passes without gain, the paper's form "
        "runs to the end, and both keep the best.",
    )  # fmt: skip


def _links(fits: dict[str, list[dict[str, Any]]]) -> ReportTable:
    rows: list[tuple[Cell, ...]] = []
    for source, entries in fits.items():
        bm25 = float(np.mean([item[OURS]["bm25"] for item in entries]))
        rows.append(("BM25", source, bm25, 0.0, "", ""))
        for form in (PAPER, OURS):
            results = float(np.mean([item[form]["links"] for item in entries]))
            rate = ", ".join(f"{item[form]['rate']:g}" for item in entries) if form == PAPER else ""
            seconds = sum(
                part["seconds"] for item in entries for part in (item["rates"] if form == PAPER else [item[OURS]])
            )
            rows.append((form, source, results, results / bm25 - 1.0, rate, round(seconds / len(entries), 1)))
    return ReportTable(
        "Finding links: AP on the documents that were not used for training",
        ("form", "links of", "AP", "gain", "rate", "processor seconds"), tuple(rows), digits=3,
        note="These documents were used for early stopping. BM25 is the best of k1, b = "
        f"{', '.join(f'({k1:g}, {b:g})' for k1, b in LINK_GRID)} on them. Seconds of the paper's form: all rates.",
    )  # fmt: skip


def _collections(fits: dict[str, list[dict[str, Any]]], tuned: Values) -> ReportTable:
    rows: list[tuple[Cell, ...]] = []
    for metric in METRICS:
        rows.append((TUNED, "", metric, *(float(np.mean(tuned[name][metric])) for name in COLLECTIONS)))
        for source, entries in fits.items():
            for form in (PAPER, OURS):
                mean = _mean(entries, form)
                shown = (float(np.mean(mean[name][metric])) if name in mean else "" for name in COLLECTIONS)
                rows.append((form, source, metric, *shown))
    return ReportTable(
        "Other collections, without learning again (the paper's Table 1)",
        ("ranker", "links of", "metric", *COLLECTIONS), tuple(rows),
    )  # fmt: skip


def _mean(entries: list[dict[str, Any]], form: str) -> Values:
    parts = [item[form]["collections"] for item in entries]
    return {
        name: {metric: np.mean([part[name][metric] for part in parts], axis=0).tolist() for metric in METRICS}
        for name in parts[0]
    }


def _findings(fits: dict[str, list[dict[str, Any]]], tuned: Values) -> list[str]:
    """Compare the forms with each other and with BM25, in AP over the queries of all collections searched."""
    sentences = []
    for source, entries in fits.items():
        of = {form: _mean(entries, form) for form in (PAPER, OURS)} | {TUNED: tuned}
        names = [name for name in COLLECTIONS if name != source]
        pooled = {row: np.concatenate([values[name]["AP"] for name in names]) for row, values in of.items()}
        for row, base in ((PAPER, TUNED), (OURS, TUNED), (OURS, PAPER)):
            a, b = pooled[row], pooled[base]
            gap = np.round(a - b, 9)
            sentences.append(
                f"{row}, learnt from {source}, against {base}, AP of {len(gap)} queries: {a.mean():.4f} against "
                f"{b.mean():.4f} ({a.mean() / b.mean() - 1:+.1%}, {p_text(gap)}; higher on {(gap > 0).sum()}, lower on "
                f"{(gap < 0).sum()})."
            )
    return sentences
