"""`corank evaluate`: hold scores or a run against grades, under a named convention."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from corank.cli.output import Json, print_json

if TYPE_CHECKING:
    from corank.metrics import Comparison, Evaluation


def evaluate(
    truth: Annotated[Path, typer.Argument(help="Grades: LETOR text, store, Parquet, CSV, or TREC qrels; - is stdin.")],
    predictions: Annotated[Path, typer.Argument(help="One score a line, aligned with TRUTH, or a TREC run file.")],
    metrics: Annotated[
        list[str] | None,
        typer.Option("--metric", "-m", help="Such as nDCG@10, AP, P@5, RR; repeat it; by default nDCG@10 and AP."),
    ] = None,
    convention: Annotated[
        str, typer.Option("--convention", "-c", help="corank, letor4, letor3, trec_eval, sklearn or lightgbm.")
    ] = "corank",
    compare: Annotated[
        Path | None, typer.Option(help="Other predictions for TRUTH: a paired test against PREDICTIONS.")
    ] = None,
    per_query: Annotated[
        Path | None, typer.Option(help="Write one line a query, columns parted by tabs.", metavar="FILE")
    ] = None,
    as_json: Json = False,
    unscored: Annotated[float | None, typer.Option(help="Grade that marks an unjudged row, such as -1.")] = None,
    label: Annotated[str, typer.Option(help="Column of scores in a table.")] = "label",
    qid: Annotated[str | None, typer.Option(help="Column of query ids in a table.  [default: qid]")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the bootstrap of --compare.")] = 0,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file of --per-query.")] = False,
) -> None:
    """Measure how good a ranking is, and test whether another one differs."""
    from corank.cli.predictions import hold_against, read_truth
    from corank.data.compressed import require_text_place
    from corank.data.queries import Queries
    from corank.metrics import compare as paired

    if per_query is not None:
        require_text_place(per_query, overwrite=force)
    judged, names = read_truth(truth, unscored, label, qid), metrics or ["nDCG@10", "AP"]
    evaluation = hold_against(truth, predictions, judged, names, convention)
    comparisons = []
    if compare is not None:
        other = hold_against(truth, compare, judged, names, convention)
        comparisons = [paired(evaluation, other, name, random_state=seed) for name in evaluation]
    if per_query is not None:
        _write_per_query(per_query, evaluation, force)
    # judged queries for which a run has nothing
    n_absent = len(Queries.of(judged.qid, len(judged.y))) - evaluation.n_queries
    (_print_json if as_json else _print_tables)(evaluation, comparisons, n_absent)


def _write_per_query(path: Path, evaluation: Evaluation, force: bool) -> None:
    from corank.data.compressed import write_text

    columns = [result.values.tolist() for result in evaluation.values()]
    rows = zip(evaluation.query_ids.tolist(), *columns, strict=True)
    lines = [["qid", *evaluation], *([str(query), *map(repr, values)] for query, *values in rows)]
    with write_text(path, overwrite=force) as stream:
        stream.writelines(("\t".join(line) + "\n").encode(errors="surrogateescape") for line in lines)


def _print_json(evaluation: Evaluation, comparisons: list[Comparison], n_absent: int) -> None:
    report = {
        "convention": evaluation.convention,
        "n_queries": evaluation.n_queries,
        "n_single_grade_queries": evaluation.n_single_grade,
        "n_unjudged_queries": evaluation.n_unjudged_queries,
        "n_absent_queries": n_absent,
        "n_rows": evaluation.n_rows,
        "n_unjudged_rows": evaluation.n_unjudged_rows,
        "metrics": {
            name: {
                "mean": result.mean,
                "micro": result.micro,
                "n_used": result.n_used,
                "n_empty": result.n_empty,
            }
            for name, result in evaluation.items()
        },
        "comparisons": comparisons,
    }
    print_json("evaluate", report)


def _print_tables(evaluation: Evaluation, comparisons: list[Comparison], n_absent: int) -> None:
    from corank.cli.tables import screen, show
    from corank.experiments.report import ReportTable

    console = screen()
    rows = [(name, one.mean, one.micro, one.n_used, one.n_empty) for name, one in evaluation.items()]
    show(ReportTable("", ("metric", "mean", "micro", "queries", "empty"), tuple(rows)), console)
    absent = f", {n_absent} judged but not in the run" if n_absent else ""
    typer.echo(
        f"convention {evaluation.convention.name}: {evaluation.n_queries} queries, {evaluation.n_single_grade} of a "
        f"single grade, {evaluation.n_unjudged_queries} unjudged{absent}; {evaluation.n_rows} rows, "
        f"{evaluation.n_unjudged_rows} unjudged"
    )
    if not comparisons:
        return
    tests = [
        (
            pair.metric, pair.base, pair.other, f"{pair.difference:+.4f}", f"{pair.low:+.4f}", f"{pair.high:+.4f}",
            f"{pair.p_value:.2g}", f"{pair.n_higher}/{pair.n_lower}",
        )
        for pair in comparisons
    ]  # fmt: skip
    show(ReportTable("", ("metric", "first", "second", "diff", "low", "high", "p", "+/-"), tuple(tests)), console)
    typer.echo(
        f"second minus first, paired by query: {comparisons[0].level:.0%} bootstrap interval of the mean, "
        "Wilcoxon signed-rank p, queries with a higher/lower value"
    )
