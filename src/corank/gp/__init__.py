"""Learn a posterior: Gaussian processes with preferences, grades and questions, by expectation propagation."""

from corank.gp.ep import Approximation, propagate, root_of
from corank.gp.items import Items
from corank.gp.ordinal_gp import OrdinalGP
from corank.gp.posterior import Posterior
from corank.gp.preference_gp import PreferenceGP
from corank.gp.process import Process
from corank.gp.sites import Sites

__all__ = [
    "Approximation",
    "Items",
    "OrdinalGP",
    "Posterior",
    "PreferenceGP",
    "Process",
    "Sites",
    "propagate",
    "root_of",
]
