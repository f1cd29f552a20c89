"""`corank convert`: the same problem as LETOR text, as a store, or as Parquet."""

from __future__ import annotations

import time
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from corank.errors import InputError

PACKED = (".gz", ".xz", ".zst")
TEXT = (".txt", ".letor", ".svm", ".dat")


class Layout(StrEnum):
    """How X is kept."""

    auto = "auto"
    dense = "dense"
    csr = "csr"


class Precision(StrEnum):
    """Type of X."""

    float32 = "float32"
    float64 = "float64"


class Options(NamedTuple):
    """What the user asked for besides source and target."""

    unscored: float | None
    dtype: str | None
    layout: str
    n_features: int | None
    force: bool


def convert(
    source: Annotated[
        list[Path], typer.Argument(help="LETOR text (plain, .gz, .xz, .zst; several are joined), a store, or .parquet.")
    ],
    target: Annotated[
        Path,
        typer.Argument(
            help="A store (.store or no suffix), .parquet, or text (.txt, .letor, .svm, .dat; + .gz, .xz, .zst)."
        ),
    ],
    unscored: Annotated[
        float | None, typer.Option(help="Label that marks unscored rows in text, such as -1.", show_default=False)
    ] = None,
    dtype: Annotated[
        Precision | None, typer.Option(help="Type of X; float32 from text, else as it is.", show_default=False)
    ] = None,
    layout: Annotated[
        Layout, typer.Option(help="Keep X dense or sparse; auto: by density, or as it is.")
    ] = Layout.auto,
    n_features: Annotated[
        int | None, typer.Option(help="Number of features of text; the largest id by default.", show_default=False)
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing target.")] = False,
) -> None:
    """Convert between LETOR text, store and Parquet."""
    from rich.console import Console

    begin = time.perf_counter()
    options = Options(unscored, dtype and dtype.value, layout.value, n_features, force)
    kinds = [_source_kind(one) for one in source], _target_kind(target)
    _check(source, target, *kinds, options)
    # the status is shown on a terminal only, and leaves nothing behind
    with Console(stderr=True).status(f"converting to {target}"):
        n_rows, n_queries, n_features_found = _convert(source, target, kinds[0][0], kinds[1], options)
    files = [target] if target.is_file() else list(target.iterdir())
    size = sum(file.stat().st_size for file in files)
    typer.echo(
        f"{target}: {n_rows:,} rows, {n_queries:,} queries, {n_features_found:,} features, "
        f"{size / 1e6:,.1f} MB in {time.perf_counter() - begin:.1f} s"
    )


def _source_kind(path: Path) -> str:
    return "store" if path.is_dir() else "parquet" if path.suffix == ".parquet" else "text"


def _target_kind(path: Path) -> str:
    suffix = Path(path.stem).suffix if path.suffix in PACKED else path.suffix
    if suffix in TEXT:
        return "text"
    if path.suffix == ".parquet":
        return "parquet"
    if path.suffix in ("", ".store"):
        return "store"
    raise InputError(
        f"{path} does not say what to write; end it with {', '.join(TEXT)} (and {', '.join(PACKED)}) for text, "
        ".parquet for a table, .store or nothing for a store."
    )


def _check(source: list[Path], target: Path, kinds: list[str], kind: str, options: Options) -> None:
    for path in source:
        if not path.exists():
            raise InputError(f"there is no {path}; check the name.")
    if len(source) > 1 and set(kinds) != {"text"}:
        raise InputError(
            f"{len(source)} sources were given, but only text files can be joined; convert them one by one."
        )
    if options.n_features is not None and kinds[0] != "text":
        raise InputError(f"--n-features is for text, but {source[0]} is a {kinds[0]}; leave it out.")
    if options.unscored is not None and "text" not in (kinds[0], kind):
        raise InputError("--unscored names a label of text, but neither source nor target is text; leave it out.")
    if kind != "store" and target.exists() and not options.force:
        raise InputError(f"{target} exists already; add --force to replace it.")


def _convert(source: list[Path], target: Path, kind: str, target_kind: str, options: Options) -> tuple[int, int, int]:
    """Write the target; return its numbers of rows, queries and features."""
    from corank.data.frames import write_parquet
    from corank.data.letor_writer import write_letor
    from corank.data.queries import Queries
    from corank.data.store import open_store, store_letor, write_store

    if (kind, target_kind) == ("text", "store"):
        store_letor(target, list(source), overwrite=options.force, **_reading(options))
        header = open_store(target).header
        return header["n_rows"], header["n_queries"], header["n_features"]
    rows = _load(source, kind, options)
    X = _laid_out(rows.X, options)
    if target_kind == "store":
        write_store(target, X, rows.y, rows.qid, rows.docids, overwrite=options.force)
    elif target_kind == "parquet":
        write_parquet(target, X, rows.y, rows.qid, rows.docids)
    else:
        write_letor(target, X, rows.y, rows.qid, _comments(rows), unscored=options.unscored)
    return X.shape[0], len(Queries.of(rows.qid, X.shape[0])), X.shape[1]


def _reading(options: Options) -> dict[str, Any]:
    return {
        "unscored": options.unscored,
        "dtype": options.dtype or "float32",
        "layout": options.layout,
        "n_features": options.n_features,
    }


def _load(source: list[Path], kind: str, options: Options) -> Any:
    """Rows with X, y, qid and docids, whatever they come from."""
    from corank.data.frames import parquet_columns, read_parquet
    from corank.data.letor import read_letor
    from corank.data.store import open_store

    if kind == "text":
        return read_letor(list(source), **_reading(options))
    if kind == "store":
        return open_store(source[0])
    names = parquet_columns(source[0])
    return read_parquet(source[0], qid="qid" if "qid" in names else None, docid="docid" if "docid" in names else None)


def _laid_out(X: Any, options: Options) -> Any:
    from scipy import sparse

    if options.layout == "dense" and sparse.issparse(X):
        X = X.toarray()
    elif options.layout == "csr" and not sparse.issparse(X):
        X = sparse.csr_matrix(X)
    return X if options.dtype is None else X.astype(options.dtype, copy=False)


def _comments(rows: Any) -> Any:
    from corank.data.letor import LetorFile

    if isinstance(rows, LetorFile):
        return rows.comments
    return None if rows.docids is None else [f"docid = {docid}" if docid else "" for docid in rows.docids]
