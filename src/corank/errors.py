"""What corank raises: one sentence that says what came, what was wanted and what to do."""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Iterable, Mapping
from types import ModuleType


class InputError(ValueError):
    """Bad input from the user; the command line prints its sentence and exits with 1."""


class InputTypeError(InputError, TypeError):
    """Bad input of a type that scikit-learn's contract answers with a TypeError."""


class UsageWarning(UserWarning):
    """What was given can be learnt from, but is probably not what was meant."""


class MissingExtra(ImportError):
    """An optional dependency is absent; the message carries the command that installs it."""


def reason(error: Exception) -> str:
    """
    Return the first sentence of another library's message, to stand in brackets inside one of ours.

    Parameters
    ----------
    error : Exception
        What it raised.

    Returns
    -------
    str
        Without a full stop; the name of the error where it has no message.

    Examples
    --------
    >>> reason(ValueError("Rows differ. See the manual:\\n..."))
    'Rows differ'
    """
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0].split(". ")[0].rstrip(".")


def closest(wrong: str, right: Iterable[str]) -> str | None:
    """
    Find the name that is spelled most like what came, in any case.

    Parameters
    ----------
    wrong : str
        What came.
    right : iterable of str
        The known names.

    Returns
    -------
    str or None
        One of them, or None where none is near.
    """
    import difflib

    folded = {name.casefold(): name for name in right}
    near = difflib.get_close_matches(wrong.casefold(), folded, n=1)
    return folded[near[0]] if near else None


def suggest_names(wrong: str, right: Mapping[str, str] | Iterable[str], guess: str | None = None) -> str:
    """
    Say which names are known, and which one was probably meant.

    Parameters
    ----------
    wrong : str
        What came.
    right : mapping of str to str, or iterable of str
        The known names; a mapping also says how to list each, once if several are listed alike.
    guess : str, optional
        What was meant, where more than the spelling tells it.

    Returns
    -------
    str
        The second half of an error message, without a full stop.

    Examples
    --------
    >>> suggest_names("lcar", ["spd", "lcra"])
    "did you mean 'lcra'? Choose one of spd, lcra"
    """
    shown = right if isinstance(right, Mapping) else {name: name for name in right}
    guess = guess or closest(wrong, shown)
    names = ", ".join(dict.fromkeys(shown.values()))
    return f"did you mean {guess!r}? Choose one of {names}" if guess else f"choose one of {names}"


def warn(message: str, category: type[Warning] = UsageWarning) -> None:
    """
    Warn at the line of the user's that called corank or scikit-learn, however deep inside them this is said.

    Parameters
    ----------
    message : str
        One sentence.
    category : type
        Kind of the warning.
    """
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(("corank.", "sklearn.")):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def import_extra(module: str, extra: str) -> ModuleType:
    """
    Import an optional dependency, or say in one sentence how to install it.

    Parameters
    ----------
    module : str
        Dotted name of the module to import.
    extra : str
        The extra of corank that brings it.

    Returns
    -------
    module
        The imported module.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtra(f"{module} is not installed; run: pip install 'corank[{extra}]'", name=module) from error
