"""
Click prediction by regression, ranking and both: a substitute for table 3 of Sculley, KDD 2010.

The paper's advertisements are not public. Here documents of MQ2008 are shown one at a time: a user examines the place
of an impression with probability 1/rank and clicks by the grade. Logistic loss; the training impressions come before
the test impressions; alpha is chosen on a part between them.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from corank.base.transformers import QueryScaler
from corank.comparison.report import Report
from corank.models.linear import CRR
from corank.tables import ReportTable
from experiments.datasets.mq2008 import read_parts
from experiments.options import ExperimentOptions
from experiments.significance import p_text

MIX = {"regression": 1.0, "ranking": 0.0, "CRR": 0.5}
ALPHAS = (1e-2, 1e-3, 1e-4, 1e-5)
CLICKS = np.array([0.05, 0.2, 0.5])
"""Probability of a click on an examined document of grade 0, 1 and 2."""
N_RANKS = 4
SIZES = (200_000, 20_000, 100_000)
"""Impressions to learn from, to choose alpha on, and to test on, in the order of time."""
N_STEPS = 500_000
PAPER = {"regression": (0.133, 0.084), "ranking": (0.132, 0.094), "CRR": (0.132, 0.084)}
NO_LEARNING = "one column (BM25 of the page)"
BM25 = 24
"""Column of BM25 on the whole document in LETOR 4.0."""

Floats = NDArray[np.float64]


def run(options: ExperimentOptions) -> Report:
    """
    Run the experiment.

    options: 10 repeats by default; quick runs make 2.
    Returns: AUC loss and MSE of the three methods, with the paper's figures.
    """
    repeats = options.repeats or (2 if options.quick else 10)
    options.expect(repeats)
    found = np.array(
        [
            options.result(
                {"experiment": "crr-clicks", "repeat": repeat, "steps": N_STEPS},
                lambda repeat=repeat: _measure(options.seed, repeat),  # type: ignore[misc]
            )
            for repeat in range(repeats)
        ]
    )
    names = [*MIX, NO_LEARNING]
    rows = tuple(
        (name, *map(float, found[:, at].mean(axis=0)), *PAPER.get(name, ("", ""))) for at, name in enumerate(names)
    )
    gain, loss = found[:, 0, 0] - found[:, 2, 0], found[:, 1, 1] - found[:, 2, 1]
    return Report(
        "Click prediction from simulated clicks",
        f"Impressions of MQ2008: {SIZES[0]:,} to learn from, {SIZES[1]:,} to choose alpha on, {SIZES[2]:,} later ones "
        f"to test on, each with one document of a random query at a rank from 1 to {N_RANKS}; {repeats} repeats. The "
        f"user examines rank r with probability 1/r, and clicks with probability {', '.join(map(str, CLICKS))} on "
        f"grades 0, 1, 2. Logistic loss, {N_STEPS:,} steps. The paper's data are advertisements, so only directions "
        "can be compared.",
        (
            ReportTable(
                "Test AUC loss and MSE",
                ("method", "AUC loss", "MSE", "AUC loss, paper", "MSE, paper"),
                rows,
                note="MSE of a column that is not a probability is that of its best constant.",
            ),
        ),
        (
            f"AUC loss of regression minus CRR: {gain.mean():+.5f}, Wilcoxon {p_text(gain)} over repeats.",
            f"MSE of ranking minus CRR: {loss.mean():+.5f}, {p_text(loss)}.",
        ),
    )


@cache
def _documents() -> tuple[Floats, NDArray[np.int64], NDArray[np.int64]]:
    """Return scaled rows, their grades, and the first row of each query and the end."""
    rows = read_parts()
    X = QueryScaler().fit_transform(rows.X, qid=rows.qid)
    qid = np.asarray(rows.qid)
    order = np.argsort(qid, kind="stable")
    _, starts = np.unique(qid[order], return_index=True)
    return np.asarray(X)[order], rows.y[order].astype(np.int64), np.append(starts, len(order))


def _measure(seed: int, repeat: int) -> list[list[float]]:
    rng = np.random.default_rng([seed, repeat])
    X, grades, starts = _documents()
    n = sum(SIZES)
    queries = rng.integers(len(starts) - 1, size=n)
    shown = starts[queries] + (rng.random(n) * (starts[queries + 1] - starts[queries])).astype(np.int64)
    examined = rng.random(n) < 1.0 / rng.integers(1, N_RANKS + 1, size=n)
    y = (examined & (rng.random(n) < CLICKS[grades[shown]])).astype(np.float64)
    train, tune, test = np.split(np.arange(n), np.cumsum(SIZES)[:2])

    def errors(model: CRR, rows: Any) -> tuple[float, float]:
        p = model.predict_proba(X[shown[rows]])[:, 1]
        return 1.0 - float(roc_auc_score(y[rows], p)), float(np.mean((y[rows] - p) ** 2))

    found = []
    for mix in MIX.values():
        models = [
            CRR(
                loss="logistic", mix=mix, alpha=alpha, scale=False, solver="sgd", n_steps=N_STEPS, random_state=repeat
            ).fit(X[shown[train]], y[train], qid=np.zeros(len(train)))
            for alpha in ALPHAS
        ]
        tuned = [errors(model, tune) for model in models]
        losses = [(mix < 1.0) * auc_loss + (mix > 0.0) * mse for auc_loss, mse in tuned]
        found.append(list(errors(models[int(np.argmin(losses))], test)))
    column = X[shown[test], BM25]
    constant = float(y[test].var())
    return [*found, [1.0 - float(roc_auc_score(y[test], column)), constant]]
