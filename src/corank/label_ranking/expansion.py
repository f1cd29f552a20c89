"""Constraint classification: every constraint as a row for a classifier of two classes (Har-Peled et al., 2002)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from corank.label_ranking.preferences import LabelPreferences


def expand_constraints(
    X: Any, preferences: LabelPreferences, conversion: str = "all", above_zero: str = "all"
) -> tuple[Any, NDArray[np.int64], NDArray[np.int64]]:
    """
    Write every constraint as a row of n_features · d columns, for any linear classifier without an intercept.

    The row of "r above s" for example x holds x in the block of label r and −x in that of s; the zero point has no
    block. Blocks have n_features entries (the paper prints d). Every second row is turned around, sign and class: what
    a symmetric loss costs stays the same, and both classes occur. The matrix has up to 2 · n_features numbers a
    constraint: `CalibratedLabelRanker` without a classifier learns the same without it.

    Parameters
    ----------
    X : ndarray or CSR matrix, shape (n_rows, n_features)
        The rows.
    preferences : LabelPreferences
        What is known of their labels.
    conversion, above_zero : str
        As in `LabelPreferences.constraints`.

    Returns
    -------
    Z : CSR matrix of shape (n_constraints, n_features * n_labels)
        The rows.
    t : array of int64, shape (n_constraints,)
        Their classes, −1 and 1.
    examples : array of int64, shape (n_constraints,)
        The row of X that each constraint is of.

    Examples
    --------
    >>> ranks = LabelPreferences.from_ranks([[2, 1]])
    >>> Z, t, _ = expand_constraints(np.array([[5.0, 7.0]]), ranks)
    >>> Z.toarray().tolist(), t.tolist()
    ([[-5.0, -7.0, 5.0, 7.0]], [1])
    """
    examples, winners, losers = preferences.constraints(conversion, above_zero)
    m, d = len(examples), preferences.shape[1]
    signs = np.where(np.arange(m) % 2 == 0, 1, -1)
    # the labels of a constraint as a matrix with 1 and −1, whose product with x, entry by entry, is the row
    rows = np.repeat(np.arange(m), 2)
    labels = np.column_stack([winners, losers]).ravel()
    values = (np.array([1.0, -1.0]) * signs[:, None]).ravel()
    real = labels < d
    base = sparse.csr_array(X)[examples[rows[real]]]
    p = base.shape[1]
    shifts = np.repeat(labels[real] * p, np.diff(base.indptr))
    data = base.data * np.repeat(values[real], np.diff(base.indptr))
    at = np.repeat(rows[real], np.diff(base.indptr))
    # scikit-learn takes 32-bit column numbers only, where they suffice
    kind = np.int32 if max(m, p * d) < 2**31 else np.int64
    Z = sparse.csr_array((data, (at.astype(kind), (base.indices + shifts).astype(kind))), shape=(m, p * d))
    return Z, signs.astype(np.int64), examples
