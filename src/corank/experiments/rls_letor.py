"""RankRLS on the five official folds of LETOR 4.0 MQ2008: linear, sparse and dense Gaussian."""

from __future__ import annotations

from typing import Any

import numpy as np

from corank.data.collection import Collection
from corank.data.mq2008 import BASELINES, folds, published, read_parts
from corank.experiments.report import Cell, Table
from corank.experiments.settings import Settings
from corank.metrics import evaluate
from corank.rls import RankRLS

METRICS = ("AP", "MeanNDCG", "nDCG@10")
ALPHAS = tuple(10.0**power for power in np.arange(-2.0, 5.1, 0.5))
BASES = (50, 100, 200, 500, 1000)
DENSE = "Gaussian, dense"


def folds_table(settings: Settings) -> Table:
    """
    Train on each fold's training parts and test on its test part.

    The penalty is chosen by exact leave-query-out of AP on the training parts, so that the validation part is not
    needed. The dense system takes the penalty of the sparse one with the largest basis: they share the kernel.

    Parameters
    ----------
    settings : Settings
        Quick runs do without the dense system and the larger bases.

    Returns
    -------
    Table
        Means over the folds, with published methods below.
    """
    bases = BASES[:3] if settings.quick else BASES
    names = ["linear", *(f"Gaussian, r = {r}" for r in bases), *([] if settings.quick else [DENSE])]
    rows: list[tuple[Cell, ...]] = []
    settings.expect(len(names) * len(folds()))
    for name in names:
        cells = [_cell(settings, name, fold, bases[-1]) for fold in range(len(folds()))]
        means = [float(np.mean([cell[metric] for cell in cells])) for metric in METRICS]
        alphas = ", ".join(f"{cell['alpha']:.3g}" for cell in cells)
        rows.append((f"RankRLS, {name}", *means, alphas))
    for method in BASELINES:
        found = published(method)
        rows.append((f"{method} (published)", found["MAP"], found["MeanNDCG"], found["NDCG@10"], ""))
    return Table(
        "MQ2008, mean over the five test parts",
        ("method", "MAP", "MeanNDCG", "nDCG@10", "alpha by leave-query-out, fold by fold"),
        tuple(rows),
        note="Convention letor4. Gaussian kernel of median width, random basis rows, query_weight='pairs'.",
    )


def _cell(settings: Settings, name: str, fold: int, largest: int) -> dict[str, float]:
    key = {"experiment": "co-rankrls", "table": "letor", "name": name, "fold": fold, "largest": largest}
    found: dict[str, float] = settings.result(key, lambda: _trial(settings, name, fold, largest))
    return found


def _trial(settings: Settings, name: str, fold: int, largest: int) -> dict[str, float]:
    parts = folds()[fold]
    train, test = read_parts(parts.train), read_parts((parts.test,))
    how: dict[str, Any] = {"alphas": ALPHAS, "metric": "AP", "random_state": settings.seed}
    if name == DENSE:
        alpha = _cell(settings, f"Gaussian, r = {largest}", fold, largest)["alpha"]
        how = {"alpha": alpha, "kernel": "gaussian", "random_state": settings.seed}
    elif name != "linear":
        how |= {"kernel": "gaussian", "n_basis": int(name.split()[-1])}
    model = RankRLS(**how).fit(train.data)
    return {**_measure(model, test), "alpha": model.alpha_}


def _measure(model: RankRLS, file: Collection) -> dict[str, float]:
    found = evaluate(file.y, model.predict(file.X), file.qid, METRICS, convention="letor4")
    return {metric: found[metric].mean for metric in METRICS}
