"""More rows than one machine holds: exact learning from parts, on this machine or on a cluster."""

from corank.distributed.convert import convert_parts
from corank.distributed.engine import Engine, Here
from corank.distributed.fit import fit_parts, summarise
from corank.distributed.on_dask import Dask
from corank.distributed.parts import Parts, Pass
from corank.distributed.scores import evaluate_parts, predict_parts, rank_parts
from corank.distributed.trees import fit_trees

__all__ = [
    "Dask",
    "Engine",
    "Here",
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
