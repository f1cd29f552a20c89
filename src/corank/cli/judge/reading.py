"""The reader's side of a screening: one record at a time, one key an answer."""

from __future__ import annotations

import sys
from collections.abc import Callable
from threading import Thread
from typing import TYPE_CHECKING

from corank.cli.judge.keys import lines, plain, terminal
from corank.cli.tables import screen

if TYPE_CHECKING:
    from rich.console import Console

    from corank.judging.screening.screening import Progress, Screening

KEYS = {"r": "relevant", "n": "not", "l": "later", "u": "undo", "o": "note", "q": "quit"}
HELP = "r relevant   n not   l later   u undo   o note   q quit"
ROOM = 8
"""Lines of a screen that an abstract leaves for title, progress and keys."""


def read_all(screening: Screening) -> None:
    """
    Show records and take answers until all are read or the reader quits.

    A record is shown when the last answer is on the disk. While it is read, both answers to it are learnt, so that
    the next one shows at once. Where standard input is no terminal, each line of it is a key or its word, and a note
    is ``note`` with its text behind it.
    """
    console, said = screen(), ""
    with terminal() if sys.stdin.isatty() else lines() as ask:
        record = screening.next()
        while record is not None:
            show_record(screening, record, console, said)
            learning = Thread(target=screening.foresee, args=(record,))
            if sys.stdin.isatty():
                learning.start()
            action, text = _action(ask, console)
            while action == "note":  # the record stays
                screening.note(record, text)
                console.print("the note is kept.")
                action, text = _action(ask, console)
            if sys.stdin.isatty():
                learning.join()
            if action == "quit":
                break
            record, said = _take(screening, record, action)
        else:
            console.print("every record is read.")
    console.print(summary(screening.progress()))


def _take(screening: Screening, record: int, action: str) -> tuple[int | None, str]:
    """Do what a key asks for, and return what to show next: a record, and a line above the keys."""
    if action == "undo":
        last = screening.undo()
        return (record, "nothing was answered yet.") if last is None else (last, "")
    if action == "later":
        screening.later(record)
    else:
        screening.answer(record, action == "relevant")
    return screening.next(), ""


def show_record(screening: Screening, record: int, console: Console, said: str = "") -> None:
    """
    Print a record, how far the screening has come, and the keys.

    said: a line above the keys.
    """
    records, name = screening.records, f"record {screening.records.ids[record]}"
    if console.is_terminal:
        console.clear()
        console.rule(plain(name), align="left")
    else:
        console.print(plain(name))
    console.print(plain(records.titles[record]) or "(no title)", style="bold")
    console.print(plain(records.abstracts[record]) or "(no abstract)")
    if record in screening.notes:
        console.print(f"note: {plain(screening.notes[record])}", style="italic")
    console.print()
    if console.is_terminal and len(console.render_lines(plain(records.abstracts[record]))) > console.height - ROOM:
        # the top has left the screen
        console.print(plain(records.titles[record]), style="bold")
    console.print(summary(screening.progress()))
    if said:
        console.print(said)
    console.print(HELP, style="dim")


def summary(progress: Progress) -> str:
    """Say in a line or two how far a screening has come."""
    said = f"found {progress.found}, read {progress.read} of {progress.n}"
    estimate = progress.estimate
    if estimate is not None:
        said += (
            f"; recall about {estimate.recall:.0%} ({estimate.low:.0%} to {estimate.high:.0%}), "
            f"about {estimate.expected:.1f} more in the next 100"
        )
    if progress.may_stop:
        said += "; you may stop: the target is reached, says the rule"
    elif progress.to_sample:
        said += f"; {progress.to_sample} records drawn at random until the next test"
    return said + "."


def _action(ask: Callable[[bool], str], console: Console) -> tuple[str, str]:
    """Ask until a key is known; a note comes with its text."""
    while True:
        word, _, text = ask(False).strip().partition(" ")
        action = KEYS.get(word.lower(), word.lower())
        if action == "note" and (text := text or ask(True).strip()):
            return action, text
        if action in KEYS.values() and action != "note":
            return action, ""
        console.print(f"{'no note' if action == 'note' else repr(word) + ' is no key'}; {HELP}")
