"""Commands as data, and the options that they share. Other packages add commands by an entry point."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from importlib.metadata import entry_points
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, get_type_hints

import typer

from corank.data.column_roles import JudgeRule, usual_names

INTERRUPTED = 130
"""Exit code of a command that Ctrl-C ended, as shells report it."""

TERMINATED = 143
"""Exit code of a command that a request to terminate (SIGTERM) ended."""


Data = Annotated[
    list[Path],
    typer.Argument(help="LETOR text (or .gz, .xz, .zst; several are joined), a store, Parquet or CSV; - is stdin."),
]
ModelFile = Annotated[Path, typer.Argument(help="Model file that `corank fit` or `corank fuse` wrote.")]
ModelOutput = Annotated[Path, typer.Option("--output", "-o", help="Model file to write.", metavar="MODEL")]
Qid = Annotated[
    str | None,
    typer.Option(help=f"Query column of a table, or 'none' for one query.  [default: {usual_names('qid')}]"),
]
Judges = Annotated[
    JudgeRule,
    typer.Option(
        help="Grade of a document that several judges graded: their median (the lower of two), mean or majority; keep "
        "uses all rows as different documents."
    ),
]
JudgeColumn = Annotated[
    str | None, typer.Option(help=f"Column of judges.  [default: {usual_names('judge')}]", metavar="COLUMN")
]
Unjudged = Annotated[
    float | None, typer.Option(help="Label that marks an unjudged row, such as -1.", show_default=False)
]


@dataclass(frozen=True, kw_only=True)
class ColumnOptions:
    """Options on the columns of a table: a command with a parameter of this type has them."""

    label: Annotated[str | None, typer.Option(help=f"Label column of a table.  [default: {usual_names('y')}]")] = None
    qid: Qid = None
    id_column: Annotated[
        str | None,
        typer.Option("--id", help=f"Column of document ids.  [default: {usual_names('docid')}]", metavar="COLUMN"),
    ] = None
    drop: Annotated[list[str] | None, typer.Option(help="Column to leave out; repeatable.", metavar="COLUMN")] = None
    keep: Annotated[
        list[str] | None,
        typer.Option(help="Feature that has a usual name of a label or id column; repeatable.", metavar="COLUMN"),
    ] = None
    judges: JudgeRule = "median"
    judge_column: str | None = None

    def arguments(self, *, needs_labels: bool) -> dict[str, Any]:
        """Return arguments of `corank.read`."""
        return {
            "y": self.label if self.label or needs_labels else False, "qid": False if self.qid == "none" else self.qid,
            "docid": self.id_column, "drop": self.drop or (), "keep": self.keep or (),
            "judge": self.judge_column, "judges": self.judges,
        }  # fmt: skip

    def of_judgements(self) -> dict[str, Any]:
        """Return arguments of `read_judgements`."""
        given = self.arguments(needs_labels=True)
        del given["judges"]
        return given | {"qid": None if self.qid == "none" else self.qid}


@dataclass(frozen=True, kw_only=True)
class JudgedColumns(ColumnOptions):
    """Options on the columns of a table that may have the grades of several judges."""

    judges: Judges = "median"
    judge_column: JudgeColumn = None


Prior = Annotated[
    str | None,
    typer.Option(
        help="Features whose mean is the prior ranking: names or numbers, such as bm25,tfidf or 21-25; the model "
        "learns a correction.",
        metavar="FEATURES",
    ),
]
Scaling = Annotated[
    Literal["minmax", "zscore"] | None,
    typer.Option(help="Scale features within each query, to [0, 1] or to standard deviation 1."),
]
Assignments = Annotated[
    list[str] | None, typer.Option("--set", help="Set any parameter of the model; repeatable.", metavar="NAME=VALUE")
]
Plot = Annotated[Path | None, typer.Option(help="PNG file to write.", dir_okay=False, metavar="FILE")]
Convention = Annotated[
    str,
    typer.Option(
        "--convention", "-c", help="Convention of metrics: corank, letor4, letor3, trec_eval, sklearn or lightgbm."
    ),
]
RunTag = Annotated[str, typer.Option(help="Name of the run in a TREC file.")]
Seed = Annotated[int, typer.Option(min=0, help="Random seed.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
KeepFormulas = Annotated[
    bool, typer.Option("--keep-formulas", help="Keep texts that a spreadsheet would run, such as =1+1, as they are.")
]
Force = Annotated[bool, typer.Option("--force", help="Replace an existing file.")]


OLD_OPTIONS = {"--unscored": "--unjudged"}
"""Options of 0.2, and their names now; `corank` still accepts them, with a sentence."""


def with_options(function: Callable[..., None]) -> Callable[..., None]:
    """Replace parameters whose types are dataclasses by the options in their fields, and fill them in when called."""
    groups: dict[str, Any] = {}
    parameters: list[Parameter] = []
    for parameter in signature(function, eval_str=True).parameters.values():
        if is_dataclass(parameter.annotation):
            groups[parameter.name] = parameter.annotation
            parameters += _options(parameter.annotation)
        else:
            parameters.append(parameter.replace(kind=Parameter.KEYWORD_ONLY))

    @functools.wraps(function)
    def run(**given: Any) -> None:
        made = {name: _made(kind, given) for name, kind in groups.items()}
        function(**given, **made)

    run.__dict__["__signature__"] = Signature(parameters)
    run.__annotations__ = {}
    return run


def _options(kind: Any) -> Iterator[Parameter]:
    for name, hint, default in _fields(kind):
        if is_dataclass(hint):
            yield from _options(hint)
        elif hasattr(hint, "__metadata__"):
            yield Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=hint)


def _made(kind: Any, given: dict[str, Any]) -> Any:
    """Return an instance with the given values of its fields, which are removed."""
    values: dict[str, Any] = {}
    for name, hint, _ in _fields(kind):
        if is_dataclass(hint):
            values[name] = _made(hint, given)
        elif name in given:
            values[name] = given.pop(name)
    return kind(**values)


def _fields(kind: Any) -> list[tuple[str, Any, Any]]:
    """Return name, annotation and default of each field."""
    hints = get_type_hints(kind, include_extras=True)
    return [
        (item.name, hints[item.name], Parameter.empty if item.default is MISSING else item.default)
        for item in fields(kind)
    ]


ENTRY_POINTS = "corank.commands"
"""Group of entry points; each names an object of the class `Commands`."""


class Verb(NamedTuple):
    """A command."""

    function: Callable[..., None]
    summary: str  # one line of help; a command without one is not listed
    example: str  # a test runs it

    @property
    def name(self) -> str:
        """The name on the command line."""
        return self.function.__name__.replace("_", "-")


class VerbGroup(NamedTuple):
    """A command that has commands of its own."""

    name: str
    summary: str
    verbs: tuple[Verb | VerbGroup, ...]
    default: str = ""  # the command that is meant if the first word names none; empty if there is no such command
    hint: str = ""  # added to the refusal of an unknown command
    moved: Mapping[str, str] = {}  # options of the default command that have become commands, and those commands


Sections = Mapping[str, tuple[Verb | VerbGroup, ...]]
"""Commands by the title of their section in the help."""


class Commands(NamedTuple):
    """Commands that a package adds."""

    sections: Sections
    other_names: Mapping[str, str] = {}  # names that other tools or earlier versions use, and the command to suggest


def all_verbs(entries: Iterable[Verb | VerbGroup], before: str = "") -> Iterator[tuple[str, Verb]]:
    """Yield all listed commands with their full names, such as ``screen replay``."""
    for entry in entries:
        if isinstance(entry, VerbGroup):
            yield from all_verbs(entry.verbs, f"{before}{entry.name} ")
        elif entry.summary:
            yield before + entry.name, entry


def with_added(sections: Sections, other_names: Mapping[str, str]) -> Commands:
    """Return commands together with those that installed packages add."""
    result, names = dict(sections), dict(other_names)
    for point in sorted(entry_points(group=ENTRY_POINTS)):
        added: Commands = point.load()
        for title, more in added.sections.items():
            result[title] = (*result.get(title, ()), *more)
        names.update(added.other_names)
    return Commands(result, names)
