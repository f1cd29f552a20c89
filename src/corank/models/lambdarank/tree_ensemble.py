"""
TreeEnsemble: boosted regression trees as checked arrays, scored without LightGBM.

LightGBM does not check the indices of its text format, so that a damaged text can crash the process. Here the arrays
are checked once, in time linear in the number of nodes, before a kernel follows them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby, pairwise
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from corank.core.jit import is_compiled, is_small
from corank.core.models.trees import (
    CATEGORIES,
    DEFAULT_LEFT,
    MISSING_NAN,
    MISSING_ZERO,
    SOUND,
    TreeArrays,
    measure_depths,
    score_csr,
    score_dense,
    score_small,
)
from corank.core.rows.access import CSRRows, as_core_rows
from corank.core.threads import cut, n_threads, parallel_map
from corank.data.rows import has_missing
from corank.errors import InputError, reason
from corank.fitted import Part, are_below
from corank.parameters import is_integer

Floats = NDArray[np.float64]

# least number of rows per thread
_PIECE = 256

_FIELD = re.compile(r"^(\w+)=(.*)$", re.MULTILINE)
# the numbers of nodes and leaves in LightGBM's text
_NODES = ("split_feature", "split_gain", "threshold", "decision_type", "left_child", "right_child", "internal_count")
_LEAVES = ("leaf_value", "leaf_count")


@dataclass(frozen=True, eq=False, repr=False)
class TreeEnsemble(Part):
    """
    Regression trees; the score of a row is the sum of one leaf per tree.

    A row goes left at a node if the value of its feature is at most the threshold. Invalid arrays raise `InputError`.

    flags: LightGBM's ``decision_type``: 2 if missing values go left, plus 4 if zeros or 8 if NaN are missing; plus 1 if
        the feature is a group of columns of 0 and 1, one for each category, and the threshold the number of a set: rows
        of one of its categories go left.
    """

    n_features: int  # number of columns
    starts: NDArray[np.int64]  # first node of each tree; a tree of m nodes has m + 1 leaves
    features: NDArray[np.uint32]  # features, thresholds: the split of each node
    thresholds: Floats
    children: NDArray[np.int32]  # left and right child, counted from the first node of the tree; leaf k is −k − 1
    flags: NDArray[np.uint8]
    values: Floats  # values of the leaves, tree after tree
    gains: Floats  # gain of each split in training
    node_counts: NDArray[np.int32]  # node_counts, leaf_counts: number of training rows
    leaf_counts: NDArray[np.int32]
    groups: NDArray[np.int64] | None = None  # (n_groups, 2): first column, and one past the last, of categories
    sets: NDArray[np.bool_] | None = None  # (n_sets, largest group): categories of each set; None without groups

    def __post_init__(self) -> None:
        if not is_integer(self.n_features) or not 0 < self.n_features < 1 << 32:
            raise InputError(f"trees have n_features {self.n_features!r}; expected a positive integer below 2³²")
        if type(self.starts) is not np.ndarray or self.starts.dtype != np.int64 or self.starts.ndim != 1:
            raise InputError("starts of trees is not an array of int64 with one dimension")
        n_trees = len(self.starts) - 1
        n = len(self.features) if type(self.features) is np.ndarray and self.features.ndim == 1 else 0
        for name, kind, shape in (
            ("features", np.uint32, (n,)),
            ("thresholds", np.float64, (n,)),
            ("children", np.int32, (n, 2)),
            ("flags", np.uint8, (n,)),
            ("values", np.float64, (n + n_trees,)),
            ("gains", np.float64, (n,)),
            ("node_counts", np.int32, (n,)),
            ("leaf_counts", np.int32, (n + n_trees,)),
        ):
            array = getattr(self, name)
            if type(array) is not np.ndarray or array.dtype != kind or array.shape != shape:
                raise InputError(f"{name} of trees is not an array of {kind.__name__} with shape {shape}")
            if kind is np.float64 and not np.isfinite(array).all():
                raise InputError(f"{name} of trees has NaN or infinity")
        if n_trees < 0 or self.starts[0] != 0 or self.starts[-1] != n or (np.diff(self.starts) < 0).any():
            raise InputError(f"starts of trees does not ascend from 0 to the number of nodes, {n}")
        if (self.features >= self.n_features).any():
            raise InputError(f"features of trees has {self.features.max()}, but there are {self.n_features} features")
        missing = self.flags & ~np.uint8(DEFAULT_LEFT | CATEGORIES)
        if not np.isin(missing, (0, MISSING_ZERO, MISSING_NAN)).all():
            raise InputError("flags of trees has a value other than 0, 2, 4, 6, 8 and 10, plus 1 for sets")
        self._check_sets()
        if min(self.node_counts.min(initial=0), self.leaf_counts.min(initial=0)) < 0:
            raise InputError("node_counts or leaf_counts of trees has a negative number")
        with np.errstate(over="ignore"):
            largest = np.abs(np.maximum.reduceat(np.abs(self.values), self.starts[:-1] + np.arange(n_trees))).sum()
        if not np.isfinite(largest):
            raise InputError("values of trees are so large that scores overflow")
        self._arrays  # noqa: B018 - checks the structure

    def _check_sets(self) -> None:
        by_set = (self.flags & CATEGORIES) > 0
        if self.groups is None or self.sets is None:
            if by_set.any() or (self.groups is None) != (self.sets is None):
                raise InputError("flags of trees has splits of categories, but groups or sets are missing")
            return
        for name, array, kind in (("groups", self.groups, np.int64), ("sets", self.sets, np.bool_)):
            if type(array) is not np.ndarray or array.dtype != kind or array.ndim != 2:
                raise InputError(f"{name} of trees is not an array of {kind.__name__} with two dimensions")
        ends = self.groups.ravel()
        if (
            self.groups.shape[1] != 2
            or (np.diff(ends) < 0).any()
            or ends.min(initial=0) < 0
            or ends.max(initial=0) > self.n_features
        ):
            raise InputError("groups of trees are not separate ranges of columns")
        sizes, numbers = np.diff(self.groups), self.thresholds[by_set]
        if sizes.min(initial=1) < 1 or sizes.max(initial=0) > self.sets.shape[1]:
            raise InputError("groups of trees are empty or larger than sets")
        if (numbers != np.floor(numbers)).any() or not (are_below(numbers.astype(np.int64), len(self.sets))):
            raise InputError("thresholds of trees has numbers of sets that do not exist")
        if not np.isin(self.features[by_set], self.groups[:, 0]).all():
            raise InputError("features of trees has splits of categories outside of groups")

    @cached_property
    def _arrays(self) -> TreeArrays:
        depths = np.zeros(self.n_trees, np.int64)
        invalid = measure_depths(self.starts, self.children, depths)
        if invalid != SOUND:
            raise InputError(f"children of trees do not form a tree in tree {invalid}")
        names = TreeArrays._fields[:-2]
        arrays = {name: np.require(getattr(self, name), requirements=["C", "ALIGNED"]) for name in names}
        sets = np.zeros((0, 0), np.bool_) if self.sets is None else np.ascontiguousarray(self.sets)
        return TreeArrays(**arrays, sets=sets, depths=depths)

    def coded(self, X: Any) -> Any:
        """Return rows as LightGBM sees them, see `category_codes`."""
        if X.shape[1] != self.n_features:
            raise InputError(f"X has {X.shape[1]} features, but the trees have {self.n_features}.")
        return X if self.groups is None else category_codes(X, self.groups)

    @cached_property
    def _used_columns(self) -> tuple[NDArray[np.uint32], TreeArrays]:
        """The columns that trees use, and the trees with positions in them as features."""
        columns, positions = np.unique(self.features, return_inverse=True)
        return columns, self._arrays._replace(features=positions.astype(np.uint32))

    @cached_property
    def _has_missing_zeros(self) -> bool:
        """Whether zeros have a side of their own at some node."""
        return bool((self.flags & MISSING_ZERO).any())

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return len(self.starts) - 1

    def score_rows(self, X: Any, n_jobs: int | None = None) -> Floats:
        """Score rows."""
        X = self.coded(X)
        if isinstance(X, np.ndarray) and not is_compiled() and is_small(X.shape[0] * len(self.values)):
            return score_small(self._arrays, X)
        scores, rows = np.empty(X.shape[0]), as_core_rows(X)
        is_general = self._has_missing_zeros or self.groups is not None or has_missing(X)

        def score(first: int, last: int) -> None:
            if isinstance(rows, CSRRows):
                columns, trees = self._used_columns
                score_csr(trees, is_general, columns, rows, scores, first, last)
            else:
                score_dense(self._arrays, is_general, rows.values, scores, first, last)

        pieces = 1 if n_jobs in (None, 1) else min(n_threads(n_jobs), max(1, len(scores) // _PIECE))
        if pieces == 1:
            score(0, len(scores))
        else:
            parallel_map(score, cut(np.arange(len(scores) + 1), pieces), pieces)
        return scores

    def importances(self, kind: Literal["gain", "split"] = "gain") -> Floats:
        """Return what the columns contribute, as ``Booster.feature_importance``."""
        if kind not in ("gain", "split"):
            raise InputError(f"kind is {kind!r}; pass 'gain' or 'split'.")
        return np.bincount(self.features, self.gains if kind == "gain" else None, self.n_features).astype(np.float64)

    @classmethod
    def empty(cls, n_features: int) -> Self:
        """Return an ensemble without trees."""
        nodes, counts = np.zeros(0), np.zeros(0, np.int32)
        return cls(
            n_features, np.zeros(1, np.int64), np.zeros(0, np.uint32), nodes, np.zeros((0, 2), np.int32),
            np.zeros(0, np.uint8), nodes, nodes, counts, counts,
        )  # fmt: skip

    @classmethod
    def from_lightgbm(cls, text: str, groups: NDArray[np.int64] | None = None) -> Self:
        """Read LightGBM's text format; groups: columns of categories, if there are any."""
        try:
            head, *blocks = text.split("\nend of trees")[0].split("\nTree=")
            fields = _fields(head)
            if fields["num_tree_per_iteration"] != "1" or "average_output" in head.splitlines():
                raise ValueError("several outputs, or averages of trees")
            width = 0 if groups is None else int(np.diff(groups).max())
            sets = np.zeros((0, width), np.bool_)
            trees = []
            for block in map(_fields, blocks):
                trees.append(_numbers(block, len(sets)))
                sets = np.concatenate([sets, _sets(block, width)])
            starts = np.cumsum([0, *(len(tree["threshold"]) for tree in trees)], dtype=np.int64)

            def joined(name: str, kind: Any) -> NDArray[Any]:
                numbers = np.concatenate([np.zeros(0), *(tree[name] for tree in trees)])
                result = numbers.astype(kind)
                if (result != numbers).any():
                    raise ValueError(f"{name} has invalid numbers")
                return result

            with np.errstate(invalid="ignore"):
                return cls(
                    n_features=int(fields["max_feature_idx"]) + 1,
                    starts=starts,
                    features=joined("split_feature", np.uint32),
                    thresholds=joined("threshold", np.float64),
                    children=np.column_stack([joined("left_child", np.int32), joined("right_child", np.int32)]),
                    flags=joined("decision_type", np.uint8),
                    values=joined("leaf_value", np.float64),
                    gains=joined("split_gain", np.float64),
                    node_counts=joined("internal_count", np.int32),
                    leaf_counts=joined("leaf_count", np.int32),
                    groups=groups,
                    sets=None if groups is None else sets,
                )
        except (KeyError, ValueError, OverflowError) as error:
            raise InputError(
                f"the text is not a LightGBM model that corank can read ({reason(error)}); pass the result of "
                "Booster.model_to_string()."
            ) from error

    def to_lightgbm(self) -> str:
        """Return the trees in LightGBM's text format, for rows that `coded` returns."""
        names = " ".join(f"Column_{j}" for j in range(self.n_features))
        trees = [self._lightgbm_tree(t) for t in range(self.n_trees)]
        head = [
            "tree", "version=v4", "num_class=1", "num_tree_per_iteration=1", "label_index=0",
            f"max_feature_idx={self.n_features - 1}", f"feature_names={names}",
            "feature_infos=" + " ".join(["none"] * self.n_features),
            "tree_sizes=" + " ".join(str(len(tree)) for tree in trees),
        ]  # fmt: skip
        return "\n".join([*head, "", "".join(trees)]) + "end of trees\n\npandas_categorical:null\n"

    def _lightgbm_tree(self, t: int) -> str:
        begin, end = self.starts[t], self.starts[t + 1]
        nodes, leaves = slice(begin, end), slice(begin + t, end + t + 1)
        arrays: dict[str, NDArray[Any]] = {
            "split_feature": self.features[nodes],
            "split_gain": self.gains[nodes],
            "threshold": self.thresholds[nodes],
            "decision_type": self.flags[nodes],
            "left_child": self.children[nodes, 0],
            "right_child": self.children[nodes, 1],
            "leaf_value": self.values[leaves],
            "leaf_count": self.leaf_counts[leaves],
            "internal_count": self.node_counts[nodes],
        }
        numbers = np.flatnonzero(self.flags[nodes] & CATEGORIES)
        if self.sets is not None and len(numbers):
            packed = np.packbits(self.sets[arrays["threshold"][numbers].astype(int)], axis=1, bitorder="little")
            words = np.pad(packed, ((0, 0), (0, -packed.shape[1] % 4))).view("<u4")
            arrays["threshold"] = arrays["threshold"].copy()
            arrays["threshold"][numbers] = np.arange(len(numbers))
            arrays["cat_boundaries"] = words.shape[1] * np.arange(len(numbers) + 1)
            arrays["cat_threshold"] = words.ravel()
        lines = [f"{name}={' '.join(map(repr, array.tolist()))}" for name, array in arrays.items()]
        head = [f"Tree={t}", f"num_leaves={end - begin + 1}", f"num_cat={len(numbers)}"]
        return "\n".join([*head, *lines, "is_linear=0", "shrinkage=1", "", "", ""])

    def __repr__(self) -> str:
        return f"TreeEnsemble({self.n_trees} trees, {len(self.values)} leaves, {self.n_features} features)"


def _fields(block: str) -> dict[str, str]:
    result = _FIELD.findall(block)
    fields = dict(result)
    if len(fields) < len(result):
        raise ValueError("a tree with the same field twice")
    return fields


def _numbers(fields: dict[str, str], n_sets: int) -> dict[str, Floats]:
    """Return the numbers of a tree in LightGBM's text, by name; its first set has the number `n_sets`."""
    if int(fields.get("is_linear", 0)):
        raise ValueError("linear leaves")
    n = int(fields["num_leaves"])
    result = {}
    for name in (*_NODES, *_LEAVES):
        length = n - (name in _NODES)
        # LightGBM writes only the value of a tree with a single leaf
        default = "0" if name == "leaf_count" and n == 1 else ""
        result[name] = np.array((fields.get(name) or default).split(), dtype=np.float64)
        if len(result[name]) != length:
            raise ValueError(f"{name} has {len(result[name])} numbers instead of {length}")
    result["threshold"][result["decision_type"] % 2 == CATEGORIES] += n_sets
    return result


def _sets(fields: dict[str, str], width: int) -> NDArray[np.bool_]:
    """Return the sets of categories of a tree in LightGBM's text."""
    n = int(fields["num_cat"])
    if not n:
        return np.zeros((0, width), np.bool_)
    if not width:
        raise ValueError("categorical splits of unknown columns")
    ends = np.array(fields["cat_boundaries"].split(), dtype=np.int64)
    words = np.array(fields["cat_threshold"].split(), dtype="<u4")
    result = np.zeros((n, width), np.bool_)
    for row, (begin, end) in zip(result, pairwise(ends.tolist()), strict=True):
        bits = np.unpackbits(words[begin:end].view(np.uint8), bitorder="little")
        row[: len(bits)] = bits[:width]
    return result


def category_groups(X: Any, names: Sequence[Any] | None) -> NDArray[np.int64] | None:
    """Return the groups of columns of 0 and 1 that were columns of categories, such as ``color=red``; None without."""
    if names is None or not isinstance(X, np.ndarray):
        return None
    groups, end = [], 0
    for key, items in groupby(str(name).rpartition("=")[0] for name in names):
        begin, end = end, end + len(list(items))
        part = X[:, begin:end]
        if key and end - begin > 1 and ((part == 0) | (part == 1)).all() and part.sum(axis=1).max(initial=0) <= 1:
            groups.append((begin, end))
    return np.array(groups, dtype=np.int64) if groups else None


def category_codes(X: Any, groups: NDArray[np.int64]) -> Floats:
    """Return rows in which the first column of each group is the number of its category, NaN for none, and others 0."""
    result = np.array(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)
    for begin, end in groups.tolist():
        part = result[:, begin:end] == 1.0
        result[:, begin:end] = 0.0
        result[:, begin] = np.where(part.any(axis=1), part.argmax(axis=1), np.nan)
    return result
