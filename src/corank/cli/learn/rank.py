"""`corank rank`: score rows with a saved model."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from corank.cli.output import Json, emit


class Format(StrEnum):
    """What is written: one score a line, or a TREC run file."""

    scores = "scores"
    trec = "trec"


def rank(
    model: Annotated[Path, typer.Argument(help="Model file that `corank fit` wrote.")],
    data: Annotated[
        list[Path],
        typer.Argument(help="LETOR text (several are joined), a store, Parquet or CSV; - is stdin."),
    ],
    output: Annotated[Path | None, typer.Option("--output", "-o", help="File to write.  [default: screen]")] = None,
    format: Annotated[
        Format, typer.Option(help="One score a line in input order, or a TREC run file.")
    ] = Format.scores,
    label: Annotated[
        str | None, typer.Option(help="Column of a table that is no feature; 'label', where there is one.")
    ] = None,
    qid: Annotated[
        str | None, typer.Option(help="'none' ignores query ids; otherwise the id column of a table.")
    ] = None,
    id_column: Annotated[
        str | None, typer.Option("--id", help="Column that names rows of a table; docid, id or name, if there is one.")
    ] = None,
    tag: Annotated[str, typer.Option(help="Name of the run in a TREC file.")] = "corank",
    as_json: Json = False,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
) -> None:
    """Score rows with a saved model; higher is better."""
    import sys

    from corank.cli.learn.scoring import Request, write_scores
    from corank.data.formats.compressed import is_stream, require_text_place, write_text
    from corank.errors import InputError
    from corank.label_ranking import LabelRanker
    from corank.persist import load

    if format is Format.trec and output is None:
        raise InputError("a TREC run is written to a file; name one with --output (- for the screen).")
    if as_json and (output is None or is_stream(output)):
        raise InputError("--json tells what was written, and scores go to the screen; name a file with --output.")
    if output is not None:
        require_text_place(output, overwrite=force)
    ranker = load(model)
    if not hasattr(ranker, "predict"):
        raise InputError(f"{model} holds a {type(ranker).__name__}, which does not rank; pass a ranker or a pipeline.")
    if isinstance(getattr(ranker, "steps", [("", ranker)])[-1][1], LabelRanker):
        from corank.cli.learn.labels import label_lines

        if format is Format.trec or qid is not None:
            raise InputError(f"{model} ranks labels, not rows of queries; leave --format trec and --qid out.")
        lines = label_lines(ranker, data, label)
        if output is None:
            sys.stdout.writelines(lines)
            return
        with write_text(output, overwrite=force) as stream:
            stream.writelines(line.encode() for line in lines)
        if not is_stream(output):
            sentence = f"wrote {output}: utilities of {lines[0].strip()} for {len(lines) - 1} rows"
            emit(as_json, "rank", {"output": output, "n_rows": len(lines) - 1}, sentence)
        return
    request = Request.of(ranker, model, data, label, qid, tag if format is Format.trec else None, id_column)
    tally = write_scores(request, output, overwrite=force)
    if output is not None and not is_stream(output):
        n_queries = len(tally.queries) or 1
        fields = {"output": output, "n_rows": tally.n_rows, "n_queries": n_queries, "seconds": tally.seconds}
        sentence = f"wrote {output}: {tally.n_rows} rows in {n_queries} queries, {tally.seconds:.2f} s"
        emit(as_json, "rank", fields, sentence)
