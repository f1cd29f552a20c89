"""
How many hidden units, and when does early stopping act? Grangier and Bengio, 2005, choose both by validation links.

Training takes up to 3,000 steps of 16 texts in our form, several times the default, and up to 60,000 steps of one text
in the paper's; it stops after ten checks without a better average precision on links of other documents.
"""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import Any

import numpy as np

from corank.comparison.report import Report
from corank.tables import Cell, ReportTable
from corank.text import BM25, LinkLearn
from corank.text.training import check_steps
from experiments.linklearn.paper import LINK_GRID, links_of
from experiments.linklearn.problems import everywhere, link_precision
from experiments.options import ExperimentOptions

SOURCE, REPEATS = "cacm", 3
HIDDEN = (2, 10, 40)
PATIENCE, PAPER_CHECK = 10, 1000
"""Checks without improvement, and texts between two checks of the paper's form."""
N_STEPS = {"ours": 3000, "the paper's": 60_000}
PAPER, PAPER_RATE = "the paper's", 0.01
FIGURES = ("start", "best", "end", "elsewhere", "bm25")


def run(options: ExperimentOptions) -> Report:
    """
    Run the experiment.

    options: 3 repeats by default; quick runs make 1.
    Returns: for each number of hidden units, precision on validation links and elsewhere, and where training stopped.
    """
    repeats = options.repeats or (1 if options.quick else REPEATS)
    options.expect(len(N_STEPS) * len(HIDDEN) * repeats)
    rows: list[tuple[Cell, ...]] = []
    for form, n_hidden in product(N_STEPS, HIDDEN):
        tested = [
            options.result(
                {"experiment": "linklearn-hidden", "form": form, "hidden": n_hidden, "repeat": repeat},
                partial(learn, form, n_hidden, options.seed + repeat),
            )
            for repeat in range(repeats)
        ]
        figures = (float(np.mean([of[name] for of in tested])) for name in FIGURES)
        stopped = sum(of["taken"] < N_STEPS[form] for of in tested)
        steps = (f"{np.mean([of[name] for of in tested]):.0f}" for name in ("kept", "taken"))
        rows.append((form, n_hidden, *figures, *steps, f"{stopped} of {repeats}"))
    return Report(
        "LinkLearn: hidden units and early stopping",
        f"Links of citations of {SOURCE.upper()}, 70 % of the documents with links to train on, 30 % to validate; at "
        f"most {N_STEPS['ours']:,} steps of Adam, or {N_STEPS[PAPER]:,} of the paper's form at rate {PAPER_RATE:g}; "
        f"{repeats} repeats. BM25 with the best of {len(LINK_GRID)} settings on the "
        "validation links.",
        (
            ReportTable(
                "AP on validation links, by the number of hidden units",
                (
                    "form", "units", "start", "best", "end", "other collections", "BM25", "steps kept", "steps taken",
                    "stopped early",
                ),
                tuple(rows),
            ),
        ),
    )  # fmt: skip


def learn(form: str, n_hidden: int, seed: int) -> dict[str, Any]:
    """Train with early stopping; "kept" and "taken" are steps."""
    training, validation = links_of(SOURCE, seed)
    how: dict[str, Any] = {}
    if form == PAPER:
        per_pass = max(1, round(len(training) / PAPER_CHECK))
        how = {
            "b": 0.0,
            "positive": False,
            "solver": "sgd",
            "batch": 1,
            "eta0": PAPER_RATE,
            "checks_per_pass": per_pass,
        }
    model = LinkLearn(n_hidden, n_steps=N_STEPS[form], n_iter_no_change=PATIENCE, random_state=seed, **how)
    model.fit(training, validation)
    curve = 1.0 - model.validation_errors_
    ends = check_steps(model.n_steps, -(-len(training) // model.batch), model.checks_per_pass)
    others = [np.mean(of["AP"]) for name, of in everywhere(model.to_index).items() if name != SOURCE]
    return {
        "start": float(curve[0]), "best": float(curve.max()), "end": float(curve[-1]), "kept": int(model.n_iter_),
        "taken": ends[len(curve) - 2], "elsewhere": float(np.mean(others)),
        "bm25": max(link_precision(BM25(k1, b).to_index, validation) for k1, b in LINK_GRID),
    }  # fmt: skip
