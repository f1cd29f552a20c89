"""A session of pairwise comparisons on a terminal: two items side by side, one key per answer, the ranking below."""

from __future__ import annotations

from typing import TYPE_CHECKING

from corank.cli import make_console
from corank.console import printable
from corank_lab.cli.terminal import ARROWS, Ask, has_terminal, lines, terminal

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.segment import Segment
    from rich.table import Table

    from corank.data import Items
    from corank_lab.preferences import PreferenceProgress, PreferenceSession, Question, Ranking

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

    kept = lines if len(lines) <= max_lines else lines[: max_lines - 1]
    for line in kept:
        console.print(Segments([*line, Segment.line()]), end="", soft_wrap=True)
    if len(kept) < len(lines):
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
