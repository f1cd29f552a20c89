"""How much each query counts in a Laplacian."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corank.errors import InputError

QUERY_WEIGHTS = ("pairs", "equal", "rows")


def query_factors(sizes: ArrayLike, query_weight: str) -> NDArray[np.float64]:
    """
    Return c_q, what the Laplacian of each query is multiplied by.

    Parameters
    ----------
    sizes : array-like of int, shape (n_queries,)
        n_q, the number of rows that take part.
    query_weight : {"pairs", "equal", "rows"}
        c_q = 1, every pair weighs the same; 1 / (n_q (n_q − 1)), every query does; 1 / n_q, every row does.

    Returns
    -------
    array of float64, shape (n_queries,)
        c_q; 0 for a query of fewer than two rows unless all pairs weigh the same.

    Examples
    --------
    >>> query_factors([1, 2, 5], "equal").tolist()
    [0.0, 0.5, 0.05]
    """
    if query_weight not in QUERY_WEIGHTS:
        raise InputError(f"query_weight is {query_weight!r}; choose one of {', '.join(QUERY_WEIGHTS)}.")
    n_q = np.asarray(sizes, dtype=np.float64)
    if query_weight == "pairs":
        return np.ones_like(n_q)
    weight = n_q * (n_q - 1) if query_weight == "equal" else n_q
    return np.divide(1.0, weight, out=np.zeros_like(n_q), where=n_q >= 2)
