"""
Scorers: a fitted model as a few arrays, independent of how it was learnt; the form that all exports are written from.

Every scorer takes rows with all columns of the model, unscaled. Scores are computed here in float64 by plain numpy, a
second derivation of the model's own ``predict``; missing values (NaN) are allowed in trees only. `kind` is the type of
a scorer in JSON, and its name in messages.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from corank.core.models.trees import DEFAULT_LEFT, MISSING_NAN, MISSING_ZERO, ZERO
from corank.errors import InputError
from corank.models.lambdarank.tree_ensemble import TreeEnsemble

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# numbers of a block of differences between rows and basis rows
_BLOCK = 1 << 22


@dataclass(frozen=True, eq=False)
class LinearScorer:
    """
    f(x) = weights · x + intercept.

    weights (d,): weights of the columns as given; every scale is folded in.
    """

    kind: ClassVar[tuple[str, str]] = ("linear", "a linear model")
    weights: Floats
    intercept: float = 0.0

    def score(self, rows: Floats) -> Floats:
        """Return the scores of rows."""
        return np.asarray(rows @ self.weights + self.intercept)

    def size(self, rows: Floats) -> Floats:
        """Return the sum of the absolute terms of each score, on which rounding errors depend."""
        return np.asarray(np.abs(rows) @ np.abs(self.weights) + abs(self.intercept))


@dataclass(frozen=True, eq=False)
class TreeScorer:
    """f(x) = the sum of one leaf per tree + intercept; a row goes left if its feature is at most the threshold."""

    kind: ClassVar[tuple[str, str]] = ("trees", "trees")
    trees: TreeEnsemble
    intercept: float = 0.0

    def score(self, rows: Floats) -> Floats:
        """Return the scores of rows; NaN is missing, as in LightGBM."""
        leaves = self.leaves(rows)
        total = np.zeros(len(rows))
        for t in range(leaves.shape[1]):  # in the order of the trees
            total += leaves[:, t]
        return total + self.intercept

    def size(self, rows: Floats) -> Floats:
        """Return the sum of the absolute terms of each score."""
        return np.asarray(np.abs(self.leaves(rows)).sum(axis=1) + abs(self.intercept))

    def leaves(self, rows: Floats) -> Floats:
        """Return the value of the leaf that each row reaches in each tree."""
        trees, out = self.trees, np.empty((len(rows), self.trees.n_trees))
        numbers = np.arange(len(rows))
        for t in range(trees.n_trees):
            begin, end = int(trees.starts[t]), int(trees.starts[t + 1])
            node = np.full(len(rows), 0 if end > begin else -1)
            while (node >= 0).any():
                inner = node >= 0
                k = begin + node[inner]
                left = self._goes_left(rows[numbers[inner], trees.features[k]], k)
                node[inner] = np.where(left, trees.children[k, 0], trees.children[k, 1])
            out[:, t] = trees.values[begin + t - node - 1]
        return out

    def _goes_left(self, values: Floats, nodes: Integers) -> NDArray[np.bool_]:
        flags, thresholds = self.trees.flags[nodes], self.trees.thresholds[nodes]
        missing = np.isnan(values)
        is_zero = ((flags & MISSING_ZERO) > 0) & (np.abs(values) <= ZERO)
        natural = values <= thresholds
        return np.where(missing | is_zero, missing_goes_left(flags, thresholds), natural)

    def forms(self, node: Callable[[int, Any, Any], Any], leaf: Callable[[float], Any]) -> list[Any]:
        """Build each tree from its leaves up: `node` takes the number of a node and what was made of its children."""
        trees = self.trees

        def build(t: int, at: int) -> Any:
            if at < 0:
                return leaf(float(trees.values[int(trees.starts[t]) + t - at - 1]))
            k = int(trees.starts[t]) + at
            return node(k, *(build(t, int(child)) for child in trees.children[k]))

        empty = np.diff(trees.starts) == 0
        return [build(t, -1 if empty[t] else 0) for t in range(trees.n_trees)]

    def require_no_missing_zeros(self, target: str) -> None:
        """Raise `InputError` if zeros are missing values, which an engine does not know."""
        if self.has_missing_zeros:
            raise InputError(
                f"trees with zero_as_missing have no counterpart in {target}; fit without it, or use json."
            )

    @property
    def has_missing_zeros(self) -> bool:
        """Whether zeros are missing values at some node (LightGBM's zero_as_missing)."""
        return bool((self.trees.flags & MISSING_ZERO).any())


def missing_goes_left(flags: Any, thresholds: Any) -> Any:
    """
    Return the side of missing values: LightGBM's default side if values may be missing, else that of zero.

    >>> missing_goes_left(np.array([0, 0, 8, 10]), np.array([-1.0, 1.0, 1.0, -1.0])).tolist()
    [False, True, False, True]
    """
    has_default = (flags & (MISSING_ZERO | MISSING_NAN)) > 0
    return np.where(has_default, (flags & DEFAULT_LEFT) > 0, thresholds >= 0.0)


@dataclass(frozen=True, eq=False)
class PerceptronScorer:
    """
    f(x) = the last layer of tanh layers over z = symlog(x · scale + shift); symlog(u) = sign(u) log(1 + |u|).

    scale, shift (d,): of the columns.
    weights: one array (inputs, outputs) per layer; the last layer has one output and no tanh.
    biases: one array (outputs,) per layer.
    """

    kind: ClassVar[tuple[str, str]] = ("perceptron", "a perceptron")
    scale: Floats
    shift: Floats
    weights: tuple[Floats, ...]
    biases: tuple[Floats, ...]

    def score(self, rows: Floats) -> Floats:
        """Return the scores of rows."""
        out = self.inputs(rows)
        for W, b in zip(self.weights[:-1], self.biases[:-1], strict=True):
            out = np.tanh(out @ W + b)
        return np.asarray((out @ self.weights[-1] + self.biases[-1])[:, 0])

    def inputs(self, rows: Floats) -> Floats:
        """Return z, the inputs of the first layer."""
        u = rows * self.scale + self.shift
        return np.asarray(np.sign(u) * np.log1p(np.abs(u)))

    def size(self, rows: Floats) -> Floats:
        """Return a bound of the sums of absolute terms."""
        out = np.abs(self.inputs(rows))
        for W, b in zip(self.weights, self.biases, strict=True):
            out = out @ np.abs(W) + np.abs(b)
        return np.asarray(out[:, 0] + 1.0)


KernelName = Literal["gaussian", "laplacian", "chi-square", "polynomial", "cosine"]


@dataclass(frozen=True, eq=False)
class KernelScorer:
    """
    f(x) = Σ_t coefficients[t] k(u, rows[t]) + intercept, u = x[columns] · scale + shift.

    kernel: "gaussian" exp(−gamma ‖u − z‖²), "laplacian" exp(−gamma ‖u − z‖₁), "chi-square"
        exp(−gamma Σ (u − z)²/(u + z)), "polynomial" (gamma u·z + coef0)^degree, "cosine" u·z/(‖u‖ ‖z‖).
    columns (c,): columns of the model that are compared.
    scale, shift (c,): of these columns.
    rows (r, c), coefficients (r,): the basis rows, and their coefficients.
    """

    kind: ClassVar[tuple[str, str]] = ("kernel", "a kernel model")
    kernel: KernelName
    columns: Integers
    scale: Floats
    shift: Floats
    rows: Floats
    coefficients: Floats
    gamma: float = 1.0
    degree: int = 1
    coef0: float = 0.0
    intercept: float = 0.0

    def score(self, rows: Floats) -> Floats:
        """Return the scores of rows."""
        return np.asarray(self._sums(rows, self.coefficients) + self.intercept)

    def size(self, rows: Floats) -> Floats:
        """Return the sum of the absolute terms of each score."""
        return np.asarray(self._sums(rows, np.abs(self.coefficients), absolute=True) + abs(self.intercept))

    def _sums(self, rows: Floats, coefficients: Floats, *, absolute: bool = False) -> Floats:
        out, step = np.empty(len(rows)), max(1, _BLOCK // max(1, self.rows.size))
        for begin in range(0, len(rows), step):
            K = self.similarities(rows[begin : begin + step])
            out[begin : begin + step] = (np.abs(K) if absolute else K) @ coefficients
        return out

    def similarities(self, rows: Floats) -> Floats:
        """Return k(u, z) for rows and basis rows."""
        U, Z = rows[:, self.columns] * self.scale + self.shift, self.rows
        if self.kernel == "polynomial":
            return np.asarray((self.gamma * (U @ Z.T) + self.coef0) ** self.degree)
        if self.kernel == "cosine":
            norms = np.sqrt((U**2).sum(axis=1))[:, None] * np.sqrt((Z**2).sum(axis=1))
            return np.asarray(np.divide(U @ Z.T, norms, out=np.zeros((len(U), len(Z))), where=norms > 0.0))
        gaps = U[:, None, :] - Z
        if self.kernel == "gaussian":
            distances = (gaps**2).sum(axis=2)
        elif self.kernel == "laplacian":
            distances = np.abs(gaps).sum(axis=2)
        else:
            sums = U[:, None, :] + Z
            distances = np.divide(gaps**2, sums, out=np.zeros_like(gaps), where=sums > 0.0).sum(axis=2)
        return np.asarray(np.exp(-self.gamma * distances))


@dataclass(frozen=True, eq=False)
class SumScorer:
    """f(x) = Σ weight · part(x) + intercept, over scorers of different kinds; see `add`."""

    kind: ClassVar[tuple[str, str]] = ("sum", "a sum of several kinds of models")
    parts: tuple[tuple[float, Scorer], ...]
    intercept: float = 0.0

    def score(self, rows: Floats) -> Floats:
        """Return the scores of rows."""
        return np.asarray(sum(weight * part.score(rows) for weight, part in self.parts) + self.intercept)

    def size(self, rows: Floats) -> Floats:
        """Return the sum of the absolute terms of each score."""
        return np.asarray(sum(abs(weight) * part.size(rows) for weight, part in self.parts) + abs(self.intercept))


@dataclass(frozen=True, eq=False)
class CalibratedScorer:
    """
    f(x) = a map of the score s of a scorer.

    knots, levels (k,): isotonic map, linear between the knots and constant beyond them; None for the logistic map.
    slope, offset, low, high: logistic map low + (high − low) / (1 + exp(−slope s − offset)).
    """

    kind: ClassVar[tuple[str, str]] = ("calibrated", "a calibrated model")
    inner: Scorer
    knots: Floats | None = None
    levels: Floats | None = None
    slope: float = 1.0
    offset: float = 0.0
    low: float = 0.0
    high: float = 1.0

    def score(self, rows: Floats) -> Floats:
        """Return the scores of rows."""
        s = self.inner.score(rows)
        if self.knots is not None and self.levels is not None:
            return np.interp(s, self.knots, self.levels)
        # tanh does not overflow
        with np.errstate(over="ignore"):
            p = 0.5 * (1.0 + np.tanh(0.5 * (self.slope * s + self.offset)))
        return np.asarray(self.low + (self.high - self.low) * p)

    @property
    def steepest(self) -> float:
        """The largest slope of the map."""
        if self.knots is not None and self.levels is not None:
            return float((np.diff(self.levels) / np.diff(self.knots)).max(initial=0.0))
        return 0.25 * (self.high - self.low) * abs(self.slope)

    def size(self, rows: Floats) -> Floats:
        """Return a bound of the effect of rounding errors of the inner score."""
        inner = self.inner.size(rows)
        if self.levels is not None:
            return np.asarray(self.steepest * inner + np.abs(self.levels).max())
        level = abs(self.low) + abs(self.high)
        return np.asarray(self.steepest * (inner + abs(self.offset / (self.slope or 1.0))) + level)


Scorer = LinearScorer | TreeScorer | PerceptronScorer | KernelScorer | SumScorer | CalibratedScorer


def add(parts: list[tuple[float, Scorer]]) -> Scorer:
    """
    Add up scorers with weights: linear ones become one, as do trees; the result is as simple as possible.

    >>> total = add([(0.5, LinearScorer(np.array([1.0, 0.0]))), (2.0, LinearScorer(np.array([0.0, 1.0]), 3.0))])
    >>> total.weights.tolist(), total.intercept
    ([0.5, 2.0], 6.0)
    """
    flat: list[tuple[float, Scorer]] = []
    intercept = 0.0
    for weight, part in parts:
        if isinstance(part, SumScorer):
            flat += [(weight * own, inner) for own, inner in part.parts]
            intercept += weight * part.intercept
        else:
            flat.append((weight, part))
    if len(flat) == 1 and flat[0][0] == 1.0 and intercept == 0.0:
        return flat[0][1]
    merged = [
        *_merged_linear([(w, part) for w, part in flat if isinstance(part, LinearScorer)]),
        *_merged_trees([(w, part) for w, part in flat if isinstance(part, TreeScorer)]),
        *((w, part) for w, part in flat if not isinstance(part, LinearScorer | TreeScorer)),
    ]
    if len(merged) == 1 and merged[0][0] == 1.0:
        only = merged[0][1]
        if isinstance(only, LinearScorer | TreeScorer):
            return replace(only, intercept=only.intercept + intercept)
        if intercept == 0.0:
            return only
    return SumScorer(tuple(merged), intercept)


def _merged_linear(parts: list[tuple[float, LinearScorer]]) -> list[tuple[float, Scorer]]:
    if not parts:
        return []
    weights = np.sum([w * part.weights for w, part in parts], axis=0)
    return [(1.0, LinearScorer(np.asarray(weights), float(sum(w * part.intercept for w, part in parts))))]


def _merged_trees(parts: list[tuple[float, TreeScorer]]) -> list[tuple[float, Scorer]]:
    if not parts:
        return []
    if len({part.trees.n_features for _, part in parts}) > 1:
        raise InputError("the models to add up have different numbers of features; fit them on the same columns.")
    first = parts[0][1].trees
    ends = np.cumsum([0, *(part.trees.starts[-1] for _, part in parts)])
    starts = [part.trees.starts[1:] + end for (_, part), end in zip(parts, ends[:-1], strict=True)]

    def joined(name: str) -> Any:
        return np.concatenate([getattr(part.trees, name) for _, part in parts])

    same = ("features", "thresholds", "children", "flags", "gains", "node_counts", "leaf_counts")
    trees = TreeEnsemble(
        n_features=first.n_features,
        starts=np.concatenate([[0], *starts]).astype(np.int64),
        values=np.concatenate([w * part.trees.values for w, part in parts]),
        **{name: joined(name) for name in same},
    )
    return [(1.0, TreeScorer(trees, float(sum(w * part.intercept for w, part in parts))))]
