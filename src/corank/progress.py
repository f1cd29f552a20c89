"""Progress bar on a terminal or in a notebook; no output elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from html import escape
from typing import Any

from corank.console import printable_console

Listener = Callable[[str, int, int], None]
_LISTENER: ContextVar[Listener | None] = ContextVar("listener", default=None)


@contextmanager
def listen_to_progress(listener: Listener) -> Iterator[None]:
    """Call a function instead of showing bars, in this thread."""
    token = _LISTENER.set(listener)
    try:
        yield
    finally:
        _LISTENER.reset(token)


@contextmanager
def progress(total: int, what: str, verbose: bool = True) -> Iterator[Callable[..., Any]]:
    """Show the progress of a long computation; yields advance(done, name of the present part or None)."""
    listener = _LISTENER.get()
    if listener is not None:
        yield from _to_listener(listener, total, what)
        return
    if not verbose:
        yield lambda done, part=None: None
        return
    from rich.progress import Progress

    console = printable_console(err=True)
    if console.is_jupyter:
        yield from _in_notebook(total, what)
        return
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        job = bar.add_task(what, total=total)
        yield lambda done, part=None: bar.update(job, advance=done, description=part)


def _to_listener(listener: Listener, total: int, what: str) -> Iterator[Callable[..., Any]]:
    """Yield once, as `progress` does."""
    done = 0

    def advance(more: int, part: str | None = None) -> None:
        nonlocal done
        done += more
        listener(what if part is None else part, done, total)

    advance(0)
    yield advance


def _in_notebook(total: int, what: str) -> Iterator[Callable[..., Any]]:
    """Yield once, as `progress` does; the bar is plain HTML, updated at each percent."""
    from IPython.display import display

    def render(percent: int) -> dict[str, str]:
        bar = f'<progress max="100" value="{percent}"></progress> {escape(what)} {percent} %'
        return {"text/plain": f"{what} {percent} %", "text/html": bar}

    handle = display(render(0), raw=True, display_id=True)
    done, percent = 0, 0

    def advance(more: int, part: str | None = None) -> None:
        nonlocal done, percent
        done += more
        now = min(100, 100 * done // max(total, 1))
        if now > percent:
            percent = now
            handle.update(render(percent), raw=True)

    try:
        yield advance
    finally:
        handle.update({"text/plain": "", "text/html": ""}, raw=True)
