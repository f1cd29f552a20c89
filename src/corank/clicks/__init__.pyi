from corank.clicks.bias import ClickPairs as ClickPairs
from corank.clicks.bias import PositionBias as PositionBias
from corank.clicks.bias import click_pairs as click_pairs
from corank.clicks.bias import position_bias as position_bias
from corank.clicks.bias import propensities as propensities
from corank.clicks.click_models import CLICK_MODELS as CLICK_MODELS
from corank.clicks.click_models import CascadeClicks as CascadeClicks
from corank.clicks.click_models import ClickModel as ClickModel
from corank.clicks.click_models import PositionClicks as PositionClicks
from corank.clicks.estimate import ClickEstimate as ClickEstimate
from corank.clicks.estimate import Interval as Interval
from corank.clicks.estimate import estimate_from_clicks as estimate_from_clicks
from corank.clicks.interleaving import InterleavedList as InterleavedList
from corank.clicks.interleaving import TeamDraft as TeamDraft
from corank.clicks.offline import Replay as Replay
from corank.clicks.offline import replay as replay
from corank.clicks.pairwise import PDGD as PDGD
from corank.clicks.pairwise import PairwiseEpsilonGreedy as PairwiseEpsilonGreedy
from corank.clicks.ranker import Impression as Impression
from corank.clicks.ranker import OnlineRanker as OnlineRanker
from corank.clicks.sequential import InterleavingTest as InterleavingTest
from corank.clicks.sequential import Verdict as Verdict
from corank.clicks.simulation import ClickCurve as ClickCurve
from corank.clicks.simulation import SimulatedUsers as SimulatedUsers
from corank.clicks.simulation import simulate_clicks as simulate_clicks

__all__: list[str]
