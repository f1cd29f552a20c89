"""`corank agreement`: how far judges agree, and the documents on which they do not."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from corank.cli.options import Force, Json, JudgedColumns, KeepFormulas
from corank.cli.output import emit, table_fields
from corank.errors import InputError

if TYPE_CHECKING:
    from corank.metrics.agreement import JudgeAgreement, JudgementList
    from corank.tables import ReportTable


def agreement(
    data: Annotated[
        Path,
        typer.Argument(
            help="Judgements: a table (.csv, .tsv, .parquet) with or without features, TREC qrels, LETOR text with "
            "document ids, or a book of Quepid (.json, or .csv with one column per judge)."
        ),
    ],
    gold: Annotated[
        Path | None,
        typer.Option(
            help="Gold grades; compare each judge of DATA with them: confusion, kappa, alpha.", metavar="FILE"
        ),
    ] = None,
    list_all: Annotated[bool, typer.Option("--list", help="List the documents with different grades.")] = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write the documents with different grades to this .csv.", metavar="FILE"),
    ] = None,
    *,
    columns: JudgedColumns,
    keep_formulas: KeepFormulas = False,
    as_json: Json = False,
    force: Force = False,
) -> None:
    """Measure how far judges agree: Krippendorff's alpha, Cohen's kappa of each pair, and contradictory grades."""
    from corank.data.durable.compressed import require_text_place
    from corank.data.io.tables import write_rows
    from corank.metrics.agreement import judge_agreement, read_judgements

    if columns.judges == "keep":
        raise InputError("--judges keep aggregates no grades; pass median, mean or majority.")
    if output is not None:
        require_text_place(output, overwrite=force)
    listed = read_judgements(data, **columns.of_judgements())
    if gold is not None:
        _against_gold(listed, read_judgements(gold).final(columns.judges), data.name, as_json)
        return
    result = judge_agreement(
        listed.y, None if columns.qid == "none" else listed.qid, listed.docids, listed.judges, rule=columns.judges
    )
    table = result.contradictions
    parts: list[ReportTable | str] = [_sentences(result, data), *_pairs(result)]
    if list_all and result.n_contradictory:
        parts.append(table)
    elif result.n_contradictory and output is None:
        parts.append(f"--list shows the {result.n_contradictory} documents with different grades.")
    if output is not None:
        rows = [table.columns, *(table.texts(row) for row in table.rows)]
        write_rows(output, rows, overwrite=force, keep_formulas=keep_formulas)
        parts.append(f"wrote {output}: {result.n_contradictory} documents with different grades")
    fields = {
        "judges": result.judges, "n_documents": result.n_documents, "n_grades": result.n_grades,
        "n_repeated": result.n_repeated, "n_contradictory": result.n_contradictory, "alpha": result.alpha,
        "pairs": [pair._asdict() for pair in result.pairs], "output": output,
        "contradictions": table_fields(table) if list_all else None,
    }  # fmt: skip
    emit(as_json, "agreement", fields, *parts)


def _against_gold(listed: JudgementList, gold: JudgementList, name: str, as_json: bool) -> None:
    """Print the agreement of each judge with gold grades."""
    import numpy as np

    from corank.metrics.agreement import agreement_with_gold

    if listed.qid is None or gold.qid is None:
        raise InputError("grades are compared by query and document; add a column of queries to both files.")
    truth = gold.grades_of(listed.qid, listed.docids)
    who = np.full(len(listed), name, dtype=object) if listed.judges is None else listed.judges
    fields: dict[str, Any] = {}
    parts: list[ReportTable | str] = []
    for judge in dict.fromkeys(who.tolist()):
        result = agreement_with_gold(truth[who == judge], listed.y[who == judge], listed.qid[who == judge])
        values = {key: item._asdict() if hasattr(item, "_asdict") else item for key, item in result._asdict().items()}
        fields[str(judge)] = values | {"confusion": table_fields(result.confusion)}
        parts.append(f"{judge}: {result.n_documents} documents of {result.n_queries} queries with a gold grade")
        parts += [result.confusion, _compared(result)]
    emit(as_json, "agreement", {"gold": fields}, *parts)


def _compared(result: Any) -> str:
    """Return how a judge agrees with gold grades, and what its grades save."""
    words = {"kappa": result.kappa, "weighted kappa": result.weighted, "alpha (ordinal)": result.alpha}
    values = ", ".join(f"{word} {item.value:.3f} ({item.low:.3f} to {item.high:.3f})" for word, item in words.items())
    saved = (
        "It reverses the order of gold grades; check whether its scale runs the other way."
        if result.weighted.value < 0.0 and result.alpha.value < 0.0
        else f"It explains {result.saved.value:.0%} of the variance of gold grades: what it saves in human grades "
        "of single documents."
        if result.saved.value == result.saved.value
        else "All gold grades are equal, so that it is not known what it saves."
    )
    return (
        f"{values}; mean grade {result.judge_mean.value:.2f}, gold {result.gold_mean.value:.2f}. {saved} "
        "corank evaluate --gold says what it saves for a metric."
    )


def _sentences(result: JudgeAgreement, path: Path) -> str:
    by = f"{len(result.judges)} judges" if result.judges else "unknown judges"
    counts = (
        f"{path.name}: {result.n_grades} grades of {result.n_documents} documents by {by}; {result.n_repeated} "
        f"documents have two grades or more, {result.n_contradictory} of them different ones"
    )
    if all(value != value for value in result.alpha.values()):
        why = "all grades are equal" if result.n_repeated else "no document has two grades"
        return f"{counts}\nKrippendorff's alpha is undefined: {why}"
    return f"{counts}\nKrippendorff's alpha: {', '.join(f'{item} {value:.3f}' for item, value in result.alpha.items())}"


def _pairs(result: JudgeAgreement) -> list[ReportTable]:
    from corank.tables import ReportTable

    rows = tuple(
        (pair.first, pair.second, pair.n_common, pair.n_equal / pair.n_common, pair.kappa) for pair in result.pairs
    )
    return [ReportTable("", ("judge", "judge", "documents", "equal", "Cohen's kappa"), rows, digits=3)] * bool(rows)
