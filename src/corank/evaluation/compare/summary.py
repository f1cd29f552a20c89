"""What the data of a comparison looks like, and what is odd about it."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from corank._version import __version__
from corank.evaluation.compare.methods import Method
from corank.evaluation.compare.problem import Problem, comparable
from corank.evaluation.compare.values import DataSummary

# more different scores than this are no grades
_MOST_GRADES = 20

_SHOWN = ("numpy", "scipy", "scikit-learn", "numba")


def summarise(problem: Problem, name: str, columns: Sequence[str]) -> DataSummary:
    """
    Count what a reader wants to know of the data.

    problem: the rows.
    name: of the data.
    columns: names of the features.
    """
    n = problem.n_own
    X, y, codes = problem.X[:n], problem.y[:n], problem.codes[:n]
    scored = ~np.isnan(y)
    grades, counts = np.unique(y[scored], return_counts=True)
    queries, sizes = np.unique(codes, return_counts=True)
    judged = np.unique(codes[scored])
    constant = _constant(X)
    return DataSummary(
        name=name,
        fingerprint=problem.fingerprint,
        n_rows=n,
        n_features=X.shape[1],
        n_queries=len(queries),
        grades=tuple(zip(grades.tolist(), counts.tolist(), strict=True)) if len(grades) <= _MOST_GRADES else (),
        n_unscored_rows=int(np.count_nonzero(~scored)),
        n_unscored_queries=len(queries) - len(judged),
        n_single_grade_queries=len(judged) - len(comparable(y[scored], codes[scored])),
        n_one_row_queries=int(np.count_nonzero(sizes == 1)),
        n_duplicated_rows=_duplicated(X, codes),
        constant_columns=tuple(name for name, same in zip(columns, constant, strict=True) if same),
        n_pool_rows=len(problem.y) - n,
        n_pool_queries=len(np.unique(problem.codes[n:])),
    )


def versions(methods: Iterable[Method]) -> dict[str, str]:
    """Return versions of corank and of what it stands on."""
    names = [*_SHOWN, *sorted({one.module for one in methods if one.module})]
    return {"corank": __version__, "python": platform.python_version(), **{name: version(name) for name in names}}


def _constant(X: Any) -> NDArray[np.bool_]:
    """Whether each column has one value only."""
    if sparse.issparse(X):
        low, high = X.min(axis=0).toarray().ravel(), X.max(axis=0).toarray().ravel()
    else:
        low, high = X.min(axis=0), X.max(axis=0)
    return np.asarray(low == high)


def _duplicated(X: Any, codes: NDArray[np.int64]) -> int:
    """Rows that repeat an earlier one of their query, told by their bytes."""
    seen: set[tuple[int, bytes]] = set()
    if sparse.issparse(X):
        ends = X.indptr
        parts = (X.indices[a:b].tobytes() + X.data[a:b].tobytes() for a, b in pairwise(ends))
        return len(codes) - len(seen.union(zip(codes.tolist(), parts, strict=True)))
    # −0 and 0 are one number and two patterns of bytes
    return len(codes) - len(
        seen.union((code, (row + 0.0).tobytes()) for code, row in zip(codes.tolist(), X, strict=True))
    )
