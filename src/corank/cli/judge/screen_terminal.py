"""A screening session on a terminal: one record at a time, one key per answer."""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread
from typing import TYPE_CHECKING

from corank.cli.judge.terminal import has_terminal, lines, terminal
from corank.cli.output import make_console

if TYPE_CHECKING:
    from rich.console import Console

    from corank.judging.screening import Screening, ScreeningProgress

KEYS = {"r": "relevant", "n": "not", "l": "later", "u": "undo", "o": "note", "q": "quit"}
HELP = "r relevant   n not relevant   l later   u undo   o note   q quit"
ADVICE = {
    "model": "the stopping rule advises to stop. It relies on this model, which was wrong for some reviews: more "
    "relevant records may be unread",
    "sample": "you may stop: a test on the random sample supports the target recall",
    "all read": "all records are read",
}
"""Advice to stop, by its evidence."""
RESERVED = 8
"""Lines of the screen for title, progress and keys."""


def read_all(screening: Screening) -> None:
    """
    Show records and record answers until all are read or the reader quits.

    A record is shown when the last answer is on the disk. While it is read, the model is fitted for both answers, so
    that the next one shows at once. If standard input is not a terminal, each of its lines is a key or its word, and
    ``note TEXT`` adds a note.
    """
    is_terminal, console, message = has_terminal(), make_console(), ""
    with terminal() if is_terminal else lines() as ask:
        record = screening.next()
        while record is not None:
            show_record(screening, record, console, message)
            learning = Thread(target=screening.prefetch, args=(record,))
            if is_terminal:
                learning.start()
            action, text = _action(ask, console)
            while action == "note":  # the record stays
                screening.note(record, text)
                console.print("The note is saved.")
                action, text = _action(ask, console)
            if is_terminal:
                learning.join()
            if action == "quit":
                break
            record, message = _apply(screening, record, action)
        else:
            console.print("All records are read.")
    console.print(summary(screening.progress()))


def _apply(screening: Screening, record: int, action: str) -> tuple[int | None, str]:
    """Apply an action; return the record to show next and a message."""
    if action == "undo":
        last = screening.undo()
        return (record, "There is no answer to undo.") if last is None else (last, "")
    if action == "later":
        screening.later(record)
    else:
        screening.answer(record, action == "relevant")
    return screening.next(), ""


def show_record(screening: Screening, record: int, console: Console, message: str = "") -> None:
    """Print a record, the progress, a message and the keys."""
    records, name = screening.records, f"record {screening.records.ids[record]}"
    if console.is_terminal:
        console.clear()
        console.rule(name, align="left")
    else:
        console.print(name)
    console.print(records.titles[record] or "(no title)", style="bold")
    console.print(records.abstracts[record] or "(no abstract)")
    if record in screening.notes:
        console.print(f"note: {screening.notes[record]}", style="italic")
    console.print()
    if console.is_terminal and len(console.render_lines(records.abstracts[record])) > console.height - RESERVED:
        # the title has scrolled off the screen
        console.print(records.titles[record], style="bold")
    console.print(summary(screening.progress()))
    if message:
        console.print(message)
    console.print(HELP, style="dim")


def summary(progress: ScreeningProgress) -> str:
    """Describe the progress in a line or two."""
    text = f"found {progress.found} relevant, read {progress.read} of {progress.n}"
    estimate = progress.estimate
    if estimate is not None:
        text += (
            f"; by the model, recall about {estimate.recall:.0%} (95 % interval {estimate.low:.0%} to "
            f"{estimate.high:.0%}), and about {estimate.expected:.1f} more relevant records in the next 100"
        )
    if progress.evidence is not None:
        text += f"; {ADVICE[progress.evidence]}"
    elif progress.to_sample:
        text += f"; {progress.to_sample} random records to read until the next test"
    return text + "."


def _action(ask: Callable[[bool], str], console: Console) -> tuple[str, str]:
    """Read keys until one is valid; return the action, and the text of a note."""
    while True:
        word, _, text = ask(False).strip().partition(" ")
        action = KEYS.get(word.lower(), word.lower())
        if action == "note" and (text := text or ask(True).strip()):
            return action, text
        if action in KEYS.values() and action != "note":
            return action, ""
        problem = "The note is empty" if action == "note" else f"{word!r} is not a key"
        console.print(f"{problem}. Keys: {HELP}")
