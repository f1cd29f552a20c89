"""
A ranking problem on disk: a folder of raw arrays with a JSON header, mapped into memory and opened in O(1).

The index that `RankingData` sorts for is stored too, so opening reads the header and nothing else; rows come from
the disk as a learner touches them. The header carries its own checksum and the size and SHA-256 of every array.
Writing is O(bytes), and whole or not at all.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from corank.data.collection import Collection
from corank.data.given import as_scores
from corank.data.letor import read_letor
from corank.data.queries import Queries
from corank.data.ranking import RankingData
from corank.data.rows import as_rows
from corank.data.store_folder import FORMAT, HEADER, VERSION, StoreFolder, digest, is_store, store_folder
from corank.data.text import Source
from corank.errors import InputError

INDEX = ("order", "scored_stops", "grade_starts", "grade_stops", "query_grades")


@dataclass(frozen=True, eq=False, kw_only=True)
class Store(Collection):
    """
    An opened store: a collection whose arrays are read-only maps of its files.

    Attributes
    ----------
    X, y, names
        As in every collection; a store keeps no names of features.
    path : Path
        The folder.
    header : dict
        What the header says: `n_rows`, `n_features`, `n_queries`, `layout`, `has_qid`, and the `arrays`.
    """

    path: Path
    header: dict[str, Any]

    def verify(self) -> None:
        """Read every file and compare its checksum with the header; raise one sentence on the first that differs."""
        for name, entry in self.header["arrays"].items():
            if digest(_map(self.path, name, self.header)) != entry["sha256"]:
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
        The problem; damage that keeps all sizes is found by `Store.verify`.
    """
    place = Path(path)
    header = _header(place)
    arrays = {name: _map(place, name, header) for name in header["arrays"]}
    X = arrays["values"]
    if header["layout"] == "csr":
        shape = (header["n_rows"], header["n_features"])
        X = sparse.csr_matrix((X, arrays["indices"], arrays["indptr"]), shape=shape, copy=False)
        X.has_sorted_indices = X.has_canonical_format = True  # as_rows and the parser make sure
    queries = Queries(arrays["ids"], arrays["codes"], arrays["query_order"], arrays["starts"])
    data = RankingData(X, arrays["y"], queries, *(arrays[name] for name in INDEX))
    return Store(
        X=X,
        y=arrays["y"],
        _qid=lambda: queries.ids[queries.codes] if header["has_qid"] else None,
        _docids=lambda: _docids(arrays),
        _data=lambda: data,
        path=place,
        header=header,
    )


def _docids(arrays: dict[str, NDArray[Any]]) -> NDArray[np.object_] | None:
    if "docid_stops" not in arrays:
        return None
    text, stops = arrays["docid_bytes"].tobytes(), arrays["docid_stops"].tolist()
    found = np.empty(len(stops), dtype=object)
    found[:] = [
        text[begin:stop].decode(errors="surrogateescape") for begin, stop in zip([0, *stops[:-1]], stops, strict=True)
    ]
    return found


def _fill(folder: StoreFolder, data: RankingData, has_qid: bool, docids: ArrayLike | None) -> None:
    if sparse.issparse(data.X):
        folder.put("values", data.X.data)
        folder.put("indices", data.X.indices)
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


def _header(place: Path) -> dict[str, Any]:
    if not place.is_dir():
        raise InputError(f"there is no store {place}; write one with: corank convert SOURCE {place}.")
    if not is_store(place):
        raise InputError(f"{place} is not a store: it has no readable {HEADER} of the format {FORMAT!r}.")
    header = json.loads((place / HEADER).read_bytes())
    if header.get("version") != VERSION:
        raise InputError(
            f"{place} is a store of version {header.get('version')}, and this corank reads version {VERSION}; "
            "upgrade corank or write the store again."
        )
    content = header.get("content")
    if not isinstance(content, dict) or header.get("sha256") != digest(content):
        raise InputError(f"{place} is damaged: {HEADER} does not match its checksum; write the store again.")
    return content


def _map(place: Path, name: str, header: dict[str, Any]) -> NDArray[Any]:
    entry = header["arrays"][name]
    file, dtype, shape = place / f"{name}.bin", np.dtype(entry["dtype"]), tuple(entry["shape"])
    size = int(np.prod(shape, dtype=object)) * dtype.itemsize
    found = file.stat().st_size if file.is_file() else None
    if found != size:
        state = "is missing" if found is None else f"has {found} bytes instead of {size}"
        raise InputError(f"{place} is damaged: {file.name} {state}; write the store again.")
    if size == 0:
        return np.empty(shape, dtype)
    # a plain array over the map: kernels and scipy treat subclasses as strangers
    return np.asarray(np.memmap(file, dtype, mode="r", shape=shape))
