"""
The papers' tables, one module each, on real data: each has a ``run(settings)`` that returns a `Report`.

A module is imported when its experiment is asked for; `EXPERIMENTS` is all that has to change for a new one.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from corank.errors import InputError
from corank.experiments.report import Report
from corank.experiments.settings import Settings

EXPERIMENTS = {
    "co-rankrls": "corank.experiments.co_rankrls",
    "crr-letor": "corank.experiments.crr_letor",
    "crr-text": "corank.experiments.crr_text",
    "lcra": "corank.experiments.lcra",
    "ranking-pursuit": "corank.experiments.ranking_pursuit",
}
"""Each experiment's name and the module that runs it."""


def find(name: str) -> Callable[[Settings], Report]:
    """
    Look up an experiment.

    Parameters
    ----------
    name : str
        One of `EXPERIMENTS`.

    Returns
    -------
    callable
        Takes `Settings`, runs the experiment and returns its `Report`.
    """
    if name not in EXPERIMENTS:
        raise InputError(f"there is no experiment {name!r}; corank knows {', '.join(EXPERIMENTS)}.")
    run: Callable[[Settings], Report] = import_module(EXPERIMENTS[name]).run
    return run
