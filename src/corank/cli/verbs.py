"""Commands as data: a function with one line of help and an example. Other packages add commands by an entry point."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib.metadata import entry_points
from typing import NamedTuple

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
