"""The command `corank`: one file per verb, each imported when it is used and light until then."""

from __future__ import annotations

import _thread
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from corank._version import __version__
from corank.cli.examples import epilog_of
from corank.cli.files.convert import convert
from corank.cli.files.demo import demo
from corank.cli.judge.ask import ask
from corank.cli.judge.screen import screen
from corank.cli.judge.suggest import suggest
from corank.cli.learn.check_lambda import check_lambda
from corank.cli.learn.compare import compare
from corank.cli.learn.evaluate import evaluate
from corank.cli.learn.explain import explain
from corank.cli.learn.fit import INTERRUPTED, fit
from corank.cli.learn.rank import rank
from corank.cli.search.index import index
from corank.cli.search.learn_clicks import learn_clicks
from corank.cli.search.learn_links import learn_links
from corank.cli.search.search import search
from corank.cli.search.simulate_clicks import simulate_clicks
from corank.errors import InputError, MissingExtra, reason

DEBUG = "--debug"


class Interruptible:
    """Ctrl-C ends a command with one sentence."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was typed."""
        try:
            return super().invoke(ctx)  # type: ignore[misc]
        except KeyboardInterrupt:
            _say_interrupted()
            raise typer.Exit(INTERRUPTED) from None


class Verbs(Interruptible, TyperGroup):
    """All verbs."""


class Verb(Interruptible, TyperCommand):
    """The only verb of an application."""


app = typer.Typer(
    name="corank",
    cls=Verbs,
    help="Learn to rank from a few judgements and a lot of unjudged data.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # frames around the help would take longer to import than to read
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"corank {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
    debug: Annotated[  # taken out of the words by `main`, wherever it stands
        bool, typer.Option("--debug", help="Show where in the code an error came from; at any place of a command.")
    ] = False,
) -> None:
    """Learn to rank from a few judgements and a lot of unjudged data."""


VERBS: tuple[tuple[Callable[..., None], str], ...] = (
    (fit, "Learn a ranker, and save it."),
    (rank, "Score rows with a saved model."),
    (evaluate, "Measure rankings, and test which differ."),
    (compare, "Find out which ranker to use, and save it."),
    (explain, "Say why one row is scored above another."),
    (suggest, "Say what to judge next."),
    (check_lambda, "Ask whether forces are slopes of a cost."),
    (screen, "Find nearly all relevant records while reading few."),
    (ask, "Order things by asking which of two is better."),
    (simulate_clicks, "Let a ranker learn from simulated clicks."),
    (index, "Make an index of documents, to be searched."),
    (search, "Search an index, by BM25 or a learnt similarity."),
    (learn_links, "Learn a similarity of texts from links."),
    (learn_clicks, "Learn a ranker from logged clicks."),
    (convert, "Convert between LETOR text, store, Parquet, CSV."),
    (demo, "Screen a real review, and learn from few judgements."),
)
for verb, summary in VERBS:
    app.command(short_help=summary, epilog=epilog_of(verb.__name__))(verb)


def _spoken(message: Exception | str, words: list[str], whole: typer.Typer) -> str:
    """Return what the library says, in the options of the verb that is run."""
    from corank.cli.wording import spoken

    return spoken(str(message), typer.main.get_command(whole), words)


def _say_interrupted() -> None:
    typer.echo("corank: interrupted; what was not finished was not written.", err=True)


@contextmanager
def _interrupts_repeated() -> Iterator[None]:
    """
    Send Ctrl-C again where Python swallows it.

    A `KeyboardInterrupt` inside a destructor or a callback, such as those of imports, is printed and then ignored. A
    moment later the program is outside of it.
    """

    def hook(ignored: Any) -> None:
        if issubclass(ignored.exc_type, KeyboardInterrupt):
            again = threading.Timer(0.01, _thread.interrupt_main)
            again.daemon = True
            again.start()
        else:
            before(ignored)

    before, sys.unraisablehook = sys.unraisablehook, hook
    try:
        yield
    finally:
        sys.unraisablehook = before


def main(whole: typer.Typer | None = None, name: str = "corank") -> None:
    """
    Run the command line; print errors as one sentence on standard error.

    Ends with exit code 1 for bad input, 2 for words that make no command, 130 after Ctrl-C.

    whole: the application; that of `corank` by default.
    name: its name in the help.
    """
    whole = whole or app
    words = [word for word in sys.argv[1:] if word != DEBUG]
    try:
        with warnings.catch_warnings(), _interrupts_repeated():
            # a sentence too, without the line of code that it came from
            warnings.showwarning = lambda message, *_, **__: typer.echo(
                f"corank: {_spoken(message, words, whole)}", err=True
            )
            whole(args=words, prog_name=name)
        return
    except KeyboardInterrupt:  # before or after a verb
        _say_interrupted()
        sys.exit(INTERRUPTED)
    except Exception as error:
        if DEBUG in sys.argv[1:]:
            raise
        sentence = _sentence(error, words, whole)
    sys.stderr.write(f"corank: {sentence}\n")
    sys.exit(1)


def _sentence(error: Exception, words: list[str], whole: typer.Typer) -> str:
    if isinstance(error, InputError | MissingExtra):
        return _spoken(error, words, whole)
    if isinstance(error, MemoryError):
        return f"there is not enough memory ({reason(error)}); try fewer rows or features, or a larger machine."
    if isinstance(error, OSError):
        where = "" if error.filename is None else f"{error.filename}: "
        return f"{where}{error.strerror or error}."
    return f"this should not happen ({type(error).__name__}: {reason(error)}); run again with {DEBUG} to see where."
