"""Learn from many users' few ratings: what all agree on, and what sets one of them apart."""

from corank.collaborative.collaborative import Collaborative
from corank.collaborative.item_mean import ItemMean

__all__ = ["Collaborative", "ItemMean"]
