"""Fusion of retrievers: learn from few judged queries how to combine their lists."""

from corank.models.fusion.definition import EngineForm, Estimate, FusionDefinition, Term, load_fusion
from corank.models.fusion.fusion import Fusion

__all__ = ["EngineForm", "Estimate", "Fusion", "FusionDefinition", "Term", "load_fusion"]
