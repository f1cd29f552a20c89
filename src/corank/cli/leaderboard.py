"""`corank leaderboard`: rank items from a file of votes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from corank.cli.options import Force, Json
from corank.cli.output import emit, note

if TYPE_CHECKING:
    from corank.models import Leaderboard
    from corank.tables import ReportTable

WORSE = 3
"""Exit code if ``--fail-if-worse`` finds the first item worse."""


def leaderboard(
    votes: Annotated[
        Path,
        typer.Argument(
            help="Votes: CSV, JSON or Parquet, such as model_a,model_b,winner or winner,loser or left,right,label."
        ),
    ],
    cheap: Annotated[
        Path | None, typer.Option(help="Votes of a cheap judge, such as a language model, as a prior.", metavar="FILE")
    ] = None,
    features: Annotated[
        Path | None, typer.Option(help="Table of items with numeric features, as a prior.", metavar="FILE")
    ] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="CSV file to write.", metavar="FILE")] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Plot to write: .png, .svg or .pdf.", dir_okay=False, metavar="FILE")
    ] = None,
    report: Annotated[Path | None, typer.Option(help="HTML page to write.", dir_okay=False, metavar="FILE")] = None,
    fail_if_worse: Annotated[
        tuple[str, str] | None,
        typer.Option(
            help=f"Exit with code {WORSE} if the first item is certainly worse than the second.", metavar="ITEM ITEM"
        ),
    ] = None,
    number: Annotated[int, typer.Option("--number", "-n", min=0, help="Number of next votes to suggest.")] = 3,
    goal: Annotated[Literal["best", "order"], typer.Option(help="What the next votes should find.")] = "best",
    level: Annotated[float, typer.Option(help="Probability of intervals and sets of ranks.")] = 0.95,
    winner_column: Annotated[str | None, typer.Option(help="Column of winners.", metavar="COLUMN")] = None,
    judge_column: Annotated[str | None, typer.Option(help="Column of judges.", metavar="COLUMN")] = None,
    group_column: Annotated[
        str | None,
        typer.Option(help="Column of groups, such as prompts, whose votes depend on each other.", metavar="COLUMN"),
    ] = None,
    as_json: Json = False,
    force: Force = False,
) -> None:
    """Rank items from votes: scores with intervals, sets of ranks, win probabilities, judges, next votes."""
    from corank.cli.imports import import_scikit_learn
    from corank.data.durable.atomic import atomic_file, require_place
    from corank.data.durable.text import require_exists
    from corank.data.io.tables import csv_text
    from corank.errors import InputError

    if fail_if_worse is not None and fail_if_worse[0] == fail_if_worse[1]:
        raise InputError(f"--fail-if-worse compares {fail_if_worse[0]!r} with itself; name two items.")
    for path in (votes, cheap, features):
        if path is not None:
            require_exists(path)
    for path, suffixes in ((output, (".csv",)), (plot, (".png", ".svg", ".pdf")), (report, (".html",))):
        if path is not None and path.suffix not in suffixes:
            raise InputError(f"{path} has another suffix than {', '.join(suffixes)}; name the file accordingly.")
        if path is not None:
            require_place(path, overwrite=force)
    import_scikit_learn()
    from corank.data.io.votes import read_votes
    from corank.models.votes import board_table, judge_table, sentences
    from corank.models.votes.leaderboard import Leaderboard

    read = read_votes(votes, winner=winner_column, judge=judge_column, group=group_column)
    board = Leaderboard(level).fit(read, cheap=None if cheap is None else read_votes(cheap), features=features)
    p_better = None if fail_if_worse is None else board.is_better(*fail_if_worse)
    written = [path for path in (output, plot, report) if path is not None]
    if output is not None:
        with atomic_file(output, overwrite=force) as scratch:
            scratch.write_text(csv_text(board.rows()), encoding="utf-8")
    if plot is not None:
        with atomic_file(plot, overwrite=force) as scratch:
            board.plot().savefig(scratch, dpi=150, format=plot.suffix[1:])
    if report is not None:
        from corank.comparison.card import leaderboard_page

        command = " ".join(["corank leaderboard", votes.name, *(f"--cheap {cheap.name}" for _ in [0] if cheap)])
        with atomic_file(report, overwrite=force) as scratch:
            scratch.write_text(leaderboard_page(board, f"Leaderboard of {votes.name}", command), encoding="utf-8")
    following = board.next_votes(number, goal)
    parts: list[ReportTable | str] = [board_table(board), *sentences(board)]
    if board.judges_:
        parts.append(judge_table(board))
    if p_better is not None and fail_if_worse is not None:
        parts.append(f"{fail_if_worse[0]} is better than {fail_if_worse[1]} with probability {p_better:.3f}.")
    if following:
        pairs = "; ".join(f"{a} against {b}" + (f" by {who}" if who else "") for a, b, who in following)
        parts.append(f"Vote next: {pairs}.")
    if written:
        parts.append(f"wrote {', '.join(map(str, written))}")
    fields = _record(board, following, p_better) | {"written": written} if as_json else {}
    emit(as_json, "leaderboard", fields, *parts)
    if fail_if_worse is not None and p_better is not None and p_better < 0.5 * (1.0 - level):
        note(f"{fail_if_worse[0]} is worse than {fail_if_worse[1]} with probability {1 - p_better:.3f}.")
        raise typer.Exit(WORSE)


def _record(board: Leaderboard, following: list[Any], p_better: float | None) -> dict[str, Any]:
    """Return the result as JSON fields."""
    from corank.models.votes import judge_table, sentences

    header, *rows = board.rows()
    items = [
        {"item": row[0]} | {str(name): float(str(cell)) for name, cell in zip(header[1:], row[1:], strict=True)}
        for row in rows
    ]
    judges = judge_table(board)
    return {
        "level": board.level, "n_votes": len(board.votes_), "n_ties": board.votes_.n_ties,
        "n_both_bad": board.votes_.n_both_bad, "items": items, "win_matrix": board.win_matrix().round(6),
        "groups": board.groups_, "votes_to_separate": board.votes_to_separate(), "slope": board.slope_,
        "correlation": board.correlation_, "side_bias": board.side_bias_, "tie_weight": board.tie_weight_,
        "dispersion": board.dispersion_,
        "judges": [dict(zip(judges.columns, row, strict=True)) for row in judges.rows],
        "next": [{"first": a, "second": b, "judge": who} for a, b, who in following], "p_better": p_better,
        "notes": sentences(board),
    }  # fmt: skip
