"""
LabelPreferences: preferences among labels, from rankings, sets, top lists, pairs or classes.

An example is (x, R, P, N): preferences R among labels, relevant labels P above the zero point and irrelevant labels N
below it; P×N are preferences too. R is stored as levels (buckets of an order) or as pairs. Contradictory preferences
raise `InputError` with the number of the example.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from corank.core.labels.constraints import (
    Conversion,
    LabelTargets,
    bound_constraints,
    count_constraints,
    first_cycle,
    list_all,
)
from corank.data.queries import take_blocks
from corank.errors import InputError

Floats = NDArray[np.float64]


def as_positions(table: Any, name: str) -> Floats:
    """
    Check positions of labels.

    table (n, d): numbers; NaN if unknown.
    """
    values = _table(table, name)
    if np.isinf(values).any():
        raise InputError(f"{name} is infinite at example {_first(np.isinf(values))}; pass positions from 1, or NaN.")
    return values


def as_indicator(table: Any) -> Floats:
    """
    Check an indicator matrix.

    table (n, d): 0, 1, or NaN if unknown; may be sparse.
    """
    values = _table(table.toarray() if sparse.issparse(table) else table, "indicator")
    bad = ~(np.isnan(values) | (values == 0.0) | (values == 1.0))
    if bad.any():
        raise InputError(
            f"indicator is {values[bad][0]:g} at example {_first(bad)}; pass 1 for relevant labels, else 0."
        )
    return values


def levels_of(positions: Floats) -> NDArray[np.int32]:
    """Convert positions, 1 for the best, to levels 0, 1, ... without gaps, 0 for the worst; −1 for NaN."""
    order = np.argsort(positions, axis=1, kind="stable")
    ascending = np.take_along_axis(positions, order, axis=1)
    steps = np.cumsum(np.diff(ascending, axis=1, prepend=ascending[:, :1]) > 0.0, axis=1)
    known = ~np.isnan(ascending)
    highest = np.where(known, steps, 0).max(axis=1, initial=0)
    levels = np.empty(positions.shape, np.int32)
    np.put_along_axis(levels, order, np.where(known, highest[:, None] - steps, -1).astype(np.int32), axis=1)
    return levels


def sides_of(indicator: Floats) -> NDArray[np.int8]:
    """Convert 1, 0 and NaN to relevant, irrelevant and unknown."""
    return np.where(np.isnan(indicator), 0, np.where(indicator == 1.0, 1, -1)).astype(np.int8)


def as_labels(row: Any, n_labels: int, i: int) -> NDArray[np.int64]:
    """Check a list of distinct label numbers of example i."""
    labels = np.asarray(row)
    labels = labels.astype(np.int64) if not labels.size else labels
    is_list = labels.ndim == 1 and labels.dtype.kind in "iu"
    if not is_list or (labels.size and not 0 <= labels.min() <= labels.max() < n_labels):
        raise InputError(f"example {i} lists {row!r}; pass label numbers from 0 to {n_labels - 1}.")
    if len(np.unique(labels)) < len(labels):
        raise InputError(f"example {i} lists a label twice; list each once.")
    return np.asarray(labels, dtype=np.int64)


def as_pairs(row: ArrayLike, n_labels: int, i: int) -> NDArray[np.uint32]:
    """Check preferences of example i and drop duplicates."""
    pairs = np.asarray(row)
    if not pairs.size:
        return np.empty((0, 2), np.uint32)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
        raise InputError(f"the preferences of example {i} have shape {pairs.shape}; pass two label numbers each.")
    if not 0 <= pairs.min() <= pairs.max() < n_labels:
        raise InputError(f"example {i} prefers labels {pairs.tolist()}; labels are numbered 0 to {n_labels - 1}.")
    return np.unique(pairs, axis=0).astype(np.uint32)


def indicator_of(
    relevant: Iterable[Sequence[int]], irrelevant: Iterable[Sequence[int]] | None, n_labels: int
) -> Floats:
    """Convert sets of label numbers to an indicator; by default, all other labels are irrelevant."""
    relevant_rows = [as_labels(row, n_labels, i) for i, row in enumerate(relevant)]
    irrelevant_rows = None if irrelevant is None else [as_labels(row, n_labels, i) for i, row in enumerate(irrelevant)]
    if irrelevant_rows is not None and len(irrelevant_rows) != len(relevant_rows):
        raise InputError(
            f"there are {len(relevant_rows)} sets of relevant and {len(irrelevant_rows)} of irrelevant labels; pass "
            "one of each per example."
        )
    indicator = np.full((len(relevant_rows), n_labels), 0.0 if irrelevant_rows is None else np.nan)
    for i, row in enumerate(relevant_rows):
        if irrelevant_rows is not None:
            indicator[i, irrelevant_rows[i]] = 0.0
            if np.isin(row, irrelevant_rows[i]).any():
                raise InputError(f"example {i} has a label that is relevant and irrelevant; keep it in one set.")
        indicator[i, row] = 1.0
    return indicator


def _table(table: Any, name: str) -> Floats:
    try:
        values = np.asarray(table, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} cannot be read as a table of numbers; pass one number per label.") from error
    if values.ndim != 2 or not values.shape[1]:
        raise InputError(f"{name} has shape {values.shape}; pass a row per example with a column per label.")
    return values


def _first(bad: NDArray[np.bool_]) -> int:
    return int(np.flatnonzero(bad.any(axis=1))[0])


Integers = NDArray[np.int64]

CONVERSIONS = ("all", "adjacent")
"""Pairs of an order that are constraints: all d(d − 1)/2, or the d − 1 of neighbours."""

ABOVE_ZERO = ("all", "lowest")
"""Relevant labels that must be above the zero point: all, or the lowest of an order."""


@dataclass(frozen=True, eq=False)
class LabelPreferences:
    """
    Preferences among the labels 0..d−1 of n examples.

    Create it with `from_ranks`, `from_lists`, `from_indicator`, `from_sets`, `from_pairs` or `from_classes`. It can be
    indexed by examples, so that scikit-learn's splitters work on it as on an array.
    """

    levels: NDArray[np.int32]  # buckets of an example's order, 0 for the lowest; −1 if unknown
    sides: NDArray[np.int8]  # 1 for relevant labels, −1 for irrelevant ones, 0 if unknown
    pairs: NDArray[np.uint32]  # further preferences, the preferred label first
    starts: NDArray[np.uint64]  # where the pairs of each example begin
    kind: str  # form of the targets, in which predictions are compared with them

    @classmethod
    def from_ranks(cls, ranks: Any, relevant: Any = None) -> LabelPreferences:
        """Read rankings."""
        positions = as_positions(ranks, "ranks")
        sides = np.zeros(positions.shape, np.int8) if relevant is None else sides_of(as_indicator(relevant))
        if sides.shape != positions.shape:
            raise InputError(f"relevant has shape {sides.shape}, ranks {positions.shape}; pass one value per label.")
        return cls._of(levels_of(positions), sides, "ranks")

    @classmethod
    def from_top(cls, positions: Any) -> LabelPreferences:
        """Read top lists as positions."""
        values = as_positions(positions, "positions")
        values = np.where(values == 0.0, np.nan, values)
        if (values < 0.0).any():
            raise InputError(
                f"positions contains {np.nanmin(values):g}; pass 1 for the best label, 0 for irrelevant ones."
            )
        sides = np.where(np.isnan(values), -1, 1).astype(np.int8)
        return cls._of(levels_of(values) + (sides == -1).any(axis=1)[:, None], sides, "top")

    @classmethod
    def from_lists(cls, lists: Iterable[Sequence[int]], n_labels: int) -> LabelPreferences:
        """Read top lists."""
        rows = [as_labels(row, n_labels, i) for i, row in enumerate(lists)]
        positions = np.zeros((len(rows), n_labels))
        for i, row in enumerate(rows):
            positions[i, row] = np.arange(1, len(row) + 1)
        return cls.from_top(positions)

    @classmethod
    def from_indicator(cls, indicator: Any) -> LabelPreferences:
        """Read a multilabel indicator matrix."""
        sides = sides_of(as_indicator(indicator))
        # relevant labels are the lowest level if no label is irrelevant
        above = (sides == -1).any(axis=1)[:, None]
        return cls._of(np.where(sides == 0, -1, (sides == 1) & above).astype(np.int32), sides, "relevant")

    @classmethod
    def from_sets(
        cls, relevant: Iterable[Sequence[int]], irrelevant: Iterable[Sequence[int]] | None = None, *, n_labels: int
    ) -> LabelPreferences:
        """Read sets of relevant and irrelevant labels."""
        return cls.from_indicator(indicator_of(relevant, irrelevant, n_labels))

    @classmethod
    def from_pairs(
        cls,
        pairs: Iterable[ArrayLike],
        n_labels: int,
        *,
        relevant: Iterable[Sequence[int]] | None = None,
        irrelevant: Iterable[Sequence[int]] | None = None,
    ) -> LabelPreferences:
        """Read partial orders, given as preferences."""
        rows = [as_pairs(row, n_labels, i) for i, row in enumerate(pairs)]
        sides = np.zeros((len(rows), n_labels), np.int8)
        if relevant is not None or irrelevant is not None:
            empty: list[Sequence[int]] = [()] * len(rows)
            sets = empty if relevant is None else relevant, empty if irrelevant is None else irrelevant
            sides = sides_of(indicator_of(*sets, n_labels))
            if len(sides) != len(rows):
                raise InputError(
                    f"there are {len(sides)} sets of labels for {len(rows)} examples; pass one set per example."
                )
        preferences = cls(
            np.full(sides.shape, -1, np.int32),
            sides,
            np.concatenate([np.empty((0, 2), np.uint32), *rows]).astype(np.uint32),
            np.append(0, np.cumsum([len(row) for row in rows])).astype(np.uint64),
            "pairs",
        )
        bad = int(first_cycle(preferences.targets))
        if bad >= 0:
            raise InputError(
                f"the preferences of example {bad} contradict each other: together with relevant above irrelevant "
                "labels they form a cycle; drop one of them."
            )
        return preferences

    @classmethod
    def from_classes(cls, codes: ArrayLike, n_labels: int) -> LabelPreferences:
        """Read class numbers: each example's class is preferred to all others."""
        y = np.asarray(codes)
        if y.ndim != 1 or y.dtype.kind not in "iu" or (len(y) and not 0 <= y.min() <= y.max() < n_labels):
            raise InputError(f"codes must be whole numbers from 0 to {n_labels - 1}, one per example; got {codes!r}.")
        levels = np.zeros((len(y), n_labels), np.int32)
        levels[np.arange(len(y)), y] = 1 if n_labels > 1 else 0
        return cls._of(levels, np.zeros(levels.shape, np.int8), "classes")

    @classmethod
    def _of(cls, levels: NDArray[np.int32], sides: NDArray[np.int8], kind: str) -> LabelPreferences:
        lowest = np.where((sides == 1) & (levels >= 0), levels, np.iinfo(np.int32).max).min(axis=1, initial=2**31 - 1)
        highest = np.where(sides == -1, levels, -1).max(axis=1, initial=-1)
        bad = np.flatnonzero(lowest <= highest)
        if len(bad):
            raise InputError(
                f"example {bad[0]} ranks an irrelevant label as high as a relevant one; rank relevant labels higher."
            )
        no_pairs = np.empty((0, 2), np.uint32), np.zeros(len(levels) + 1, np.uint64)
        return cls(np.ascontiguousarray(levels, np.int32), np.ascontiguousarray(sides), *no_pairs, kind)

    @property
    def shape(self) -> tuple[int, int]:
        """Number of examples and labels."""
        return self.levels.shape[0], self.levels.shape[1]

    def __len__(self) -> int:
        return len(self.levels)

    def __getitem__(self, examples: Any) -> LabelPreferences:
        numbers = np.atleast_1d(np.arange(len(self))[examples[0] if isinstance(examples, tuple) else examples])
        rows, starts = take_blocks(self.starts, numbers)
        levels, sides = self.levels[numbers], self.sides[numbers]
        return LabelPreferences(levels, sides, self.pairs[rows], starts.astype(np.uint64), self.kind)

    def __repr__(self) -> str:
        return f"LabelPreferences({len(self)} examples, {self.shape[1]} labels, kind {self.kind!r})"

    @cached_property
    def targets(self) -> LabelTargets:
        """The arrays in the form that kernels take."""
        max_constraints = int(bound_constraints(self.levels, self.sides, self.starts))
        return LabelTargets(self.levels, self.sides, self.pairs, self.starts, max_constraints)

    @property
    def is_calibrated(self) -> bool:
        """Whether any label is known to be relevant or irrelevant."""
        return bool(self.sides.any())

    def counts(self, conversion: str = "all", above_zero: str = "all") -> Integers:
        """Count the constraints of each example."""
        counts = np.empty(len(self), np.int64)
        count_constraints(self.targets, as_conversion(conversion, above_zero), counts)
        return counts

    def constraints(self, conversion: str = "all", above_zero: str = "all") -> tuple[Integers, Integers, Integers]:
        """List the constraints: one label must have a higher utility than another."""
        total = int(self.counts(conversion, above_zero).sum())
        lists = np.empty(total, np.int64), np.empty(total, np.int64), np.empty(total, np.int64)
        list_all(self.targets, as_conversion(conversion, above_zero), *lists)
        return lists

    def ranks(self) -> NDArray[np.float64]:
        """Return the orders as average positions, 1 for the best; NaN for labels of unknown level."""
        from scipy.stats import rankdata

        known = np.where(self.levels >= 0, -self.levels.astype(np.float64), np.nan)
        return np.asarray(rankdata(known, axis=1, nan_policy="omit"), dtype=np.float64)

    def indicator(self) -> NDArray[np.int64]:
        """Return which labels are relevant."""
        return np.asarray(self.sides == 1, dtype=np.int64)

    def lists(self) -> list[Integers]:
        """Return the relevant labels of each example, best first; among ties, the lower number first."""
        order = np.argsort(-self.levels, axis=1, kind="stable")
        return [row[side[row] == 1] for row, side in zip(order, self.sides, strict=True)]


def as_conversion(conversion: str, above_zero: str) -> Conversion:
    """Return the two parameters in the form that kernels take."""
    for name, value, known in (("conversion", conversion, CONVERSIONS), ("above_zero", above_zero, ABOVE_ZERO)):
        if value not in known:
            raise InputError(f"{name} is {value!r}; pass {known[0]!r} or {known[1]!r}.")
    return Conversion(conversion == "all", above_zero == "all")
