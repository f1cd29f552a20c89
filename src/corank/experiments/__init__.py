"""
The papers' tables, one module each, on real data: each has a ``run(options)`` that returns a `Report`.

A module is imported when its experiment is asked for; `EXPERIMENTS` is all that has to change for a new one.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from corank.errors import InputError, known
from corank.experiments.options import ExperimentOptions
from corank.report import Report

EXPERIMENTS = {
    "bounds": "corank.experiments.bounds.run",
    "clicks": "corank.experiments.clicks.run",
    "co-rankrls": "corank.experiments.co_rankrls.run",
    "collaborative": "corank.experiments.gp_collaborative.run",
    "crr-letor": "corank.experiments.crr.letor",
    "crr-text": "corank.experiments.crr.text",
    "few-judgements": "corank.experiments.few_judgements.run",
    "label-ranking": "corank.experiments.label_ranking.run",
    "lambdarank": "corank.experiments.lambdarank.run",
    "gp-active": "corank.experiments.gp.active",
    "gp-spiral": "corank.experiments.gp.spiral",
    "lcra": "corank.experiments.lcra.run",
    "logged-clicks": "corank.experiments.logged_clicks.run",
    "linklearn": "corank.experiments.linklearn.run",
    "ordinal": "corank.experiments.gp_ordinal.run",
    "ranking-pursuit": "corank.experiments.ranking_pursuit.run",
    "screening": "corank.experiments.screening.run",
}
"""Each experiment's name and the module that runs it."""


def find(name: str) -> Callable[[ExperimentOptions], Report]:
    """
    Look up an experiment.

    name: one of `EXPERIMENTS`.
    Returns: takes `ExperimentOptions`, runs the experiment and returns its `Report`.
    """
    if name not in EXPERIMENTS:
        raise InputError(f"there is no experiment {name!r}; {known(name, list(EXPERIMENTS))}.")
    run: Callable[[ExperimentOptions], Report] = import_module(EXPERIMENTS[name]).run
    return run


def about(name: str) -> str:
    """
    Say what an experiment asks, without importing what it needs.

    name: one of `EXPERIMENTS`.
    Returns: the first line of its module's docstring.
    """
    spec = find_spec(EXPERIMENTS[name])
    if spec is None or spec.origin is None:
        return ""
    told = ast.get_docstring(ast.parse(Path(spec.origin).read_text(encoding="utf-8"))) or ""
    return told.partition("\n")[0]
