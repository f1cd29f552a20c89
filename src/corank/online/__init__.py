"""Learn from clicks: simulated users, rankers that show and learn, and comparisons of rankers by clicks."""

from corank.online.clicked_pairs import ClickedPairs
from corank.online.comparison import Balanced, Blend, Comparison, PairwisePreference, Probabilistic, TeamDraft
from corank.online.curve import ClickCurve
from corank.online.dueling import DBGD, MGD
from corank.online.impression import Duel, Impression
from corank.online.pdgd import PDGD
from corank.online.ranker import OnlineRanker
from corank.online.simulate import simulate
from corank.online.users import CascadeClicks, PositionClicks

__all__ = [
    "DBGD", "MGD", "PDGD", "Balanced", "Blend", "CascadeClicks", "ClickCurve", "ClickedPairs", "Comparison", "Duel",
    "Impression", "OnlineRanker", "PairwisePreference", "PositionClicks", "Probabilistic", "TeamDraft", "simulate",
]  # fmt: skip
