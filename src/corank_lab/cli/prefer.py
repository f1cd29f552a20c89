"""`corank prefer`: rank items by asking which of two is better, on a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from corank.cli import Force, Json, KeepFormulas, Seed, emit, make_console
from corank.console import printable
from corank.errors import InputError
from corank_lab.cli.terminal import ARROWS, Ask, has_terminal, lines, terminal

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.segment import Segment
    from rich.table import Table

    from corank.data import Items
    from corank_lab.preferences import (
        PreferenceJournal,
        PreferenceProgress,
        PreferenceSession,
        Question,
        Ranking,
    )

Options = dict[str, Any]
DEFAULT = "bald"
"""Default strategy, by which also questions to one of several judges are chosen."""


def _strategies() -> str:
    from corank.cli import list_choices  # imports numpy
    from corank.parameters import PAIR_STRATEGIES

    return list_choices(PAIR_STRATEGIES)


def prefer(
    items: Annotated[Path, typer.Argument(help="Items to rank: .csv, .tsv, .jsonl (compressed or not) or .parquet.")],
    name: Annotated[
        str | None,
        typer.Option(help="Column of names; default name, title, item, id or the first.", show_default=False),
    ] = None,
    features: Annotated[
        str | None,
        typer.Option(
            help="Numeric columns to learn from, separated by commas; default all, '' for none.", show_default=False
        ),
    ] = None,
    judge: Annotated[str, typer.Option(help="Name of the judge.")] = "me",
    strategy: Annotated[str, typer.Option(help=f"How to choose questions: {_strategies()}.")] = DEFAULT,
    repeat: Annotated[float, typer.Option(help="Share of repeated questions.")] = 0.1,
    tol: Annotated[float, typer.Option(help="Stop when no answer is expected to give this information (nats).")] = 0.03,
    export: Annotated[
        Path | None,
        typer.Option(help="Write the ranking by all judges' answers to this .csv, and exit.", show_default=False),
    ] = None,
    seed: Seed = 0,
    keep_formulas: KeepFormulas = False,
    as_json: Json = False,
    force: Force = False,
) -> None:
    """Rank items: compare two at a time with a key. The most informative pair is asked next."""
    if as_json and export is None:
        raise InputError("--json works with --export only; leave it out to answer questions.")
    if str(items) == "-":
        raise InputError("ITEMS is - (standard input), which is needed for the keys; pass the name of a file.")
    from corank.data import read_items, require_no_input, require_text_place, suffix_of
    from corank_lab.database.journal import journal_paths

    if export is not None:
        if suffix_of(export) != ".csv":
            raise InputError(f"{export} has an unknown suffix; choose a name that ends in .csv.")
        require_no_input(export, [_database(items), *journal_paths(_old_folder(items))])
        require_text_place(export, overwrite=force)
    columns = None if features is None else [item.strip() for item in features.split(",") if item.strip()]
    table, _ = read_items(items, name=name, features=columns)
    if export is not None:
        _export(items, table, export, force, as_json, keep_formulas)
    else:
        _ask(items, table, judge, {"strategy": strategy, "tol": tol, "repeat": repeat, "random_state": seed})


@contextmanager
def _journal(path: Path, items: Items, judge: str = "me", **settings: Any) -> Iterator[tuple[PreferenceJournal, str]]:
    """Open the journal of a judge in the project of the items; also yield what was read of version 0.2."""
    from corank_lab.preferences import PreferenceJournal

    with PreferenceJournal(_database(path), judge) as journal:
        journal.begin(items, path.name, **settings)
        yield journal, journal.import_old(_old_folder(path))


def _database(path: Path) -> Path:
    from corank_lab.database.journal import NAME

    return path.absolute().parent / NAME


def _old_folder(path: Path) -> Path:
    """Folder in which version 0.2 kept the answers."""
    from corank_lab.preferences import PreferenceJournal

    return Path(f"{path}.{PreferenceJournal.folder}")


def _ask(path: Path, items: Items, judge: str, asking: Options) -> None:
    from corank_lab.preferences import PreferenceSession

    has_terminal()  # before anything is written
    with _journal(path, items, judge, repeat=asking["repeat"], tol=asking["tol"]) as (journal, note):
        notes = [note] if note else []
        if others := ", ".join(name for name in journal.by_judge() if name != judge):
            notes.append(
                f"Questions also depend on the answers of other judges so far ({others})."
                if asking["strategy"] == DEFAULT
                else "Questions depend on your answers only, because of --strategy."
            )
        ask_all(PreferenceSession(items, journal=journal, **asking), " ".join(notes))
    make_console().print(
        f"Your answers are saved in {_database(path)}. Run the same command to continue; --export FILE.csv writes the "
        "ranking."
    )


def _export(path: Path, items: Items, target: Path, force: bool, as_json: bool, keep_formulas: bool) -> None:
    from corank.data import csv_text, write_text
    from corank_lab.database.journal import journal_paths
    from corank_lab.preferences import PreferenceSession
    from corank_lab.preferences.model import agreement

    fit = None
    if _database(path).is_file() or journal_paths(_old_folder(path)):
        with _journal(path, items) as (journal, _):
            session = PreferenceSession(items, journal=journal)
        fit = session.learn(session.pairwise(), session.asked(), n_ahead=0)
    if fit is None:
        raise InputError(f"there are no answers for {path} yet; run corank prefer {path} first.")
    with write_text(target, overwrite=force) as stream:
        stream.write(csv_text(fit.table(items), keep_formulas=keep_formulas).encode())
    wrong, judges = fit.ranking.expected_disagreement, session.pairwise()
    fields = {"output": target, "n_items": len(items), "n_answers": fit.n_answers, "expected_disagreement": wrong}
    sentence = f"wrote {target}: {len(items)} items ranked by {fit.n_answers} answers"
    if len(judges) > 1:
        same, both = agreement(judges)
        weights = {judge: round(weight, 4) for judge, weight in fit.weights.items()}
        fields |= {"n_judges": len(judges), "n_same": same, "n_both": both, "weights": weights}
        listed = ", ".join(f"{judge} {weight:.2f}" for judge, weight in weights.items())
        sentence += f" of {len(judges)} judges, who agree on {same} of {both} pairs that two of them answered"
        sentence += f" (weights, 0 for random answers to 1: {listed})"
    emit(as_json, "prefer", fields, f"{sentence}; about {100 * wrong:.0f} % of all pairs expected in wrong order")


KEYS = {"l": "left", "r": "right", "e": "equal", "=": "equal", "s": "skip", "u": "undo", "q": "quit"}
HELP = "l, ← left   r, → right   e equal   s skip   u undo   q quit"
MIN_LINES = 5
"""Minimum number of lines for the ranking, however long the items are."""
WIDTH = 80
"""Width of the output if it is not a terminal."""


def ask_all(session: PreferenceSession, message: str = "") -> None:
    """
    Ask until no question is left, the judge quits or the input ends; answers are on the disk before the next question.
    """
    console = make_console()
    if not console.is_terminal:
        console.width = WIDTH
    with terminal(ARROWS) if has_terminal() else lines() as ask:
        question = session.next()
        while question is not None:
            show_question(session, question, console, message)
            action, message = _action(ask, console), ""
            if action == "quit":
                break
            if action == "undo":
                last = session.undo()
                message = "" if last else "There is no answer to undo."
                question = last or question
            else:
                session.answer(question, action)
                question = session.next()
    _print_result(session, console, is_over=question is None)


def show_question(session: PreferenceSession, question: Question, console: Console, message: str = "") -> None:
    """Print two items, the ranking so far, the progress, a message and the keys."""
    progress, ranking = session.progress(), session.ranking()
    number = f"question {progress.answered + progress.skipped + 1}"
    if console.is_terminal:
        console.clear()
        console.rule(number, align="left")
    else:
        console.print(number)
    below = [summary(progress, ranking), *filter(None, [message]), HELP]
    # lines of the rule, two empty lines, the heading of the ranking, and the cursor
    free = console.height - 5 - sum(len(console.render_lines(line)) for line in below)
    order = min(MIN_LINES, len(session.items)) if ranking else 0
    shown = console.render_lines(_side_by_side(session.items, question), pad=False)
    _print_lines(shown, max(free - order, 2), console)
    console.print()
    if ranking is not None:
        console.print("ranking so far, relative to the mean item; dashes and ± are one standard deviation", style="dim")
        console.print(order_table(session.items, ranking, max(free - len(shown), order), console.width))
        console.print()
    for line in below[:-1]:
        console.print(line)
    console.print(HELP, style="dim")


def order_table(items: Items, ranking: Ranking, max_lines: int, width: int) -> Table:
    """Lay out the best items, with scores as an o and standard deviations as dashes."""
    from rich.table import Table
    from rich.text import Text

    n, bar = len(items), max(width // 3, 8)
    rows = ranking.order if n <= max_lines else ranking.order[: max(max_lines - 1, 1)]
    low, high = (ranking.score - ranking.std)[rows].min(), (ranking.score + ranking.std)[rows].max()
    table = Table.grid(padding=(0, 1, 0, 0), expand=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
    table.add_column(justify="right", no_wrap=True)
    table.add_column(width=bar, no_wrap=True)
    for place, item in enumerate(rows.tolist(), 1):
        score, std = ranking.score[item], ranking.std[item]
        left, middle, right = (
            round((bar - 1) * (float(value) - low) / (high - low or 1.0)) for value in (score - std, score, score + std)
        )
        dashes = " " * left + "-" * (middle - left) + "o" + "-" * (right - middle)
        table.add_row(str(place), Text(_one_line(items.names[item])), f"{score:.2f} ± {std:.2f}", dashes)
    if len(rows) < n:
        table.add_row("", f"and {n - len(rows)} more")
    return table


def summary(progress: PreferenceProgress, ranking: Ranking | None) -> str:
    """Describe the progress in a line or two."""
    more = {"equal": progress.equal, "skipped": progress.skipped}
    inside = ", ".join(f"{count} {what}" for what, count in more.items() if count)
    text = f"{progress.answered} answer" + "s" * (progress.answered != 1) + (f" ({inside})" if inside else "")
    if progress.repeated:
        text += f"; {progress.same} of {progress.repeated} repeated questions answered as before"
    if ranking is not None:
        text += f"; about {100 * ranking.expected_disagreement:.0f} % of all pairs expected in the wrong order"
    if progress.gain is not None:
        text += f"; the next answer is expected to give {progress.gain:.2f} nats of information"
    return text + "."


def _side_by_side(items: Items, question: Question) -> RenderableType:
    from rich.table import Table

    table = Table.grid(padding=(0, 2, 0, 0), expand=True)
    table.add_column(ratio=1, overflow="fold")
    table.add_column(ratio=1, overflow="fold")
    table.add_row(_item(items, question.left), _item(items, question.right))
    return table


def _item(items: Items, number: int) -> RenderableType:
    from rich.text import Text

    text = Text(_one_line(items.names[number]), style="bold")
    for column, value in items.fields[number].items():
        text.append(f"\n{_one_line(column)}: ", style="dim not bold")
        text.append(value, style="not bold")
    return text


def _one_line(text: str) -> str:
    return " ".join(printable(text).split())


def _print_lines(lines: list[list[Segment]], max_lines: int, console: Console) -> None:
    """Print the first lines, and '...' if some are left out."""
    from rich.segment import Segment, Segments

    shown = lines if len(lines) <= max_lines else lines[: max_lines - 1]
    for line in shown:
        console.print(Segments([*line, Segment.line()]), end="", soft_wrap=True)
    if len(shown) < len(lines):
        console.print("...", style="dim")


def _action(ask: Ask, console: Console) -> str:
    """Read keys until one is valid; elsewhere than on a terminal, lines with a key or its word."""
    while True:
        key = ask()
        key = key.strip() or key
        action = KEYS.get(key.lower(), key)
        if action in KEYS.values():
            return action
        console.print(f"{key!r} is not a key. Keys: {HELP}")


def _print_result(session: PreferenceSession, console: Console, *, is_over: bool) -> None:
    progress, ranking = session.progress(), session.ranking()
    if console.is_terminal:
        console.clear()
    if ranking is not None:
        console.print(order_table(session.items, ranking, max(console.height - 7, MIN_LINES), console.width))
        console.print()
    if is_over and progress.is_complete:
        console.print("All pairs were asked.")
    elif is_over:
        console.print(
            f"No answer is expected to give {session.tol:g} nats of information or more. Pass a smaller --tol to "
            "continue."
        )
    console.print(summary(progress, ranking))
