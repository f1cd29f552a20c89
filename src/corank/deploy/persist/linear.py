"""
LinearScorer: a saved linear ranker that scores rows without its class, which takes seconds to import.

It gives the scores of the ranker, bit for bit: both call `corank.data.scoring.score_columns`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.data.rows import as_rows, require_columns
from corank.data.scoring import score_columns
from corank.deploy.persist.container import read_container

RANKERS = ("SPD", "CRR", "LCRA", "RankSVM", "RankRLS")
"""Rankers that score rows by `coef_` and `intercept_`; the last one with a linear kernel only, without intercept."""

_LINEAR_KERNEL = {"noun": {"name": "LinearKernel", "fields": {}}}


@dataclass(frozen=True, eq=False)
class LinearScorer:
    """The scores of a linear ranker: w · x + b."""

    coef_: NDArray[np.float64]  # coef_ (n_features,), intercept_: w and b
    intercept_: float
    feature_names_in_: NDArray[np.object_] | None  # names of the columns, or None

    @property
    def n_features_in_(self) -> int:
        """Number of columns."""
        return len(self.coef_)

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Score rows whose column names were compared with those of the model."""
        rows = as_rows(X)
        require_columns(self, X, rows)
        return score_columns(rows, self.coef_) + self.intercept_


def load_linear(path: Path) -> LinearScorer | None:
    """Load a linear ranker; None if the file holds another model, or anything that `corank.load` must examine."""
    header, tensors = read_container(path)
    state, kind = header["state"], header["class"]
    if (
        kind not in RANKERS
        or header["requests"]
        or "has_prior_" in state
        or "missing_means_" in state
        or state.get("coef_") != {"array": "coef_"}
    ):
        return None
    if kind == "RankRLS" and state.get("kernel_") != _LINEAR_KERNEL:
        return None
    coef, intercept = tensors.get("coef_"), 0.0 if kind == "RankRLS" else state.get("intercept_")
    names = state.get("feature_names_in_", {"strings": None})
    if coef is None or coef.dtype != np.float64 or coef.shape != (state.get("n_features_in_"),) or not len(coef):
        return None
    if not isinstance(intercept, float) or not np.isfinite(coef).all() or list(names) != ["strings"]:
        return None
    words = names["strings"]
    if words is None:
        return LinearScorer(coef, intercept, None)
    if not isinstance(words, list) or len(words) != len(coef) or not all(isinstance(word, str) for word in words):
        return None
    return LinearScorer(coef, intercept, np.array(words, dtype=object))
