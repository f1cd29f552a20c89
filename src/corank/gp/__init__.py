"""
Learn a posterior: a Gaussian process with preferences and questions, by expectation propagation.

What `PreferenceGP` is made of lives in the modules: `ep` (expectation propagation), `sites`, `features`, `process`.
"""

from corank.gp.ep import Approximation as Approximation
from corank.gp.ep import propagate as propagate
from corank.gp.items import Items as Items
from corank.gp.posterior import Posterior
from corank.gp.preference_gp import PreferenceGP
from corank.gp.process import Process as Process
from corank.gp.questions import gains, suggest_pairs
from corank.gp.sites import Sites as Sites
from corank.gp.sweeps import root_of as root_of

__all__ = ["Posterior", "PreferenceGP", "gains", "suggest_pairs"]
