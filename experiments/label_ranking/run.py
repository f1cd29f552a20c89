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

from corank.choices import Targets
from corank.comparison.report import Report
from corank.tables import Cell, ReportTable
from experiments.label_ranking.crossing import RANKS, SETS, TOPS, Folds, crossed, n_folds
from experiments.label_ranking.methods import ALPHAS, FEW_ROWS, RANKING, cut_methods
from experiments.label_ranking.sets import LabelData, make_top_lists, read_multilabel, read_rankings, read_sushi
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

    options: tenfold cross-validation, once by default; quick runs make three folds of few sets.
    Returns: rankings, sets, and top lists.
    """
    names = MULTILABEL[:1] if options.quick else MULTILABEL
    parts = [ranking_table(options)]
    parts += [cut_table(options, name, partial(read_multilabel, name), "relevant") for name in names]
    parts.append(cut_table(options, "Sushi", read_sushi, "top"))
    made = partial(make_top_lists, N_MADE, np.random.default_rng(options.seed))
    parts.append(cut_table(options, "Made, with a known cut", made, "top"))
    return Report(
        "Labels in order, and a zero point among them",
        f"{n_folds(options)}-fold cross-validation, {options.repeats or 1} times; means over test rows. Penalties of "
        "rankings are corank's defaults; those of sets and top lists are chosen on a quarter of the training rows, "
        f"from {len(ALPHAS)} for every method that has one. All methods are linear, but for kernel, landmarks, "
        "neighbours and forest.",
        tuple(table for table, _ in parts),
        tuple(finding for _, findings in parts for finding in findings),
    )


def ranking_table(options: ExperimentOptions) -> tuple[ReportTable, list[str]]:
    """
    Measure Kendall's τ on the sets of rankings.

    options: how long it may take.
    Returns: a table, and sentences about it.
    """
    names = QUICK if options.quick else RANKINGS
    found = {name: crossed(options, name, partial(read_rankings, name), RANKING, RANKS) for name in names}
    rows: list[tuple[Cell, ...]] = []
    for name, folds in found.items():
        means = (float(np.mean(folds[method]["τ"])) if folds[method]["τ"] else None for method in RANKING)
        rows.append((name, *means))
    table = ReportTable(
        "Kendall's τ of rankings, higher is better",
        ("set", *RANKING),
        tuple(rows),
        digits=3,
        note=f"Kernel perceptron and forest are left out for more than {FEW_ROWS} training rows.",
    )
    pairs = (
        ("batch, all", "batch, adjacent"),
        ("online, averaged", "online, last"),
        ("batch, all", "online, averaged"),
        ("pairwise", "batch, all"),
        ("neighbours", "batch, all"),
        ("neighbours", "pairwise"),
        ("automatic", "batch, all"),
        ("automatic", "neighbours"),
    )
    return table, [_contrast(f"Rankings of {len(names)} sets", list(found.values()), *pair, "τ") for pair in pairs]


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
