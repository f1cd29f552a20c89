"""
Order labels, and say which of them are relevant: Brinker and Hüllermeier, Calibrated label-ranking, 2005.

The paper has no table. Rankings are those of the benchmark of Cheng, Hühn and Hüllermeier (Decision tree and
instance-based learning for label ranking, 2009); sets and top lists are compared with what is learnt without a zero
point.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from corank.comparison.report import Report
from corank.parameters import Targets
from corank.tables import Cell, ReportTable
from experiments.label_ranking.crossing import RANKS, SETS, TOPS, Folds, crossed, n_folds
from experiments.label_ranking.methods import (
    ALPHAS,
    CANDIDATES,
    MAX_KERNEL_ROWS,
    RANKING,
    VARIANTS,
    cut_methods,
)
from experiments.label_ranking.sets import (
    MAX_ROWS,
    LabelData,
    make_top_lists,
    read_multilabel,
    read_rankings,
    read_sushi,
)
from experiments.options import ExperimentOptions
from experiments.significance import p_text

RANKINGS = (
    "bodyfat", "fried", "glass", "housing", "iris", "stock", "vehicle", "vowel", "cold", "diau", "dtt", "heat", "spo",
)  # fmt: skip
QUICK = ("glass", "housing", "iris")
MULTILABEL = ("Music", "Scene", "Yeast")
N_MADE = 3000


def run(options: ExperimentOptions) -> Report:
    """
    Run the experiment.

    options: cross-validation, once by default; quick runs make three folds of few sets.
    Returns: rankings, sets, and top lists.
    """
    names = MULTILABEL[:1] if options.quick else MULTILABEL
    parts = [cut_table(options, name, partial(read_multilabel, name), "relevant") for name in names]
    parts.append(cut_table(options, "Sushi", read_sushi, "top"))
    made = partial(make_top_lists, N_MADE, np.random.default_rng(options.seed))
    parts.append(cut_table(options, "Made, with a known cut", made, "top"))
    tables, findings = ranking_tables(options)
    return Report(
        "Labels in order, and a zero point among them",
        f"Cross-validation, {options.repeats or 1} times: {n_folds(options, RANKS)} folds of rankings, "
        f"{n_folds(options, SETS)} of sets and lists; means over test rows. Penalties of "
        "rankings are corank's defaults; those of sets and top lists are chosen on a quarter of the training rows, "
        f"from {len(ALPHAS)} for every method that has one. kNN, random forest and ridge are scikit-learn's, of "
        "positions; the number of neighbours of kNN is chosen on a quarter of the training rows.",
        (*tables, *(table for table, _ in parts)),
        (*findings, *(sentence for _, sentences in parts for sentence in sentences)),
    )


def ranking_tables(options: ExperimentOptions) -> tuple[list[ReportTable], list[str]]:
    """
    Measure Kendall's τ on the sets of rankings.

    options: how long it may take.
    Returns: a table of methods, one of variants, and sentences about them.
    """
    names = QUICK if options.quick else RANKINGS
    methods = {**RANKING, **VARIANTS}
    folds = {name: crossed(options, name, partial(read_rankings, name), methods, RANKS) for name in names}
    rows, others = list[tuple[Cell, ...]](), list[tuple[Cell, ...]]()
    for name, of_set in folds.items():
        means = {method: float(np.mean(of_set[method]["τ"])) if of_set[method]["τ"] else None for method in methods}
        best = max(means[method] or -1.0 for method in CANDIDATES)
        rows.append((name, *(means[method] for method in RANKING), best - (means["automatic"] or -1.0)))
        others.append((name, *(means[method] for method in VARIANTS)))
    tables = [
        ReportTable(
            "Kendall's τ of rankings, higher is better",
            ("set", *RANKING, "best candidate minus automatic"),
            tuple(rows),
            digits=3,
            note=f"The best candidate is chosen with the test rows. Fried: {MAX_ROWS:,} of its 40,768 rows.",
        ),
        ReportTable(
            "Kendall's τ of variants, higher is better",
            ("set", *VARIANTS),
            tuple(others),
            digits=3,
            note=f"The kernel perceptron is left out for more than {MAX_KERNEL_ROWS} training rows.",
        ),
    ]
    pairs = (
        ("automatic", "random forest"),
        ("automatic", "kNN"),
        *(("automatic", method) for method in CANDIDATES),
        ("forest", "random forest"),
        ("neighbours", "kNN"),
        ("pairwise", "batch"),
        ("neighbours", "pairwise"),
        ("batch", "online"),
        ("batch", "batch, adjacent"),
        ("online", "online, last"),
    )
    return tables, [_contrast(f"Rankings of {len(names)} sets", list(folds.values()), *pair, "τ") for pair in pairs]


def cut_table(
    options: ExperimentOptions, name: str, read: Callable[[], LabelData], targets: Targets
) -> tuple[ReportTable, list[str]]:
    """
    Measure utilities with a zero point.

    options: how long it may take.
    name, read: the set.
    targets: "relevant" or "top".
    Returns: a table, and sentences about it.
    """
    methods, measures = cut_methods(targets), SETS if targets == "relevant" else TOPS
    folds = crossed(options, name, read, methods, measures)
    means = {method: [float(np.mean(folds[method][measure])) for measure in measures] for method in methods}
    rows: list[tuple[Cell, ...]] = [(method, *cells) for method, cells in means.items()]
    what = "which labels are relevant" if targets == "relevant" else "which labels are relevant, and their order"
    rivals = ("one-vs-rest logistic", "uncalibrated, one number", "uncalibrated, one utility", "pairwise")
    findings = [_contrast(name, [folds], "calibrated", rival, next(iter(measures))) for rival in rivals]
    note = "Lower is better, but for F1 and AP."
    return ReportTable(f"{name}: {what}", ("method", *measures), tuple(rows), note=note), findings


def _contrast(name: str, sets: list[Folds], ours: str, theirs: str, measure: str) -> str:
    pairs = [np.subtract(folds[ours][measure], folds[theirs][measure]) for folds in sets]
    differences = np.concatenate(pairs)
    tested = p_text(differences, ".1g", "p=")
    return f"{name}, {measure}: {ours} minus {theirs} is {differences.mean():+.4f} ({tested}, folds)."
