"""`corank convert`: convert rows to LETOR text, a store, Parquet or CSV; judgements to the formats of other tools."""

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
    JudgementFormat,
    JudgeRule,
    Keep,
    Label,
    Qid,
    Unjudged,
)
from corank.cli.output import emit
from corank.errors import InputError

if TYPE_CHECKING:
    from corank.cli.judgements import JudgementOptions
    from corank.data.collection import Dataset
    from corank.data.io.text import TextFile

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
            "be compressed (+ .gz, .xz, .zst); - is LETOR text on stdout. Judgements: any name, with --to."
        ),
    ],
    to: Annotated[
        JudgementFormat | None,
        typer.Option(
            help="Write judgements only, in this format.  [default: table for .csv, qrels for .qrels]",
            show_default=False,
        ),
    ] = None,
    judgements: Annotated[
        Path | None, typer.Option(help="Grades to add to the features that an engine logged.", metavar="FILE")
    ] = None,
    queries: Annotated[
        Path | None, typer.Option(help="Query id of each saved answer of an engine, one per line.", metavar="FILE")
    ] = None,
    decode: Annotated[bool, typer.Option("--decode", help="Decode percent-encoded names of judgements.")] = False,
    keep_missing: Annotated[
        bool, typer.Option("--keep-missing", help="Keep logged features without a value empty instead of 0.")
    ] = False,
    unjudged: Unjudged = None,
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
    """Convert rows between LETOR text, stores, Parquet and CSV, judgements among tools, and feature logs to rows."""
    from corank.cli.judgements import RESPONSES, JudgementOptions, convert_judgements, kind_of
    from corank.cli.rows import ColumnOptions, read_rows
    from corank.console import printable_console
    from corank.data.io.compressed import is_stream
    from corank.data.io.read import open_source
    from corank.data.io.store.store import open_store, store_letor
    from corank.data.judges import merge_judges

    begin = time.perf_counter()
    special = JudgementOptions(
        to, judgements, queries, decode, keep_missing, "median" if judges is None else judges.value,
        {"y": label, "qid": qid, "docid": id_column, "judge": judge_column},
    )  # fmt: skip
    special_kind = kind_of(source[0])
    if special_kind == RESPONSES:
        _convert_responses(source, target, special, begin, as_json, force)
        return
    _refuse_response_options(special, source[0])
    if special_kind is not None or to is not None:
        convert_judgements(source, target, special, as_json=as_json, force=force)
        return
    _require_place(target, force)
    sources = [open_source(item) for item in source]
    kind = _check(sources, target, unjudged, n_features)
    form: dict[str, Any] = {"unjudged": unjudged, "layout": layout.value, "n_features": n_features}
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
            written: Dataset = open_store(target)
        else:
            form["dtype"] = dtype.value if dtype else None
            written = read_rows(sources, columns, needs_labels=False, **form)
            if judges is None and written.judges is not None:  # no format keeps the judges
                written = merge_judges(written, JudgeRule.median.value, sources[0])
            _write(target, written, unjudged, force)
    if not is_stream(target):
        _report(written, target, begin, as_json)


def _convert_responses(
    sources: list[Path], target: Path, options: JudgementOptions, begin: float, as_json: bool, force: bool
) -> None:
    """Convert the features in saved answers of a search engine to rows."""
    from corank.cli.judgements import rows_of_responses
    from corank.data.io.compressed import is_stream

    if options.to is not None:
        raise InputError(f"{sources[0]} is an answer of a search engine, which has no judgements; leave out --to.")
    _require_place(target, force)
    rows = rows_of_responses(sources, options)
    _write(target, rows, None, force)
    if not is_stream(target):
        _report(rows, target, begin, as_json)


def _refuse_response_options(options: JudgementOptions, source: Path) -> None:
    given = {
        "--judgements": options.judgements is not None,
        "--queries": options.queries is not None,
        "--keep-missing": options.keep_missing,
    }
    unused = next((name for name, is_given in given.items() if is_given), None)
    if unused is not None:
        raise InputError(
            f"{unused} applies to saved answers of a search engine (.json), not to {source}; leave it out."
        )


def _report(written: Dataset, target: Path, begin: float, as_json: bool) -> None:
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
    from corank.data.io.compressed import SUFFIXES, is_stream

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
    from corank.data.io.compressed import require_text_place
    from corank.data.io.store.header import require_store_place

    require = {
        "text": require_text_place, "csv": require_text_place, "store": require_store_place, "parquet": require_place,
    }  # fmt: skip
    require[_target_kind(target)](target, overwrite=force)


def _check(source: list[TextFile | Path], target: Path, unjudged: float | None, n_features: int | None) -> str:
    """Raise `InputError` for options that do not apply; return the format of the source."""
    from corank.data.io.read import common_format

    target_kind, kind = _target_kind(target), common_format(source)
    if n_features is not None and kind != "text":
        raise InputError(f"--n-features applies to LETOR text, but the format of {source[0]} is {kind}; leave it out.")
    if unjudged is not None and kind == "store" and target_kind == "store":
        raise InputError(
            "--unjudged is a label of text or a table, but stores mark unjudged rows by NaN; leave it out."
        )
    return kind


def _write(target: Path, rows: Dataset, unjudged: float | None, force: bool) -> None:
    from corank.data.io.letor.writer import write_letor
    from corank.data.io.store.store import write_store
    from corank.data.io.write_frames import write_csv, write_parquet

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
        write_letor(target, rows.X, rows.y, rows.qid, comments, unjudged=unjudged, overwrite=force)
