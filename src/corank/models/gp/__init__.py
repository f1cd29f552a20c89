"""Gaussian processes that learn from preferences, grades and ratings, by expectation propagation."""

from corank.models.gp.collaborative_gp import CollaborativeGP
from corank.models.gp.judges import JudgeModel, fit_judges
from corank.models.gp.ordinal_gp import OrdinalGP
from corank.models.gp.preference_gp import PreferenceGP
from corank.models.gp.process import Posterior
from corank.models.gp.questions import gains, suggest_pairs

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
