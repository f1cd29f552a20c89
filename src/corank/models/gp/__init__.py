"""Gaussian processes that learn from preferences, grades and ratings, by expectation propagation."""

from corank.models.gp.collaborative.collaborative_gp import CollaborativeGP
from corank.models.gp.collaborative.judges import JudgeModel, fit_judges
from corank.models.gp.ep.process import Posterior
from corank.models.gp.ordinal.ordinal_gp import OrdinalGP
from corank.models.gp.preference.preference_gp import PreferenceGP
from corank.models.gp.preference.questions import gains, suggest_pairs

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
