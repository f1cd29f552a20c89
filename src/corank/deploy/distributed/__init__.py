"""Exact learning from parts of a data set, on this machine or on a Dask cluster."""

from corank.deploy.distributed.convert import convert_parts
from corank.deploy.distributed.engine import DaskEngine, Engine, LocalEngine
from corank.deploy.distributed.fit import fit_parts, fit_trees, summarise
from corank.deploy.distributed.parts import Parts, Pass
from corank.deploy.distributed.scores import evaluate_parts, predict_parts, rank_parts

__all__ = [
    "DaskEngine",
    "Engine",
    "LocalEngine",
    "Parts",
    "Pass",
    "convert_parts",
    "evaluate_parts",
    "fit_parts",
    "fit_trees",
    "predict_parts",
    "rank_parts",
    "summarise",
]
