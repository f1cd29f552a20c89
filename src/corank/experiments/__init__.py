"""
The papers' tables, one module each, on real data: each has a ``run(settings)`` that returns a `Report`.

A module is imported when its experiment is asked for; `EXPERIMENTS` is all that has to change for a new one.
"""

from __future__ import annotations

from importlib import import_module

from corank.errors import InputError
from corank.experiments.report import Report
from corank.experiments.settings import Settings

EXPERIMENTS = {
    "crr-letor": "corank.experiments.crr_letor",
    "crr-text": "corank.experiments.crr_text",
    "lcra": "corank.experiments.lcra",
}
"""Each experiment's name and the module that runs it."""


def run(name: str, settings: Settings) -> Report:
    """
    Run one experiment.

    Parameters
    ----------
    name : str
        One of `EXPERIMENTS`.
    settings : Settings
        How long, which seed, and where results are kept.

    Returns
    -------
    Report
        Tables with the paper's figures beside ours.
    """
    if name not in EXPERIMENTS:
        raise InputError(f"there is no experiment {name!r}; corank knows {', '.join(EXPERIMENTS)}.")
    report: Report = import_module(EXPERIMENTS[name]).run(settings)
    return report
