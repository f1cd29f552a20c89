"""
Future work of Sculley, Combined Regression and Ranking, KDD 2010, measured: landmarks and L1 penalties, on MQ2008.

Points are chosen on each fold's validation part by MAP. Landmarks are similarities to sampled rows (Gaussian kernel);
with l1 the weights are found by stochastic steps with AdaGrad rates, without by the exact solver.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.base.transformers import Landmarks
from corank.comparison.report import Report
from corank.metrics import evaluate
from corank.models.linear import CRR
from corank.tables import Cell, ReportTable
from experiments.datasets.mq2008 import folds, read_parts
from experiments.options import ExperimentOptions
from experiments.significance import p_text

MIX = 0.5
ALPHAS = (0.0001, 0.001, 0.01, 0.1)
LANDMARKS = (50, 200)
L1 = (0.01, 0.03, 0.1)
N_STEPS = 100_000
COLUMNS = "columns"

Floats = NDArray[np.float64]


def run(options: ExperimentOptions) -> Report:
    """
    Run the experiment.

    options: quick runs use one fold.
    Returns: MAP, MSE and weights other than 0 of CRR on columns, on landmarks, and with L1 penalties.
    """
    n_folds = 1 if options.quick else 5
    points = [(COLUMNS, alpha, 0.0) for alpha in ALPHAS]
    points += [(f"{n} landmarks", alpha, 0.0) for n in LANDMARKS for alpha in ALPHAS]
    points += [(f"columns, l1 {l1:g}, AdaGrad", 0.01, l1) for l1 in L1]
    options.expect(len(points) * n_folds)
    tested: dict[str, list[dict[str, Any]]] = {}
    for fold in range(n_folds):
        by_method: dict[str, list[dict[str, Any]]] = {}
        for name, alpha, l1 in points:
            key = {"experiment": "crr-extensions", "method": name, "alpha": alpha, "fold": fold}
            compute = partial(_measure, fold, name, alpha, l1, options.seed)
            by_method.setdefault(name, []).append(options.result(key, compute))
        for name, values in by_method.items():
            tested.setdefault(name, []).append(max(values, key=lambda value: float(value["validation"])))
    base = np.concatenate([of["AP"] for of in tested[COLUMNS]])
    rows: list[tuple[Cell, ...]] = []
    for name, values in tested.items():
        AP = np.concatenate([of["AP"] for of in values])
        p = "" if name == COLUMNS else p_text(AP - base, before="")
        figures = (float(np.mean([of[what] for of in values])) for what in ("MSE", "weights"))
        rows.append((name, float(np.mean([np.mean(of["AP"]) for of in values])), p, *figures))
    return Report(
        "CRR with landmarks and L1 penalties",
        f"MQ2008, {n_folds} folds, squared loss, mix {MIX:g}, grades; alpha ({', '.join(map(str, ALPHAS))}) is chosen "
        f"by validation MAP, with l1 it is 0.01; {N_STEPS:,} steps with l1. p: Wilcoxon's test of AP over queries, "
        "against columns.",
        (ReportTable("Test MAP and MSE", ("method", "MAP", "p", "MSE", "weights other than 0"), tuple(rows)),),
    )


def _measure(fold: int, name: str, alpha: float, l1: float, seed: int) -> dict[str, Any]:
    parts = folds()[fold]
    train, validation, test = (read_parts(of) for of in (parts.train, (parts.validation,), (parts.test,)))
    inputs = [train.X, validation.X, test.X]
    if name.endswith("landmarks"):
        phi = Landmarks(int(name.split()[0]), "gaussian", random_state=seed).fit(train.X)
        inputs = [phi.transform(X) for X in inputs]
    X, X_validation, X_test = inputs
    how: dict[str, Any] = (
        {"solver": "sgd", "rate": "adagrad", "n_steps": N_STEPS, "l1": l1} if l1 > 0.0 else {"solver": "exact"}
    )
    model = CRR("squared", MIX, alpha, random_state=seed, **how).fit(X, train.y, qid=train.qid)
    chosen = evaluate(validation.y, model.predict(X_validation), validation.qid, "AP", convention="letor4")["AP"].mean
    scores = model.predict(X_test)
    result = evaluate(test.y, scores, test.qid, "AP", convention="letor4")["AP"]
    return {
        "validation": float(chosen),
        "AP": [float(value) for value in result.values],
        "MSE": float(np.mean((scores - test.y) ** 2)),
        "weights": int(np.count_nonzero(model.coef_)),
    }
