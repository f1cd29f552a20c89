"""Read rows from LETOR text, a store, Parquet or CSV; the format is recognised from the content."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from corank._lazy import is_sparse
from corank._moved import old_parameters
from corank.data.collection import Dataset
from corank.data.column_roles import USUAL_NAMES, ColumnRoles, column_numbers, require_same_features
from corank.data.durable.atomic import folder_exists
from corank.data.durable.text import Source, TextFile, as_sources, is_number, open_text
from corank.data.io.frames import read_csv, read_parquet
from corank.data.io.letor_reader import as_precision, read_letor, with_groups
from corank.data.io.stores import Store, open_store
from corank.data.io.tables import suffix_of
from corank.data.judges import merge_judges
from corank.data.rows import as_rows, require_finite
from corank.errors import InputError, warn

PARQUET_MAGIC = b"PAR1"

FileFormat = Literal["text", "store", "parquet", "csv"]


@old_parameters(unscored="unjudged")
def read(
    path: Source | Sequence[Source],
    *,
    unjudged: float | None = None,
    y: str | Literal[False] | None = None,
    qid: str | Literal[False] | None = None,
    docid: str | None = None,
    judge: str | None = None,
    judges: Literal["median", "mean", "majority", "keep"] = "median",
    drop: str | Sequence[str] = (),
    keep: str | Sequence[str] = (),
    features: Sequence[str] | None = None,
    n_features: int | None = None,
    dtype: Literal["float32", "float64"] | None = None,
    layout: Literal["auto", "dense", "csr"] = "auto",
    group_files: bool = True,
) -> Dataset:
    """
    Read features, scores, query ids and document ids from files.

    Parameters
    ----------
    path : path or sequence of paths
        LETOR text (plain, gzip, xz or zstandard; several files are concatenated), a store, a Parquet file, or a CSV
        or TSV table with a header. Text may come from a pipe; "-" is standard input.
    unjudged : float, optional
        Score that marks an unjudged row; it becomes NaN.
    y : str or False, optional
        Label column of a table; by default the column named label, grade, relevance, rating or y, in any case. False
        also accepts a table without labels, whose rows are all unjudged.
    qid : str or False, optional
        Query column of a table; by default the column named qid, query_id, query, srch_id or session_id. False puts all
        rows in one query.
    docid : str, optional
        Column of document ids; by default the column named docid, doc_id, document_id, docno, document, product_id,
        item_id, id, url or name.
    judge : str, optional
        Column of judges; by default the column named judge, assessor, annotator, rater, reviewer or user.
    judges : {"median", "mean", "majority", "keep"}
        Rule for several rows of the same document of a query, such as grades of several judges: they become one row,
        with one grade (see `corank.metrics.agreement.aggregate_grades`), and a warning gives counts and agreement.
        "keep" keeps all rows.
    drop, keep : str or sequence of str, optional
        Columns of a table that are left out, and features that have one of the names above.
    features : sequence of str, optional
        Names of the features in the order of X, such as ``model.feature_names_in_``; the columns of a table are
        reordered by name, and other names are refused. Files without names are not checked.
    n_features : int, optional
        Number of columns of X for LETOR text. By default the largest feature id, which must not exceed 16,777,216.
    dtype : {"float32", "float64"}, optional
        Type of X; by default float32 for LETOR text, else that of the file.
    layout : {"auto", "dense", "csr"}, default "auto"
        Whether X is an array or a CSR matrix; "auto" chooses by density for LETOR text, else keeps that of the file.
    group_files : bool, default True
        Whether files without query ids get them from the number of rows of each query in a file beside, as for LightGBM
        (``train.txt.query``) and XGBoost (``train.txt.group``). A warning names the file.

    Returns
    -------
    Dataset
        The rows; pass ``.data`` to the `fit` of a ranker.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "tiny.csv")
    >>> _ = path.write_text("label,qid,f1\\n2,7,0.5\\n-1,7,0.25\\n1,7,0.75\\n")
    >>> rows = read(path, unjudged=-1)
    >>> rows.X.tolist(), rows.y.tolist(), rows.qid.tolist(), rows.data.n_pairs
    ([[0.5], [0.25], [0.75]], [2.0, nan, 1.0], [7, 7, 7], 1)
    """
    sources = [open_source(source) for source in as_sources(path)]
    kind, first = common_format(sources), sources[0]
    columns: dict[str, Any] = {"y": y, "qid": qid, "docid": docid, "judge": judge}
    columns |= {"drop": [drop] if isinstance(drop, str) else drop, "keep": [keep] if isinstance(keep, str) else keep}
    for option, name in columns.items():
        if name and kind not in ("parquet", "csv"):
            raise InputError(f"{option}={name!r} names a column, but {first} is not a table; leave it out.")
    columns["features"] = features
    as_precision(dtype or "float32", layout)
    if kind == "text":
        rows = read_letor(sources, unjudged=unjudged, n_features=n_features, dtype=dtype or "float32", layout=layout)
    elif isinstance(first, Path):
        rows = open_store(first)
    elif kind == "parquet":
        rows = read_parquet(first.path, **columns)
    else:
        rows = read_csv(first, **columns)
    has_qid = rows.header["has_qid"] if isinstance(rows, Store) else rows.qid is not None
    if group_files and qid is None and not has_qid and not isinstance(rows, Store):
        rows = with_groups(rows, sources)
        has_qid = rows.qid is not None
    if y is not False and qid is None and not has_qid:
        _warn_of_one_query(rows, first)
    roles = _matched(rows.names, features, first) if isinstance(rows, Store) else None
    if isinstance(rows, Store) and (unjudged, dtype, layout, roles) == (None, None, "auto", None) and qid is not False:
        return rows if judges == "keep" else merge_judges(rows, judges, first)  # arrays stay on disk
    X, scores = _converted(rows.X, dtype, layout), rows.y
    if roles is not None:
        X = as_rows(X[:, column_numbers(roles.features, rows.names, "features")])
    hidden = np.zeros(len(scores), dtype=bool) if unjudged is None else scores == unjudged
    if X is not rows.X or qid is False or hidden.any():
        rows = rows.revised(X, np.where(hidden, np.nan, scores), one_query=qid is False, roles=roles)
    return rows if judges == "keep" else merge_judges(rows, judges, first)


def _matched(names: Sequence[str] | None, features: Sequence[str] | None, source: object) -> ColumnRoles | None:
    """Return the roles of columns that are to be reordered by name, or None; raise `InputError` for other names."""
    if names is None or features is None or list(names) == list(features):
        return None
    require_same_features(names, features, source)
    return ColumnRoles(None, None, None, None, tuple(features), is_reordered=True)


def _warn_of_one_query(rows: Dataset, source: object) -> None:
    """Warn that a file with labels has no query ids."""
    n = len(rows.y)
    if n < 2 or np.isnan(rows.y).all():
        return
    usual = f" column ({', '.join(USUAL_NAMES['qid'])})" if rows.roles else " ids"
    hint = "name it with qid=, or pass" if rows.roles else "pass"
    warn(f"{source} has no query{usual}, so all {n} rows are treated as one query; {hint} qid=False if they are one.")


def open_source(source: Source) -> TextFile | Path:
    """Open a file, pipe or standard input ("-"), so that its format can be detected before reading; keep a folder."""
    if isinstance(source, TextFile) or not folder_exists(Path(source)):
        return open_text(source)
    return Path(source)


def common_format(sources: Sequence[TextFile | Path]) -> FileFormat:
    """Return the format of opened sources; several must all be LETOR text ("text")."""
    kinds = [detect_format(source) for source in sources]
    if len(sources) > 1 and set(kinds) != {"text"}:
        other = next(source for source, kind in zip(sources, kinds, strict=True) if kind != "text")
        raise InputError(
            f"found {len(sources)} files, of which {other} is not LETOR text, and only LETOR text can be concatenated; "
            "pass one file."
        )
    return kinds[0]


def detect_format(source: Source) -> FileFormat:
    """Return the format of a file or folder, by first bytes, suffix and first line; "text" is LETOR text."""
    text = open_source(source)
    if isinstance(text, Path):
        return "store"
    if text.read(0, min(len(PARQUET_MAGIC), text.size)).tobytes() == PARQUET_MAGIC:
        return "parquet"
    suffix = suffix_of(text.path)
    if suffix in (".parquet", ".csv", ".tsv"):
        return "parquet" if suffix == ".parquet" else "csv"
    line = text.first_line()
    # LETOR text begins with a number and a blank, a table with a name and a separator
    is_table = any(mark in line for mark in (b",", b"\t", b";")) and not is_number(line.split()[0])
    return "csv" if is_table else "text"


def _converted(X: Any, dtype: str | None, layout: str) -> Any:
    if layout == "dense" and is_sparse(X):
        X = X.toarray()
    elif layout == "csr" and not is_sparse(X):
        from scipy import sparse  # takes long to import

        X = sparse.csr_matrix(X)
    if dtype is None or X.dtype == dtype:
        return X
    with np.errstate(over="ignore"):
        X = X.astype(dtype)
    require_finite(X, missing=True)  # a float64 may be too large for float32
    return X
