"""`corank export`: write a saved model in another format. `corank card`: its model card."""

from __future__ import annotations

import shlex
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from corank.cli.imports import import_scikit_learn
from corank.cli.options import ColumnOptions, Convention, Force, Json, ModelFile, Seed, Unjudged
from corank.cli.output import emit, note
from corank.errors import InputError


def targets() -> str:
    """Return the names of the targets of models and fusions, for help."""
    import_scikit_learn()
    from corank.deploy.export import FUSION_TARGETS, TARGETS

    return ", ".join(dict.fromkeys([*TARGETS, *FUSION_TARGETS]))


def export(
    model: ModelFile,
    to: Annotated[str, typer.Option(help=f"Format to write: {targets()}.", show_default=False, metavar="FORMAT")],
    output: Annotated[Path, typer.Option("--output", "-o", help="File to write; others get its name.", metavar="FILE")],
    names: Annotated[
        Path | None, typer.Option("--map", help="TOML file of new feature names: old = 'new'.", metavar="FILE")
    ] = None,
    verify: Annotated[
        Path | None, typer.Option(help="Rows to score as the engine does, and to compare.", metavar="ROWS")
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="Name of the model in the engine.  [default: that of the file]")
    ] = None,
    shift: Annotated[
        str | None, typer.Option(help="Constant added to all scores, or 'auto' for none below 0.", metavar="NUMBER")
    ] = None,
    dialect: Annotated[str, typer.Option(help="Dialect of SQL: sqlite, postgresql or duckdb.")] = "sqlite",
    double: Annotated[bool, typer.Option("--double", help="Let ONNX take and return float64.")] = False,
    uncalibrated: Annotated[
        bool, typer.Option("--uncalibrated", help="Leave out calibration, which does not change the order.")
    ] = False,
    size: Annotated[int, typer.Option(help="Documents per retriever, in the queries of a fusion.")] = 100,
    nearest: Annotated[
        bool, typer.Option("--nearest", help="Write the nearest fusion that the engine has, with its loss.")
    ] = False,
    *,
    columns: ColumnOptions,
    as_json: Json = False,
    force: Force = False,
) -> None:
    """
    Write a model for the engine that serves it, and check that the engine will rank as corank does.

    A fusion becomes the pipeline or query of a search engine. Models that depend on the other rows of a query, or on a
    prior, cannot run in an engine.
    """
    if is_fusion(model):
        if verify or names or shift or double or uncalibrated:
            raise InputError("--verify, --map, --shift, --double and --uncalibrated are for models, not for fusions.")
        _export_fusion(model, to, output, name, size, dialect, nearest, as_json, force)
        return
    from corank.cli.learn.models import load_ranker
    from corank.cli.rows import read_rows
    from corank.deploy.export import export_model

    fitted = load_ranker(model, [verify] if verify is not None else [])
    rows: Any = None
    if verify is not None:
        rows = read_rows(
            [verify], replace(columns, judges="keep"), needs_labels=False, model=fitted, layout="dense", dtype="float64"
        )
    done = export_model(
        fitted.ranker, output, to, names=None if names is None else read_names(names), name=name,
        shift=_number(shift), dialect=dialect, double=double, calibrated=not uncalibrated,
        rows=None if rows is None else rows.X, qid=None if rows is None else rows.qid, overwrite=force,
        inputs=[path for path in (model, verify, names) if path is not None],
    )  # fmt: skip
    for remark in done.remarks:
        note(f"{remark.replace('pass names.', 'rename them with --map.')}")
    checked = None if done.verification is None else done.verification.fields()
    emit(
        as_json, "export", {"output": output, "files": [*done.paths], "to": to, "verification": checked},
        "\n".join([f"wrote {', '.join(map(str, done.paths))}", *_sentences(done.verification)]),
    )  # fmt: skip
    if done.verification is not None and not done.verification.is_exact:
        raise InputError(
            f"{output} does not score as the model does: {done.verification.unexplained_rows} rows differ by more than "
            "the precision of the engine explains; do not deploy it, and report this model."
        )


def is_fusion(path: Path) -> bool:
    """Whether a file begins as JSON; a model begins with a length in eight bytes."""
    try:
        with path.open("rb") as stream:
            start = stream.read(64)
    except OSError:
        return False
    return start.lstrip().startswith(b"{") and b"\0" not in start


def _export_fusion(
    path: Path, to: str, output: Path, name: str | None, size: int, dialect: str, nearest: bool, as_json: bool,
    force: bool,
) -> None:  # fmt: skip
    from corank.deploy.export import export_fusion
    from corank.models.fusion import load_fusion

    try:
        done = export_fusion(
            load_fusion(path), output, to, name=name or output.stem, size=size, dialect=dialect, nearest=nearest,
            overwrite=force, inputs=[path],
        )  # fmt: skip
    except InputError as error:
        raise InputError(str(error).replace("pass nearest", "pass --nearest")) from None
    for remark in done.remarks:
        note(f"{remark}")
    emit(
        as_json, "export", {"output": output, "files": [*done.paths], "to": to, "verification": None},
        f"wrote {', '.join(map(str, done.paths))}",
    )  # fmt: skip


def _sentences(found: Any) -> list[str]:
    if found is None:
        return []
    return [
        f"{found.n_rows:,} rows in {found.n_queries:,} queries scored by {found.engine}: largest difference "
        f"{found.largest_difference:.2g} (scores up to {found.largest_score:.2g})",
        f"{found.n_pairs:,} ordered pairs: {found.changed_orders} changed, {found.tied_orders} tied, "
        f"{found.unexplained_orders} not explained by precision",
    ]


def _number(text: str | None) -> Any:
    if text is None or text == "auto":
        return text
    try:
        return float(text)
    except ValueError:
        raise InputError(f"--shift is {text!r}; pass a number, or auto.") from None


def read_names(path: Path) -> dict[str, str]:
    """Read new names of features from a TOML file, old = "new"."""
    from corank.data.io.tables import read_utf8

    try:
        result = tomllib.loads(read_utf8(path))
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path} is not valid TOML ({error}); write lines such as old = 'new'.") from None
    for old, new in result.items():
        if not isinstance(new, str) or not new:
            raise InputError(f"{path}: {old} is {new!r}; write a new name in quotes, such as {old} = 'new'.")
    return result


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
    *,
    columns: ColumnOptions,
    as_json: Json = False,
    force: Force = False,
) -> None:
    """Write a model card: the model, metrics with intervals, important features, calibration, limits, how to repeat."""
    from corank.cli.learn.models import load_ranker, preferred_layout
    from corank.cli.rows import read_rows
    from corank.comparison.card import model_card
    from corank.data.durable.atomic import atomic_file, require_place
    from corank.data.rows import with_names

    if output.suffix not in (".html", ".md"):
        raise InputError(f"the card {output} would be neither HTML nor Markdown; name it .html or .md.")
    require_place(output, overwrite=force)
    fitted = load_ranker(model, [data])
    rows = read_rows(
        [data], columns, needs_labels=True, model=fitted, unjudged=unjudged, layout=preferred_layout(fitted.ranker)
    )
    names = metrics or ["nDCG@10", "AP"]
    options = [f"--metric {name}" for name in names] + [f"--convention {convention}", f"--seed {seed}"]
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
