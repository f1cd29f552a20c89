"""`corank rank`: score rows with a saved model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from corank.cli.options import ColumnOptions, Data, Force, Json, KeepFormulas, ModelFile, RunTag
from corank.cli.output import emit


def rank(
    model: ModelFile,
    data: Data,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="File to write.  [default: screen]")] = None,
    format: Annotated[
        Literal["scores", "trec"] | None,
        typer.Option(
            help="One score per line in input order, or a TREC run file.  [default: scores; trec for a fusion]",
            show_default=False,
        ),
    ] = None,
    *,
    columns: ColumnOptions,
    tag: RunTag = "corank",
    keep_formulas: KeepFormulas = False,
    as_json: Json = False,
    force: Force = False,
) -> None:
    """Score rows with a saved model, or combine the runs of retrievers with a fusion; higher is better."""
    import sys

    from corank.cli.learn.models import load_ranker
    from corank.cli.learn.scoring import ScoringRequest, write_scores
    from corank.data.durable.compressed import is_stream, require_text_place, write_text
    from corank.deploy.persist.container import LoadedLinear
    from corank.errors import InputError

    if model.suffix == ".json":
        from corank.cli.fuse import rank_runs

        if format == "scores" or columns != ColumnOptions():
            raise InputError("a fusion reads runs and writes a run; leave out --format scores and options of columns.")
        rank_runs(model, data, output, tag, as_json=as_json, force=force)
        return
    if format == "trec" and output is None:
        raise InputError("--format trec needs a file; name it with --output (- for standard output).")
    if as_json and (output is None or is_stream(output)):
        raise InputError("--json describes a written file, but the scores go to the screen; name a file with --output.")
    if output is not None:
        require_text_place(output, overwrite=force)
    fitted = load_ranker(model, data, only_scores=True)
    if not isinstance(fitted.ranker, LoadedLinear) and _ranks_labels(fitted.ranker):
        from corank.cli.learn.labels import label_lines

        if format == "trec" or columns.qid is not None:
            raise InputError(f"{model} ranks labels, not the rows of queries; leave out --format trec and --qid.")
        lines = label_lines(fitted, data, columns, keep_formulas)
        if output is None:
            sys.stdout.writelines(lines)
            return
        with write_text(output, overwrite=force) as stream:
            stream.writelines(line.encode() for line in lines)
        if not is_stream(output):
            sentence = f"wrote {output}: utilities of {lines[0].strip()} for {len(lines) - 1} rows"
            emit(as_json, "rank", {"output": output, "n_rows": len(lines) - 1}, sentence)
        return
    request = ScoringRequest.of(fitted, data, columns, tag if format == "trec" else None)
    tally = write_scores(request, output, overwrite=force)
    if output is not None and not is_stream(output):
        n_queries = len(tally.queries) or 1
        fields = {"output": output, "n_rows": tally.n_rows, "n_queries": n_queries, "seconds": tally.seconds}
        sentence = f"wrote {output}: {tally.n_rows} rows in {n_queries} queries, {tally.seconds:.2f} s"
        emit(as_json, "rank", fields, sentence)


def _ranks_labels(model: Any) -> bool:
    from corank.cli.learn.models import last_step
    from corank.models.labels import LabelRanker

    return isinstance(last_step(model), LabelRanker)
