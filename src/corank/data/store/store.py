"""
A ranking problem on disk: a folder of raw arrays with a JSON header, mapped into memory and opened in O(1).

The index that `RankingData` sorts for is stored too, so opening reads the header and nothing else; rows come from
the disk as a learner touches them. The header carries its own checksum and the size and SHA-256 of every array.
Writing is O(bytes), and whole or not at all.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from corank.data.formats.text import Source
from corank.data.letor.reader import read_letor
from corank.data.problem.collection import Collection
from corank.data.problem.inputs import as_scores
from corank.data.problem.queries import Queries
from corank.data.problem.ranking import RankingData
from corank.data.problem.rows import as_rows
from corank.data.store.files import INDEX, StoreFiles, map_file
from corank.data.store.folder import StoreFolder, digest, store_folder
from corank.data.store.header import read_header
from corank.errors import InputError


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Store(Collection):
    """
    An opened store: a collection whose arrays are read-only maps of its files.

    Attributes
    ----------
    X, y, names
        As in every collection, read and checked once, when they are first asked for; a store keeps no names of
        features.
    path : Path
        The folder.
    header : dict
        What the header says: `n_rows`, `n_features`, `n_queries`, `layout`, `has_qid`, and the `arrays`.
    """

    X: Any = field(init=False)
    y: NDArray[np.float64] = field(init=False)
    path: Path
    header: dict[str, Any]
    _files: StoreFiles

    def __getattr__(self, name: str) -> Any:
        # only what stands nowhere else comes here
        if name in ("X", "y"):
            return getattr(self._files, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __repr__(self) -> str:
        return f"<Store {self.path}: {self.header['n_rows']} rows, {self.header['n_features']} features>"

    def verify(self) -> None:
        """Read every file and compare its checksum with the header; raise one sentence on the first that differs."""
        for name, entry in self.header["arrays"].items():
            if digest(map_file(self.path, name, entry)) != entry["sha256"]:
                raise InputError(
                    f"{self.path} is damaged: {name}.bin does not match its checksum; write the store again."
                )


def write_store(
    path: str | os.PathLike[str],
    X: Any,
    y: ArrayLike,
    qid: ArrayLike | None = None,
    docids: ArrayLike | None = None,
    *,
    overwrite: bool = False,
) -> None:
    """
    Write rows, scores and queries as a store.

    Parameters
    ----------
    path : path
        The folder to write.
    X : ndarray, CSR matrix or DataFrame, shape (n_rows, n_features)
        The rows.
    y : array-like of shape (n_rows,)
        Scores; NaN marks an unscored row.
    qid : array-like of shape (n_rows,), optional
        Query ids: numbers or strings.
    docids : array-like of str, shape (n_rows,), optional
        The document of each row.
    overwrite : bool, default False
        Whether a store that stands at `path` is replaced; anything else is never touched.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "tiny.store")
    >>> write_store(path, [[0.5], [0.25]], [1, 0], qid=["a", "a"])
    >>> store = open_store(path)
    >>> store.X.tolist(), store.qid.tolist(), store.data.n_pairs
    ([[0.5], [0.25]], ['a', 'a'], 1)
    """
    rows = as_rows(X)
    queries = Queries.of(qid, rows.shape[0])
    data = RankingData.of_checked(rows, as_scores(y, rows.shape[0]), queries)
    with store_folder(path, overwrite) as folder:
        _fill(folder, data, qid is not None, docids)


def store_letor(
    path: str | os.PathLike[str],
    sources: Sequence[Source],
    *,
    overwrite: bool = False,
    **options: Any,
) -> None:
    """
    Turn LETOR text into a store, parsing straight into its files: X may be larger than memory.

    Parameters
    ----------
    path : path
        The folder to write.
    sources : sequence of paths
        The texts, put one after the other.
    overwrite : bool, default False
        Whether a store that stands at `path` is replaced.
    **options
        Passed to `read_letor`.
    """
    with store_folder(path, overwrite) as folder:
        file = read_letor(sources, allocate=folder.room, **options)
        _fill(folder, file.data, file.qid is not None, file.docids)


def open_store(path: str | os.PathLike[str]) -> Store:
    """
    Open a store in O(1): read and check its header and the sizes of its files.

    Parameters
    ----------
    path : path
        The folder.

    Returns
    -------
    Store
        The problem. What would lead a learner astray is found when rows or index are first asked for, other numbers in
        the place of the right ones by `Store.verify`.
    """
    place = Path(path)
    header = read_header(place)
    files = StoreFiles(place, header)
    return Store(
        path=place, header=header, _files=files, _qid=files.qid, _docids=files.docids, _data=lambda: files.data
    )


def _fill(folder: StoreFolder, data: RankingData, has_qid: bool, docids: ArrayLike | None) -> None:
    if sparse.issparse(data.X):
        # there may be room behind the last entry
        folder.put("values", data.X.data[: data.X.nnz])
        folder.put("indices", data.X.indices[: data.X.nnz])
        folder.put("indptr", data.X.indptr)
    else:
        folder.put("values", data.X)
    folder.put("y", np.asarray(data.y))
    folder.put("ids", data.queries.plain_ids("a store"))
    folder.put("codes", data.queries.codes)
    folder.put("query_order", data.queries.order)
    folder.put("starts", data.queries.starts)
    for name in INDEX:
        folder.put(name, getattr(data, name))
    if docids is not None:
        _put_docids(folder, np.asarray(docids), data.n_rows)
    folder.write_header(
        n_rows=data.n_rows,
        n_features=data.n_features,
        n_queries=len(data.queries),
        layout="csr" if sparse.issparse(data.X) else "dense",
        has_qid=has_qid,
    )


def _put_docids(folder: StoreFolder, docids: NDArray[Any], n_rows: int) -> None:
    if docids.shape != (n_rows,):
        raise InputError(f"docids has shape {docids.shape} for {n_rows} rows of X; pass one document per row.")
    texts = [str(docid).encode(errors="surrogateescape") for docid in docids.tolist()]
    folder.put("docid_bytes", np.frombuffer(b"".join(texts), dtype=np.uint8))
    folder.put("docid_stops", np.cumsum([len(text) for text in texts], dtype=np.int64))
