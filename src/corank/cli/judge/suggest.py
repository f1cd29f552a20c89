"""`corank suggest`: which rows, or which pairs of rows, to judge next."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from corank.cli.output import Json, print_json
from corank.errors import InputError

if TYPE_CHECKING:
    from corank.data.problem.collection import Collection


class Format(StrEnum):
    """How suggestions are written."""

    text = "text"
    csv = "csv"


def suggest(
    model: Annotated[Path, typer.Argument(help="Model file that `corank fit` wrote.")],
    data: Annotated[
        list[Path],
        typer.Argument(help="All rows, judged or not: LETOR text, a store, Parquet or CSV; - is stdin."),
    ],
    number: Annotated[int, typer.Option("--number", "-n", min=1, help="Rows to suggest, or pairs.")] = 10,
    by: Annotated[
        str | None,
        typer.Option(
            help="Rule: uncertain (the default), top, representative, random; of pairs: entropy (the default), bald, "
            "uncertainty, random."
        ),
    ] = None,
    per_query: Annotated[bool, typer.Option("--per-query", help="So many rows of every query, not of all.")] = False,
    pairs: Annotated[
        Path | None,
        typer.Option(help="Preferences given so far (winner,loser), which are not asked again.", metavar="FILE"),
    ] = None,
    id_column: Annotated[
        str | None,
        typer.Option("--id", help="Column that names rows of a table; docid, id or name, if there is one."),
    ] = None,
    unscored: Annotated[float | None, typer.Option(help="Label that marks an unscored row, such as -1.")] = None,
    label: Annotated[str | None, typer.Option(help="Column of scores in a table; 'label', where there is one.")] = None,
    qid: Annotated[
        str | None, typer.Option(help="'none' ignores query ids; otherwise the id column of a table.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of rules that throw dice.")] = 0,
    format: Annotated[Format, typer.Option(help="Columns parted by blanks, or CSV with names.")] = Format.text,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="File to write.  [default: screen]")] = None,
    as_json: Json = False,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
) -> None:
    """Say what to judge next: unjudged rows as lines of query, document and score, or pairs of a preference model."""
    from corank.cli.judge.preferences import names_of, read_named
    from corank.data.formats.compressed import STANDARD, is_stream, require_text_place, write_text
    from corank.gp import PreferenceGP
    from corank.persist import load

    if output is not None:
        require_text_place(output, overwrite=force)
    ranker = load(model)
    if not hasattr(ranker, "predict"):
        raise InputError(f"{model} holds a {type(ranker).__name__}, which does not rank; pass a ranker or a pipeline.")
    last = getattr(ranker, "steps", [("", ranker)])[-1][1]
    wanted = getattr(ranker, "n_features_in_", None)
    rows = read_named(data, qid, id_column, y=label, unscored=unscored, n_features=wanted)
    if wanted not in (None, rows.X.shape[1]):
        raise InputError(
            f"{data[0]} has {rows.X.shape[1]} features, but {model} was fitted on {wanted}; pass rows of the features "
            "it knows."
        )
    names = names_of(rows)
    if isinstance(last, PreferenceGP):
        if per_query or last is not ranker:
            raise InputError(f"{model} learns from preferences alone; leave --per-query out, and pass no pipeline.")
        columns: tuple[str, ...] = ("first", "second")
        lines = _pairs(last, rows, names, pairs, number, by or "entropy", seed)
    elif pairs is not None:
        raise InputError(
            f"{model} holds a {type(last).__name__}, which suggests rows to grade; for pairs to compare, fit --model "
            "preference-gp, else leave --pairs out."
        )
    else:
        columns = ("qid", "docid", "score")
        lines = _rows(ranker, rows, names, number, by or "uncertain", per_query, seed)
    if not lines:
        done = "all pairs were asked" if len(columns) == 2 else f"all {len(rows.y)} rows are judged"
        hint = "" if unscored is not None or len(columns) == 2 else " (name the label of unjudged rows with --unscored)"
        typer.echo(f"corank: {done}, so there is nothing to suggest{hint}.", err=True)
    if as_json and output is None:
        print_json("suggest", {"columns": columns, "rows": lines})
        return
    with write_text(output or STANDARD, overwrite=force) as stream:
        stream.write(_written(columns, lines, format))
    if output is not None and not is_stream(output):
        if as_json:
            print_json("suggest", {"output": output, "n": len(lines)})
        else:
            typer.echo(f"wrote {output}: {len(lines)} {'pairs' if len(columns) == 2 else 'rows'} to judge next")


def _rows(
    ranker: Any, rows: Collection, names: list[str], number: int, by: str, per_query: bool, seed: int
) -> list[tuple[Any, ...]]:
    import numpy as np

    from corank.data.problem.routing import predict_with_qid
    from corank.judging.suggestions import suggest as choose

    queries = rows.data.queries
    codes, y = queries.codes, rows.y
    if per_query:
        # a query's suggestions do not depend on the other queries, only their turn does
        chosen = choose(ranker, rows.X, y, codes, n=len(y), by=by, random_state=seed)
        place = np.zeros(len(queries), dtype=np.int64)
        kept = []
        for row in chosen.tolist():
            place[codes[row]] += 1
            if place[codes[row]] <= number:
                kept.append(row)
        kept.sort(key=lambda row: int(codes[row]))
    else:
        kept = choose(ranker, rows.X, y, codes, n=number, by=by, random_state=seed).tolist()
    scores = predict_with_qid(ranker, rows.X, codes)
    ids = [one.item() if hasattr(one, "item") else one for one in queries.ids]
    return [(ids[codes[row]], names[row], float(scores[row])) for row in kept]


def _pairs(
    ranker: Any, rows: Collection, names: list[str], path: Path | None, number: int, by: str, seed: int
) -> list[tuple[Any, ...]]:
    from corank.cli.judge.preferences import read_preferences
    from corank.gp import suggest_pairs

    asked: Any = [] if path is None else read_preferences(path, names)[0]
    seen, known = ranker._scaled_rows(rows.X), ranker.rows_
    if path is None and seen.shape[0] == len(known.of_row) and known.are_in(seen):
        asked = ranker.answered()  # these are the rows that it learnt from
    found = suggest_pairs(ranker, rows.X, number, by, asked=asked, random_state=seed)
    return [(names[left], names[right]) for left, right in found.tolist()]


def _written(columns: tuple[str, ...], lines: list[tuple[Any, ...]], format: Format) -> bytes:
    import csv
    import io

    if format is Format.text:
        for line in lines:
            if spaced := next((cell for cell in map(str, line) if len(cell.split()) != 1), None):
                raise InputError(
                    f"the name {spaced!r} has blanks, which part the columns; pass --format csv or --json."
                )
        text = "".join(" ".join(map(str, line)) + "\n" for line in lines)
    else:
        stream = io.StringIO()
        csv.writer(stream, lineterminator="\n").writerows([columns, *lines])
        text = stream.getvalue()
    return text.encode(errors="surrogateescape")
