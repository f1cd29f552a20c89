"""
ForestLabelRanker: a random forest of the votes on labels.

Every training row compares labels; a comparison is won or lost (see `corank.models.labels.neighbors`). A regression
forest predicts for a row x the mean, over the training rows in its leaves, of won minus lost v_r, of all comparisons
c_r and, with a zero point, of sides s_r (1 relevant, −1 irrelevant). Utilities are

    u_r(x) = (v_r(x) + c g_r) / (c_r(x) + c),   c = 0.001,

with g_r the same ratio over all training rows, which orders labels that are tied; the zero point is put where it
contradicts the fewest sides. For complete rankings this is a forest of positions. scikit-learn grows the trees; they
are stored and followed as arrays.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from corank.base.docs import shared_parameters
from corank.choices import Targets
from corank.errors import InputError
from corank.models.labels.neighbors import comparisons, zero_points
from corank.models.labels.preferences import LabelPreferences
from corank.models.labels.ranker import TARGETS, LabelRanker
from corank.parameters import Rules, integer, one_of, rng_of, seed

Floats = NDArray[np.float64]

# weight of the votes of all rows
_TIES = 1e-3
# rows that are followed through the trees at once
_BLOCK = 1 << 14


@dataclass(frozen=True, eq=False)
class FittedForestLabels:
    """The fitted attributes of `ForestLabelRanker`."""

    classes: NDArray[Any]
    kind: str
    is_calibrated: bool
    starts: NDArray[np.int64]
    features: NDArray[np.int32]
    thresholds: Floats
    children: NDArray[np.int32]
    votes: NDArray[np.float32]
    mean_votes: Floats


@shared_parameters
class ForestLabelRanker(LabelRanker):
    """
    Label ranking by a random forest: labels are ordered by their mean votes in the leaves of regression trees.

    The first choice for some hundred rows or more with few informative columns; it needs no scaling.

    Parameters
    ----------
    n_trees : int
        Number of trees.
    min_leaf : int
        Smallest number of training rows in a leaf.
    {targets}
    {random_state}

    Attributes
    ----------
    starts_ : array of int64, shape (n_trees + 1,)
        First node of each tree.
    features_, thresholds_ : arrays of shape (n_nodes,)
        A row goes left if this column, as float32, is at most the threshold; −1 for leaves.
    children_ : array of int32, shape (n_nodes, 2)
        Left and right child, counted from the first node of the tree.
    votes_ : array of float32, shape (n_nodes, n_labels, 2 or 3)
        Mean of won minus lost comparisons, of all comparisons and, with a zero point, of sides.
    mean_votes_ : array of shape (n_labels,)
        Share of won minus lost comparisons of all rows.
    {fitted_labels}

    Examples
    --------
    >>> X = np.linspace(0.0, 1.0, 20)[:, None]
    >>> model = ForestLabelRanker(targets="ranks", random_state=0).fit(X, np.where(X < 0.5, [[1, 2, 3]], [[3, 2, 1]]))
    >>> model.predict([[0.1], [0.9]]).tolist()
    [[1, 2, 3], [3, 2, 1]]
    """

    _rules: ClassVar[Rules] = {
        "n_trees": integer(1),
        "min_leaf": integer(1),
        "targets": one_of(*TARGETS),
        "random_state": seed,
    }

    starts_: NDArray[np.int64]
    features_: NDArray[np.int32]
    thresholds_: Floats
    children_: NDArray[np.int32]
    votes_: NDArray[np.float32]
    mean_votes_: Floats

    def __init__(
        self, n_trees: int = 100, *, min_leaf: int = 2, targets: Targets = "auto", random_state: Any = None
    ) -> None:
        self.n_trees = n_trees
        self.min_leaf = min_leaf
        self.targets = targets
        self.random_state = random_state

    def _fitted(self, rows: Any, preferences: LabelPreferences, labels: NDArray[Any]) -> FittedForestLabels:
        from sklearn.ensemble import RandomForestRegressor  # takes long to import

        won, compared = comparisons(preferences)
        if not compared.any() and not preferences.is_calibrated:
            raise InputError(f"y orders no two labels in any of the {rows.shape[0]} rows; pass preferences.")
        _require_single(rows)
        parts: list[Any] = [won, compared, *([preferences.sides] if preferences.is_calibrated else [])]
        forest = RandomForestRegressor(
            self.n_trees, min_samples_leaf=self.min_leaf, max_features=_columns(rows.shape[1]),
            random_state=int(rng_of(self.random_state).integers(1 << 31)),
        )  # fmt: skip
        trees = [tree.tree_ for tree in forest.fit(rows, np.hstack(parts).astype(np.float64)).estimators_]
        votes = np.concatenate([tree.value[:, :, 0] for tree in trees]).reshape(-1, len(parts), won.shape[1])
        return FittedForestLabels(
            labels, preferences.kind, preferences.is_calibrated,
            starts=np.cumsum([0, *(tree.node_count for tree in trees)]).astype(np.int64),
            features=np.concatenate([np.maximum(tree.feature, -1) for tree in trees]).astype(np.int32),
            thresholds=np.concatenate([tree.threshold for tree in trees]),
            children=np.concatenate(
                [np.column_stack([tree.children_left, tree.children_right]) for tree in trees]
            ).astype(np.int32),
            votes=np.ascontiguousarray(votes.transpose(0, 2, 1)).astype(np.float32),
            mean_votes=won.sum(axis=0) / np.maximum(compared.sum(axis=0), 1.0),
        )  # fmt: skip

    def _utilities(self, rows: Any) -> Floats:
        _require_single(rows)
        utilities = np.empty((rows.shape[0], len(self.classes_)))
        for begin in range(0, rows.shape[0], _BLOCK):
            block = rows[begin : begin + _BLOCK]
            votes = self._votes(np.asarray(block.toarray() if sparse.issparse(block) else block, dtype=np.float32))
            u = (votes[:, :, 0] + _TIES * self.mean_votes_) / (votes[:, :, 1] + _TIES)
            utilities[begin : begin + _BLOCK] = u - (
                zero_points(u, votes[:, :, 2])[:, None] if self.is_calibrated_ else 0.0
            )
        return utilities

    def _votes(self, rows: NDArray[np.float32]) -> Floats:
        """Return the mean votes in the leaves of rows, (n_rows, n_labels, 2 or 3)."""
        total, n = np.zeros((len(rows), *self.votes_.shape[1:])), np.arange(len(rows))
        for first in self.starts_[:-1]:
            nodes = np.full(len(rows), first)
            moving = n[self.features_[nodes] >= 0]
            while len(moving):
                i = nodes[moving]
                right = rows[moving, self.features_[i]] > self.thresholds_[i]
                nodes[moving] = first + self.children_[i, right.astype(np.int64)]
                moving = moving[self.features_[nodes[moving]] >= 0]
            total += self.votes_[nodes]
        return total / (len(self.starts_) - 1)

    def _check_state(self) -> None:
        """Raise if arrays from a file do not form trees: children come after their parents and stay in their tree."""
        n, starts, shape = len(self.features_), self.starts_, self.votes_.shape
        is_inner = self.features_ >= 0
        sizes = np.diff(starts)
        if not (starts[0] == 0 and starts[-1] == n and (sizes > 0).all()):
            raise InputError(f"starts_ does not ascend from 0 to the number of nodes, {n}")
        if shape != (n, len(self.classes_), 2 + self.is_calibrated_) or not np.isfinite(self.votes_).all():
            raise InputError(
                f"votes_ has shape {shape} for {n} nodes and {len(self.classes_)} labels, or is not finite"
            )
        if self.thresholds_.shape != (n,) or self.children_.shape != (n, 2) or not len(self.mean_votes_) == shape[1]:
            raise InputError(f"thresholds_, children_ or mean_votes_ do not fit {n} nodes")
        own, end = np.arange(n) - np.repeat(starts[:-1], sizes), np.repeat(sizes, sizes)
        inner = self.children_[is_inner]
        if (inner <= own[is_inner, None]).any() or (inner >= end[is_inner, None]).any():
            raise InputError("children_ do not form trees")
        if (self.features_ >= self.n_features_in_).any():
            raise InputError(f"features_ has {self.features_.max()}, but there are {self.n_features_in_} columns")


def _columns(n_features: int) -> float:
    """Return the share of columns that each split chooses from."""
    return 1.0 if n_features <= 3 else 0.5


def _require_single(rows: Any) -> None:
    largest = float(abs(rows.data if sparse.issparse(rows) else rows).max(initial=0.0))
    if not largest < 1e38:
        raise InputError(f"X has values of size {largest:.3g}, and trees take single precision; scale its columns.")
