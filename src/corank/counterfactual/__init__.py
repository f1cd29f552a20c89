"""Learn from clicks that were logged, and foretell from them how another ranker would do."""

from corank.counterfactual.bias import PositionBias, position_bias
from corank.counterfactual.estimate import ClickEstimate, estimate_from_clicks
from corank.counterfactual.pairs import ClickPairs, click_pairs, propensities

__all__ = [
    "ClickEstimate",
    "ClickPairs",
    "PositionBias",
    "click_pairs",
    "estimate_from_clicks",
    "position_bias",
    "propensities",
]
