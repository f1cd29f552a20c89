"""Read rows from files, whatever their format: LETOR text, a store, Parquet or CSV, told apart by what they are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from scipy import sparse

from corank.data.durable.atomic import folder_stands
from corank.data.formats.compressed import SUFFIXES
from corank.data.formats.frames import read_csv, read_parquet
from corank.data.formats.text import Source, Text, as_sources, open_text
from corank.data.letor.reader import as_precision, read_letor
from corank.data.problem.collection import Collection
from corank.data.problem.rows import require_finite
from corank.data.store.store import open_store
from corank.errors import InputError

PARQUET_MAGIC = b"PAR1"

Kind = Literal["text", "store", "parquet", "csv"]


def read(
    path: Source | Sequence[Source],
    *,
    unscored: float | None = None,
    y: str | None = "label",
    qid: str | Literal[False] | None = None,
    n_features: int | None = None,
    dtype: Literal["float32", "float64"] | None = None,
    layout: Literal["auto", "dense", "csr"] = "auto",
) -> Collection:
    """
    Read rows, scores, query ids and document ids from files.

    Parameters
    ----------
    path : path or sequence of paths
        LETOR text (plain, gzip, xz or zstandard; several files are put one after the other), a store, a Parquet
        file, or a table as text (CSV, TSV) whose first line names the columns. Text may come from a pipe; "-" is
        standard input.
    unscored : float, optional
        Score that marks an unscored row; it becomes NaN.
    y : str or None, default "label"
        The column of scores in a table; None takes "label" where there is one, and else no row is scored.
    qid : str or False, optional
        The column of query ids in a table, "qid" by default; False puts all rows in one query.
    n_features : int, optional
        Number of columns of X where LETOR text leaves it open; the largest feature id by default, which is then at
        most 16,777,216.
    dtype : {"float32", "float64"}, optional
        Type of X; by default float32 from LETOR text, and as it is otherwise.
    layout : {"auto", "dense", "csr"}, default "auto"
        Whether X is an array or a CSR matrix; "auto" chooses by density in LETOR text, and keeps what is otherwise.

    Returns
    -------
    Collection
        The rows; ``.data`` is what rankers fit.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "tiny.csv")
    >>> _ = path.write_text("label,qid,f1\\n2,7,0.5\\n-1,7,0.25\\n1,7,0.75\\n")
    >>> rows = read(path, unscored=-1)
    >>> rows.X.tolist(), rows.y.tolist(), rows.qid.tolist(), rows.data.n_pairs
    ([[0.5], [0.25], [0.75]], [2.0, nan, 1.0], [7, 7, 7], 1)
    """
    sources = [opened(one) for one in as_sources(path)]
    kind, first = one_kind(sources), sources[0]
    for option, name in (("y", y), ("qid", qid)):
        if isinstance(name, str) and name != "label" and kind not in ("parquet", "csv"):
            raise InputError(f"{option}={name!r} names a column, but {first} is no table; leave it out.")
    as_precision(dtype or "float32", layout)
    if kind == "text":
        rows = read_letor(sources, unscored=unscored, n_features=n_features, dtype=dtype or "float32", layout=layout)
    elif isinstance(first, Path):
        rows = open_store(first)
        if (unscored, dtype, layout) == (None, None, "auto") and qid is not False:
            return rows  # unread
    elif kind == "parquet":
        rows = read_parquet(first.path, y=y, qid=qid or None)
    else:
        rows = read_csv(first, y=y, qid=qid or None)
    X, scores = _laid_out(rows.X, dtype, layout), rows.y
    hidden = np.zeros(len(scores), dtype=bool) if unscored is None else scores == unscored
    if X is rows.X and qid is not False and not hidden.any():
        return rows
    return rows.revised(X, np.where(hidden, np.nan, scores), one_query=qid is False)


def opened(source: Source) -> Text | Path:
    """
    Open what rows are read from, so that a pipe can be looked at and then read.

    Parameters
    ----------
    source : path
        A file, a pipe, "-" for standard input, or a folder.

    Returns
    -------
    Text or Path
        The text; a folder as it is.
    """
    if isinstance(source, Text) or not folder_stands(Path(source)):
        return open_text(source)
    return Path(source)


def one_kind(sources: Sequence[Text | Path]) -> Kind:
    """
    Say what a file is, or several that can be read as one.

    Parameters
    ----------
    sources : sequence of Text or Path
        The files, opened.

    Returns
    -------
    {"text", "store", "parquet", "csv"}
        LETOR text is "text".
    """
    kinds = [kind_of(source) for source in sources]
    if len(sources) > 1 and set(kinds) != {"text"}:
        other = next(source for source, kind in zip(sources, kinds, strict=True) if kind != "text")
        raise InputError(f"{len(sources)} inputs came, {other} among them, but only LETOR text is joined; pass one.")
    return kinds[0]


def kind_of(source: Source) -> Kind:
    """
    Say what a file is.

    Parameters
    ----------
    source : path
        A file, opened or not, or a folder.

    Returns
    -------
    {"text", "store", "parquet", "csv"}
        What it looks like inside, or else by its suffix; what cannot be told is "text".
    """
    text = opened(source)
    if isinstance(text, Path):
        return "store"
    if text.read(0, min(len(PARQUET_MAGIC), text.size)).tobytes() == PARQUET_MAGIC:
        return "parquet"
    path = text.path
    suffix = Path(path.stem).suffix if path.suffix in SUFFIXES else path.suffix
    if suffix in (".parquet", ".csv", ".tsv"):
        return "parquet" if suffix == ".parquet" else "csv"
    line = text.first_line()
    # a line of LETOR text begins with a number and a blank, the first of a table with a name and a mark
    is_table = any(mark in line for mark in (b",", b"\t", b";")) and not is_number(line.split()[0])
    return "csv" if is_table else "text"


def is_number(word: bytes) -> bool:
    """
    Say whether a word of text is a number.

    Parameters
    ----------
    word : bytes
        The word.

    Returns
    -------
    bool
        True where `float` reads it.
    """
    try:
        float(word)
    except ValueError:
        return False
    return True


def _laid_out(X: Any, dtype: str | None, layout: str) -> Any:
    if layout == "dense" and sparse.issparse(X):
        X = X.toarray()
    elif layout == "csr" and not sparse.issparse(X):
        X = sparse.csr_matrix(X)
    if dtype is None or X.dtype == dtype:
        return X
    with np.errstate(over="ignore"):
        X = X.astype(dtype)
    require_finite(X)  # a float64 may be too large for float32
    return X
