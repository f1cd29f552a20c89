"""Rows that stand for all: which they are, how similar others are to them, and features made of that."""

from corank.basis.basis import Basis, as_doubles, score_columns
from corank.basis.choice import choose_basis, require_choice
from corank.basis.features import FeatureMap, beside
from corank.basis.terms import Terms

__all__ = ["Basis", "FeatureMap", "Terms", "as_doubles", "beside", "choose_basis", "require_choice", "score_columns"]
