"""
What few judgements are worth on real data, and what makes more of them.

Four questions: which rows to judge (Reuters, Wikispeedia), what text smoothed over all rows brings, what can be learnt
from one to five known rows (Reuters), and what five judged documents bring to a search (Cranfield, CISI, MED, CACM).
Every table has a row that needs no judgement, and what a user of scikit-learn would take.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from corank.comparison.report import Report
from corank.tables import ReportTable
from experiments.few_judgements import problems
from experiments.few_judgements.choice import N_JUDGED, choice_curves
from experiments.few_judgements.feedback import feedback_table
from experiments.few_judgements.learners import LOGISTIC, RANKRLS, SMOOTHED
from experiments.few_judgements.plot import plot_curves
from experiments.few_judgements.positives import positives_table
from experiments.options import ExperimentOptions

Floats = NDArray[np.float64]

REPEATS = 3
QUICK_TOPICS = 4
LINES = (
    (RANKRLS, "random"),
    (RANKRLS, "top"),
    (RANKRLS, "uncertain"),
    (SMOOTHED, "uncertain"),
    (LOGISTIC, "top"),
    (LOGISTIC, "uncertain"),
)
"""What the picture shows."""


def run(options: ExperimentOptions) -> Report:
    """
    Run the experiment.

    options: 3 repeats by default; quick runs make 1, of four topics a problem.
    Returns: a table for each problem, findings with their tests, and a picture of the curves.
    """
    repeats = options.repeats or (1 if options.quick else REPEATS)
    tables: list[ReportTable] = []
    findings: list[str] = []
    lines: dict[str, dict[str, Floats]] = {}
    bars: dict[str, float] = {}
    for pool in problems.pools():
        topics = pool.spread(QUICK_TOPICS if options.quick else len(pool.about))
        curves = choice_curves(options, pool, repeats, topics)
        tables.append(curves.table())
        findings += curves.findings()
        lines[pool.name] = {f"{learner}, {rule}": curves.values["test", learner, rule] for learner, rule in LINES}
        bars[pool.name] = float(curves.named["test"].mean())
    for pool in problems.reuters():
        topics = pool.spread(QUICK_TOPICS if options.quick else len(pool.about))
        tables.append(positives_table(options, pool, repeats, topics))
    table, tests = feedback_table(options, repeats)
    plot = options.folder / "judging-curves.png"
    plot_curves(lines, N_JUDGED, bars, plot)
    return Report(
        "Few judgements: what helps",
        "AP under corank's convention, larger is better. Text is tf-idf (1 + log tf, words of two rows or more), "
        f"Smooth with default parameters, fitted on the rows that may be judged; {repeats} repeats, tests are "
        "Wilcoxon's over topics or queries, each the mean of its repeats. Reuters-21578, ModApte split: rare topics "
        "have 20 to 100 training stories, common ones more. Wikispeedia: the 25 largest categories, a third of the "
        "articles to test; the line that names an article's categories is removed from its text.",
        (*tables, table),
        (*findings, *tests),
        (plot,),
    )
