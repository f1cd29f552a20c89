"""`corank fuse`: combine the lists of retrievers; and `rank` and `suggest` for the fusions that it writes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from corank.cli.options import Force, Json, Judges, Seed
from corank.cli.output import emit, emit_rows, note
from corank.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from corank.data.io.runs import Runs
    from corank.data.io.trec import Qrels
    from corank.models.fusion import Fusion
    from corank.models.fusion.report import FusionReport
    from corank.tables import ReportTable

RunFiles = Annotated[
    list[Path],
    typer.Argument(help="TREC runs, answers of engines (.json), or tables with a column of scores per retriever."),
]
QrelsFile = Annotated[
    Path | None, typer.Option(help="Judgements: table, TREC qrels, or .json of Quepid or an engine.", metavar="FILE")
]


def fuse(
    runs: RunFiles,
    qrels: QrelsFile = None,
    cheap: Annotated[
        list[Path] | None,
        typer.Option(help="Grades of a cheap judge (LLM), learnt from beside --qrels; repeatable.", metavar="FILE"),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Fusion to write, such as fusion.json.  [default: none]")
    ] = None,
    metric: Annotated[str, typer.Option("--metric", "-m", help="What to improve: nDCG at a rank.")] = "nDCG@10",
    pool: Annotated[
        str | None,
        typer.Option(
            help="How deep the lists were judged: a number, bm25=10,vectors=0, a table of query, retriever, depth, "
            "or a file that `corank suggest` wrote.",
            metavar="DEPTH|FILE",
        ),
    ] = None,
    unjudged: Annotated[
        Literal["auto", "missing", "irrelevant", "pooled"],
        typer.Option(help="Unjudged documents: left out, irrelevant, or as the pool says; auto chooses by the data."),
    ] = "auto",
    judges: Judges = "median",
    query_ids: Annotated[
        Path | None,
        typer.Option("--queries", help="Ids of the queries of saved answers that do not name them, one per line."),
    ] = None,
    seed: Seed = 0,
    as_json: Json = False,
    force: Force = False,
) -> None:
    """Learn how to combine retrievers from few judged queries; without judgements, use reciprocal rank fusion."""
    from corank.data.durable.atomic import require_place
    from corank.data.io.runs import describe_grades
    from corank.models.fusion import FusionDefinition

    if output is not None:
        require_place(output, overwrite=force)
    lists, grades, notes = _read(runs, qrels, query_ids, judges)
    if cheap:
        grades, more = _with_cheap(lists, grades, cheap, judges)
        notes += more

    def say(*remarks: str) -> None:
        for remark in () if as_json else remarks:
            note(f"{remark}.")

    say(*notes)
    if len(lists.names) < 2:
        raise InputError(f"found one retriever, {lists.names[0]!r}; a fusion combines two or more, so pass their runs.")
    fields: dict[str, Any] = {"retrievers": lists.names, "n_queries": lists.n_queries, "notes": notes, "output": output}
    parts: list[ReportTable | str] = []
    if grades is None:
        definition = FusionDefinition.rrf(lists.names, notes=("No judgements were given.",))
        say("no judgements were given (--qrels), so the fusion is RRF with equal weights")
    else:
        say(describe_grades(grades))
        fusion, report, more = _learn(lists, grades, metric, pool, unjudged, seed)
        say(*more)
        definition = fusion.definition_
        fields |= {"judgements": describe_grades(grades), "notes": [*notes, *more], **report.fields()}
        parts = [report.table(), *report.sentences(), report.weight_table()]
    if output is not None:
        definition.save(output, overwrite=force)
    fields |= {"rule": definition.rule, "pool": definition.pool}
    wrote = f"wrote {output}: " if output is not None else ""
    emit(as_json, "fuse", fields, *parts, f"{wrote}{definition.rule}, {len(lists.names)} retrievers")


def _read(
    paths: list[Path], qrels: Path | None, query_ids: Path | None, rule: str
) -> tuple[Runs, Qrels | None, list[str]]:
    """Read runs and judgements, and what was noticed."""
    from corank.data.io.runs import read_grades, read_runs
    from corank.data.io.tables import read_words

    lists = read_runs(paths, queries=None if query_ids is None else read_words(query_ids))
    if qrels is None:
        return lists, lists.qrels, list(lists.notes)
    grades, notes = read_grades(qrels, rule)
    return lists, grades, [*lists.notes, *notes]


def _with_cheap(lists: Runs, grades: Qrels | None, paths: list[Path], rule: str) -> tuple[Qrels, list[str]]:
    """Return human grades, and cheap ones of other documents; what was measured, and how deep the cheap ones reach."""
    import numpy as np

    from corank.data.cheap import CheapPolicy
    from corank.data.collection import as_texts
    from corank.data.io.runs import read_grades
    from corank.data.io.trec import Qrels
    from corank.models.fusion.lists import RetrievedLists

    human = Qrels(as_texts([]), as_texts([]), np.empty(0)) if grades is None else grades
    judges = {path.name: read_grades(path, rule)[0] for path in paths}
    tables = [
        dict(zip(zip(item.qid.tolist(), item.docids.tolist(), strict=True), item.y.tolist(), strict=True))
        for item in (human, *judges.values())
    ]
    keys = list(dict.fromkeys(key for table in tables for key in table))
    y, *columns = (np.array([table.get(key, np.nan) for key in keys]) for table in tables)
    qid, docids = (as_texts(list(part)) for part in zip(*keys, strict=True))
    rows = CheapPolicy().apply(y, dict(zip(judges, columns, strict=True)), qid=qid)
    # row weights of a fusion are inverse probabilities of being judged, so that a cheap grade counts fully or not
    notes = [f"{rows.sentence.partition('. ')[0]}; queries with cheap grades count like others"]
    both = Qrels(qid, docids, rows.y)
    only_cheap = {query for query, _ in keys} - set(human.qid.tolist())
    ranks = RetrievedLists.of(lists.X, lists.qid).ranks
    is_top = ((ranks > 0) & (ranks <= 10)).any(axis=1) & np.array([query in only_cheap for query in lists.qid.tolist()])
    share = float((~np.isnan(lists.join(both)[0][is_top])).mean()) if is_top.any() else 1.0
    if share < 0.9:
        notes.append(
            f"cheap grades cover {share:.0%} of the first 10 documents of the lists in queries that only they judge; "
            "the others are unjudged, so have the whole tops graded"
        )
    return both, notes


def _learn(
    lists: Runs, grades: Qrels, metric: str, pool: str | None, unjudged: Any, seed: int
) -> tuple[Fusion, FusionReport, list[str]]:
    import warnings

    from corank.data.rows import with_names
    from corank.errors import UsageWarning
    from corank.models.fusion import Fusion
    from corank.models.fusion.report import report_fusion

    y, missed = lists.join(grades)
    if not (y > 0).any() and not (missed.y > 0).any():
        raise InputError("no judged query of the runs has a relevant document, so nothing can be learnt; judge more.")
    described, weight, notes = _read_pool(lists, y, pool)
    X = with_names(lists.X, lists.names)

    fusion = Fusion(metric=metric, unjudged=unjudged, pool=described, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UsageWarning)  # the notes of the definition say the same
        fusion.fit(X, y, qid=lists.qid, missed=(missed.qid, missed.y), sample_weight=weight)
    report = report_fusion(fusion, lists, y, weight)
    notes += [remark.rstrip(".") for remark in (fusion.definition_.pool, *fusion.definition_.notes) if remark]
    absent = len({*lists.qid.tolist()} - {*grades.qid.tolist()})
    if absent:
        notes.append(f"{absent} of {lists.n_queries} queries of the runs are not judged")
    return fusion, report, notes


def _read_pool(
    lists: Runs, y: NDArray[np.float64], text: str | None
) -> tuple[Any, NDArray[np.float64] | None, list[str]]:
    """Return the pool that the user describes, weights of documents that were drawn, and one sentence on them."""
    import numpy as np

    from corank.data.io.tables import read_table
    from corank.parameters import number

    if text is None or text.isdecimal():
        return None if text is None else int(text), None, []
    parts = [part.partition("=") for part in text.split(",")]
    if all(mark and depth.isdecimal() for _, mark, depth in parts):
        return {name.strip(): int(depth) for name, _, depth in parts}, None, []
    table = read_table(Path(text))
    if {"query", "docid", "probability"} <= set(table.columns):
        keys = zip(table.texts("query"), table.texts("docid"), strict=True)
        odds = dict(zip(keys, table.numbers("probability", number(0.0, 1.0, inside="(]")).tolist(), strict=True))
        rows = zip(lists.qid.tolist(), lists.docids.tolist(), strict=True)
        drawn = np.where(np.isnan(y), 1.0, [odds.get(row, 1.0) for row in rows])
        n_drawn = int(np.count_nonzero(drawn < 1.0))
        note = f"{n_drawn} judged documents were drawn by `corank suggest`, and weigh 1/probability"
        return None, 1.0 / drawn, [note]
    if not {"query", "retriever", "depth"} <= set(table.columns):
        raise InputError(
            f"{text} has the columns {', '.join(table.names[:6])}; a pool has query, retriever and depth, or query, "
            "docid and probability."
        )
    columns: list[Any] = [table.texts("query"), table.texts("retriever"), table.numbers("depth", number(0.0)).tolist()]
    if "probability" in table.columns:
        columns.append(table.numbers("probability", number(0.0, 1.0, inside="(]")).tolist())
    return list(zip(*columns, strict=True)), None, []


def rank_runs(model: Path, paths: list[Path], output: Path | None, tag: str, *, as_json: bool, force: bool) -> None:
    """Apply a fusion to new lists, and write a TREC run."""
    import sys

    from corank.data.durable.compressed import is_stream, require_text_place
    from corank.data.io.runs import read_runs
    from corank.data.io.trec import run_lines, write_run
    from corank.models.fusion import load_fusion

    if output is not None:
        require_text_place(output, overwrite=force)
    definition = load_fusion(model)
    lists = read_runs(paths).matched(definition.retrievers)
    for remark in lists.notes:
        note(f"{remark}.")
    scores = definition.score(lists.X, lists.qid)
    if output is None:
        sys.stdout.writelines(
            line.decode(errors="surrogateescape") for line in run_lines(lists.qid, lists.docids, scores, tag)
        )
        return
    write_run(output, lists.qid, lists.docids, scores, tag, overwrite=force)
    if not is_stream(output):
        n = len(scores)
        fields = {"output": output, "n_documents": n, "n_queries": lists.n_queries, "notes": lists.notes}
        emit(as_json, "rank", fields, f"wrote {output}: {n} documents for {lists.n_queries} queries")


def suggest_documents(
    model: Path, paths: list[Path], qrels: Path | None, texts: list[Path], number: int, output: Path | None,
    *, strategy: str, seed: int, as_json: bool, force: bool, keep_formulas: bool,
) -> None:  # fmt: skip
    """Choose documents to judge for a fusion, and write them with the reason and the probability of each."""
    import numpy as np

    from corank.cli.rows import read_texts
    from corank.models.fusion import load_fusion
    from corank.models.fusion.lists import RetrievedLists
    from corank.models.fusion.suggest import suggest_for_fusion

    definition = load_fusion(model)
    lists, grades, notes = _read(paths, qrels, None, "median")
    lists = lists.matched(definition.retrievers)
    for remark in notes:
        note(f"{remark}.")
    y = np.full(len(lists.qid), np.nan) if grades is None else lists.join(grades)[0]
    chosen = suggest_for_fusion(
        definition, RetrievedLists.of(lists.X, lists.qid), y, number, strategy=strategy, random_state=seed
    )
    documents = lists.docids[chosen.rows].tolist()
    columns, cells = read_texts(texts, documents)
    lines = [
        (query, document, f"{odds:.6g}", why, *shown)
        for query, document, odds, why, shown in zip(
            lists.qid[chosen.rows], documents, chosen.probabilities.tolist(), chosen.reasons, cells, strict=True
        )
    ]
    queries = [query._asdict() for query in chosen.queries[:number]]
    n_queries = len({line[0] for line in lines})
    sentence = (
        f"wrote {output}: {len(lines)} documents of {n_queries} quer{'y' if n_queries == 1 else 'ies'} to judge next"
    )
    if queries:
        best = ", ".join(f"{query['query']} ({query['n_documents']} documents)" for query in queries[:5])
        sentence += f"\nnext queries worth judging as a whole: {best}"
    emit_rows(
        "suggest", [("query", "docid", "probability", "why", *columns), *lines], output, as_json=as_json, force=force,
        keep_formulas=keep_formulas, sentence=sentence, queries=queries,
    )  # fmt: skip
