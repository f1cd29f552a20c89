"""The command `corank`: one file per verb, each imported when it is used and light until then."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Annotated

import typer

from corank._version import __version__
from corank.cli.ask import ask
from corank.cli.check_lambda import check_lambda
from corank.cli.convert import convert
from corank.cli.data import data
from corank.cli.demo import demo
from corank.cli.evaluate import evaluate
from corank.cli.experiment import experiment
from corank.cli.fit import fit
from corank.cli.index import index
from corank.cli.learn_links import learn_links
from corank.cli.rank import rank
from corank.cli.screen import screen
from corank.cli.search import search
from corank.cli.simulate_clicks import simulate_clicks
from corank.errors import InputError, MissingExtra, reason

app = typer.Typer(
    name="corank",
    help="Learn to rank from a few judgements and a lot of unjudged data.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
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
) -> None:
    """Learn to rank from a few judgements and a lot of unjudged data."""


VERBS: tuple[tuple[Callable[..., None], str], ...] = (
    (fit, "Learn a ranker, and save it."),
    (rank, "Score rows with a saved model."),
    (evaluate, "Measure rankings, and compare two of them."),
    (check_lambda, "Ask whether forces are slopes of a cost."),
    (screen, "Find nearly all relevant records while reading few."),
    (ask, "Order things by asking which of two is better."),
    (simulate_clicks, "Let a ranker learn from simulated clicks."),
    (index, "Make an index of documents, to be searched."),
    (search, "Search an index, by BM25 or a learnt similarity."),
    (learn_links, "Learn a similarity of texts from links."),
    (convert, "Convert between LETOR text, store, Parquet, CSV."),
    (data, "List the known data sets, and fetch one."),
    (experiment, "Repeat a paper's experiment on real data."),
    (demo, "Screen a real review, and learn from few judgements."),
)
for verb, summary in VERBS:
    app.command(short_help=summary)(verb)


def _spoken(message: Exception | str, whole: typer.Typer = app) -> str:
    """Return what the library says, in the options of the verb that is run."""
    from corank.cli.wording import spoken

    return spoken(str(message), typer.main.get_command(whole), sys.argv[1:])


def main() -> None:
    """Run the command line; bad input ends in one sentence on standard error and exit code 1."""
    try:
        with warnings.catch_warnings():
            # a sentence too, without the line of code that it came from
            warnings.showwarning = lambda message, *_, **__: typer.echo(f"corank: {_spoken(message)}", err=True)
            app()
        return
    except (InputError, MissingExtra) as error:
        sentence = _spoken(error)
    except MemoryError as error:
        sentence = f"there is not enough memory ({reason(error)}); try fewer rows or features, or a larger machine."
    except OSError as error:
        where = "" if error.filename is None else f"{error.filename}: "
        sentence = f"{where}{error.strerror or error}."
    sys.stderr.write(f"corank: {sentence}\n")
    sys.exit(1)
