"""`corank convert`: convert rows to LETOR text, a store, Parquet or CSV."""

from __future__ import annotations

import time
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from corank.cli.options import (
    Data,
    Drop,
    Force,
    IdColumn,
    Json,
    JudgeColumn,
    JudgeRule,
    Keep,
    Label,
    Qid,
    Unscored,
)
from corank.cli.output import emit
from corank.errors import InputError

if TYPE_CHECKING:
    from corank.data.formats.text import TextFile
    from corank.data.problem.collection import Collection

TEXT = (".txt", ".letor", ".svm", ".dat")


class Layout(StrEnum):
    """Layout of X."""

    auto = "auto"
    dense = "dense"
    csr = "csr"


class Precision(StrEnum):
    """Type of X."""

    float32 = "float32"
    float64 = "float64"


def convert(
    source: Data,
    target: Annotated[
        Path,
        typer.Argument(
            help="Store (.store, no suffix), .parquet, .csv, .tsv or LETOR text (.txt, .letor, .svm, .dat); text may "
            "be compressed (+ .gz, .xz, .zst); - is LETOR text on stdout."
        ),
    ],
    unscored: Unscored = None,
    label: Label = None,
    qid: Qid = None,
    id_column: IdColumn = None,
    drop: Drop = None,
    keep: Keep = None,
    judges: Annotated[
        JudgeRule | None,
        typer.Option(
            help="Grade of a document that several judges graded: their median (the lower of two), mean or majority; "
            "keep writes all rows.  [default: median if there is a column of judges, else keep]",
            show_default=False,
        ),
    ] = None,
    judge_column: JudgeColumn = None,
    dtype: Annotated[
        Precision | None,
        typer.Option(help="Type of X.  [default: float32 for text, else unchanged]", show_default=False),
    ] = None,
    layout: Annotated[
        Layout, typer.Option(help="Layout of X; auto chooses by density for text, else keeps it.")
    ] = Layout.auto,
    n_features: Annotated[
        int | None, typer.Option(help="Number of features of text.  [default: the largest id]", show_default=False)
    ] = None,
    as_json: Json = False,
    force: Force = False,
) -> None:
    """Convert between LETOR text, stores, Parquet and CSV; a table may be without labels."""
    from corank.cli.rows import ColumnOptions, read_rows
    from corank.console import printable_console
    from corank.data.formats.compressed import is_stream
    from corank.data.formats.read import open_source
    from corank.data.problem.judges import merge_judges
    from corank.data.store.store import open_store, store_letor

    begin = time.perf_counter()
    _require_place(target, force)
    sources = [open_source(one) for one in source]
    kind = _check(sources, target, unscored, n_features)
    form: dict[str, Any] = {"unscored": unscored, "layout": layout.value, "n_features": n_features}
    columns = ColumnOptions(
        label=label,
        qid=qid,
        id_column=id_column,
        drop=drop,
        keep=keep,
        judge_column=judge_column,
        judges="keep" if judges is None else judges.value,
    )
    # shown on a terminal only, and removed at the end
    with printable_console(err=True).status(f"converting to {target}"):
        if (kind, _target_kind(target), columns) == ("text", "store", ColumnOptions(judges="keep")):
            store_letor(target, sources, overwrite=force, dtype=dtype.value if dtype else "float32", **form)
            written: Collection = open_store(target)
        else:
            form["dtype"] = dtype.value if dtype else None
            written = read_rows(sources, columns, needs_labels=False, **form)
            if judges is None and written.judges is not None:  # no format keeps the judges
                written = merge_judges(written, JudgeRule.median.value, sources[0])
            _write(target, written, unscored, force)
    if is_stream(target):
        return
    files = [target] if target.is_file() else list(target.iterdir())
    size = sum(file.stat().st_size for file in files)
    fields = {
        "output": target, "n_rows": len(written.y), "n_queries": len(written.data.queries),
        "n_features": written.X.shape[1], "bytes": size, "seconds": time.perf_counter() - begin,
    }  # fmt: skip
    sentence = (
        f"{target}: {len(written.y):,} rows, {len(written.data.queries):,} queries, {written.X.shape[1]:,} features, "
        f"{size / 1e6:,.1f} MB in {fields['seconds']:.1f} s"
    )
    emit(as_json, "convert", fields, sentence)


def _target_kind(path: Path) -> str:
    from corank.data.formats.compressed import SUFFIXES, is_stream

    suffix = Path(path.stem).suffix if path.suffix in SUFFIXES else path.suffix
    if suffix in TEXT or is_stream(path):
        return "text"
    if suffix in (".csv", ".tsv"):
        return "csv"
    if path.suffix == ".parquet":
        return "parquet"
    if path.suffix in ("", ".store"):
        return "store"
    raise InputError(
        f"the format of {path} is unknown; use the suffix {', '.join(TEXT)} for LETOR text, .csv, .tsv or .parquet for "
        f"a table (text also with {', '.join(SUFFIXES)}), .store or none for a store."
    )


def _require_place(target: Path, force: bool) -> None:
    from corank.data.durable.atomic import require_place
    from corank.data.formats.compressed import require_text_place
    from corank.data.store.folder import require_store_place

    require = {
        "text": require_text_place, "csv": require_text_place, "store": require_store_place, "parquet": require_place,
    }  # fmt: skip
    require[_target_kind(target)](target, overwrite=force)


def _check(source: list[TextFile | Path], target: Path, unscored: float | None, n_features: int | None) -> str:
    """Raise `InputError` for options that do not apply; return the format of the source."""
    from corank.data.formats.read import common_format

    target_kind, kind = _target_kind(target), common_format(source)
    if n_features is not None and kind != "text":
        raise InputError(f"--n-features applies to LETOR text, but the format of {source[0]} is {kind}; leave it out.")
    if unscored is not None and kind == "store" and target_kind == "store":
        raise InputError(
            "--unscored is a label of text or a table, but stores mark unjudged rows by NaN; leave it out."
        )
    return kind


def _write(target: Path, rows: Collection, unscored: float | None, force: bool) -> None:
    from corank.data.formats.write_frames import write_csv, write_parquet
    from corank.data.letor.writer import write_letor
    from corank.data.store.store import write_store

    target_kind = _target_kind(target)
    if target_kind == "store":
        write_store(target, rows.X, rows.y, rows.qid, rows.docids, names=rows.names, overwrite=force)
    elif target_kind in ("parquet", "csv"):
        write = write_parquet if target_kind == "parquet" else write_csv
        write(target, rows.X, rows.y, rows.qid, rows.docids, names=rows.names, overwrite=force)
    else:
        if rows.names is not None:
            typer.echo(f"corank: the names of the features are not in {target}: LETOR text numbers them.", err=True)
        comments: Any = rows.comments
        if comments is None and rows.docids is not None:
            comments = [f"docid = {docid}" if docid else "" for docid in rows.docids]
        write_letor(target, rows.X, rows.y, rows.qid, comments, unscored=unscored, overwrite=force)
