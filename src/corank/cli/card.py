"""`corank card`: a model card of a saved model, as Markdown or HTML."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from corank.cli.options import Convention, Drop, Force, IdColumn, Json, Keep, Label, ModelFile, Qid, Seed, Unjudged
from corank.cli.output import emit
from corank.errors import InputError


def card(
    model: ModelFile,
    data: Annotated[
        Path, typer.Argument(help="Judged rows that the model has not seen: LETOR text, store, Parquet, CSV.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Card to write: .html or .md.", metavar="FILE")],
    metrics: Annotated[
        list[str] | None,
        typer.Option("--metric", "-m", help="Metric such as nDCG@10; repeatable.  [default: nDCG@10 and AP]"),
    ] = None,
    convention: Convention = "corank",
    about: Annotated[str, typer.Option(help="A paragraph on what the model is for.")] = "",
    seed: Seed = 0,
    unjudged: Unjudged = None,
    label: Label = None,
    qid: Qid = None,
    id_column: IdColumn = None,
    drop: Drop = None,
    keep: Keep = None,
    as_json: Json = False,
    force: Force = False,
) -> None:
    """Write a model card: the model, metrics with intervals, important features, calibration, limits, how to repeat."""
    from corank.cli.learn.models import load_ranker, preferred_layout
    from corank.cli.rows import ColumnOptions, read_rows
    from corank.comparison.report.card import model_card
    from corank.data.durable.atomic import atomic_file, require_place
    from corank.data.rows import with_names

    if output.suffix not in (".html", ".md"):
        raise InputError(f"the card {output} would be neither HTML nor Markdown; name it .html or .md.")
    require_place(output, overwrite=force)
    fitted = load_ranker(model, [data])
    columns = ColumnOptions(label=label, qid=qid, id_column=id_column, drop=drop, keep=keep)
    rows = read_rows(
        [data], columns, needs_labels=True, model=fitted, unjudged=unjudged, layout=preferred_layout(fitted.ranker)
    )
    names = metrics or ["nDCG@10", "AP"]
    options = [f"--metric {one}" for one in names] + [f"--convention {convention}", f"--seed {seed}"]
    if unjudged is not None:
        options.append(f"--unjudged {unjudged:g}")
    command = f"corank card {shlex.quote(model.name)} {shlex.quote(data.name)} {' '.join(options)} -o {output.name}"
    made = model_card(
        fitted.ranker, with_names(rows.X, rows.names), rows.y, rows.qid, metrics=names, convention=convention,
        about=about, path=model, data=data.name, command=command, random_state=seed,
    )  # fmt: skip
    with atomic_file(output, overwrite=force) as scratch:
        scratch.write_text(made.html() if output.suffix == ".html" else made.markdown(), encoding="utf-8")
    emit(as_json, "card", {"output": output}, f"wrote {output}: a card of {made.title}, from {len(rows.y):,} rows")
