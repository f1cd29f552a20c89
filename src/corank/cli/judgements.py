"""Judgement lists, clicks and feature logs of search engines in `corank convert`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import typer

from corank.cli.options import JudgementFormat
from corank.cli.output import emit
from corank.data.collection import Dataset, as_texts
from corank.data.io.compressed import is_stream, require_text_place
from corank.data.io.json_values import at_path, json_values
from corank.data.io.judgements.judgement_list import JudgementList
from corank.data.io.judgements.reading import JSON, is_ranklib, read_judgements
from corank.data.io.judgements.writing import click_judgements, decode_name, write_judgements
from corank.data.io.read import is_number
from corank.data.io.search_responses import as_collection, is_response, read_responses
from corank.data.io.table_text import read_utf8, suffix_of
from corank.data.io.text import open_text
from corank.data.io.trec import QRELS_COLUMNS
from corank.data.io.ubi import HITS, read_ubi
from corank.errors import InputError

RESPONSES, CLICKS, JUDGEMENTS = "responses", "clicks", "judgements"


@dataclass(frozen=True)
class JudgementOptions:
    """
    Options of `corank convert` for judgements and feature logs.

    to: format to write; None chooses by the suffix of the target.
    judgements: file of grades to join to logged features.
    queries: file with the id of the query of each answer, one per line.
    decode: whether percent-encoded names are decoded.
    keep_missing: whether features without a value stay empty; else they become 0.
    judges: rule for several judges.
    columns: columns of a table: y, qid, docid and judge.
    """

    to: JudgementFormat | None
    judgements: Path | None
    queries: Path | None
    decode: bool
    keep_missing: bool
    judges: str
    columns: dict[str, str | None]


def kind_of(path: Path) -> str | None:
    """Return the kind of a file that is not a table of rows: answers of an engine, clicks, judgements; or None."""

    if not path.is_file():
        return None
    if suffix_of(path) not in JSON:
        return JUDGEMENTS if is_judgement_text(path) else None
    first = next(json_values(read_utf8(path), str(path)), None)
    value = first[1] if first else None
    sources = [value, *_hits(value)][:2]
    for source in sources:
        if isinstance(source, dict) and ("action_name" in source or any(key in source for key in HITS)):
            return CLICKS
        if isinstance(source, dict) and "judgmentRatings" in source:
            return JUDGEMENTS
    return RESPONSES if is_response(value) else JUDGEMENTS


def _hits(value: Any) -> list[Any]:
    """Return the documents inside a saved answer of `_search`."""

    hits = at_path(value, "hits", "hits")
    return [at_path(hit, "_source") for hit in hits] if isinstance(hits, list) else []


def is_judgement_text(path: Path) -> bool:
    """Return whether a text file holds TREC qrels or RankLib's judgements without features."""

    if suffix_of(path) in (".csv", ".tsv", ".parquet", ".store"):
        return False
    words = open_text(path).first_line().split()  # without the comment
    if len(words) == 2 and words[1].startswith(b"qid:"):
        return is_ranklib(path)  # else the first row has no features
    return len(words) == len(QRELS_COLUMNS) and b":" not in words[1] and is_number(words[3])


def convert_judgements(
    sources: Sequence[Path], target: Path, options: JudgementOptions, *, as_json: bool, force: bool
) -> None:
    """Convert judgements, or clicks to judgements."""

    if len(sources) > 1:
        raise InputError(f"found {len(sources)} files of judgements; pass one.")
    require_text_place(target, overwrite=force)
    to = _target_format(target, options.to)
    result = _read(sources[0], options)
    rule = "median" if options.judges == "keep" else options.judges
    lost = write_judgements(target, result, to.value, rule=rule, name=target.name.split(".")[0], overwrite=force)
    if is_stream(target):
        return
    n_queries = 1 if result.qid is None else len(set(result.qid.tolist()))
    fields = {
        "output": target, "format": to.value, "n_judgements": len(result), "n_queries": n_queries, "not_kept": lost,
    }  # fmt: skip
    sentence = f"{target}: {len(result):,} judgements of {n_queries:,} queries as {to.value}"
    if lost:
        sentence += f"; the format does not keep {', '.join(lost)}"
    emit(as_json, "convert", fields, sentence)


def _target_format(target: Path, to: JudgementFormat | None) -> JudgementFormat:
    if to is not None:
        return to
    usual = {".csv": JudgementFormat.table, ".tsv": JudgementFormat.table, ".qrels": JudgementFormat.qrels}
    if suffix_of(target) not in usual:
        raise InputError(
            f"{target} may have one of several formats of judgements; choose one with --to "
            f"({', '.join(JudgementFormat)}), or write a .csv or .qrels file."
        )
    return usual[suffix_of(target)]


def _read(path: Path, options: JudgementOptions) -> JudgementList:
    """Read judgements, or make them of clicks."""

    if suffix_of(path) in JSON and kind_of(path) == CLICKS:
        typer.echo(
            f"corank: {path} holds clicks; the grade of a document is its clicks over expected clicks.", err=True
        )
        return click_judgements(read_ubi(path))
    result = read_judgements(path, **options.columns)
    if not options.decode:
        return result
    qid = None if result.qid is None else as_texts([decode_name(item) for item in result.qid])
    return replace(result, qid=qid, docids=as_texts([decode_name(docid) for docid in result.docids]))


def rows_of_responses(sources: Sequence[Path], options: JudgementOptions) -> Dataset:
    """Return the features that an engine logged as rows, with the grades of `--judgements`."""

    queries = None
    if options.queries is not None:
        queries = [line.strip() for line in read_utf8(options.queries).splitlines() if line.strip()]
    rows = as_collection(read_responses(*sources, queries=queries), sources[0])
    missing = np.isnan(rows.X)
    if missing.any() and not options.keep_missing:
        typer.echo(
            f"corank: {int(missing.sum())} features without a value become 0, as in linear models of the engines; "
            "--keep-missing leaves them empty.",
            err=True,
        )
        rows = replace(rows, X=np.where(missing, 0.0, rows.X))
    if options.judgements is None:
        return rows
    grades = _read(options.judgements, options).final("median" if options.judges == "keep" else options.judges)
    known = dict(zip(_keys(grades.qid, grades.docids), grades.y.tolist(), strict=True))
    if grades.query_texts:  # an answer may name the query by its words
        known |= {(grades.text_of(query), document): grade for (query, document), grade in known.items()}
    y = np.array([known.get(key, np.nan) for key in _keys(rows.qid, rows.docids)])
    n_judged = int(np.count_nonzero(~np.isnan(y)))
    if not n_judged:
        raise InputError(
            f"no document of {sources[0]} is judged in {options.judgements}; both must use the same names "
            f"(found query {rows.qid[0]!r}, document {rows.docids[0]!r})."  # type: ignore[index]
        )
    typer.echo(f"corank: {n_judged} of {len(y)} rows are judged; the others have no label.", err=True)
    return replace(rows, y=y)


def _keys(qid: Any, docids: Any) -> list[tuple[str, str]]:
    queries = ["all"] * len(docids) if qid is None else list(map(str, qid.tolist()))
    return list(zip(queries, docids.tolist(), strict=True))
