"""Rows that are any objects, such as parses, graphs or strings, for a kernel function that understands them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from corank.errors import InputError
from corank.kernels import CallableKernel, Gram
from corank.views import View


@dataclass(frozen=True)
class ObjectKernel(CallableKernel):
    """
    The user's own function of objects.

    Parameters
    ----------
    function : callable
        Takes two arrays of objects and returns their Gram matrix.

    Examples
    --------
    >>> shared = ObjectKernel(lambda A, B: [[len(set(a) & set(b)) for b in B] for a in A])
    >>> shared(as_objects(["abc", "cde"])).tolist()
    [[3.0, 1.0], [1.0, 3.0]]
    """

    def __call__(self, X: Any, Z: Any = None) -> Gram:
        """Return the Gram matrix of two arrays of objects (of X with itself by default)."""
        return self._gram(X, X if Z is None else Z)


def is_table(X: Any) -> bool:
    """
    Tell a table of numbers from a sequence of objects.

    Parameters
    ----------
    X : object
        What the user gave as rows.

    Returns
    -------
    bool
        Whether X is a sparse matrix, a data frame, or an array or nested list of numbers in two dimensions.
    """
    if sparse.issparse(X) or hasattr(X, "columns"):
        return True
    try:
        values = np.asarray(X)
    except ValueError:
        return False
    return values.ndim == 2 and values.dtype.kind in "biuf"


def as_objects(X: Any) -> NDArray[np.object_]:
    """
    Return a sequence of objects as an array with one object a row.

    Parameters
    ----------
    X : sequence
        Objects.

    Returns
    -------
    array of object, shape (n,)
        The objects.
    """
    if not isinstance(X, Iterable):
        raise InputError(f"X is of type {type(X).__name__}; pass a sequence with one object a row.")
    items = list(X)
    rows = np.empty(len(items), dtype=object)
    for i, item in enumerate(items):
        rows[i] = item
    return rows


def of_objects(view: View) -> View:
    """
    Let a view see objects.

    Parameters
    ----------
    view : View
        A view of a kernel function.

    Returns
    -------
    View
        The same with an `ObjectKernel`.
    """
    if view.columns is not None or not isinstance(view.kernel, CallableKernel):
        raise InputError("rows that are objects have no columns; give each view a function, View(None, function).")
    return replace(view, kernel=ObjectKernel(view.kernel.function))
