"""
The papers' tables, one module each, on real data: each has a ``run(options)`` that returns a `Report`.

A module is imported when its experiment is asked for; `EXPERIMENTS` is all that has to change for a new one.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from corank.errors import InputError, known
from corank.experiments.options import ExperimentOptions
from corank.experiments.report import Report

EXPERIMENTS = {
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
