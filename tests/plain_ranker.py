"""The smallest honest ranker: least squares on the differences inside queries, for tests of the contract."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corank.base import Ranker, as_weights


class PlainRanker(Ranker):
    """Minimise Σ_q Σ_{i<j in q} w_i w_j ((y_i − y_j) − w·(x_i − x_j))² + alpha ‖w‖², by forming each pair's rows."""

    def __init__(self, alpha: float = 1.0) -> None:
        self.alpha = alpha

    def fit(
        self, X: Any, y: ArrayLike | None = None, *, qid: ArrayLike | None = None, sample_weight: Any = None
    ) -> Self:
        data = self._problem(X, y, qid)
        data.require_pairs()
        assert data.y is not None
        weights = as_weights(sample_weight, data.n_rows)
        weights = np.ones(data.n_rows) if weights is None else weights
        A = self.alpha * np.eye(data.n_features)
        b = np.zeros(data.n_features)
        for q in range(len(data.queries)):
            rows = data.order[data.starts[q] : data.scored_stops[q]]
            w = weights[rows]
            L = np.diag(w * w.sum()) - np.outer(w, w)
            Z = data.X[rows]
            LZ = np.asarray((Z.T @ L) if not hasattr(Z, "toarray") else (Z.toarray().T @ L))
            A += LZ @ (Z.toarray() if hasattr(Z, "toarray") else Z)
            b += LZ @ data.y[rows]
        self.coef_ = np.linalg.solve(A, b)
        return self

    def predict(self, X: Any) -> NDArray[np.float64]:
        return np.asarray(self._new_rows(X) @ self.coef_, dtype=np.float64)
