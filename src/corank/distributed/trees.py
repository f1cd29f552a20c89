"""Boosted trees on a cluster: LightGBM's own Dask interface, handed whole queries (extras `dask` and `trees`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from corank.distributed.on_dask import Dask
from corank.distributed.parts import Parts
from corank.distributed.whole import Problem
from corank.errors import InputError, import_extra

Grouped = tuple[Any, NDArray[np.int64], NDArray[np.int64]]


def fit_trees(parts: Any, client: Any = None, **params: Any) -> Any:
    """
    Fit LightGBM's ranker to parts on a cluster, each query whole in one of them.

    LightGBM takes numbers of rows for queries, part by part, and cannot know when a query goes on in another part. Here
    straddling queries move first, as for `fit_parts`; parts without a judged row are left out.

    Parameters
    ----------
    parts : Parts, path, sequence, or Dask's collections
        The rows, see `Parts`; scores are whole numbers from 0, and unscored rows are left out.
    client : distributed.Client or Dask
        The cluster; `parts` may have it already.
    **params
        Parameters of ``lightgbm.DaskLGBMRanker``.

    Returns
    -------
    lightgbm.LGBMRanker
        The model, on this machine.
    """
    lightgbm, dask, array = (
        import_extra("lightgbm", "trees"),
        import_extra("dask", "dask"),
        import_extra("dask.array", "dask"),
    )
    parts = parts if isinstance(parts, Parts) else Parts(parts, client)
    if not isinstance(parts.engine, Dask):
        raise InputError("LightGBM's trees over parts need a cluster of Dask's; pass its client.")
    handles = parts.over(_grouped_part, None, "whole queries")
    sizes = parts.engine.gather(parts.engine.map(_sizes, handles, name="sizes"))
    full = [(handle, size) for handle, size in zip(handles, sizes, strict=True) if size[0]]
    if not full:
        raise InputError(f"none of the {parts.n_rows} rows has a score; score some rows.")

    def column(at: int, shape: Any, dtype: Any) -> Any:
        return array.concatenate(
            [
                array.from_delayed(dask.delayed(_pick)(handle, at), shape=shape(size), dtype=dtype)
                for handle, size in full
            ]
        )

    X = column(0, lambda size: (size[0], parts.n_features), np.float64)
    y, group = column(1, lambda size: size[:1], np.int64), column(2, lambda size: size[1:], np.int64)
    model = lightgbm.DaskLGBMRanker(client=parts.engine.client, **params)
    return model.fit(X, y, group=group).to_local()


def _grouped_part(problems: Iterator[Problem], settings: None) -> Grouped:
    """Judged rows of a part query by query, their grades, and how many rows each query has."""
    X, y, group = [], [], []
    for problem in problems:
        data = problem.data
        assert data.y is not None
        rows = data.queries.order[data.is_scored[data.queries.order]]
        grades = data.y[rows]
        if (grades != np.round(grades)).any() or (grades < 0).any():
            raise InputError("y holds scores that are no whole numbers from 0, which LightGBM asks for; grade them.")
        X.append(data.X[rows].toarray() if sparse.issparse(data.X) else data.X[rows])
        y.append(grades.astype(np.int64))
        sizes = np.bincount(data.queries.codes[rows], minlength=1)
        group.append(sizes[sizes > 0])
    if not X:
        return np.empty((0, 0)), np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    return np.concatenate(X), np.concatenate(y), np.concatenate(group)


def _sizes(grouped: Grouped) -> tuple[int, int]:
    return len(grouped[1]), len(grouped[2])


def _pick(grouped: Grouped, at: int) -> Any:
    return grouped[at]
