"""Commands as data: a function with one line of help and an example. Other packages add commands by an entry point."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.metadata import entry_points
from typing import NamedTuple

import typer

ENTRY_POINTS = "corank.commands"
"""Group of entry points; each names an object of the class `Commands`."""


class Verb(NamedTuple):
    """A command: the function, one line of help, and an example, which a test runs."""

    function: Callable[..., None]
    summary: str
    example: str

    @property
    def name(self) -> str:
        """The name on the command line."""
        return self.function.__name__.replace("_", "-")


class Commands(NamedTuple):
    """
    Commands that a package adds.

    verbs: commands by the title of their group in the help.
    groups: commands that have commands of their own, each with one line of help.
    """

    verbs: Mapping[str, tuple[Verb, ...]]
    groups: Mapping[str, tuple[typer.Typer, str]]


def with_added(
    verbs: Mapping[str, tuple[Verb, ...]],
) -> tuple[dict[str, tuple[Verb, ...]], dict[str, tuple[typer.Typer, str]]]:
    """Return verbs together with those that installed packages add, and the added groups."""
    all_verbs, groups = dict(verbs), dict[str, tuple[typer.Typer, str]]()
    for point in sorted(entry_points(group=ENTRY_POINTS)):
        added: Commands = point.load()
        for title, more in added.verbs.items():
            all_verbs[title] = (*all_verbs.get(title, ()), *more)
        groups.update(added.groups)
    return all_verbs, groups
