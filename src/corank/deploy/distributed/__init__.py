"""Exact learning from parts of a data set, on this machine or on a Dask cluster."""

from functools import partial
from typing import TYPE_CHECKING

from corank._moved import find
from corank.deploy.distributed.engine import DaskEngine, LocalEngine
from corank.deploy.distributed.fit import fit_parts, pair_sums, predict_parts
from corank.deploy.distributed.parts import Parts, Pass

__all__ = [
    "DaskEngine",
    "LocalEngine",
    "Parts",
    "Pass",
    "fit_parts",
    "pair_sums",
    "predict_parts",
]

if not TYPE_CHECKING:  # names of 0.2
    __getattr__ = partial(find, __name__)
