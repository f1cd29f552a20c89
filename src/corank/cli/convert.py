"""`corank convert`: convert rows to LETOR text, a store, Parquet or CSV; judgements to the formats of other tools."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from corank.cli.options import ColumnOptions, Data, Force, Json, JudgeColumn, Unjudged
from corank.cli.output import emit, note
from corank.data.column_roles import JudgeRule
from corank.errors import InputError

if TYPE_CHECKING:
    from corank.data.collection import Dataset
    from corank.data.durable.text import TextFile
    from corank.data.judges import JudgementList

TEXT = (".txt", ".letor", ".svm", ".dat")
USUAL_FORMATS = {".csv": "table", ".tsv": "table", ".qrels": "qrels"}
"""Formats of judgements by the suffix of the target."""
RESPONSES, CLICKS, JUDGEMENTS = "responses", "clicks", "judgements"
"""Kinds of files that are not tables of rows."""


def judgement_formats() -> str:
    """Return the names of the formats of judgements, for help."""
    from corank.data.io.judgements import JUDGEMENT_WRITERS

    return ", ".join(JUDGEMENT_WRITERS)


@dataclass(frozen=True, kw_only=True)
class JudgementOptions:
    """Options for judgements and for features that an engine logged."""

    to: Annotated[
        str | None,
        typer.Option(
            help=f"Write judgements only, as {judgement_formats()}.  [default: table for .csv, qrels for .qrels]",
            show_default=False,
            metavar="FORMAT",
        ),
    ] = None
    judgements: Annotated[
        Path | None, typer.Option(help="Grades to add to the features that an engine logged.", metavar="FILE")
    ] = None
    queries: Annotated[
        Path | None, typer.Option(help="Query id of each saved answer of an engine, one per line.", metavar="FILE")
    ] = None
    decode: Annotated[bool, typer.Option("--decode", help="Decode percent-encoded names of judgements.")] = False
    keep_missing: Annotated[
        bool, typer.Option("--keep-missing", help="Keep logged features without a value empty instead of 0.")
    ] = False


def convert(
    source: Data,
    target: Annotated[
        Path,
        typer.Argument(
            help="Store (.store, no suffix), .parquet, .csv, .tsv or LETOR text (.txt, .letor, .svm, .dat); text may "
            "be compressed (+ .gz, .xz, .zst); - is LETOR text on stdout. Judgements: any name, with --to."
        ),
    ],
    *,
    special: JudgementOptions,
    unjudged: Unjudged = None,
    columns: ColumnOptions,
    judges: Annotated[
        JudgeRule | None,
        typer.Option(
            help="Grade of a document that several judges graded: their median (the lower of two), mean or majority; "
            "keep writes all rows.  [default: median if there is a column of judges, else keep]",
            show_default=False,
        ),
    ] = None,
    judge_column: JudgeColumn = None,
    as_json: Json = False,
    force: Force = False,
) -> None:
    """Convert rows between LETOR text, stores, Parquet and CSV, judgements among tools, and feature logs to rows."""
    from corank.cli.rows import read_rows
    from corank.console import printable_console
    from corank.data.durable.compressed import is_stream
    from corank.data.io.read import open_source
    from corank.data.io.stores import open_store, store_letor
    from corank.data.judges import merge_judges

    begin = time.perf_counter()
    columns = replace(columns, judge_column=judge_column, judges=judges or "keep")
    kind = kind_of(source[0])
    given = {"--judgements": special.judgements, "--queries": special.queries, "--keep-missing": special.keep_missing}
    if kind != RESPONSES and (unused := next((name for name, value in given.items() if value), None)):
        raise InputError(
            f"{unused} applies to saved answers of a search engine (.json), not to {source[0]}; leave it out."
        )
    if kind == RESPONSES:
        written = _rows_of_responses(source, target, special, columns, force)
    elif kind is not None or special.to is not None:
        _convert_judgements(source, target, special, columns, as_json=as_json, force=force)
        return
    else:
        _require_place(target, force)
        sources = [open_source(item) for item in source]
        kind = _check(sources, target, unjudged)
        # shown on a terminal only, and removed at the end
        with printable_console(err=True).status(f"converting to {target}"):
            if (kind, _target_kind(target), columns) == ("text", "store", ColumnOptions(judges="keep")):
                store_letor(target, sources, overwrite=force, unjudged=unjudged)
                written = open_store(target)
            else:
                written = read_rows(sources, columns, needs_labels=False, unjudged=unjudged)
                if judges is None and written.judges is not None:  # no format keeps the judges
                    written = merge_judges(written, "median", sources[0])
                _write(target, written, unjudged, force)
    if is_stream(target):
        return
    files = [target] if target.is_file() else list(target.iterdir())
    fields = {
        "output": target, "n_rows": len(written.y), "n_queries": len(written.data.queries),
        "n_features": written.X.shape[1], "bytes": sum(file.stat().st_size for file in files),
        "seconds": time.perf_counter() - begin,
    }  # fmt: skip
    sentence = (
        f"{target}: {fields['n_rows']:,} rows, {fields['n_queries']:,} queries, {fields['n_features']:,} features, "
        f"{fields['bytes'] / 1e6:,.1f} MB in {fields['seconds']:.1f} s"
    )
    emit(as_json, "convert", fields, sentence)


def kind_of(path: Path) -> str | None:
    """Return the kind of a file that is not a table of rows: answers of an engine, clicks, judgements; or None."""
    from corank.data.durable.text import open_text
    from corank.data.io.clicks import is_ubi
    from corank.data.io.judgements import read_ranklib
    from corank.data.io.search_responses import is_response
    from corank.data.io.tables import JSON, at_path, json_values, read_utf8, suffix_of
    from corank.data.io.trec import is_qrels

    suffix = suffix_of(path)
    if not path.is_file() or suffix in (".csv", ".tsv", ".parquet", ".store"):
        return None
    if suffix not in JSON:
        words = open_text(path).first_line().split()  # without the comment
        is_bare = len(words) == 2 and words[1].startswith(b"qid:")  # the first row has no features
        return JUDGEMENTS if is_qrels(words) or (is_bare and read_ranklib(path)) else None
    value = next((value for _, value in json_values(read_utf8(path), str(path))), None)
    hits = at_path(value, "hits", "hits")
    documents = [value, *(at_path(hit, "_source") for hit in (hits if isinstance(hits, list) else ())[:1])]
    if any(map(is_ubi, documents)):
        return CLICKS
    return RESPONSES if is_response(value) and at_path(documents[-1], "judgmentRatings") is None else JUDGEMENTS


def _target_kind(path: Path) -> str:
    from corank.data.durable.compressed import SUFFIXES, is_stream
    from corank.data.io.tables import suffix_of

    suffix = suffix_of(path)
    if suffix in TEXT or is_stream(path):
        return "text"
    if suffix in (".csv", ".tsv"):
        return "csv"
    if path.suffix in (".parquet", ".store", ""):
        return path.suffix[1:] or "store"
    raise InputError(
        f"the format of {path} is unknown; use the suffix {', '.join(TEXT)} for LETOR text, .csv, .tsv or .parquet for "
        f"a table (text also with {', '.join(SUFFIXES)}), .store or none for a store."
    )


def _require_place(target: Path, force: bool) -> None:
    from corank.data.durable.atomic import require_place
    from corank.data.durable.compressed import require_text_place
    from corank.data.io.stores import require_store_place

    require = {"store": require_store_place, "parquet": require_place}
    require.get(_target_kind(target), require_text_place)(target, overwrite=force)


def _check(source: list[TextFile | Path], target: Path, unjudged: float | None) -> str:
    """Raise `InputError` for options that do not apply; return the format of the source."""
    from corank.data.io.read import common_format

    kind = common_format(source)
    if unjudged is not None and kind == _target_kind(target) == "store":
        raise InputError(
            "--unjudged is a label of text or a table, but stores mark unjudged rows by NaN; leave it out."
        )
    return kind


def _write(target: Path, rows: Dataset, unjudged: float | None, force: bool) -> None:
    from corank.data.io.stores import write_store
    from corank.data.io.write import write_csv, write_letor, write_parquet

    writers: dict[str, Any] = {"store": write_store, "parquet": write_parquet, "csv": write_csv}
    if write := writers.get(_target_kind(target)):
        write(target, rows.X, rows.y, rows.qid, rows.docids, names=rows.names, overwrite=force)
        return
    if rows.names is not None:
        note(f"the names of the features are not in {target}: LETOR text numbers them.")
    comments: Any = rows.comments
    if comments is None and rows.docids is not None:
        comments = [f"docid = {docid}" if docid else "" for docid in rows.docids]
    write_letor(target, rows.X, rows.y, rows.qid, comments, unjudged=unjudged, overwrite=force)


def _convert_judgements(
    sources: Sequence[Path], target: Path, options: JudgementOptions, columns: ColumnOptions, *,
    as_json: bool, force: bool,
) -> None:  # fmt: skip
    """Convert judgements, or clicks to judgements."""
    from corank.data.durable.compressed import is_stream, require_text_place
    from corank.data.io.judgements import write_judgements
    from corank.data.io.tables import suffix_of

    if len(sources) > 1:
        raise InputError(f"found {len(sources)} files of judgements; pass one.")
    require_text_place(target, overwrite=force)
    to = options.to or USUAL_FORMATS.get(suffix_of(target))
    if to is None:
        raise InputError(
            f"{target} may have one of several formats of judgements; choose one with --to ({judgement_formats()}), or "
            "write a .csv or .qrels file."
        )
    result = _read(sources[0], options, columns)
    lost = write_judgements(target, result, to, rule=_rule(columns), name=target.name.split(".")[0], overwrite=force)
    if is_stream(target):
        return
    n_queries = 1 if result.qid is None else len(set(result.qid.tolist()))
    fields = {"output": target, "format": to, "n_judgements": len(result), "n_queries": n_queries, "not_kept": lost}
    sentence = f"{target}: {len(result):,} judgements of {n_queries:,} queries as {to}"
    if lost:
        sentence += f"; the format does not keep {', '.join(lost)}"
    emit(as_json, "convert", fields, sentence)


def _rule(columns: ColumnOptions) -> str:
    return "median" if columns.judges == "keep" else columns.judges


def _read(path: Path, options: JudgementOptions, columns: ColumnOptions) -> JudgementList:
    """Read judgements, or make them of clicks."""
    from corank.data.io.clicks import read_clicks
    from corank.data.io.judgements import decoded, read_judgements
    from corank.data.judges import JudgementList

    if kind_of(path) == CLICKS:
        note(f"{path} holds clicks; the grade of a document is its clicks over expected clicks.")
        queries, documents, grades = read_clicks(path).expected_clicks()
        return JudgementList(grades, queries, documents)
    result = read_judgements(path, **columns.of_judgements())
    return decoded(result) if options.decode else result


def _rows_of_responses(
    sources: Sequence[Path], target: Path, options: JudgementOptions, columns: ColumnOptions, force: bool
) -> Dataset:
    """Write the features that an engine logged as rows, with the grades of `--judgements`."""
    import numpy as np

    from corank.data.io.search_responses import as_collection, read_responses
    from corank.data.io.tables import read_words

    if options.to is not None:
        raise InputError(f"{sources[0]} is an answer of a search engine, which has no judgements; leave out --to.")
    _require_place(target, force)
    queries = None if options.queries is None else read_words(options.queries)
    rows = as_collection(read_responses(*sources, queries=queries), sources[0])
    missing = np.isnan(rows.X)
    if missing.any() and not options.keep_missing:
        typer.echo(
            f"corank: {int(missing.sum())} features without a value become 0, as in linear models of the engines; "
            "--keep-missing leaves them empty.",
            err=True,
        )
        rows = replace(rows, X=np.where(missing, 0.0, rows.X))
    if options.judgements is not None:
        grades = _read(options.judgements, options, columns).final(_rule(columns))
        y = grades.grades_of(rows.qid, rows.docids)  # type: ignore[arg-type]
        n_judged = int(np.count_nonzero(~np.isnan(y)))
        if not n_judged:
            raise InputError(
                f"no document of {sources[0]} is judged in {options.judgements}; both must use the same names "
                f"(found query {rows.qid[0]!r}, document {rows.docids[0]!r})."  # type: ignore[index]
            )
        note(f"{n_judged} of {len(y)} rows are judged; the others have no label.")
        rows = replace(rows, y=y)
    _write(target, rows, None, force)
    return rows
