"""Gaussian processes that learn from preferences, grades and ratings, by expectation propagation."""

from corank.gp.collaborative.collaborative_gp import CollaborativeGP
from corank.gp.collaborative.judges import JudgeModel, fit_judges
from corank.gp.ep.process import Posterior
from corank.gp.ordinal.ordinal_gp import OrdinalGP
from corank.gp.preference.preference_gp import PreferenceGP
from corank.gp.preference.questions import gains, suggest_pairs

__all__ = [
    "CollaborativeGP",
    "JudgeModel",
    "OrdinalGP",
    "Posterior",
    "PreferenceGP",
    "fit_judges",
    "gains",
    "suggest_pairs",
]
