"""
Learning from clicks on MQ2008: the published figures, comparisons by interleaving, and agreement on unclicked rows.

Protocol of Oosterhuis and de Rijke, Differentiable Unbiased Online Learning to Rank, 2018: queries of the train part
are drawn and served, columns in [0, 1] inside each query, 10 rows a list, 10,000 lists a run; nDCG@10 of the ranker on
the test part (offline), and of the lists themselves, discounted by 0.9995 a list (online).
"""

from __future__ import annotations

from corank.evaluation.report import Report
from experiments.clicks import fidelity, hypothesis, learners
from experiments.clicks.plot import plot_lines
from experiments.clicks.problem import USERS, K
from experiments.options import ExperimentOptions

DRAWN = ("DBGD", "MGD", "ClickedPairs", "PDGD")


def run(options: ExperimentOptions) -> Report:
    """
    Run the experiment.

    options: 50 runs of each method by default, four times as many for the hypothesis; quick runs make 10, of 1,000
        lists.
    Returns: the tables, what they say, and two plots.
    """
    runs = options.repeats or (10 if options.quick else 50)
    published, curves = learners.table(options, runs)
    errors, ties = fidelity.tables(options, 1 if options.quick else 5)
    tests, findings, gains = hypothesis.tables(options, runs if options.quick else 4 * runs)
    speeds, agreement = options.folder / "clicks.png", options.folder / "clicks-agreement.png"
    n_points = next(iter(curves.values()))["offline"].shape[1]
    lines = {
        kind: {method: curves[method, kind, "any"]["offline"][:, 1:] for method in DRAWN} for kind in USERS
    }  # fmt: skip
    plot_lines(lines, learners.AT[1:n_points], f"nDCG@{K} on test queries", speeds)
    of_gains = {
        f"{learner}, {kind}": {f"coupling {c:g}": values[:, :-1] for c, values in by_coupling.items()}
        for (learner, kind), by_coupling in gains.items()
    }
    plot_lines(of_gains, hypothesis.AT, f"gain in nDCG@{K} over two views alone", agreement)
    return Report(
        "Learning from clicks",
        "MQ2008, official folds: queries of the three train parts are served, offline performance is measured on the "
        "test part, under corank's convention of nDCG (queries without a relevant row left out, which LETOR 4.0 counts "
        "as 0: 0.46 there is 0.70 here). Lists of queries without a relevant row are worth 0 online.",
        (published, errors, ties, *tests),
        (*(() if options.quick else learners.findings(curves)), *findings),
        (speeds, agreement),
    )
