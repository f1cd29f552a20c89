"""
Learning from clicks on MQ2008: the published figures, the fidelity of interleaving, and the effect of a prior.

Protocol of Oosterhuis and de Rijke, Differentiable Unbiased Online Learning to Rank, 2018: queries of the train part
are drawn and served, columns in [0, 1] inside each query, 10 rows per list, 10,000 lists per run; nDCG@10 of the ranker
on the test part (offline), and of the lists themselves, discounted by 0.9995 per list (online).
"""

from __future__ import annotations

from corank.comparison.report import Report
from experiments.clicks import fidelity, learners, priors
from experiments.clicks.problem import USERS, K
from experiments.options import ExperimentOptions

DRAWN = ("DBGD", "MGD", "PairwiseEpsilonGreedy", "PDGD")


def run(options: ExperimentOptions) -> Report:
    """
    Run the experiment.

    options: 50 runs of each method by default, four times as many for priors; quick runs make 10, of 1,000 lists.
    Returns: the tables, the findings, and a plot.
    """
    runs = options.repeats or (10 if options.quick else 50)
    published, curves = learners.table(options, runs)
    errors, ties = fidelity.tables(options, 1 if options.quick else 5)
    prior = priors.table(options, runs if options.quick else 4 * runs)
    picture = options.folder / "clicks.png"
    n_points = next(iter(curves.values()))["offline"].shape[1]
    lines = {
        kind: {method: curves[method, kind, "any"]["offline"][:, 1:] for method in DRAWN} for kind in USERS
    }  # fmt: skip
    learners.plot_lines(lines, learners.AT[1:n_points], f"nDCG@{K} on test queries", picture)
    return Report(
        "Learning from clicks",
        "MQ2008, official folds: queries of the three train parts are served, offline performance is measured on the "
        "test part, under corank's convention of nDCG (queries without a relevant row left out, which LETOR 4.0 counts "
        "as 0: 0.46 there is 0.70 here). Lists of queries without a relevant row count 0 online.",
        (published, errors, ties, prior),
        () if options.quick else learners.findings(curves),
        (picture,),
    )
