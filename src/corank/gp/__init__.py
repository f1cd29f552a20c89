"""
Learn a posterior: Gaussian processes with preferences, grades and questions, by expectation propagation.

What they are made of lives in the modules: `ep` (expectation propagation), `sites`, `features`, `process`; `pins`,
`population` and `readers` of users who share a prior.
"""

from corank.gp.collaborative_gp import CollaborativeGP
from corank.gp.ep import Approximation as Approximation
from corank.gp.ep import propagate as propagate
from corank.gp.items import Items as Items
from corank.gp.ordinal_gp import OrdinalGP
from corank.gp.pins import Pins as Pins
from corank.gp.posterior import Posterior
from corank.gp.preference_gp import PreferenceGP
from corank.gp.process import Process as Process
from corank.gp.questions import gains, suggest_pairs
from corank.gp.sites import Sites as Sites
from corank.gp.sweeps import root_of as root_of

__all__ = ["CollaborativeGP", "OrdinalGP", "Posterior", "PreferenceGP", "gains", "suggest_pairs"]
