"""Encodings: how y is read as preferences, and how utilities become predictions of the same form."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata
from sklearn.utils import assert_all_finite, column_or_1d
from sklearn.utils.multiclass import check_classification_targets, type_of_target

from corank.errors import InputError
from corank.label_ranking.preferences import LabelPreferences

Floats = NDArray[np.float64]

TARGETS = ("auto", "classes", "relevant", "ranks", "top")
"""How y may be read."""


def read_targets(y: Any, targets: str, labels: Any = None) -> tuple[LabelPreferences, NDArray[Any]]:
    """
    Read y.

    y: preferences, or what `targets` says.
    targets: one of `TARGETS`.
    labels: those that are known already, where y is a later part of a stream.
    Returns: the preferences, and the labels: classes, names of columns, or numbers from 0.
    """
    if y is None:
        raise InputError("this estimator requires y to be passed, but the target y is None; pass labels, one per row.")
    if hasattr(y, "to_numpy") and len(np.shape(y)) == 1:  # a column of a frame, whatever its types
        y = y.to_numpy()
    if isinstance(y, LabelPreferences):
        found = y
    else:
        found, classes = _read(y, _kind(y) if targets == "auto" else targets, labels)
        if classes is not None:
            return found, classes
    names = np.arange(found.shape[1])
    if hasattr(y, "columns") and all(isinstance(name, str) for name in y.columns):
        names = np.array(list(y.columns), dtype=object)
    if labels is not None and not np.array_equal(labels, names):
        raise InputError(f"y has the labels {names.tolist()}, but they were {list(labels)} before; pass the same ones.")
    return found, names


def answer(kind: str, utilities: Floats, labels: NDArray[Any]) -> NDArray[Any]:
    """
    Turn utilities into a prediction of the form of y.

    kind: of the preferences that were learnt from.
    utilities (n, d): higher is better, above 0 is relevant.
    labels (d,): what to call them.
    """
    if kind == "classes":
        return np.asarray(labels[utilities.argmax(axis=1)])
    if kind == "relevant":
        return (utilities > 0.0).astype(np.int64)
    ranks = ranking(utilities)
    return np.where(utilities > 0.0, ranks, 0) if kind == "top" else ranks


def ranking(utilities: Floats) -> NDArray[np.int64]:
    """Return the position of each label, 1 for the best; of equal ones, the lower number first."""
    return np.asarray(rankdata(-utilities, method="ordinal", axis=1), dtype=np.int64)


def _kind(y: Any) -> str:
    table = y.to_numpy() if hasattr(y, "to_numpy") else y
    if isinstance(table, np.ndarray) and table.dtype.kind == "f":
        if table.ndim == 2 and table.shape[1] > 1 and np.isin(table[~np.isnan(table)], (0.0, 1.0)).all():
            return "relevant"  # NaN is unknown
        assert_all_finite(table, input_name="y")
    kind = type_of_target(table, input_name="y")
    if kind == "multiclass-multioutput" or (kind.startswith("continuous") and np.ndim(y) == 2 and np.shape(y)[1] > 1):
        raise InputError(
            "y is a table of other numbers than 0 and 1; say how it is to be read with targets='ranks' (positions of "
            "labels, 1 for the best) or targets='top' (the same, 0 for irrelevant labels)."
        )
    return "relevant" if kind == "multilabel-indicator" else "classes"


def _read(y: Any, kind: str, labels: Any) -> tuple[LabelPreferences, NDArray[Any] | None]:
    if kind == "relevant":
        return LabelPreferences.from_indicator(y), None
    if kind == "ranks":
        return LabelPreferences.from_ranks(y), None
    if kind == "top":
        return LabelPreferences.from_top(y), None
    check_classification_targets(y)
    values = column_or_1d(y, warn=True)
    classes = np.unique(values) if labels is None else np.asarray(labels)
    codes = np.minimum(np.searchsorted(classes, values), len(classes) - 1)
    if not (classes[codes] == values).all():
        strange = values[classes[codes] != values].tolist()[0]
        raise InputError(f"y holds the class {strange!r}, which is none of {classes.tolist()}; name all in `classes`.")
    if len(classes) < 2:
        raise InputError(
            f"y has one class only, {classes.tolist()[0]!r}, and nothing to tell it from; pass at least two classes."
        )
    return LabelPreferences.from_classes(codes, len(classes)), classes
