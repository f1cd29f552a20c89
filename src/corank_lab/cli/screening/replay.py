"""`corank screen replay`: recall curves of judged records."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from corank.cli import print_json, table_fields
from corank.errors import InputError

if TYPE_CHECKING:
    from corank.tables import ReportTable
    from corank_lab.cli.screening.files import ScreeningFiles
    from corank_lab.screening import ScreeningReplay

HEIGHT, MARGIN, WIDEST = 11, 7, 80


def recall_curve(replays: Sequence[ScreeningReplay], width: int = WIDEST) -> str:
    """Plot the mean recall of replays of one collection as stars, and random reading as points."""
    import numpy as np

    n_columns = max(min(width, WIDEST) - MARGIN - 1, 10)
    n = len(replays[0].found)
    mean = np.r_[0.0, np.mean([replay.curve for replay in replays], axis=0)]
    shares = np.linspace(0, 1, n_columns)
    # position of the last record read
    recall = mean[np.floor(shares * n + 1e-9).astype(int)]
    levels = np.rint(recall * (HEIGHT - 1)).astype(int)
    grid = np.full((HEIGHT, n_columns), " ")
    grid[np.rint(shares * (HEIGHT - 1)).astype(int), np.arange(n_columns)] = "."
    below = 0
    for column, level in enumerate(levels):
        grid[min(below + 1, level) : level + 1, column] = "*"  # connect jumps
        below = level
    names = {0: "0 %", HEIGHT // 2: "50 %", HEIGHT - 1: "100 %"}
    lines = [f"{names.get(row, ''):>{MARGIN - 1}} |{''.join(grid[row]).rstrip()}" for row in reversed(range(HEIGHT))]
    middle = f"{n // 2}".center(n_columns - len("0") - len(str(n)))
    rule = " " * (MARGIN - 1) + " +" + "-" * (n_columns - 1)
    starts = "1 start" if len(replays) == 1 else f"{len(replays)} starts"
    return "\n".join(
        [
            f"relevant records found (*: mean of {starts}, .: at random)",
            *lines, rule,
            " " * MARGIN + f"0{middle}{n}",
            "records read".center(n_columns + 2 * MARGIN).rstrip(),
        ]
    )  # fmt: skip


REPORT_FILES = ("curves.csv", "recall.png", "report.html", "report.json", "report.md")
"""Files of the folder that it writes."""


def replay(
    files: ScreeningFiles, starts: int, stopping: dict[str, Any], output: Path | None, force: bool, as_json: bool
) -> None:
    """Replay a judged collection, and print or write the measures."""
    from corank.cli import make_console, show
    from corank.data import require_place
    from corank_lab.screening import simulate

    if output is not None:
        _require_report_only(output)
        require_place(output, overwrite=force, folder=True)
    records, name = files.records, files.paths[0].name
    replays = simulate(records, starts, **stopping)
    title = f"{name}: {len(records)} records, {int(records.labels.sum())} relevant"
    table = _replay_table(title, replays, stopping["rule"], stopping["target"])
    if as_json:
        print_json("screen replay", {"output": output, "table": table_fields(table)})
    else:
        console = make_console()
        show(table, console)
        console.print(recall_curve(replays, console.width))
    if output is not None:
        _write_report(output, name, table, replays, force)
        if not as_json:
            typer.echo(f"wrote {output}: report, curves and plot")


def _replay_table(title: str, replays: list[ScreeningReplay], rule: str, target: float) -> ReportTable:
    import numpy as np

    from corank.tables import ReportTable

    cells = [
        (item.atd, item.loss, item.wss95, item.recall10, item.stop / len(item.found), item.stop_recall, item.seconds)
        for item in replays
    ]
    rows = [(str(replay.start), *row) for replay, row in zip(replays, cells, strict=True)]
    rows.append(("mean", *np.mean(cells, axis=0).tolist()))
    reached = np.mean([replay.stop_recall >= target - 1e-12 for replay in replays])
    return ReportTable(
        title,
        ("start", "ATD", "loss", "WSS@95", "recall@10 %", "read at stop", "recall at stop", "s"),
        tuple(rows),
        digits=3,
        note=f"The stopping rule {rule!r} reached a recall of {target:g} in {reached:.0%} of the starts.",
    )


def _require_report_only(place: Path) -> None:
    """Refuse to replace a folder that holds anything else, such as answers."""
    for entry in sorted(place.iterdir()) if place.is_dir() else ():
        if entry.name not in REPORT_FILES:
            raise InputError(
                f"{place} holds {entry.name}, which is not part of a report, so it is kept; choose another folder."
            )


def _write_report(output: Path, name: str, table: ReportTable, replays: list[ScreeningReplay], force: bool) -> None:
    from corank.comparison import Report
    from corank.data import atomic_folder
    from corank_lab.screening.simulate import plot_recall

    with atomic_folder(output, overwrite=force) as folder:
        plot = folder / "recall.png"
        plot_recall(replays, plot, title=name)
        about = (
            "Each start is one relevant and one irrelevant record. The other records are read in the order of the "
            "model, which learns from every answer. ATD: mean position of the relevant records; loss: share of pairs "
            "of a relevant and an irrelevant record that were read in the wrong order; WSS@95: share of unread records "
            "at 95 % recall, minus 5 %; ATD and WSS@95 as shares of all records."
        )
        Report(f"Screening {name}", about, (table,), plots=(plot,)).write(folder)
        lines = ["start,place,record,relevant\n"]
        for replay in replays:
            read = zip(replay.order.tolist(), replay.found.astype(int).tolist(), strict=True)
            lines += [f"{replay.start},{place},{number + 1},{hit}\n" for place, (number, hit) in enumerate(read, 1)]
        (folder / "curves.csv").write_text("".join(lines), encoding="utf-8")
