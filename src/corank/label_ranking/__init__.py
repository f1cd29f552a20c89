"""Calibrated label ranking: order labels, with a zero point between relevant and irrelevant ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from corank._lazy import lazy

if TYPE_CHECKING:
    from corank.label_ranking.auto import AutoLabelRanker as AutoLabelRanker
    from corank.label_ranking.batch import expand_constraints as expand_constraints
    from corank.label_ranking.calibrated import CalibratedLabelRanker as CalibratedLabelRanker
    from corank.label_ranking.measures import average_precision as average_precision
    from corank.label_ranking.measures import coverage as coverage
    from corank.label_ranking.measures import f1 as f1
    from corank.label_ranking.measures import footrule_distance as footrule_distance
    from corank.label_ranking.measures import hamming_loss as hamming_loss
    from corank.label_ranking.measures import kendall_distance as kendall_distance
    from corank.label_ranking.measures import kendall_tau as kendall_tau
    from corank.label_ranking.measures import one_error as one_error
    from corank.label_ranking.measures import ranking_loss as ranking_loss
    from corank.label_ranking.measures import spearman_rho as spearman_rho
    from corank.label_ranking.measures import subset_loss as subset_loss
    from corank.label_ranking.measures import top_positions as top_positions
    from corank.label_ranking.neighbors import NeighborLabelRanker as NeighborLabelRanker
    from corank.label_ranking.online import OnlineLabelRanker as OnlineLabelRanker
    from corank.label_ranking.pairwise import PairwiseLabelRanker as PairwiseLabelRanker
    from corank.label_ranking.preferences import LabelPreferences as LabelPreferences
    from corank.label_ranking.ranker import LabelRanker as LabelRanker

_HOMES = {
    "AutoLabelRanker": "corank.label_ranking.auto",
    "CalibratedLabelRanker": "corank.label_ranking.calibrated",
    "LabelPreferences": "corank.label_ranking.preferences",
    "LabelRanker": "corank.label_ranking.ranker",
    "NeighborLabelRanker": "corank.label_ranking.neighbors",
    "OnlineLabelRanker": "corank.label_ranking.online",
    "PairwiseLabelRanker": "corank.label_ranking.pairwise",
    "average_precision": "corank.label_ranking.measures",
    "coverage": "corank.label_ranking.measures",
    "expand_constraints": "corank.label_ranking.batch",
    "f1": "corank.label_ranking.measures",
    "footrule_distance": "corank.label_ranking.measures",
    "hamming_loss": "corank.label_ranking.measures",
    "kendall_distance": "corank.label_ranking.measures",
    "kendall_tau": "corank.label_ranking.measures",
    "one_error": "corank.label_ranking.measures",
    "ranking_loss": "corank.label_ranking.measures",
    "spearman_rho": "corank.label_ranking.measures",
    "subset_loss": "corank.label_ranking.measures",
    "top_positions": "corank.label_ranking.measures",
}

__all__ = [*_HOMES]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy(__name__, _HOMES)
