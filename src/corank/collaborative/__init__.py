"""Collaborative filtering: rank items for many users from few ratings per user."""

from corank.collaborative.collaborative import Collaborative
from corank.collaborative.item_mean import ItemMean

__all__ = ["Collaborative", "ItemMean"]
