"""More rows than one machine holds: exact learning from parts, on this machine or on a cluster."""

from corank.distributed.engine import Engine, Here
from corank.distributed.fit import fit_parts, summarise
from corank.distributed.on_dask import Dask
from corank.distributed.parts import Parts, Pass

__all__ = ["Dask", "Engine", "Here", "Parts", "Pass", "fit_parts", "summarise"]
