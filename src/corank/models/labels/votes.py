"""
Label rankers that count votes on labels of similar training rows: nearest neighbours, and a random forest.

Every training row compares labels; a comparison is won or lost. NeighborLabelRanker: with the training rows i_1, ...,
i_k nearest to x,

    u_r(x) = (Σ_j w_j (won − lost)_{i_j r} + c g_r) / (Σ_j w_j (won + lost)_{i_j r} + c),   w_j = (k + 1 − j)/k,

g_r the same ratio over all training rows, with equal weights. For complete rankings this is a weighted Borda count, and
an incomplete one counts as far as it goes. c is so small that g only orders labels that the neighbours leave tied. If
the targets determine a zero point, it is put into this order where it contradicts the fewest neighbours. k is chosen by
leave-one-out, which needs no further fit: the neighbours of a training row are computed without it. Search costs
O(n n_features) per row, or about O(log n) with few columns (k-d tree).

ForestLabelRanker: a regression forest predicts for a row x the mean, over the training rows in its leaves, of won minus
lost v_r, of all comparisons c_r and, with a zero point, of sides s_r (1 relevant, −1 irrelevant). Utilities are

    u_r(x) = (v_r(x) + c g_r) / (c_r(x) + c),   c = 0.001,

and the zero point is placed as above. For complete rankings this is a forest of positions. scikit-learn grows the
trees; they are stored and followed as arrays.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.spatial import cKDTree, distance
from sklearn.metrics.pairwise import euclidean_distances

from corank.base.docs import shared_parameters
from corank.base.kernels.basis import as_doubles
from corank.data.scoring import repeat_first
from corank.errors import InputError
from corank.fitted import Relations, Shapes, are_below, is_ascending
from corank.models.labels.batch import StandardizedRows
from corank.models.labels.preferences import LabelPreferences
from corank.models.labels.ranker import LabelRanker, quality
from corank.parameters import Rules, Targets, boolean, integer, none, rng_of, seed

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# numbers of neighbours that leave-one-out compares, and the number of rows that it leaves out
_SIZES, _LEFT_OUT = (1, 2, 3, 5, 8, 12, 18, 27, 40, 60, 90), 2000
# k c: comparisons that the order of all rows counts as; below 1, it cannot exchange two labels of a ranking
_TIES = 0.1
# c of the forest
_FOREST_TIES = 1e-3
# largest number of columns for which a k-d tree is faster
_MAX_TREE_COLUMNS = 16
# distances, and comparisons, in memory at a time; rows that are followed through the trees at once
_BLOCK, _ROWS = 1 << 22, 1 << 14
# largest values whose squared distances do not overflow, and that trees can read
_MAX_SQUARED, _MAX_SINGLE = 1e150, 1e38


@dataclass(frozen=True, eq=False)
class FittedNeighborLabels:
    """The fitted attributes of `NeighborLabelRanker`."""

    n_neighbors: int
    training_rows: Any
    won: Floats
    compared: Floats
    sides: NDArray[np.int8]
    column_scale: Floats


@shared_parameters
@dataclass(eq=False, repr=False)
class NeighborLabelRanker(LabelRanker):
    """
    Label ranking by nearest neighbours: labels are ordered by their Borda count in similar training rows.

    It needs no shape of the utilities, and learns what linear rankers cannot: the better choice with few columns and
    some hundred rows. Rows must fit in memory, and the time of a prediction grows with their number.

    Parameters
    ----------
    n_neighbors : int, optional
        Number of neighbours; None chooses it by leave-one-out, from 1 to 90.
    {targets}
    scale : bool
        Whether to divide columns by their standard deviation before distances are computed.

    Attributes
    ----------
    n_neighbors_ : int
        Number of neighbours that is used.
    training_rows_ : array or CSR matrix of shape (n_rows, n_features)
        The training rows, scaled.
    won_, compared_ : arrays of shape (n_rows, n_labels)
        Comparisons of each label in each row that were won, minus those that were lost; and all.
    sides_ : array of int8, shape (n_rows, n_labels)
        1 for relevant labels, −1 for irrelevant ones, 0 if unknown.
    column_scale_ : array of shape (n_features,)
        Factors that columns are multiplied by; 1 without `scale`.
    {fitted_labels}

    Examples
    --------
    >>> X = [[0.0], [0.1], [1.0], [1.1]]
    >>> model = NeighborLabelRanker(2, targets="ranks").fit(X, [[1, 2, 3], [1, 3, 2], [3, 2, 1], [3, 2, 1]])
    >>> model.predict([[0.9]]).tolist()
    [[3, 2, 1]]
    """

    _rules: ClassVar[Rules] = {
        "n_neighbors": integer(1) | none,
        "scale": boolean,
    }

    _shapes: ClassVar[Shapes] = {
        "training_rows_": ("rows", "n_features_in_"),
        "won_": ("rows", "labels"),
        "compared_": ("rows", "labels"),
        "sides_": ("rows", "labels"),
        "column_scale_": ("n_features_in_",),
    }

    _relations: ClassVar[Relations] = {
        "n_neighbors_ is at most the number of rows": lambda m: 1 <= m.n_neighbors_ <= len(m.won_),
        "compared_ is not negative": lambda m: (m.compared_ >= 0.0).all(),
    }

    n_neighbors_: int = field(init=False)
    training_rows_: Any = field(init=False)
    won_: Floats = field(init=False)
    compared_: Floats = field(init=False)
    sides_: NDArray[np.int8] = field(init=False)
    column_scale_: Floats = field(init=False)

    n_neighbors: int | None = None
    targets: Targets = "auto"
    _: KW_ONLY
    scale: bool = True

    def _fit(self, rows: Any, preferences: LabelPreferences) -> FittedNeighborLabels:
        n = rows.shape[0]
        won, compared = comparisons(preferences)
        factors = StandardizedRows.of(rows, np.ones(n), scale=self.scale, centre=False).factors
        scaled = scaled_rows(rows, factors)
        _require_below(_MAX_SQUARED, scaled)
        votes = Votes(won, compared, preferences.sides)
        size = _chosen_size(scaled, votes, preferences) if self.n_neighbors is None else min(self.n_neighbors, n)
        return FittedNeighborLabels(size, scaled, won, compared, preferences.sides, factors)

    def _utilities(self, rows: Any) -> Floats:
        scaled, votes = scaled_rows(rows, self.column_scale_), Votes(self.won_, self.compared_, self.sides_)
        _require_below(_MAX_SQUARED, scaled)
        utilities = np.empty((rows.shape[0], len(self.classes_)))
        for piece, numbers in nearest(self.training_rows_, scaled, self.n_neighbors_):
            utilities[piece] = votes.utilities(numbers, has_zero=self.is_calibrated_)
        return repeat_first(rows, utilities)


@dataclass(frozen=True, eq=False)
class Votes:
    """The votes of each training row on each label."""

    won: Floats  # won, compared, sides (n, d): as the attributes of `NeighborLabelRanker`
    compared: Floats
    sides: NDArray[np.int8]

    def utilities(self, numbers: Integers, *, has_zero: bool) -> Floats:
        """Return u (m, d) of rows with these neighbours."""
        g = self.won.sum(axis=0) / np.maximum(self.compared.sum(axis=0), 1.0)
        k = numbers.shape[1]
        w, c = (np.arange(k, 0, -1) / k)[:, None], _TIES / k
        won, compared = (w * self.won[numbers]).sum(axis=1), (w * self.compared[numbers]).sum(axis=1)
        u = (won + c * g) / (compared + c)
        return np.asarray(u - zero_points(u, (w * self.sides[numbers]).sum(axis=1))[:, None] if has_zero else u)


def zero_points(u: Floats, votes: Floats) -> Floats:
    """Return the number for each row that separates relevant from irrelevant labels with most votes."""
    m, order = len(u), np.argsort(-u, axis=1, kind="stable")
    down = np.take_along_axis(u, order, axis=1)
    ends = np.hstack([down[:, :1] + 2.0, down, down[:, -1:] - 2.0])
    gain = np.hstack([np.zeros((m, 1)), np.cumsum(np.take_along_axis(votes, order, axis=1), axis=1)])
    # equal utilities are on one side
    best = np.where(ends[:, :-1] > ends[:, 1:], gain, -np.inf).argmax(axis=1)
    each = np.arange(m)
    return np.asarray(0.5 * (ends[each, best] + ends[each, best + 1]))


def comparisons(preferences: LabelPreferences) -> tuple[Floats, Floats]:
    """Return the comparisons of each label of each example that were won minus lost, and all; shape (n, d)."""
    n, d = preferences.shape
    won, compared = np.zeros((n, d)), np.zeros((n, d))
    step = max(1, _BLOCK // max(int(preferences.counts().max(initial=0)), 1))
    for start in range(0, n, step):
        part = preferences[np.arange(start, min(start + step, n))]
        examples, winners, losers = part.constraints()
        of_labels = (winners < d) & (losers < d)  # d is the zero point
        for labels, sign in ((winners, 1.0), (losers, -1.0)):
            counts = np.bincount((examples * d + labels)[of_labels], minlength=len(part) * d).reshape(-1, d)
            won[start : start + step] += sign * counts
            compared[start : start + step] += counts
    return won, compared


def nearest(training: Any, rows: Any, k: int) -> Iterator[tuple[slice, Integers]]:
    """
    Yield positions of rows and the numbers (·, k) of their nearest training rows, in blocks.

    Distances are sums of squared differences, so that they do not depend on the other rows of a block.
    """
    n, m = training.shape[0], rows.shape[0]
    if not sparse.issparse(training) and not sparse.issparse(rows) and training.shape[1] <= _MAX_TREE_COLUMNS:
        tree = cKDTree(training)
        step = max(1, _BLOCK // k)
        for start in range(0, m, step):
            yield slice(start, start + step), tree.query(rows[start : start + step], np.arange(1, k + 1))[1]
        return
    step = max(1, _BLOCK // n)
    for start in range(0, m, step):
        block = rows[start : start + step]
        if sparse.issparse(training) or sparse.issparse(block):
            D = euclidean_distances(block, training, squared=True)
        else:
            D = distance.cdist(block, training, "sqeuclidean")
        near = np.argpartition(D, k - 1, axis=1)[:, :k] if k < n else np.tile(np.arange(n), (len(D), 1))
        near = np.sort(near, axis=1)
        order = np.argsort(np.take_along_axis(D, near, axis=1), axis=1, kind="stable")
        yield slice(start, start + step), np.take_along_axis(near, order, axis=1)


def _chosen_size(rows: Any, votes: Votes, preferences: LabelPreferences) -> int:
    """The number of neighbours with the best quality of rows that are left out one at a time; the largest if tied."""
    n = rows.shape[0]
    sizes = [size for size in _SIZES if size < n] or [1]
    if n < 2:
        return 1
    left_out = np.unique(np.linspace(0, n - 1, min(n, _LEFT_OUT)).astype(np.int64))
    totals, truth = np.zeros(len(sizes)), preferences[left_out]
    for piece, result in nearest(rows, rows[left_out], sizes[-1] + 1):
        is_other = result != left_out[piece, None]
        is_other[is_other.all(axis=1), -1] = False  # among many equal rows, it may not be found itself
        others = result[is_other].reshape(len(result), -1)
        for i, size in enumerate(sizes):
            u = votes.utilities(others[:, :size], has_zero=preferences.is_calibrated)
            totals[i] += np.nansum(quality(truth[np.arange(len(left_out))[piece]], u))
    return sizes[int(np.flatnonzero(totals >= totals.max() - 1e-12 * len(left_out))[-1])]


def scaled_rows(rows: Any, factors: Floats) -> Any:
    """Return rows in float64 with their columns multiplied by factors; a CSR array if they are sparse."""
    doubles = as_doubles(rows)
    if sparse.issparse(doubles):
        return sparse.csr_array(sparse.csr_array(doubles).multiply(factors[None, :]))
    return doubles * factors


def _require_below(most: float, rows: Any) -> None:
    largest = float(abs(rows.data if sparse.issparse(rows) else rows).max(initial=0.0))
    if not largest < most:
        why = "squared distances overflow" if most == _MAX_SQUARED else "trees take single precision"
        raise InputError(f"X has values of size {largest:.3g}, and {why}; scale its columns.")


@dataclass(frozen=True, eq=False)
class FittedForestLabels:
    """The fitted attributes of `ForestLabelRanker`."""

    starts: NDArray[np.int64]
    features: NDArray[np.int32]
    thresholds: Floats
    children: NDArray[np.int32]
    votes: NDArray[np.float32]
    mean_votes: Floats


@shared_parameters
@dataclass(eq=False, repr=False)
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
        "random_state": seed,
    }

    _shapes: ClassVar[Shapes] = {
        "features_": ("nodes",),
        "thresholds_": ("nodes",),
        "children_": ("nodes", "sides"),
        "votes_": ("nodes", "labels", "sums"),
        "mean_votes_": ("labels",),
    }
    _relations: ClassVar[Relations] = {
        "starts_ ascends from 0 to the number of nodes": lambda m: (
            m.starts_[0] == 0 and m.starts_[-1] == len(m.features_) and is_ascending(m.starts_)
        ),
        "features_ names columns": lambda m: are_below(m.features_, m.n_features_in_, -1),
        "children_ follow their parents in the same tree": lambda m: m.children_.shape[1] == 2 and _are_trees(m),
        "votes_ has sides if there is a zero point": lambda m: m.votes_.shape[2] == 2 + m.is_calibrated_,
    }

    starts_: Integers = field(init=False)
    features_: NDArray[np.int32] = field(init=False)
    thresholds_: Floats = field(init=False)
    children_: NDArray[np.int32] = field(init=False)
    votes_: NDArray[np.float32] = field(init=False)
    mean_votes_: Floats = field(init=False)

    n_trees: int = 100
    _: KW_ONLY
    min_leaf: int = 2
    targets: Targets = "auto"
    random_state: Any = None

    def _fit(self, rows: Any, preferences: LabelPreferences) -> FittedForestLabels:
        from sklearn.ensemble import RandomForestRegressor  # takes long to import

        won, compared = comparisons(preferences)
        _require_below(_MAX_SINGLE, rows)
        parts: list[Any] = [won, compared, *([preferences.sides] if preferences.is_calibrated else [])]
        forest = RandomForestRegressor(
            self.n_trees, min_samples_leaf=self.min_leaf, max_features=_columns(rows.shape[1]),
            random_state=int(rng_of(self.random_state).integers(1 << 31)),
        )  # fmt: skip
        trees = [tree.tree_ for tree in forest.fit(rows, np.hstack(parts).astype(np.float64)).estimators_]
        votes = np.concatenate([tree.value[:, :, 0] for tree in trees]).reshape(-1, len(parts), won.shape[1])
        return FittedForestLabels(
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
        _require_below(_MAX_SINGLE, rows)
        utilities = np.empty((rows.shape[0], len(self.classes_)))
        for begin in range(0, rows.shape[0], _ROWS):
            block = rows[begin : begin + _ROWS]
            votes = self._votes(np.asarray(block.toarray() if sparse.issparse(block) else block, dtype=np.float32))
            u = (votes[:, :, 0] + _FOREST_TIES * self.mean_votes_) / (votes[:, :, 1] + _FOREST_TIES)
            utilities[begin : begin + _ROWS] = u - (
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


def _are_trees(model: ForestLabelRanker) -> bool:
    """Return whether children come after their parents and stay in their tree."""
    sizes, is_inner = np.diff(model.starts_), model.features_ >= 0
    places = np.arange(len(is_inner)) - np.repeat(model.starts_[:-1], sizes)
    ends, children = np.repeat(sizes, sizes), model.children_[is_inner]
    return bool(((children > places[is_inner, None]) & (children < ends[is_inner, None])).all())


def _columns(n_features: int) -> float:
    """Return the share of columns that each split chooses from."""
    return 1.0 if n_features <= 3 else 0.5
