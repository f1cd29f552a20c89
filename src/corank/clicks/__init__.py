"""Learn from clicks: click models, online rankers, interleaving, and logged clicks."""

from corank.clicks.click_models import CLICK_MODELS, CascadeClicks, ClickModel, PositionClicks
from corank.clicks.click_pairs import ClickPairs, click_pairs, propensities
from corank.clicks.dueling import DBGD, MGD
from corank.clicks.estimate import ClickEstimate, Interval, estimate_from_clicks
from corank.clicks.interleaving import (
    INTERLEAVINGS,
    InterleavedList,
    Interleaving,
    PairwisePreference,
    Probabilistic,
    TeamDraft,
)
from corank.clicks.pairwise import PDGD, PairwiseEpsilonGreedy
from corank.clicks.position_bias import PositionBias, position_bias
from corank.clicks.ranker import Duel, Impression, OnlineRanker
from corank.clicks.replay import Replay, replay
from corank.clicks.sequential import InterleavingTest, Verdict
from corank.clicks.simulate import ClickCurve, simulate
from corank.clicks.users import SimulatedUsers

__all__ = [
    "CLICK_MODELS",
    "DBGD",
    "INTERLEAVINGS",
    "MGD",
    "PDGD",
    "CascadeClicks",
    "ClickCurve",
    "ClickEstimate",
    "ClickModel",
    "ClickPairs",
    "Duel",
    "Impression",
    "InterleavedList",
    "Interleaving",
    "InterleavingTest",
    "Interval",
    "OnlineRanker",
    "PairwiseEpsilonGreedy",
    "PairwisePreference",
    "PositionBias",
    "PositionClicks",
    "Probabilistic",
    "Replay",
    "SimulatedUsers",
    "TeamDraft",
    "Verdict",
    "click_pairs",
    "estimate_from_clicks",
    "position_bias",
    "propensities",
    "replay",
    "simulate",
]
