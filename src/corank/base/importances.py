"""
Importances of columns: one number per column of X, at least 0, with sum 1.

Linear rankers: |w_j| σ_j, the change of the score when column j changes by its standard deviation inside queries, which
is 1/column_scale_j. Trees: the gains of all splits on column j. Both are relative to the sum over columns. The
indicator of a missing value counts for its column.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def importances(model: Any) -> NDArray[np.float64]:
    """Return the importances of the columns of a fitted ranker; zeros if it uses no column."""
    if hasattr(model, "trees_"):
        parts = model.trees_.importances("gain")
    elif np.ndim(getattr(model, "coef_", 0.0)) == 1 and hasattr(model, "column_scale_"):
        parts = np.abs(model.coef_) / model.column_scale_
    else:
        raise AttributeError(
            f"{type(model).__name__} has no feature_importances_: they are defined for trees, and for linear rankers "
            "with scale=True."
        )
    found = parts[: model.n_features_in_].copy()
    if len(parts) > len(found):
        found[model.missing_columns_] += parts[len(found) :]
    return np.asarray(found / (found.sum() or 1.0))
