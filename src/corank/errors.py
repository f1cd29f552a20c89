"""Errors and warnings: what was found, what is expected, what to do, in one or two sentences."""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Iterable, Mapping
from types import ModuleType

from corank.console import one_line


class InputError(ValueError):
    """
    Invalid input. The command line prints the message and exits with status 1.

    The message states the value that was found, what is expected, and what to do: "alpha is -1.0; pass a number above
    0." Control characters in it, as in a hostile file name, are shown as escapes.
    """

    def __str__(self) -> str:
        return one_line(super().__str__())


class InputTypeError(InputError, TypeError):
    """Invalid input for which scikit-learn's estimator checks require a TypeError."""


class UsageWarning(UserWarning):
    """The input is valid but probably not what the user intended."""


class MissingExtra(ImportError):
    """An optional dependency is not installed. The message contains the command that installs it."""


def reason(error: Exception) -> str:
    """Return the first sentence of another library's error without its full stop, or else the name of its class."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0].split(". ")[0].rstrip(".")


def closest(name: str, names: Iterable[str]) -> str | None:
    """Find the valid name with the most similar spelling, ignoring case."""
    import difflib

    folded = {valid.casefold(): valid for valid in names}
    near = difflib.get_close_matches(name.casefold(), folded, n=1)
    return folded[near[0]] if near else None


def suggest_names(name: str, names: Mapping[str, str] | Iterable[str], guess: str | None = None) -> str:
    """Return the end of an error message about an unknown name: the most similar valid name, and all valid names."""
    shown = names if isinstance(names, Mapping) else {valid: valid for valid in names}
    guess = guess or closest(name, shown)
    listed = ", ".join(dict.fromkeys(shown.values()))
    return f"did you mean {guess!r}? Choose one of {listed}" if guess else f"choose one of {listed}"


def warn(message: str, category: type[Warning] = UsageWarning) -> None:
    """Issue a warning that points to the user's code: the line that called corank or scikit-learn."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(("corank.", "sklearn.")):
        level, frame = level + 1, frame.f_back
    warnings.warn(one_line(message), category, stacklevel=level)


def import_extra(module: str, extra: str) -> ModuleType:
    """Import an optional dependency, or raise `MissingExtra` with the command that installs it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtra(f"{module} is not installed; run: pip install 'corank[{extra}]'", name=module) from error
