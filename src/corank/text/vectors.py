"""
Exact search of vectors: a blocked matrix product, of which the k best documents of each query are kept.

    score(q, d) = <q, d>  (dot)    or    <q, d> / (|q| |d|)  (cosine)

Documents are taken in blocks, and a block is compared with the k-th best score so far, so that few scores are sorted:
the product dominates, O(n d) per query, and memory is that of one block of scores. Of equal scores the first rows win.
"""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corank.core.threads import n_threads, parallel_map
from corank.data.collection import as_texts
from corank.data.durable.atomic import atomic_file
from corank.data.durable.compressed import require_plausible_size
from corank.data.durable.files import require_regular
from corank.data.io.tables import suffix_of
from corank.errors import InputError, import_extra, reason
from corank.parameters import check_values, integer, one_of
from corank.text.corpus import SearchResult

Similarity = Literal["cosine", "dot"]
SIMILARITIES: tuple[Similarity, ...] = ("cosine", "dot")
Embed = Callable[[Sequence[str]], ArrayLike]
STATIC_MODEL = "wordllama"
"""Static embeddings whose package contains the weights."""

QUERY_BLOCK, DOCUMENT_BLOCK = 256, 16384
_NAMES = {
    "documents": ("documents", "docs", "doc", "corpus", "passages", "vectors", "embeddings"),
    "queries": ("queries", "query", "topics", "vectors", "embeddings"),
}
_IDS = {"documents": ("docid", "doc_id", "document_id", "docno", "id"), "queries": ("qid", "query_id", "query", "id")}


@dataclass(frozen=True, eq=False, repr=False)
class Vectors:
    """
    Vectors of documents or queries.

    ids: Name of each row.
    rows: The vectors, float16 or float32, in memory or mapped from a file.
    model: The static model that made them, so that queries can be embedded alike; "" if unknown.

    >>> documents = Vectors.of([[1, 0], [0, 1], [0.6, 0.8]], ids=["a", "b", "c"])
    >>> documents.search([[0, 2]], k=2).documents.tolist()
    [[1, 2]]
    """

    ids: NDArray[np.object_]
    rows: NDArray[Any]
    model: str = ""

    def __repr__(self) -> str:
        return f"<Vectors: {len(self.ids)} × {self.rows.shape[1]}>"

    @classmethod
    def of(cls, rows: ArrayLike, ids: Iterable[Any] | None = None, model: str = "", name: str = "vectors") -> Vectors:
        """Check vectors and their ids, which are the numbers of the rows by default."""
        array = rows if isinstance(rows, np.ndarray) else np.asarray(rows, dtype=np.float32)
        if array.ndim != 2 or array.dtype.kind not in "fiu" or not array.shape[1] or not len(array):
            raise InputError(
                f"{name} is an array of shape {array.shape} and type {array.dtype}; expected a row of numbers for each "
                "text."
            )
        if array.dtype not in (np.float16, np.float32):
            array = array.astype(np.float32)
        names = [str(number) for number in range(len(array))] if ids is None else [str(name) for name in ids]
        if len(names) != len(array):
            raise InputError(f"{name} has {len(array)} vectors for {len(names)} ids; pass one for each.")
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise InputError(f"{name} has two vectors of {twice!r}; keep one of them.")
        for begin in range(0, len(array), DOCUMENT_BLOCK):
            is_bad = ~np.isfinite(array[begin : begin + DOCUMENT_BLOCK]).all(axis=1)
            if is_bad.any():
                raise InputError(
                    f"{name} has a vector that is not finite, that of {names[begin + int(is_bad.argmax())]!r}; embed "
                    "the text again."
                )
        return cls(as_texts(names), array, model)

    def search(
        self, queries: ArrayLike, k: int = 10, *, similarity: Similarity = "cosine", n_jobs: int | None = None
    ) -> SearchResult:
        """Find the k best documents of each query vector, best first."""
        check_values({"k": k, "similarity": similarity}, {"k": integer(1), "similarity": one_of(*SIMILARITIES)})
        Q = np.asarray(queries, dtype=np.float32)
        if Q.ndim != 2 or Q.shape[1] != self.rows.shape[1]:
            raise InputError(
                f"queries have shape {Q.shape}, but documents have {self.rows.shape[1]} dimensions; embed both with "
                "the same model."
            )
        Q = _unit(Q) if similarity == "cosine" else Q
        k = min(k, len(self.rows))
        result = SearchResult(np.empty((len(Q), k), np.int64), np.empty((len(Q), k), np.float32))
        parts = [(begin, min(begin + QUERY_BLOCK, len(Q))) for begin in range(0, len(Q), QUERY_BLOCK)]

        def search_part(first: int, last: int) -> None:
            result.documents[first:last], result.scores[first:last] = self._best(Q[first:last], k, similarity)

        parallel_map(search_part, parts, n_threads(1 if n_jobs is None else n_jobs))
        return result

    def _best(self, Q: NDArray[np.float32], k: int, similarity: str) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        n = len(Q)
        query, document = np.empty(0, np.int64), np.empty(0, np.int64)
        score = np.empty(0, np.float32)
        worst = np.full(n, -np.inf, np.float32)  # the k-th best score of each query so far
        for begin in range(0, len(self.rows), DOCUMENT_BLOCK):
            D = np.asarray(self.rows[begin : begin + DOCUMENT_BLOCK], dtype=np.float32)
            S = Q @ (_unit(D) if similarity == "cosine" else D).T
            # a later row needs a higher score; before k rows are known, the k best of the block are taken
            if len(query) < n * k:
                keep = min(k, S.shape[1])
                above = np.partition(S, S.shape[1] - keep, axis=1)[:, S.shape[1] - keep, None] <= S
            else:
                above = worst[:, None] < S
            rows, columns = np.nonzero(above)
            query, document = np.append(query, rows), np.append(document, columns + begin)
            score = np.append(score, S[rows, columns])
            order = np.lexsort((document, -score, query))
            starts = np.searchsorted(query[order], np.arange(n))
            place = np.arange(len(order)) - starts[query[order]]
            order = order[place < k]
            query, document, score = query[order], document[order], score[order]
            if len(query) == n * k:
                worst = score.reshape(n, k)[:, -1]
        return document.reshape(n, k), score.reshape(n, k)


def _unit(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return rows of unit length; a row of zeros stays."""
    norms = np.sqrt(np.einsum("ij,ij->i", rows, rows, dtype=np.float64)).astype(np.float32)
    if np.abs(norms - 1.0).max(initial=0.0) < 1e-6:
        return rows
    unit: NDArray[np.float32] = (rows / np.where(norms > 0, norms, 1)[:, None]).astype(np.float32, copy=False)
    return unit


def read_vectors(
    path: str | os.PathLike[str],
    kind: Literal["documents", "queries"] = "documents",
    *,
    ids: Sequence[str] | None = None,
) -> Vectors:
    """
    Read vectors of documents or queries from a .npy, .npz or Parquet file.

    A .npz file has a matrix and the ids of its rows; one that has both kinds names them, such as ``documents``,
    ``document_ids``, ``queries``, ``query_ids``. A table has a column of ids, and a column of lists or of numbers for
    each dimension. `ids` names the rows of a file without ids; by default they are numbered from 0.
    """
    file, suffix = Path(path), suffix_of(path)
    require_regular(file)
    if not file.exists():
        raise InputError(f"{path} does not exist; pass a .npy, .npz or .parquet file of vectors.")
    if suffix == ".parquet":
        rows, names = _of_parquet(file, kind)
        return Vectors.of(rows, ids if names is None else names, name=str(path))
    if suffix not in (".npy", ".npz"):
        raise InputError(f"{path} is not a file of vectors; pass .npy, .npz or .parquet.")
    try:
        if suffix == ".npy":
            return Vectors.of(np.load(file, allow_pickle=False), ids, name=str(path))
        with zipfile.ZipFile(file) as archive:
            unpacked = sum(member.file_size for member in archive.infolist())
        require_plausible_size(path, file.stat().st_size, unpacked)
        with np.load(file, allow_pickle=False) as arrays:
            return _of_arrays(arrays, kind, ids, str(path))
    except InputError:
        raise
    except (ValueError, OSError, EOFError, KeyError, zipfile.BadZipFile, NotImplementedError, MemoryError) as error:
        raise InputError(
            f"{path} cannot be read ({reason(error)}); write numbers and texts with numpy.save or numpy.savez."
        ) from error


def _of_arrays(arrays: Any, kind: Literal["documents", "queries"], ids: Sequence[str] | None, path: str) -> Vectors:
    stored = {name: arrays[name] for name in arrays.files}
    matrices = [name for name, array in stored.items() if array.ndim == 2 and array.dtype.kind == "f"]
    usual = [name for wanted in _NAMES[kind] for name in matrices if name.casefold() == wanted]
    if not usual and len(matrices) != 1:
        raise InputError(
            f"{path} has {len(matrices)} matrices ({', '.join(stored)}); name that of the {kind} {_NAMES[kind][0]!r}."
        )
    chosen = usual[0] if usual else matrices[0]
    columns = [name for name, array in stored.items() if array.ndim == 1 and len(array) == len(stored[chosen])]
    columns = [name for name in columns if stored[name].dtype.kind in "USiu"]
    stem = chosen.casefold().rstrip("s").removesuffix("ie")
    named = [name for name in columns if name.casefold().startswith(stem)] or columns
    names = None if not named else _texts(stored[named[0]])
    model = stored.get("model")
    known = str(model) if model is not None and model.ndim == 0 and model.dtype.kind == "U" else ""
    return Vectors.of(stored[chosen], ids if names is None else names, known, path)


def _texts(array: NDArray[Any]) -> list[str]:
    return [text.decode("utf-8", "replace") if isinstance(text, bytes) else str(text) for text in array.tolist()]


def _of_parquet(path: Path, kind: str) -> tuple[NDArray[Any], list[str] | None]:
    arrow, parquet = import_extra("pyarrow", "frames"), import_extra("pyarrow.parquet", "frames")
    try:
        table = parquet.read_table(path)
    except (arrow.ArrowException, OSError) as error:
        raise InputError(f"{path} cannot be read as Parquet ({reason(error)}); write the file again.") from error
    names = table.schema.names
    lower = {name.casefold(): name for name in reversed(names)}
    id_column = next((lower[usual] for usual in _IDS[kind] if usual in lower), None)
    is_list = arrow.types.is_list, arrow.types.is_large_list, arrow.types.is_fixed_size_list
    lists = [name for name in names if any(test(table.schema.field(name).type) for test in is_list)]
    if len(lists) > 1:
        raise InputError(f"{path} has several columns of lists ({', '.join(lists)}); keep that of the vectors.")
    if lists:
        cells = table.column(lists[0]).combine_chunks()
        flat, n = cells.flatten(), len(cells)
        if cells.null_count or flat.null_count or not n or len(flat) % n:
            raise InputError(f"{path}: the vectors of column {lists[0]!r} are empty or differ in length; embed again.")
        lengths = import_extra("pyarrow.compute", "frames").list_value_length(cells).unique()
        if len(lengths) != 1:
            raise InputError(f"{path}: the vectors of column {lists[0]!r} differ in length; embed the texts again.")
        rows = flat.to_numpy(zero_copy_only=False).reshape(n, -1)
    else:
        numbers = [
            name for name in names if name != id_column and arrow.types.is_floating(table.schema.field(name).type)
        ]
        if not numbers:
            raise InputError(f"{path} has no column of vectors ({', '.join(names[:8])}); write lists of numbers.")
        rows = np.column_stack([table.column(name).to_numpy() for name in numbers]).astype(np.float32)
    return rows, None if id_column is None else [str(value) for value in table.column(id_column).to_pylist()]


def write_vectors(path: str | os.PathLike[str], vectors: Vectors, *, overwrite: bool = False) -> None:
    """Write vectors as .npz, atomically."""
    content = io.BytesIO()
    ids = np.array(vectors.ids.tolist(), dtype=np.str_)
    np.savez(content, vectors=vectors.rows, ids=ids, model=np.array(vectors.model, dtype=np.str_))
    with atomic_file(path, overwrite=overwrite) as scratch:
        Path(scratch).write_bytes(content.getbuffer())


def embed_texts(texts: Sequence[str], model: str | Embed = STATIC_MODEL) -> NDArray[np.float32]:
    """
    Return a vector for each text, by any function from texts to vectors.

    The name "wordllama" stands for the static embeddings of that package (``pip install 'corank[vectors]'``), which
    contains its weights and needs no network.
    """
    if isinstance(model, str):
        if model != STATIC_MODEL:
            raise InputError(f"the model is {model!r}; pass {STATIC_MODEL!r}, or a function from texts to vectors.")
        model = _static_model()
    rows = np.asarray(model(list(texts)), dtype=np.float32)
    if rows.ndim != 2 or len(rows) != len(texts):
        raise InputError(
            f"the model returned shape {rows.shape} for {len(texts)} texts; it must return a row for each."
        )
    return rows


def _static_model() -> Embed:
    package = import_extra("wordllama", "vectors")
    # the weights are inside the package; nothing is downloaded
    model = package.WordLlama.load(cache_dir=Path(str(package.__file__)).parent, disable_download=True)
    return lambda texts: model.embed([text or " " for text in texts], norm=True)
