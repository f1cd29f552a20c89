"""
LETOR text, which is SVMlight's with query ids: ``label qid:Q id:value id:value ... # comment``, one row a line.

Ids count from 1 and rise along a line; features that are not named are 0. Reading takes two passes over the file,
both piece by piece on threads: one counts rows and values, one parses straight into the final arrays. O(bytes) time;
the memory is that of the result, and of a few pieces.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import DTypeLike

from corank.data.formats.text import Source, as_sources, open_text
from corank.data.letor.faults import LARGEST_ID
from corank.data.letor.pieces import Pieces
from corank.data.letor.plan import Allocate, Plan, in_memory
from corank.data.letor.writer import write_letor as write_letor
from corank.data.problem.collection import Collection
from corank.errors import InputError


def read_letor(
    path: Source | Sequence[Source],
    *,
    n_features: int | None = None,
    dtype: DTypeLike = np.float32,
    layout: Literal["auto", "dense", "csr"] = "auto",
    unscored: float | None = None,
    n_jobs: int | None = None,
    allocate: Allocate | None = None,
) -> Collection:
    """
    Read LETOR / SVMlight text, plain or compressed (gzip, xz, zstandard).

    Numbers are rounded to the nearest float64, as Python's `float` does, then to `dtype`.

    Parameters
    ----------
    path : path or sequence of paths
        The file, or files whose rows are put one after the other; "-" is standard input.
    n_features : int, optional
        Number of columns of X; the largest id in the files by default, which is then at most 16,777,216.
    dtype : float32 or float64, default float32
        Type of X.
    layout : {"auto", "dense", "csr"}, default "auto"
        Whether X is an array or a CSR matrix; "auto" takes an array when at least a quarter of the features
        are named.
    unscored : float, optional
        Label that marks an unscored row; it becomes NaN in y.
    n_jobs : int, optional
        Number of threads; every available processor by default.
    allocate : callable, optional
        Gives the room for y and the arrays of X; zeros in memory by default.

    Returns
    -------
    Collection
        Rows, labels, query ids, comments, and the document of each row: X in ``#docid = X``, else the first word.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "tiny.txt")
    >>> _ = path.write_text("2 qid:7 1:0.5 3:1 #docid = GX1\\n-1 qid:7 2:0.25 #docid = GX2\\n")
    >>> file = read_letor(path, unscored=-1, layout="dense")
    >>> file.X.tolist(), file.y.tolist(), file.qid.tolist(), file.docids.tolist()
    ([[0.5, 0.0, 1.0], [0.0, 0.25, 0.0]], [2.0, nan], [7, 7], ['GX1', 'GX2'])
    """
    kind = as_precision(dtype, layout)
    if n_features is not None and not 1 <= n_features <= LARGEST_ID:
        raise InputError(f"n_features is {n_features}; pass a number from 1 to {LARGEST_ID}.")
    sources = as_sources(path)
    pieces = Pieces.of([open_text(one) for one in sources], n_jobs)
    return Plan.of(pieces, n_features, kind, layout).read(pieces, unscored, allocate or in_memory)


def as_precision(dtype: DTypeLike, layout: str) -> np.dtype[Any]:
    """
    Check how X shall be kept.

    Parameters
    ----------
    dtype : float32 or float64
        Type of X.
    layout : {"auto", "dense", "csr"}
        Whether X is an array or a CSR matrix.

    Returns
    -------
    dtype
        The type.
    """
    kind = np.dtype(dtype)
    if kind not in (np.dtype(np.float32), np.dtype(np.float64)):
        raise InputError(f"dtype is {kind}; choose float32 or float64.")
    if layout not in ("auto", "dense", "csr"):
        raise InputError(f"layout is {layout!r}; choose 'auto', 'dense' or 'csr'.")
    return kind
