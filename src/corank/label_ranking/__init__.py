"""Calibrated label ranking: order labels, with a zero point between relevant and irrelevant ones."""

from corank.label_ranking.auto import AutoLabelRanker
from corank.label_ranking.batch import expand_constraints
from corank.label_ranking.calibrated import CalibratedLabelRanker
from corank.label_ranking.measures import (
    average_precision,
    coverage,
    f1,
    footrule_distance,
    hamming_loss,
    kendall_distance,
    kendall_tau,
    one_error,
    ranking_loss,
    spearman_rho,
    subset_loss,
    top_positions,
)
from corank.label_ranking.neighbors import NeighborLabelRanker
from corank.label_ranking.online import OnlineLabelRanker
from corank.label_ranking.preferences import LabelPreferences
from corank.label_ranking.ranker import LabelRanker

__all__ = [
    "AutoLabelRanker",
    "CalibratedLabelRanker",
    "LabelPreferences",
    "LabelRanker",
    "NeighborLabelRanker",
    "OnlineLabelRanker",
    "average_precision",
    "coverage",
    "expand_constraints",
    "f1",
    "footrule_distance",
    "hamming_loss",
    "kendall_distance",
    "kendall_tau",
    "one_error",
    "ranking_loss",
    "spearman_rho",
    "subset_loss",
    "top_positions",
]
