"""
How many hidden units, and when does early stopping act? Grangier and Bengio, 2005, choose both by validation links.

Training takes up to 3,000 steps, several times the default, at the default rate; it stops after ten checks without a
better average precision on links of other documents.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from corank.comparison.report import Report
from corank.tables import Cell, ReportTable
from corank.text import BM25, LinkLearn
from experiments.linklearn.paper import LINK_GRID, links_of
from experiments.linklearn.problems import everywhere, link_precision
from experiments.options import ExperimentOptions

SOURCE, REPEATS = "cacm", 3
HIDDEN = (2, 10, 40)
N_STEPS, PATIENCE = 3000, 10
FIGURES = ("start", "best", "end", "elsewhere", "bm25")


def run(options: ExperimentOptions) -> Report:
    """
    Run the experiment.

    options: 3 repeats by default; quick runs make 1.
    Returns: for each number of hidden units, precision on validation links and elsewhere, and where training stopped.
    """
    repeats = options.repeats or (1 if options.quick else REPEATS)
    options.expect(len(HIDDEN) * repeats)
    rows: list[tuple[Cell, ...]] = []
    for n_hidden in HIDDEN:
        tested = [
            options.result(
                {"experiment": "linklearn-hidden", "hidden": n_hidden, "repeat": repeat},
                partial(_learn, n_hidden, options.seed + repeat),
            )
            for repeat in range(repeats)
        ]
        figures = (float(np.mean([of[name] for of in tested])) for name in FIGURES)
        stopped = sum(of["taken"] < N_STEPS for of in tested)
        steps = (f"{np.mean([of[name] for of in tested]):.0f}" for name in ("kept", "taken"))
        rows.append((n_hidden, *figures, *steps, f"{stopped} of {repeats}"))
    return Report(
        "LinkLearn: hidden units and early stopping",
        f"Links of citations of {SOURCE.upper()}, 70 % of the documents with links to train on, 30 % to validate; at "
        f"most {N_STEPS:,} steps of Adam; {repeats} repeats. BM25 with the best of {len(LINK_GRID)} settings on the "
        "validation links.",
        (
            ReportTable(
                "AP on validation links, by the number of hidden units",
                (
                    "units", "start", "best", "end", "other collections", "BM25", "steps kept", "steps taken",
                    "stopped early",
                ),
                tuple(rows),
            ),
        ),
    )  # fmt: skip


def _learn(n_hidden: int, seed: int) -> dict[str, Any]:
    training, validation = links_of(SOURCE, seed)
    model = LinkLearn(n_hidden, n_steps=N_STEPS, n_iter_no_change=PATIENCE, random_state=seed).fit(training, validation)
    curve = 1.0 - model.validation_errors_
    per_check = -(-len(training) // model.batch)
    others = [np.mean(of["AP"]) for name, of in everywhere(model.to_index).items() if name != SOURCE]
    return {
        "start": float(curve[0]), "best": float(curve.max()), "end": float(curve[-1]), "kept": int(model.n_iter_),
        "taken": min(N_STEPS, per_check * (len(curve) - 1)), "elsewhere": float(np.mean(others)),
        "bm25": max(link_precision(BM25(k1, b).to_index, validation) for k1, b in LINK_GRID),
    }  # fmt: skip
