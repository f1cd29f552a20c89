"""
Learn a posterior: Gaussian processes with preferences, grades and questions, by expectation propagation.

What they are made of lives in the modules: `ep` (expectation propagation), `sites`, `features`, `process`; `pins`,
`population` and `readers` of users who share a prior.
"""

from corank.gp.collaborative.collaborative_gp import CollaborativeGP
from corank.gp.ep.posterior import Posterior
from corank.gp.ordinal.ordinal_gp import OrdinalGP
from corank.gp.preference.preference_gp import PreferenceGP
from corank.gp.preference.questions import gains, suggest_pairs

__all__ = ["CollaborativeGP", "OrdinalGP", "Posterior", "PreferenceGP", "gains", "suggest_pairs"]
