"""Collaborative filtering: rank items for many users from few ratings per user."""

from corank.models.ratings.collaborative import Collaborative
from corank.models.ratings.item_mean import ItemMean

__all__ = ["Collaborative", "ItemMean"]
