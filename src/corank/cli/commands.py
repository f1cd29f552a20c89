"""The command `corank`: its commands in groups, messages and exit codes. Modules of commands are light to import."""

from __future__ import annotations

import _thread
import functools
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

from corank._version import __version__
from corank.cli.agreement import agreement
from corank.cli.clicks import learn_clicks
from corank.cli.convert import convert
from corank.cli.export import card, export
from corank.cli.fuse import fuse
from corank.cli.leaderboard import leaderboard
from corank.cli.learn.compare import compare
from corank.cli.learn.evaluate import evaluate
from corank.cli.learn.explain import explain
from corank.cli.learn.fit import fit
from corank.cli.learn.rank import rank
from corank.cli.options import (
    INTERRUPTED,
    OLD_OPTIONS,
    TERMINATED,
    Sections,
    Verb,
    VerbGroup,
    all_verbs,
    with_added,
    with_options,
)
from corank.cli.search import index, learn_links, search
from corank.cli.suggest import suggest
from corank.console import one_line, printable_streams
from corank.errors import InputError, MissingExtra, reason, suggest_names

DEBUG = "--debug"
DESCRIPTION = "Learn to rank from few relevance judgements and much unjudged data."


_LIBRARY: Sections = {
    "Learn": (
        Verb(fit, "Learn a ranker and save it.", "fit train.txt --model lcra --unjudged -1 --output model.safetensors"),
        Verb(rank, "Score rows with a saved model.", "rank model.safetensors test.txt --output scores.txt"),
        Verb(evaluate, "Evaluate rankings and test differences.", "evaluate test.txt scores.txt -m nDCG@10 -m AP"),
        Verb(compare, "Choose a ranker by cross-validation.", "compare train.txt --quick --unjudged -1 --output study"),
        Verb(explain, "Explain the scores of rows.", "explain model.safetensors test.txt --pair 1 2"),
        Verb(card, "Write a model card.", "card model.safetensors test.txt --output card.html"),
    ),
    "Judge": (
        Verb(
            suggest,
            "Choose what to judge next.",
            "suggest model.safetensors train.txt --unjudged -1 --number 20",
        ),
        Verb(agreement, "Measure how far judges agree.", "agreement judged.csv --list"),
        Verb(leaderboard, "Rank items from votes.", "leaderboard votes.csv --cheap llm.csv --report board.html"),
    ),
    "Search and clicks": (
        Verb(
            fuse,
            "Combine retrievers (hybrid search).",
            "fuse bm25.run vectors.run --qrels judgements.csv -o fusion.json",
        ),
        Verb(index, "Index documents.", "index articles --output articles.index"),
        Verb(search, "Search an index.", "search articles.index 'heat pump'"),
        Verb(
            learn_links,
            "Learn a text similarity from links.",
            "learn-links articles.index links.tsv --output links.safetensors",
        ),
        Verb(
            learn_clicks,
            "Learn a ranker from logged clicks.",
            "learn-clicks rows.csv clicks.csv --bias 1 --output clicks.safetensors",
        ),
    ),
    "Files": (
        Verb(convert, "Convert LETOR text, stores, Parquet, CSV.", "convert train.txt train.store --unjudged -1"),
        Verb(
            export,
            "Write a model for the engine that serves it.",
            "export model.safetensors --to solr -o model.json --verify test.txt",
        ),
    ),
}
"""Commands of the library by group, in the order of the help."""

_OTHER_NAMES = {
    "train": "fit", "learn": "fit", "predict": "rank", "score": "rank", "apply": "rank", "eval": "evaluate",
    "test": "evaluate", "metrics": "evaluate", "cv": "compare", "tune": "compare", "label": "suggest",
    "annotate": "suggest", "query": "search", "hybrid": "fuse", "fusion": "fuse", "rrf": "fuse",
    "clicks": "learn-clicks", "links": "learn-links", "import": "convert", "deploy": "export", "kappa": "agreement",
    "alpha": "agreement", "votes": "leaderboard", "arena": "leaderboard", "elo": "leaderboard",
}  # fmt: skip

GROUPS, OTHER_NAMES = with_added(_LIBRARY, _OTHER_NAMES)
"""All commands by group, in the order of the help; names that other tools use, and the command to suggest."""


class LazyCommands(Mapping[str, Any]):
    """Commands by name, made of their functions when they are looked up: that takes 4 ms each."""

    def __init__(self, entries: Iterable[Verb | VerbGroup], before: str = "") -> None:
        self._entries, self._before = {entry.name: entry for entry in entries}, before
        self._made: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._made:
            self._made[name] = _make_command(self._entries[name], self._before)
        return self._made[name]

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


def _make_command(entry: Verb | VerbGroup, before: str) -> Any:
    example = next((verb.example for _, verb in all_verbs([entry])), "")
    epilog = f"\b\nExample:\n  corank {example}"  # \b keeps the line breaks
    if isinstance(entry, VerbGroup):
        return Subcommands(entry, before + entry.name, short_help=entry.summary, epilog=epilog)
    single = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    register = single.command(entry.name, short_help=entry.summary, epilog=epilog, hidden=not entry.summary)
    register(_keeping_inputs(with_options(entry.function)))
    return typer.main.get_command(single)


REMOVED = {
    "check-lambda": "call corank.models.check_lambda in Python",
    "simulate-clicks": "call corank.clicks.simulate_clicks in Python",
}
"""Commands of 0.2 that are only functions now."""


class Interruptible:
    """Mixin: Ctrl-C ends a command with one sentence."""

    def make_context(self, *words: Any, **more: Any) -> Any:
        """Parse the command line."""
        with _reporting_interrupts():
            return super().make_context(*words, **more)  # type: ignore[misc]

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        with _reporting_interrupts():
            return super().invoke(ctx)  # type: ignore[misc]


class Command(Interruptible, TyperCommand):
    """The only command of an application."""


class CommandGroup(Interruptible, TyperGroup):
    """All commands: help by group, and a suggestion for an unknown name."""

    def __init__(self, **more: Any) -> None:
        super().__init__(**more)
        self.commands = LazyCommands(_entries())  # type: ignore[assignment]

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command, or exit with code 2 and one sentence that suggests another name."""
        name = args[0]
        is_known = ctx.resilient_parsing or name.startswith("-") or self.get_command(ctx, name) is not None
        if not is_known:
            meant = OTHER_NAMES.get(name.lower())
            hint = REMOVED.get(name) or (
                f"use 'corank {meant}'" if meant else suggest_names(name, [entry.name for entry in _entries()])
            )
            _refuse(f"there is no command {name!r}", hint)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands by group."""
        width = max(len(entry.name) for entry in _entries())
        for title, entries in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(entry.name.ljust(width), entry.summary) for entry in entries])


class Subcommands(TyperGroup):
    """The commands of a `VerbGroup`: words that name none of them are for the default one, or refused."""

    def __init__(self, group: VerbGroup, path: str, **more: Any) -> None:
        super().__init__(name=group.name, help=group.summary, rich_markup_mode=None, **more)
        self.group, self.path = group, path
        self.commands = LazyCommands(group.verbs, f"{path} ")  # type: ignore[assignment]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Insert the default command; exit with code 2 and one sentence if there is none, or an option has moved."""
        group = self.group
        if ctx.resilient_parsing or (args and (args[0] in self.commands or args[0] in ctx.help_option_names)):
            words = args
        elif group.default:
            words = [group.default, *args]
        else:
            listed = [name for name, command in self.commands.items() if not command.hidden]
            # without a guess where the words may be those of another command
            hint = suggest_names("" if group.hint or not args else args[0], listed)
            hint = f"{group.hint}; {hint}" if group.hint else hint
            name = f"{self.path} {args[0]}" if args else ""
            _refuse(f"there is no command {name!r}" if name else f"'corank {self.path}' needs a command", hint)
        moved = [word for word in words if word.partition("=")[0] in group.moved]
        if moved and words[0] == group.default:
            option = moved[0].partition("=")[0]
            typer.echo(f"corank: {option} is now 'corank {group.moved[option]}'.", err=True)
            raise typer.Exit(2)
        return super().parse_args(ctx, words)


def _refuse(problem: str, hint: str) -> NoReturn:
    typer.echo(f"corank: {problem}; {hint}.", err=True)
    raise typer.Exit(2)


def _entries() -> list[Verb | VerbGroup]:
    return [entry for entries in GROUPS.values() for entry in entries]


VERBS = dict(all_verbs(_entries()))
"""All commands by their full names, such as ``screen replay``."""

app = typer.Typer(
    name="corank",
    cls=CommandGroup,
    help=DESCRIPTION,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # rich doubles the import time
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"corank {__version__}")
        raise typer.Exit


@app.callback(help=DESCRIPTION)
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
    debug: Annotated[  # `main` removes it from the arguments, wherever it occurs
        bool, typer.Option("--debug", help="Show the traceback of an error; allowed anywhere in a command.")
    ] = False,
) -> None:
    pass


OUTPUTS = ("output", "vectors_output", "export", "plot", "per_query", "report", "target", "page", "junit")
"""Parameters of commands that name a file or folder to write; other paths are inputs."""

UPDATED = ("add_to",)
"""Inputs that may be replaced, since the output contains them."""


def _keeping_inputs(function: Callable[..., None]) -> Callable[..., None]:
    """Let a command refuse to write onto one of its inputs, with --force too."""

    @functools.wraps(function)
    def run(**given: Any) -> None:
        paths = {name: value if isinstance(value, list) else [value] for name, value in given.items()}
        paths = {name: [item for item in values if isinstance(item, Path)] for name, values in paths.items()}
        outputs = [path for name in OUTPUTS for path in paths.get(name, ())]
        inputs = [path for name in paths if name not in (*OUTPUTS, *UPDATED) for path in paths[name]]
        if inputs:
            from corank.data.durable.atomic import require_no_input

            for path in (*outputs, Path("-")):
                require_no_input(path, inputs, keeps_folder=function is compare)
        function(**given)

    return run


def _translated(message: Exception | str, words: list[str], application: typer.Typer) -> str:
    """Return a message of the library in terms of the options of the command."""
    from corank.cli.messages import translate_message

    return translate_message(str(message), typer.main.get_command(application), words)


def _report_interrupt() -> None:
    typer.echo("corank: interrupted; unfinished output was not written.", err=True)


@contextmanager
def _reporting_interrupts() -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        _report_interrupt()
        raise typer.Exit(INTERRUPTED) from None


@contextmanager
def _resend_swallowed_interrupts() -> Iterator[None]:
    """
    Send Ctrl-C again if Python swallows it.

    Python prints and ignores a `KeyboardInterrupt` inside a destructor or a callback, such as those of imports.
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


@contextmanager
def _terminable() -> Iterator[list[int]]:
    """End a command on a request to terminate (SIGTERM) as on Ctrl-C: files and the terminal are left in order."""
    requests: list[int] = []

    def request(number: int, _: Any) -> None:
        requests.append(number)
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield requests
        return
    before = signal.signal(signal.SIGTERM, request)
    try:
        yield requests
    finally:
        signal.signal(signal.SIGTERM, before)


def main(application: typer.Typer | None = None, name: str = "corank") -> None:
    """
    Run the command line; print errors as one sentence on standard error.

    Exit codes: 1 for bad input, 2 for a wrong command or option, 130 after Ctrl-C, 143 after a request to terminate.
    """
    with printable_streams(), _terminable() as is_terminated:
        code = _run(application or app, name)
        # after Ctrl-C inside an `exec` of text, as in dataclasses, Python ends by the signal: make it forget
        exec("")
        sys.exit(TERMINATED if is_terminated and code in (0, INTERRUPTED) else code)


def _current(word: str) -> str:
    """Return an option by its name now; print a sentence if that differs."""
    name, equals, value = word.partition("=")
    if name not in OLD_OPTIONS:
        return word
    typer.echo(f"corank: {name} is now {OLD_OPTIONS[name]}; the old name is removed in 0.4.", err=True)
    return f"{OLD_OPTIONS[name]}{equals}{value}"


def _run(application: typer.Typer, name: str) -> Any:
    """Run the command line; return the exit code."""
    words = [_current(word) for word in sys.argv[1:] if word != DEBUG]

    def warn(message: Warning | str, *_: Any, **__: Any) -> None:
        # one sentence, without the line of code
        typer.echo(f"corank: {one_line(_translated(str(message), words, application))}", err=True)

    try:
        with warnings.catch_warnings(), _resend_swallowed_interrupts():
            warnings.showwarning = warn
            application(args=words, prog_name=name)
        return 0
    except SystemExit as end:
        return end.code
    except KeyboardInterrupt:  # before or after the command
        _report_interrupt()
        return INTERRUPTED
    except Exception as error:
        if DEBUG in sys.argv[1:]:
            typer.echo(traceback.format_exc(), err=True, nl=False)
        else:
            typer.echo(f"corank: {one_line(_describe(error, words, application))}", err=True)
        return 1


def _describe(error: Exception, words: list[str], application: typer.Typer) -> str:
    if isinstance(error, InputError | MissingExtra):
        return _translated(error, words, application)
    if isinstance(error, MemoryError):
        return f"there is not enough memory ({reason(error)}); try fewer rows or features, or a larger machine."
    if isinstance(error, OSError):
        where = "" if error.filename is None else f"{error.filename}: "
        return f"{where}{error.strerror or error}."
    return f"internal error ({type(error).__name__}: {reason(error)}); run again with {DEBUG} for a traceback."
