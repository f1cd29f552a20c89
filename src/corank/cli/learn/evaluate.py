"""`corank evaluate`: metrics of scores or of a run under a named convention."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from corank.cli.options import Convention, Force, Json, JudgedColumns, KeepFormulas, Seed, Unjudged
from corank.cli.output import emit

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from corank.data.collection import Dataset
    from corank.data.durable.text import TextFile
    from corank.data.io.trec import Qrels
    from corank.data.judges import JudgeGrades
    from corank.metrics import Evaluation, PairedTest
    from corank.tables import ReportTable


def evaluate(
    files: Annotated[
        list[Path],
        typer.Argument(
            help="Grades (LETOR text, store, Parquet, CSV, TREC qrels, judgements), then predictions: scores, one per "
            "line, a TREC run, or saved answers of a search engine (.json). With --gold: runs only. - is stdin."
        ),
    ],
    metrics: Annotated[
        list[str] | None,
        typer.Option(
            "--metric", "-m", help="Metric such as nDCG@10, AP, P@5, RR; repeatable.  [default: nDCG@10 and AP]"
        ),
    ] = None,
    convention: Convention = "corank",
    gold: Annotated[
        Path | None,
        typer.Option(help="Human grades of some queries; all other files are then runs.", metavar="FILE"),
    ] = None,
    cheap: Annotated[
        list[Path] | None,
        typer.Option(help="Grades of a cheap judge (LLM, clicks), corrected by --gold; repeatable.", metavar="FILE"),
    ] = None,
    drawn: Annotated[
        Path | None,
        typer.Option(help="Documents of `corank suggest --for evaluation`, which --gold grades.", metavar="FILE"),
    ] = None,
    report: Annotated[
        Path | None, typer.Option(help="HTML page with a plot, with --gold.", dir_okay=False, metavar="FILE")
    ] = None,
    these_queries: Annotated[
        bool, typer.Option("--these-queries", help="Estimate for the listed queries, not for queries like these.")
    ] = False,
    fail_if_worse: Annotated[
        float | None,
        typer.Option(help="Exit with status 1 if a run is worse than the first by more, and surely worse.", min=0.0),
    ] = None,
    junit: Annotated[Path | None, typer.Option(help="JUnit XML of --fail-if-worse.", metavar="FILE")] = None,
    compare: Annotated[
        list[Path] | None,
        typer.Option(help="Other predictions for TRUTH, tested against PREDICTIONS, paired by query; repeatable."),
    ] = None,
    per_query: Annotated[
        Path | None, typer.Option(help="Tab-separated file of values, one line per query.", metavar="FILE")
    ] = None,
    keep_formulas: KeepFormulas = False,
    as_json: Json = False,
    unjudged: Unjudged = None,
    *,
    columns: JudgedColumns,
    seed: Seed = 0,
    force: Force = False,
) -> None:
    """Compute metrics of a ranking, and test the difference from other rankings."""
    from corank.cli.rows import read_truth
    from corank.data.durable.compressed import require_text_place
    from corank.data.queries import Queries
    from corank.errors import InputError
    from corank.metrics import compare_runs, parse_metric
    from corank.metrics.conventions import find_convention

    if per_query is not None:
        require_text_place(per_query, overwrite=force)
    names = metrics or ["nDCG@10", "AP"]
    # a misspelt name is reported before a large file is read
    find_convention(convention)
    for name in names:
        parse_metric(name)
    if gold is not None:
        from corank.cli.learn.cheap import evaluate_drawn, evaluate_with_cheap, is_drawn

        if compare or per_query:
            raise InputError("--gold compares all runs; leave --compare and --per-query out.")
        if drawn is not None or is_drawn(gold):
            if fail_if_worse is not None or junit or report or (metrics and len(metrics) > 1):
                raise InputError("drawn documents estimate one metric; leave --fail-if-worse, --junit, --report out.")
            evaluate_drawn(
                files, gold, cheap or [], drawn or gold, (metrics or ["DCG@10"])[0], convention, columns,
                as_json=as_json,
            )  # fmt: skip
            return
        evaluate_with_cheap(
            files, gold, cheap or [], metrics or ["nDCG@10"], convention, columns, unjudged=unjudged,
            these_queries=these_queries, fail_if_worse=fail_if_worse, junit=junit, report=report, as_json=as_json,
            force=force,
        )  # fmt: skip
        return
    if cheap or these_queries or drawn or report or fail_if_worse is not None or junit is not None:
        raise InputError(
            "--cheap, --drawn, --these-queries, --report, --fail-if-worse and --junit need human grades; pass --gold."
        )
    if len(files) != 2:
        raise InputError(f"{len(files)} files were passed; pass grades and predictions, or runs with --gold.")
    truth, predictions = files
    judged = read_truth(truth, unjudged, columns)
    evaluation = evaluate_predictions(truth, predictions, judged, names, convention)
    runs = {str(predictions): evaluation}
    for other in compare or ():
        if str(other) in runs:
            raise InputError(f"{other} was passed twice; pass each file of predictions once.")
        runs[str(other)] = evaluate_predictions(truth, other, judged, names, convention)
    tests: list[PairedTest] = []
    if len(runs) > 1:
        for name in evaluation:
            tests += compare_runs(runs, name, base=str(predictions), random_state=seed)
    if per_query is not None:
        _write_per_query(per_query, evaluation, force, keep_formulas)
    # judged queries without retrieved documents
    n_absent = len(Queries.of(judged.qid, len(judged.y))) - evaluation.n_queries
    emit(as_json, "evaluate", _fields(evaluation, tests, n_absent), *_parts(evaluation, tests, n_absent))


def evaluate_predictions(
    path: Path, predictions: Path, truth: Qrels | Dataset, metrics: list[str], convention: str
) -> Evaluation:
    """Evaluate a score file (one number per line, aligned with the truth) or a TREC run."""
    from corank.cli.rows import first_words
    from corank.data.durable.text import open_text
    from corank.data.io.search_responses import as_run, read_responses
    from corank.data.io.tables import JSON, suffix_of
    from corank.data.io.trec import RUN_COLUMNS, read_scores
    from corank.errors import InputError
    from corank.metrics import evaluate as evaluate_scores
    from corank.metrics import evaluate_run

    if suffix_of(predictions) in JSON:
        return evaluate_run(
            truth, as_run(read_responses(predictions), str(predictions)), metrics, convention=convention
        )
    text = open_text(predictions)
    words = first_words(text)
    if len(words) == len(RUN_COLUMNS):
        if truth.docids is None or truth.qid is None:
            missing = "documents" if truth.docids is None else "queries"
            raise InputError(f"{path} has no ids of {missing}, so the run {text} cannot be matched; pass a score file.")
        return evaluate_run(truth, text, metrics, convention=convention)
    if len(words) > 1 and b":" in words[1]:
        raise InputError(f"{text} is LETOR text, not predictions; pass the truth first, then its predictions.")
    if len(words) != 1:
        raise InputError(
            f"{text} has {len(words)} columns; expected one score per line, as corank rank writes it, or a TREC "
            f"run: {' '.join(RUN_COLUMNS)}."
        )
    scores = read_scores(text)
    n_rows = len(truth.y if truth.judged is None else truth.judged.document_of)
    if len(scores) != n_rows:
        raise InputError(f"{text} has {len(scores)} scores for {n_rows} rows of {path}; pass one per row.")
    if truth.judged is not None:
        scores = _scores_of_documents(scores, truth.judged, text)
    return evaluate_scores(truth.y, scores, truth.qid, metrics, convention=convention, docids=truth.docids)


def _scores_of_documents(scores: NDArray[np.float64], judged: JudgeGrades, text: TextFile) -> NDArray[np.float64]:
    """Return one score per document; raise `InputError` if rows of a document have different scores."""
    import numpy as np

    from corank.errors import InputError

    result = scores[judged.first]
    differs = np.flatnonzero(result[judged.document_of] != scores)
    if len(differs):
        row = int(differs[0])
        first = int(judged.first[judged.document_of[row]])
        raise InputError(
            f"{text} has the scores {scores[first]:g} and {scores[row]:g} for rows {first + 1} and {row + 1}, which "
            "are judgements of the same document; score both alike, or pass --judges keep."
        )
    return result


def _write_per_query(path: Path, evaluation: Evaluation, force: bool, keep_formulas: bool) -> None:
    from corank.data.io.tables import write_rows

    columns = [result.values.tolist() for result in evaluation.values()]
    rows = zip(evaluation.query_ids.tolist(), *columns, strict=True)
    lines = [["qid", *evaluation], *([str(query), *map(repr, values)] for query, *values in rows)]
    write_rows(path, lines, overwrite=force, separator="\t", keep_formulas=keep_formulas)


def _fields(evaluation: Evaluation, tests: list[PairedTest], n_absent: int) -> dict[str, Any]:
    metrics: dict[str, Any] = {}
    for name, result in evaluation.items():
        metrics[name] = {field: getattr(result, field) for field in ("mean", "micro", "n_used", "n_empty")}
        if (holes := evaluation.holes(name)) is not None:
            metrics[name]["holes"] = dict(zip(("judged", "condensed", "low", "high"), holes.means(), strict=True))
    return {
        "convention": evaluation.convention, "n_queries": evaluation.n_queries,
        "n_single_grade_queries": evaluation.n_single_grade, "n_unjudged_queries": evaluation.n_unjudged_queries,
        "n_absent_queries": n_absent, "n_rows": evaluation.n_rows, "n_unjudged_rows": evaluation.n_unjudged_rows,
        "metrics": metrics, "comparisons": tests,
    }  # fmt: skip


def _parts(evaluation: Evaluation, tests: list[PairedTest], n_absent: int) -> list[ReportTable | str]:
    """Return tables and sentences for people."""
    from corank.metrics.significance import few_queries_note
    from corank.tables import Cell, ReportTable

    means = [(name, item.mean, item.micro, item.n_used, item.n_empty) for name, item in evaluation.items()]
    parts: list[ReportTable | str] = [ReportTable("", ("metric", "mean", "micro", "queries", "empty"), tuple(means))]
    if evaluation.rows is not None and evaluation.n_unjudged_rows:
        rows: list[tuple[Cell, ...]] = [
            (name, *holes.means()) for name in evaluation if (holes := evaluation.holes(name)) is not None
        ]
        note = (
            "Share of judged documents among the first k, the value without unjudged documents, and the values if all "
            "unjudged documents were irrelevant or relevant."
        )
        parts.append(ReportTable("", ("metric", "judged@k", "condensed", "low", "high"), tuple(rows), note=note))
    absent = f", {n_absent} judged but not in the run" if n_absent else ""
    parts.append(
        f"convention {evaluation.convention.name}: {evaluation.n_queries} queries, {evaluation.n_single_grade} of a "
        f"single grade, {evaluation.n_unjudged_queries} unjudged{absent}; {evaluation.n_rows} rows, "
        f"{evaluation.n_unjudged_rows} unjudged"
    )
    if not tests:
        return parts
    n_files = len({test.other for test in tests})
    rows = [
        (
            test.metric, test.other, test.base_mean, test.other_mean, f"{test.difference:+.4f}", f"{test.low:+.4f}",
            f"{test.high:+.4f}", f"{test.p_value:.2g}", *([f"{test.p_adjusted:.2g}"] if n_files > 1 else []),
            f"{test.n_higher}/{test.n_lower}",
        )
        for test in tests
    ]  # fmt: skip
    holm = ("p (Holm)",) if n_files > 1 else ()
    columns = ("metric", "other", "first", "other's", "diff", "low", "high", "p", *holm, "+/-")
    corrected = f" without and with correction for {n_files} tests (Holm)" if n_files > 1 else ""
    sentence = (
        f"other minus {tests[0].base}, paired by query: {tests[0].level:.0%} interval of the mean, "
        f"sign-flip p{corrected}, queries with a higher/lower value.{few_queries_note(tests)}"
    )
    return [*parts, ReportTable("", columns, tuple(rows)), sentence]
