"""The judge's side of an asking: two things side by side, one key an answer, and the order so far below."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from corank.cli.judge.keys import ARROWS, plain, terminal
from corank.cli.tables import screen
from corank.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.segment import Segment
    from rich.table import Table

    from corank.data.formats.items import Choices
    from corank.judging.preferences import Asking, Progress, Question, Ranking

KEYS = {"l": "left", "r": "right", "e": "equal", "=": "equal", "s": "skip", "u": "undo", "q": "quit"}
HELP = "l, ← left   r, → right   e equal   s skip   u undo   q quit"
LEAST = 5
"""Lines that the order keeps, however much there is to show of two things."""
WIDTH = 80
"""Of what is written where there is no screen."""


def require_terminal() -> None:
    """Refuse to ask where nobody sits."""
    if not sys.stdin.isatty():
        raise InputError(
            "questions are answered with keys, and standard input is no terminal; start it in one, or replay a judged "
            "column with --simulate."
        )


def ask_all(asking: Asking) -> None:
    """Ask until nothing is worth asking or the judge quits; a question shows when the last answer is on the disk."""
    console = screen()
    if not console.is_terminal:
        console.width = WIDTH
    said = ""
    with terminal(ARROWS) as ask:
        question = asking.next()
        while question is not None:
            show_question(asking, question, console, said)
            action, said = _action(ask, console), ""
            if action == "quit":
                break
            if action == "undo":
                last = asking.undo()
                said = "" if last else "nothing was answered yet."
                question = last or question
            else:
                asking.answer(question, action)
                question = asking.next()
    _say_goodbye(asking, console, is_over=question is None)


def show_question(asking: Asking, question: Question, console: Console, said: str = "") -> None:
    """
    Print two things, the order so far, how far the asking has come, and the keys.

    said: a line above the keys.
    """
    progress, ranking = asking.progress(), asking.ranking()
    number = f"question {progress.answered + progress.skipped + 1}"
    if console.is_terminal:
        console.clear()
        console.rule(number, align="left")
    else:
        console.print(number)
    below = [summary(progress, ranking), *filter(None, [said]), HELP]
    # the rule, two empty lines, the heading of the order, and the line of the cursor
    room = console.height - 5 - sum(len(console.render_lines(line)) for line in below)
    order = min(LEAST, len(asking.choices)) if ranking else 0
    shown = console.render_lines(_side_by_side(asking.choices, question), pad=False)
    _print_lines(shown, max(room - order, 2), console)
    console.print()
    if ranking is not None:
        console.print("the order so far, with a standard deviation to each side", style="dim")
        console.print(order_table(asking.choices, ranking, max(room - len(shown), order), console.width))
        console.print()
    for line in below[:-1]:
        console.print(line)
    console.print(HELP, style="dim")


def order_table(choices: Choices, ranking: Ranking, most: int, width: int) -> Table:
    """
    Lay out the best things with their scores as dashes around an o.

    most: lines that there is room for.
    width: columns of the terminal.
    """
    from rich.table import Table
    from rich.text import Text

    n, bar = len(choices), max(width // 3, 8)
    rows = ranking.order if n <= most else ranking.order[: max(most - 1, 1)]
    low, high = (ranking.score - ranking.std)[rows].min(), (ranking.score + ranking.std)[rows].max()
    table = Table.grid(padding=(0, 1, 0, 0), expand=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
    table.add_column(justify="right", no_wrap=True)
    table.add_column(width=bar, no_wrap=True)
    for place, thing in enumerate(rows.tolist(), 1):
        score, std = ranking.score[thing], ranking.std[thing]
        left, middle, right = (
            round((bar - 1) * (float(value) - low) / (high - low or 1.0)) for value in (score - std, score, score + std)
        )
        dashes = " " * left + "-" * (middle - left) + "o" + "-" * (right - middle)
        table.add_row(str(place), Text(_one_line(choices.names[thing])), f"{score:.2f} ± {std:.2f}", dashes)
    if len(rows) < n:
        table.add_row("", f"and {n - len(rows)} more")
    return table


def summary(progress: Progress, ranking: Ranking | None) -> str:
    """Say in a line or two how far an asking has come."""
    more = {"equal": progress.equal, "skipped": progress.skipped}
    inside = ", ".join(f"{count} {what}" for what, count in more.items() if count)
    said = f"{progress.answered} answer" + "s" * (progress.answered != 1) + (f" ({inside})" if inside else "")
    if progress.repeated:
        said += f"; {progress.same} of {progress.repeated} repeated questions answered as before"
    if ranking is not None:
        said += f"; about {100 * ranking.doubt:.0f} % of all pairs in the wrong order"
    if progress.gain is not None:
        said += f"; the next answer tells {progress.gain:.2f} nats"
    return said + "."


def _side_by_side(choices: Choices, question: Question) -> RenderableType:
    from rich.table import Table

    table = Table.grid(padding=(0, 2, 0, 0), expand=True)
    table.add_column(ratio=1, overflow="fold")
    table.add_column(ratio=1, overflow="fold")
    table.add_row(_thing(choices, question.left), _thing(choices, question.right))
    return table


def _thing(choices: Choices, number: int) -> RenderableType:
    from rich.text import Text

    text = Text(_one_line(choices.names[number]), style="bold")
    for column, value in choices.fields[number].items():
        text.append(f"\n{_one_line(column)}: ", style="dim not bold")
        text.append(plain(value), style="not bold")
    return text


def _one_line(text: str) -> str:
    return " ".join(plain(text).split())


def _print_lines(lines: list[list[Segment]], most: int, console: Console) -> None:
    """Print the first lines of what was laid out, and a mark where some are left out."""
    from rich.segment import Segment, Segments

    kept = lines if len(lines) <= most else lines[: most - 1]
    for line in kept:
        console.print(Segments([*line, Segment.line()]), end="", soft_wrap=True)
    if len(kept) < len(lines):
        console.print("...", style="dim")


def _action(ask: Callable[[bool], str], console: Console) -> str:
    """Ask until a key is known."""
    while True:
        key = ask(False)
        action = KEYS.get(key.lower(), key)
        if action in KEYS.values():
            return action
        console.print(f"{key!r} is no key; {HELP}")


def _say_goodbye(asking: Asking, console: Console, *, is_over: bool) -> None:
    progress, ranking = asking.progress(), asking.ranking()
    if console.is_terminal:
        console.clear()
    if ranking is not None:
        console.print(order_table(asking.choices, ranking, max(console.height - 7, LEAST), console.width))
        console.print()
    if is_over and progress.is_complete:
        console.print("every pair was asked.")
    elif is_over:
        console.print(f"no answer is expected to tell {asking.tol:g} nats or more; a smaller --tol asks on.")
    console.print(summary(progress, ranking))
