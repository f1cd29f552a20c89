"""`corank suggest`: choose the rows, or the pairs of rows, to judge next."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from corank.choices import FUSION_STRATEGIES, PAIR_STRATEGIES, ROW_STRATEGIES
from corank.cli.options import (
    Convention,
    Drop,
    Force,
    IdColumn,
    Json,
    JudgeColumn,
    JudgeRule,
    Judges,
    Keep,
    KeepFormulas,
    Label,
    Qid,
    Seed,
    Unjudged,
    list_choices,
)
from corank.cli.output import print_json
from corank.errors import InputError

if TYPE_CHECKING:
    from corank.data.collection import Dataset

Cells = list[tuple[Any, ...]]


class SuggestionPurpose(StrEnum):
    """What the judgements are for."""

    fit = "fit"
    evaluation = "evaluation"


class SuggestionFormat(StrEnum):
    """Format of the suggestions."""

    text = "text"
    csv = "csv"


def suggest(
    model: Annotated[
        Path | None, typer.Argument(help="Model that `corank fit` or `corank fuse` wrote; a run with --for evaluation.")
    ] = None,
    data: Annotated[
        list[Path] | None,
        typer.Argument(help="All rows, judged or not: LETOR text, a store, Parquet or CSV; for a fusion, runs."),
    ] = None,
    purpose: Annotated[
        SuggestionPurpose,
        typer.Option("--for", help="What judgements are for: to learn, or to evaluate runs with few human grades."),
    ] = SuggestionPurpose.fit,
    runs: Annotated[
        list[Path] | None, typer.Option(help="Evaluation: run; repeatable, like arguments.", metavar="FILE")
    ] = None,
    cheap: Annotated[
        list[Path] | None, typer.Option(help="Evaluation: grades of a cheap judge; repeatable.", metavar="FILE")
    ] = None,
    metric: Annotated[
        str, typer.Option("--metric", "-m", help="Evaluation: metric that is linear in gains: DCG@10, P@10, RBP.")
    ] = "DCG@10",
    convention: Convention = "corank",
    number: Annotated[int, typer.Option("--number", "-n", "--n", min=1, help="Number of rows or pairs.")] = 10,
    strategy: Annotated[
        str | None,
        typer.Option(
            help=f"What to judge first: {list_choices(ROW_STRATEGIES)}. For pairs: {list_choices(PAIR_STRATEGIES)}. "
            f"For a fusion: {list_choices(FUSION_STRATEGIES)}.  [default: uncertain; entropy for pairs; queries for a "
            "fusion]",
            show_default=False,
        ),
    ] = None,
    per_query: Annotated[bool, typer.Option("--per-query", help="Suggest this number of rows per query.")] = False,
    pairs: Annotated[
        Path | None,
        typer.Option(help="Preferences given so far (winner,loser); not suggested again.", metavar="FILE"),
    ] = None,
    qrels: Annotated[Path | None, typer.Option(help="Fusion: judgements so far.", metavar="FILE")] = None,
    texts: Annotated[
        list[Path] | None, typer.Option(help="Runs: documents to add to the list, for judges.", metavar="FILE")
    ] = None,
    unjudged: Unjudged = None,
    label: Label = None,
    qid: Qid = None,
    id_column: IdColumn = None,
    drop: Drop = None,
    keep: Keep = None,
    judges: Judges = JudgeRule.median,
    judge_column: JudgeColumn = None,
    seed: Seed = 0,
    format: Annotated[
        SuggestionFormat, typer.Option(help="Columns separated by blanks, or CSV with a header.")
    ] = SuggestionFormat.text,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="File to write.  [default: screen]")] = None,
    keep_formulas: KeepFormulas = False,
    as_json: Json = False,
    force: Force = False,
) -> None:
    """Suggest what to judge next: rows, pairs for a preference model, documents for a fusion or an evaluation."""
    from corank.cli.learn.models import last_step, load_ranker
    from corank.cli.rows import ColumnOptions, read_rows, row_names
    from corank.data.io.compressed import require_text_place
    from corank.data.routing import columns_were_checked
    from corank.models.gp import PreferenceGP

    if purpose is SuggestionPurpose.evaluation:
        from corank.cli.learn.cheap import suggest_for_evaluation

        if qrels is not None or pairs is not None or strategy is not None or per_query:
            raise InputError("--for evaluation draws documents; leave --qrels, --pairs, --strategy, --per-query out.")
        suggest_for_evaluation(
            [*([] if model is None else [model]), *(data or []), *(runs or [])], cheap or [], number, metric,
            convention, texts or [], output, seed=seed, as_json=as_json, force=force, keep_formulas=keep_formulas,
        )  # fmt: skip
        return
    if runs or cheap:
        raise InputError("--runs and --cheap draw documents to evaluate runs; pass --for evaluation, too.")
    if model is None or not data:
        raise InputError("pass a model and its rows, or a fusion and its runs, or runs with --for evaluation.")
    if output is not None:
        require_text_place(output, overwrite=force)
    if model.suffix == ".json":
        from corank.cli.fuse import suggest_documents

        if per_query or pairs or any((unjudged, label, qid, id_column, drop, keep, judge_column)):
            raise InputError("a fusion reads runs; leave out --per-query, --pairs and options of columns.")
        suggest_documents(
            model, data, qrels, texts or [], number, output, strategy=strategy or "queries", seed=seed,
            as_json=as_json, force=force, keep_formulas=keep_formulas,
        )  # fmt: skip
        return
    if qrels is not None or texts:
        raise InputError(f"--qrels and --texts are for a fusion (.json), but {model} is a model; leave them out.")
    fitted = load_ranker(model, data)
    ranker, last = fitted.ranker, last_step(fitted.ranker)
    columns = ColumnOptions(
        label=label, qid=qid, id_column=id_column, drop=drop, keep=keep, judge_column=judge_column, judges=judges.value
    )
    rows = read_rows(data, columns, needs_labels=False, model=fitted, unjudged=unjudged)
    is_pairs = isinstance(last, PreferenceGP)
    if is_pairs and (per_query or last is not ranker):
        raise InputError(
            f"{model} learns from preferences and suggests pairs; leave --per-query out, and pass a model without a "
            "pipeline."
        )
    if pairs is not None and not is_pairs:
        raise InputError(
            f"{model} contains a {type(last).__name__}, which suggests rows to grade; leave --pairs out, or fit "
            "--model preference-gp to get pairs."
        )
    names = row_names(rows)
    header: tuple[str, ...]
    with columns_were_checked():
        if is_pairs:
            header = ("first", "second")
            lines = _pairs(last, rows, names, pairs, number, strategy or "entropy", seed)
        else:
            header = ("qid", "docid", "score")
            lines = _rows(ranker, rows, names, number, strategy or "uncertain", per_query, seed)
    if not lines:
        done = "all pairs were asked" if is_pairs else f"all {len(rows.y)} rows are judged"
        hint = "" if unjudged is not None or is_pairs else " (pass the label of unjudged rows with --unjudged)"
        typer.echo(f"corank: {done}, so there is nothing to suggest{hint}.", err=True)
    if as_json and output is None:
        print_json("suggest", {"columns": header, "rows": lines})
        return
    _write(header, len(lines), _formatted(header, lines, format, keep_formulas), output, as_json, force)


def _rows(
    ranker: Any, rows: Dataset, names: list[str], number: int, strategy: str, per_query: bool, seed: int
) -> Cells:
    import numpy as np

    from corank.base.suggestions import suggest as choose
    from corank.data.routing import predict_with_qid

    queries = rows.data.queries
    codes, y = queries.codes, rows.y
    if per_query:
        # the order of a query's suggestions does not depend on other queries
        chosen = choose(ranker, rows.X, y, codes, n=len(y), strategy=strategy, random_state=seed)
        count = np.zeros(len(queries), dtype=np.int64)
        kept = []
        for row in chosen.tolist():
            count[codes[row]] += 1
            if count[codes[row]] <= number:
                kept.append(row)
        kept.sort(key=lambda row: int(codes[row]))
    else:
        kept = choose(ranker, rows.X, y, codes, n=number, strategy=strategy, random_state=seed).tolist()
    scores = predict_with_qid(ranker, rows.X, codes)
    ids = [id_.item() if hasattr(id_, "item") else id_ for id_ in queries.ids]
    return [(ids[codes[row]], names[row], float(scores[row])) for row in kept]


def _pairs(
    ranker: Any, rows: Dataset, names: list[str], path: Path | None, number: int, strategy: str, seed: int
) -> Cells:
    from corank.cli.learn.preferences import read_preferences
    from corank.models.gp import suggest_pairs

    asked: Any = [] if path is None else read_preferences(path, names)[0]
    scaled, fitted = ranker._scaled_rows(rows.X), ranker.rows_
    if path is None and scaled.shape[0] == len(fitted.of_row) and fitted.are_in(scaled):
        asked = ranker.answered()  # the file contains the rows of `fit`
    chosen = suggest_pairs(ranker, rows.X, number, strategy, asked=asked, random_state=seed)
    return [(names[left], names[right]) for left, right in chosen.tolist()]


def _write(columns: tuple[str, ...], n_lines: int, text: str, output: Path | None, as_json: bool, force: bool) -> None:
    from corank.data.io.compressed import STANDARD, is_stream, write_text

    with write_text(output or STANDARD, overwrite=force) as stream:
        stream.write(text.encode(errors="surrogateescape"))
    if output is not None and not is_stream(output):
        if as_json:
            print_json("suggest", {"output": output, "n": n_lines})
        else:
            typer.echo(f"wrote {output}: {n_lines} {'pairs' if len(columns) == 2 else 'rows'} to judge next")


def _formatted(columns: tuple[str, ...], lines: Cells, format: SuggestionFormat, keep_formulas: bool) -> str:
    from corank.data.io.table_text import csv_text

    if format is SuggestionFormat.text:
        for line in lines:
            if spaced := next((cell for cell in map(str, line) if len(cell.split()) != 1), None):
                raise InputError(
                    f"the name {spaced!r} contains blanks, which separate the columns; pass --format csv or --json."
                )
        return "".join(" ".join(map(str, line)) + "\n" for line in lines)
    return csv_text([columns, *lines], keep_formulas=keep_formulas)
