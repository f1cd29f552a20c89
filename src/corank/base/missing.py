"""The parameter `missing`: fill missing values of X in ``fit``, and in the same way in ``predict``."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from corank.data.missing import MissingValues
from corank.data.ranking import RankingData
from corank.errors import InputError

MISSING = ("mean", "error")
"""Values of the parameter."""


def fill_problem(model: Any, data: RankingData, notes: dict[str, Any], continues: bool) -> RankingData:
    """Return a problem without missing values, or with those that trees learn from."""
    if model._missing == "inner":
        return data
    result = filling_of(model) if continues else MissingValues.of(data.X) if data.has_missing else None
    if result is None:
        if data.has_missing:
            raise InputError(
                "X contains NaN, but had no missing value in the first fit; fill missing values, or fit again."
            )
        return data
    notes["missing_columns_"], notes["missing_means_"] = result.columns, result.means
    if model._missing == "keep":
        return replace(data, filling=result)
    names = None if data.names is None else tuple(result.names(list(data.names)))
    return replace(data, X=result.fill(data.X), names=names, has_missing=False, filling=result)


def fill_rows(model: Any, X: Any) -> Any:
    """Return checked rows for a fitted ranker, with missing values filled as in ``fit``; trees keep them."""
    filling = None if hasattr(model, "trees_") else filling_of(model)
    return X if filling is None else filling.fill(X)


def filling_of(model: Any) -> MissingValues | None:
    """Return how a fitted ranker fills missing values; None if ``fit`` had none."""
    return MissingValues(model.missing_columns_, model.missing_means_) if hasattr(model, "missing_means_") else None
