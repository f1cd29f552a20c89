"""Collaborative filtering: rank items for many users from few ratings per user."""

from corank.models.ratings.collaborative import Collaborative
from corank.models.ratings.ranker import ItemMean

__all__ = ["Collaborative", "ItemMean"]
