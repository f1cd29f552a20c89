"""Translate messages of the library, which name Python parameters, to the options of a command."""

from __future__ import annotations

import inspect
import re
import shlex
from collections.abc import Callable, Collection, Mapping
from typing import Any

# an assignment that a message recommends: qid=, alpha=0.1, loss='squared'; not one in quotes or after --set
_ASSIGNMENT = re.compile(r"""(?<![\w'"./(-])(?<!--set )(set )?([a-z][a-z0-9_]*)=('[^']*'|[\w.+-]*\w)?""")
# the invalid parameter as the first word of a message; y and qid are columns here
_INVALID = re.compile(r"(?!y |qid )([a-z][a-z0-9_]*)(?= is [^;]*; pass )")
# options whose name differs from the parameter; --scale is not the parameter `scale` of a model
_PARAMETERS = {
    "label": "y", "penalty": "alpha", "iterations": "n_steps", "eta": "rate", "seed": "random_state",
    "force": "overwrite", "id_column": "docid", "judge_column": "judge", "scale": "--scale", "simulate": "judged",
}  # fmt: skip


def replace_assignments(message: str, options: Mapping[str, str], settable: Callable[[], Collection[str]]) -> str:
    """
    Replace ``name=value`` by the option of that name, or by ``--set name=value`` for other parameters of a model.

    An invalid parameter in the first word is also replaced by its option.
    """

    def option(match: re.Match[str]) -> str:
        name, value = match[2], match[3] or ""
        if name in options:
            value = "none" if (name, value) == ("qid", "False") else value
            value = shlex.quote(value.strip("'"))
            text = options[name] if value in ("''", "True") else f"{options[name]} {value}"
        elif value and name in settable():
            text = f"--set {name}=" + value.strip("'")
        else:
            return match[0]
        return ("pass " if match[1] else "") + text

    invalid = _INVALID.match(message)
    if invalid and invalid[1] in options:
        message = options[invalid[1]] + message[invalid.end() :]
    return _ASSIGNMENT.sub(option, message)


def translate_message(message: str, command: Any, words: list[str]) -> str:
    """Translate a message of the library to the options of the command that runs."""
    name = next((word for word in words if word in getattr(command, "commands", ())), None)
    if name is None:
        return message
    rest = words[words.index(name) + 1 :]
    command = command.commands[name]
    while hasattr(command, "commands"):
        below = rest.pop(0) if rest and rest[0] in command.commands else command.group.default
        if not below:
            return message
        command = command.commands[below]
    options = {"docid": "the column docid"}
    for parameter in command.params:
        if parameter.opts[0].startswith("--"):
            options[_PARAMETERS.get(parameter.name, parameter.name)] = parameter.opts[0]
    if name == "fit":
        del options["unjudged"]  # a label; the parameter of AutoRanker is another one
    return replace_assignments(message, options, _model_parameters if name == "fit" else list)


def _model_parameters() -> set[str]:
    from corank.cli.learn.models import find_ranker, rankers

    return {name for model in rankers() for name in inspect.signature(find_ranker(model)).parameters}
