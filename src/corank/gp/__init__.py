"""Learn a posterior: Gaussian processes with preferences, grades and questions, by expectation propagation."""

from corank.gp.collaborative_gp import CollaborativeGP
from corank.gp.ep import Approximation, propagate, root_of
from corank.gp.items import Items
from corank.gp.ordinal_gp import OrdinalGP
from corank.gp.pins import Pins
from corank.gp.posterior import Posterior
from corank.gp.preference_gp import PreferenceGP
from corank.gp.process import Process
from corank.gp.questions import gains, suggest_pairs
from corank.gp.sites import Sites

__all__ = [
    "Approximation",
    "CollaborativeGP",
    "Items",
    "OrdinalGP",
    "Pins",
    "Posterior",
    "PreferenceGP",
    "Process",
    "Sites",
    "gains",
    "propagate",
    "root_of",
    "suggest_pairs",
]
