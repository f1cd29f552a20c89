"""
Least-squares ranking on real data: RankRLS on MQ2008, and views that agree on unscored rows.

Tsivtsivadze, Pahikkala, Boberg, Salakoski and Heskes, Co-Regularized Least-Squares for Label Ranking, 2010. The paper's
parses of sentences are not public: its protocol (table 1 and figure 1) is followed on MQ2008. RankRLS and sparse
RankRLS on Jester and MovieLens are rows of the experiment ``ranking-pursuit``, whose protocol they share.
"""

from __future__ import annotations

from corank.experiments.co_rankrls.draw import N_BASIS
from corank.experiments.co_rankrls.letor import folds_table
from corank.experiments.co_rankrls.views import ALPHAS, COUPLINGS, HIDDEN, curve_table, views_table
from corank.experiments.options import ExperimentOptions
from corank.experiments.report import Report

REPEATS = 5


def run(options: ExperimentOptions) -> Report:
    """
    Run the experiment.

    Parameters
    ----------
    options : ExperimentOptions
        5 repeats by default; quick runs make 1, and do without the largest systems.

    Returns
    -------
    Report
        MQ2008's folds, the paper's comparison, and its curve over unscored rows.
    """
    repeats = options.repeats or (1 if options.quick else REPEATS)
    views = [views_table(options, repeats, hidden) for hidden in HIDDEN]
    curves = [curve_table(options, repeats, hidden) for hidden in HIDDEN]
    return Report(
        "Least-squares ranking, and views that agree on unscored rows",
        f"{repeats} repeats; {N_BASIS} random basis rows a view; alpha in {ALPHAS[0]:g} ... {ALPHAS[-1]:g}, coupling "
        f"in {', '.join(f'{coupling:g}' for coupling in COUPLINGS)}, by fivefold cross-validation over training "
        "queries (disagreement error). Queries of MQ2008 with one grade are left out of the comparison of views.",
        (folds_table(options), *(table for table, _ in views), *curves),
        tuple(finding for _, findings in views for finding in findings),
    )
