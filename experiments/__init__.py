"""
The experiments of the papers on real data: each module has a ``run(options)`` that returns a `Report`.

Modules are imported when their experiment runs; add a new one to `EXPERIMENTS`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from corank.comparison.report import Report
from corank.errors import InputError, suggest_names
from experiments.options import ExperimentOptions

EXPERIMENTS = {
    "bounds": "experiments.bounds.run",
    "bounds-coverage": "experiments.bounds.coverage",
    "bounds-selection": "experiments.bounds.selection",
    "cheap-judges": "experiments.cheap_judges.run",
    "clicks": "experiments.clicks.run",
    "co-rankrls": "experiments.co_rankrls.run",
    "cold-start": "experiments.gp_collaborative.cold_start",
    "collaborative": "experiments.gp_collaborative.run",
    "collaborative-kernels": "experiments.gp_collaborative.kernels",
    "collaborative-paper": "experiments.gp_collaborative.paper",
    "compare-advice": "experiments.compare_advice.run",
    "crr-clicks": "experiments.crr.clicks",
    "crr-deploy": "experiments.crr.deploy",
    "crr-extensions": "experiments.crr.extensions",
    "crr-letor": "experiments.crr.letor",
    "crr-text": "experiments.crr.text",
    "few-judgements": "experiments.few_judgements.run",
    "fusion": "experiments.fusion.run",
    "label-ranking": "experiments.label_ranking.run",
    "lambdarank": "experiments.lambdarank.run",
    "gp-active": "experiments.gp.active",
    "gp-calibration": "experiments.gp.calibration",
    "gp-judges": "experiments.gp.judges",
    "gp-questions": "experiments.gp.questions",
    "gp-spiral": "experiments.gp.spiral",
    "lcra": "experiments.lcra.run",
    "leaderboard": "experiments.leaderboard.run",
    "logged-clicks": "experiments.logged_clicks.run",
    "linklearn": "experiments.linklearn.run",
    "linklearn-hidden": "experiments.linklearn.hidden",
    "linklearn-paper": "experiments.linklearn.paper",
    "ordinal": "experiments.gp_ordinal.run",
    "pursuit-aggregation": "experiments.ranking_pursuit.aggregation",
    "pursuit-squares": "experiments.ranking_pursuit.squares",
    "ranking-pursuit": "experiments.ranking_pursuit.run",
    "screening": "experiments.screening.run",
    "screening-prior": "experiments.screening.prior",
    "screening-stopping": "experiments.screening.stopping",
}
"""Names of the experiments and their modules."""


def find(name: str) -> Callable[[ExperimentOptions], Report]:
    """Return the function that runs an experiment."""
    if name not in EXPERIMENTS:
        raise InputError(f"there is no experiment {name!r}; {suggest_names(name, list(EXPERIMENTS))}.")
    run: Callable[[ExperimentOptions], Report] = import_module(EXPERIMENTS[name]).run
    return run


def about(name: str) -> str:
    """Return the first line of an experiment's docstring without importing it."""
    spec = find_spec(EXPERIMENTS[name])
    if spec is None or spec.origin is None:
        return ""
    text = ast.get_docstring(ast.parse(Path(spec.origin).read_text(encoding="utf-8"))) or ""
    return text.partition("\n")[0]
