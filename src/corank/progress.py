"""A progress bar on a terminal, and silence elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def progress(total: int, what: str, verbose: bool = True) -> Iterator[Callable[[int], Any]]:
    """
    Show how far long work has come.

    total: how much there is to do.
    what: what is counted.
    verbose: whether to show anything.
    Yields: takes what was done since the last call.
    """
    if not verbose:
        yield lambda done: None
        return
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        job = bar.add_task(what, total=total)
        yield lambda done: bar.advance(job, done)
