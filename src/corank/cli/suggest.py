"""`corank suggest`: choose the rows, or the pairs of rows, to judge next."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from corank.cli.options import Convention, Force, Json, JudgedColumns, KeepFormulas, Seed, Unjudged
from corank.cli.output import emit_rows, note
from corank.errors import InputError

if TYPE_CHECKING:
    from corank.data.collection import Dataset

Cells = list[tuple[Any, ...]]


def strategies() -> str:
    """Return the strategies for rows, pairs and fusions, for help."""
    from corank.base.docs import list_choices  # imports numpy
    from corank.base.suggestions import STRATEGIES
    from corank.parameters import FUSION_STRATEGIES, PAIR_STRATEGIES

    return (
        f"{list_choices(STRATEGIES)}. For pairs: {list_choices(PAIR_STRATEGIES)}. For a fusion: "
        f"{list_choices(FUSION_STRATEGIES)}"
    )


def suggest(
    model: Annotated[
        Path | None, typer.Argument(help="Model that `corank fit` or `corank fuse` wrote; a run with --for evaluation.")
    ] = None,
    data: Annotated[
        list[Path] | None,
        typer.Argument(help="All rows, judged or not: LETOR text, a store, Parquet or CSV; for a fusion, runs."),
    ] = None,
    purpose: Annotated[
        Literal["fit", "evaluation"],
        typer.Option("--for", help="What judgements are for: to learn, or to evaluate runs with few human grades."),
    ] = "fit",
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
            help=f"What to judge first: {strategies()}.  [default: uncertain; entropy for pairs; queries for a fusion]",
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
    *,
    columns: JudgedColumns,
    seed: Seed = 0,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="File to write.  [default: screen]")] = None,
    keep_formulas: KeepFormulas = False,
    as_json: Json = False,
    force: Force = False,
) -> None:
    """Suggest what to judge next: rows, pairs for a preference model, documents for a fusion or an evaluation."""
    from corank.cli.learn.models import last_step, load_ranker
    from corank.cli.rows import read_rows, row_names
    from corank.data.durable.compressed import require_text_place
    from corank.data.routing import columns_were_checked
    from corank.models.gp import PreferenceGP

    if purpose == "evaluation":
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

        if per_query or pairs or unjudged or columns != JudgedColumns():
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
        note(f"{done}, so there is nothing to suggest{hint}.")
        if output is None and not as_json:
            return
    sentence = f"wrote {output}: {len(lines)} {'pairs' if is_pairs else 'rows'} to judge next"
    emit_rows(
        "suggest", [header, *lines], output, as_json=as_json, force=force, keep_formulas=keep_formulas,
        sentence=sentence,
    )  # fmt: skip


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
    from corank.cli.rows import read_preferences
    from corank.models.gp import suggest_pairs

    asked: Any = [] if path is None else read_preferences(path, names)[0]
    scaled, fitted = ranker._scaled_rows(rows.X), ranker.rows_
    if path is None and scaled.shape[0] == len(fitted.of_row) and fitted.are_in(scaled):
        asked = ranker.answered()  # the file contains the rows of `fit`
    chosen = suggest_pairs(ranker, rows.X, number, strategy, asked=asked, random_state=seed)
    return [(names[left], names[right]) for left, right in chosen.tolist()]
