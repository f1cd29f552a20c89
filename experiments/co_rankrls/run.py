"""
Least-squares ranking on real data: RankRLS on MQ2008, and views coupled on unscored rows.

Tsivtsivadze, Pahikkala, Boberg, Salakoski and Heskes, Co-Regularized Least-Squares for Label Ranking, 2010. The paper's
parses of sentences are not public: its protocol (table 1 and figure 1) is followed on MQ2008. RankRLS and sparse
RankRLS on Jester and MovieLens are rows of the experiment ``ranking-pursuit``, whose protocol they share.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from corank.base.pairs.losses import drawn_weight
from corank.comparison.report import Report
from corank.metrics import evaluate
from corank.models.rls import RankRLS
from corank.tables import Cell, ReportTable
from experiments.co_rankrls.draw import N_BASIS, median_kernel
from experiments.co_rankrls.views import HIDDEN, alpha_table, curve_table, plot_gains, trials_of, views_table
from experiments.datasets.mq2008 import BASELINES, folds, published, read_parts
from experiments.lcra.trial import ALPHAS, COUPLINGS
from experiments.options import ExperimentOptions

REPEATS = 20
METRICS = ("AP", "MeanNDCG", "nDCG@10")
LETOR_LAMBDAS = tuple(10.0**power for power in np.arange(-2.0, 5.1, 0.5))
BASES = (50, 100, 200, 500, 1000)
DENSE = "Gaussian, dense"


def run(options: ExperimentOptions) -> Report:
    """
    Run the experiment.

    options: 20 repeats by default; quick runs make 4, and do without the largest systems.
    Returns: MQ2008's folds, the paper's comparison, gains against alpha, and the curve over unscored rows.
    """
    repeats = options.repeats or (4 if options.quick else REPEATS)
    trials = {hidden: trials_of(options, repeats, hidden) for hidden in HIDDEN}
    views = [views_table(of, hidden) for hidden, of in trials.items()]
    plot = options.folder / "co-rankrls-alpha.png"
    plot_gains(trials, plot)
    return Report(
        "Least-squares ranking, and views coupled on unscored rows",
        f"{repeats} repeats, half of them on either half of the queries of MQ2008, 70 % to train on and 30 % to test "
        f"on; {N_BASIS} random basis rows a view. Every parameter is the one with the best mean on the other half: "
        f"alpha is one of {len(ALPHAS)} from {ALPHAS[0]:g} to {ALPHAS[-1]:g}, coupling one of "
        f"{', '.join(f'{c:g}' for c in COUPLINGS)}. Queries with one grade are left out. Equal grades form pairs, as "
        "in the paper, whose λ is alpha · Σ n²/2, n the rows of a query. Tests are over repeats; those of one half "
        "share rows, so they are optimistic.",
        (
            folds_table(options),
            *(table for table, _ in views),
            alpha_table(trials),
            *(curve_table(of, hidden) for hidden, of in trials.items()),
        ),
        tuple(finding for _, findings in views for finding in findings),
        (plot,),
    )


def folds_table(options: ExperimentOptions) -> ReportTable:
    """
    Train on each fold's training parts and test on its test part.

    The penalty is chosen by exact leave-query-out of AP on the training parts, so that the validation part is not
    needed. The dense system takes the penalty of the sparse one with the largest basis: they share the kernel.

    options: quick runs do without the dense system and the larger bases.
    Returns: means over the folds, with published methods below.
    """
    bases = BASES[:3] if options.quick else BASES
    names = ["linear", *(f"Gaussian, r = {r}" for r in bases), *([] if options.quick else [DENSE])]
    rows: list[tuple[Cell, ...]] = []
    options.expect(len(names) * len(folds()))
    for name in names:
        cells = [_cell(options, name, fold, bases[-1]) for fold in range(len(folds()))]
        means = [float(np.mean([cell[metric] for cell in cells])) for metric in METRICS]
        lambdas = ", ".join(f"{cell['lambda']:.3g}" for cell in cells)
        rows.append((f"RankRLS, {name}", *means, lambdas))
    for method in BASELINES:
        results = published(method)
        rows.append((f"{method} (published)", results["MAP"], results["MeanNDCG"], results["NDCG@10"], ""))
    return ReportTable(
        "MQ2008, mean over the five test parts",
        ("method", "MAP", "MeanNDCG", "nDCG@10", "λ by leave-query-out, fold by fold"),
        tuple(rows),
        note="Convention letor4. Gaussian kernel of median width, random basis rows, query_weight='pairs'.",
    )


def _cell(options: ExperimentOptions, name: str, fold: int, largest: int) -> dict[str, float]:
    key = {"experiment": "co-rankrls", "table": "letor", "name": name, "fold": fold, "largest": largest}
    results: dict[str, float] = options.result(key, lambda: _trial(options, name, fold, largest))
    return results


def _trial(options: ExperimentOptions, name: str, fold: int, largest: int) -> dict[str, float]:
    parts = folds()[fold]
    train, test = read_parts(parts.train), read_parts((parts.test,))
    # λ is relative to a sum over pairs, alpha to its mean
    n_pairs = drawn_weight(train.data, "pairs")
    how: dict[str, Any] = {"alphas": np.array(LETOR_LAMBDAS) / n_pairs, "metric": "AP"}
    if name == DENSE:
        chosen = _cell(options, f"Gaussian, r = {largest}", fold, largest)["lambda"]
        how = {"alpha": chosen / n_pairs, "n_basis": None}
    elif name != "linear":
        how |= {"n_basis": int(name.split()[-1])}
    if name != "linear":
        how["kernel"] = median_kernel(train.X, np.random.default_rng(options.seed))
    model = RankRLS(**how, ties=True, scale=False, random_state=options.seed).fit(train.data)
    results = evaluate(test.y, model.predict(test.X), test.qid, METRICS, convention="letor4")
    return {"lambda": model.alpha_ * n_pairs, **{metric: results[metric].mean for metric in METRICS}}
