"""
λ and scorers compared: does a λ improve its own metric, and which scorer suits how many judged queries?

Burges, Ranking as learning structured outputs, 2005, has no experiment. Defaults were chosen before, on validation
parts and other draws; the test parts are used here only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.comparison.report import Report
from corank.metrics import wilcoxon
from corank.tables import Cell, ReportTable
from experiments.datasets.mq2008 import N_FOLDS
from experiments.lambdarank.methods import BM25, DRAWING, LIGHTGBM, LIGHTGBM_SAME, METHODS, METRICS, measured
from experiments.lambdarank.problems import Split, made, mq2008, mslr
from experiments.options import ExperimentOptions

Floats = NDArray[np.float64]

REPEATS = 3
SIZES = {"MQ2008": (10, 30, 100, 300), "MSLR": (5, 10, 20, 43), "made": (10, 30, 100, 300, 1000)}
CURVE = ("SPD", "RankRLS, Gaussian kernel", "linear, ndcg", "mlp, ndcg", "trees, ndcg(near=0.01)", LIGHTGBM)
OWN = {"map": "AP", "mrr": "RR", "wta": "WTA", "ndcg": "nDCG@10"}


def run(options: ExperimentOptions) -> Report:
    """
    Run the experiment.

    options: 3 seeds and draws by default; quick runs make 1, on one fold and without the largest sets.
    Returns: MQ2008's folds, the MSLR sample, each λ on its own metric, and curves over judged queries.
    """
    repeats = options.repeats or (1 if options.quick else REPEATS)
    n_folds = 1 if options.quick else N_FOLDS
    folds = [partial(mq2008, fold) for fold in range(n_folds)]
    letor = _Set(options, "MQ2008", folds, repeats)
    web = _Set(options, "MSLR", [mslr], repeats)
    curves = [_curve(options, name, repeats) for name in SIZES]
    return Report(
        "LambdaRank: gradients and scorers",
        f"MQ2008: {n_folds} official folds, fitted to the training parts and evaluated on the test parts; MSLR: the "
        f"sample of 43 queries each. Means over queries for which a metric is defined (convention corank), and over "
        f"{repeats} seeds of random methods; p by Wilcoxon's signed ranks over queries, against {LIGHTGBM_SAME}. All "
        "parameters are defaults, chosen on other queries.",
        (letor.table(), letor.own_metrics(), web.table(), web.own_metrics(), *curves),
        tuple(finding for one in (letor, web) for finding in one.findings()),
    )


class _Set:
    """Results of every method on one data set, query by query."""

    def __init__(
        self, options: ExperimentOptions, name: str, splits: Sequence[Callable[[], Split]], repeats: int
    ) -> None:
        self.name = name
        methods = (BM25, *METHODS, LIGHTGBM, LIGHTGBM_SAME)
        seeds = {method: repeats if method.startswith(DRAWING) else 1 for method in methods}
        options.expect(len(splits) * sum(seeds.values()))
        self.found: dict[str, list[dict[str, Floats]]] = {}
        for method in methods:
            runs = [_queries(options, name, method, splits, seed) for seed in range(seeds[method])]
            self.found[method] = runs

    def values(self, method: str, metric: str) -> Floats:
        """Values of each query, averaged over seeds."""
        return np.asarray(np.mean([run[metric] for run in self.found[method]], axis=0))

    def p(self, one: str, other: str, metric: str) -> float:
        """p-value of the difference of two methods."""
        gap = self.values(one, metric) - self.values(other, metric)
        return wilcoxon(gap[~np.isnan(gap)])

    def table(self) -> ReportTable:
        """Every method and metric."""
        rows: list[tuple[Cell, ...]] = []
        for method in self.found:
            means = [float(np.nanmean(self.values(method, metric))) for metric in METRICS]
            rows.append((method, *means, self.noise(method), self.p(method, LIGHTGBM_SAME, "nDCG@10")))
        return ReportTable(
            f"{self.name}, test queries", ("method", *METRICS, "nDCG@10, seed to seed", "p of nDCG@10"), tuple(rows)
        )

    def noise(self, method: str) -> float:
        """Deviation of nDCG@10 from seed to seed."""
        means = [np.nanmean(run["nDCG@10"]) for run in self.found[method]]
        return float(np.std(means, ddof=1)) if len(means) > 1 else float("nan")

    def own_metrics(self) -> ReportTable:
        """Each λ of the linear scorer on its own metric, compared with ranknet."""
        rows: list[tuple[Cell, ...]] = []
        for lambdas, metric in OWN.items():
            one, ranknet = f"linear, {lambdas}", "linear, ranknet"
            best = max(
                (name for name in self.found if name.startswith("linear")), key=lambda name: self.mean(name, metric)
            )
            p = self.p(one, ranknet, metric)
            rows.append(
                (
                    lambdas,
                    metric,
                    self.mean(one, metric),
                    self.mean(ranknet, metric),
                    p,
                    best,
                    self.p(one, best, metric),
                )
            )
        return ReportTable(
            f"Each λ on its own metric, linear scorer, {self.name}",
            ("λ", "metric", "its own λ", "ranknet", "p", "best λ", "p against it"),
            tuple(rows),
        )

    def mean(self, method: str, metric: str) -> float:
        """Mean over queries and seeds."""
        return float(np.nanmean(self.values(method, metric)))

    def findings(self) -> list[str]:
        """Compare with LightGBM."""
        ours = "trees, ndcg(near=0.01)"
        gap = self.mean(ours, "nDCG@10") - self.mean(LIGHTGBM_SAME, "nDCG@10")
        return [
            f"{self.name}: trees with corank's λ differ from LightGBM's own lambdarank with the same trees by "
            f"{gap:+.4f} nDCG@10 (p {self.p(ours, LIGHTGBM_SAME, 'nDCG@10'):.2f})."
        ]


def _queries(
    options: ExperimentOptions, name: str, method: str, splits: Sequence[Callable[[], Split]], seed: int
) -> dict[str, Floats]:
    """Values of all test queries, split by split."""
    parts = [
        options.result(
            {"set": name, "method": method, "split": at, "draw": seed},
            partial(_measured, method, split, seed),
        )
        for at, split in enumerate(splits)
    ]
    return {metric: np.concatenate([part[metric] for part in parts]) for metric in METRICS}


def _measured(method: str, split: Callable[[], Split], seed: int) -> dict[str, list[float]]:
    return measured(method, split(), seed)


def _curve(options: ExperimentOptions, name: str, repeats: int) -> ReportTable:
    """nDCG@10 of some methods, for growing numbers of judged queries."""
    sizes = SIZES[name][:3] if options.quick else SIZES[name]
    options.expect(len(CURVE) * len(sizes) * repeats)
    rows: list[tuple[Cell, ...]] = []
    for method in CURVE:
        cells: list[Any] = []
        for size in sizes:
            key = {"curve": name, "method": method, "queries": size}
            values = [
                options.result({**key, "draw": draw}, partial(_point, name, method, size, draw))
                for draw in range(repeats)
            ]
            cells.append(float(np.mean(values)))
        rows.append((method, *cells))
    return ReportTable(
        f"nDCG@10 by number of judged queries, {'synthetic data' if name == 'made' else name}",
        ("method", *(f"{size} queries" for size in sizes)),
        tuple(rows),
        note="Sines, products and absolute values of 20 columns, 30 rows per query." if name == "made" else "",
    )


def _point(name: str, method: str, n_queries: int, draw: int) -> float:
    split = mslr() if name == "MSLR" else made(draw) if name == "made" else mq2008(draw % N_FOLDS)
    train = split.train.some(n_queries, np.random.default_rng(draw))
    return float(np.nanmean(measured(method, Split(train, split.test, split.bm25), draw)["nDCG@10"]))
