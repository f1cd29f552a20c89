"""Learn from clicks: click models, online rankers, interleaving, and logged clicks."""

from corank.clicks.click_models import CascadeClicks, PositionClicks
from corank.clicks.click_pairs import ClickPairs, click_pairs, propensities
from corank.clicks.curve import ClickCurve
from corank.clicks.dueling import DBGD, MGD
from corank.clicks.epsilon_greedy import ClickedPairs
from corank.clicks.estimate import ClickEstimate, estimate_from_clicks
from corank.clicks.impression import Duel, Impression
from corank.clicks.interleaving import Balanced, Blend, Comparison, PairwisePreference, Probabilistic, TeamDraft
from corank.clicks.pdgd import PDGD
from corank.clicks.position_bias import PositionBias, position_bias
from corank.clicks.ranker import OnlineRanker
from corank.clicks.simulate import simulate

__all__ = [
    "DBGD",
    "MGD",
    "PDGD",
    "Balanced",
    "Blend",
    "CascadeClicks",
    "ClickCurve",
    "ClickEstimate",
    "ClickPairs",
    "ClickedPairs",
    "Comparison",
    "Duel",
    "Impression",
    "OnlineRanker",
    "PairwisePreference",
    "PositionBias",
    "PositionClicks",
    "Probabilistic",
    "TeamDraft",
    "click_pairs",
    "estimate_from_clicks",
    "position_bias",
    "propensities",
    "simulate",
]
