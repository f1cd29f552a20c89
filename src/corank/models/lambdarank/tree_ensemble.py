"""
TreeEnsemble: boosted regression trees as checked arrays, scored without LightGBM.

LightGBM does not check the indices of its text format, so that a damaged text can crash the process. Here the arrays
are checked once, in time linear in the number of nodes, before a kernel follows them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from corank.core.jit import is_compiled, is_small
from corank.core.models.trees import (
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
from corank.fitted import Part
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

    flags: LightGBM's ``decision_type``: 2 if missing values go left, plus 4 if zeros or 8 if NaN are missing.
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
        missing = self.flags & ~np.uint8(DEFAULT_LEFT)
        if not np.isin(missing, (0, MISSING_ZERO, MISSING_NAN)).all():
            raise InputError("flags of trees has a value other than 0, 2, 4, 6, 8 and 10")
        if min(self.node_counts.min(initial=0), self.leaf_counts.min(initial=0)) < 0:
            raise InputError("node_counts or leaf_counts of trees has a negative number")
        with np.errstate(over="ignore"):
            largest = np.abs(np.maximum.reduceat(np.abs(self.values), self.starts[:-1] + np.arange(n_trees))).sum()
        if not np.isfinite(largest):
            raise InputError("values of trees are so large that scores overflow")
        self._arrays  # noqa: B018 - checks the structure

    @cached_property
    def _arrays(self) -> TreeArrays:
        depths = np.zeros(self.n_trees, np.int64)
        invalid = measure_depths(self.starts, self.children, depths)
        if invalid != SOUND:
            raise InputError(f"children of trees do not form a tree in tree {invalid}")
        names = TreeArrays._fields[:-1]
        arrays = {name: np.require(getattr(self, name), requirements=["C", "ALIGNED"]) for name in names}
        return TreeArrays(**arrays, depths=depths)

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
        if X.shape[1] != self.n_features:
            raise InputError(f"X has {X.shape[1]} features, but the trees have {self.n_features}.")
        if isinstance(X, np.ndarray) and not is_compiled() and is_small(X.shape[0] * len(self.values)):
            return score_small(self._arrays, X)
        scores, rows = np.empty(X.shape[0]), as_core_rows(X)
        is_missing = self._has_missing_zeros or has_missing(X)

        def score(first: int, last: int) -> None:
            if isinstance(rows, CSRRows):
                columns, trees = self._used_columns
                score_csr(trees, is_missing, columns, rows, scores, first, last)
            else:
                score_dense(self._arrays, is_missing, rows.values, scores, first, last)

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
    def from_lightgbm(cls, text: str) -> Self:
        """Read LightGBM's text format."""
        try:
            head, *blocks = text.split("\nend of trees")[0].split("\nTree=")
            fields = _fields(head)
            if fields["num_tree_per_iteration"] != "1" or "average_output" in head.splitlines():
                raise ValueError("several outputs, or averages of trees")
            trees = [_numbers(_fields(block)) for block in blocks]
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
                )
        except (KeyError, ValueError, OverflowError) as error:
            raise InputError(
                f"the text is not a LightGBM model that corank can read ({reason(error)}); pass the result of "
                "Booster.model_to_string()."
            ) from error

    def to_lightgbm(self) -> str:
        """Return the trees in LightGBM's text format."""
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
        lines = [f"{name}={' '.join(map(repr, array.tolist()))}" for name, array in arrays.items()]
        head = [f"Tree={t}", f"num_leaves={end - begin + 1}", "num_cat=0"]
        return "\n".join([*head, *lines, "is_linear=0", "shrinkage=1", "", "", ""])

    def __repr__(self) -> str:
        return f"TreeEnsemble({self.n_trees} trees, {len(self.values)} leaves, {self.n_features} features)"


def _fields(block: str) -> dict[str, str]:
    result = _FIELD.findall(block)
    fields = dict(result)
    if len(fields) < len(result):
        raise ValueError("a tree with the same field twice")
    return fields


def _numbers(fields: dict[str, str]) -> dict[str, Floats]:
    """Return the numbers of a tree in LightGBM's text, by name."""
    if int(fields["num_cat"]) or int(fields.get("is_linear", 0)):
        raise ValueError("categorical splits, or linear leaves")
    n = int(fields["num_leaves"])
    result = {}
    for name in (*_NODES, *_LEAVES):
        length = n - (name in _NODES)
        # LightGBM writes only the value of a tree with a single leaf
        default = "0" if name == "leaf_count" and n == 1 else ""
        result[name] = np.array((fields.get(name) or default).split(), dtype=np.float64)
        if len(result[name]) != length:
            raise ValueError(f"{name} has {len(result[name])} numbers instead of {length}")
    return result
