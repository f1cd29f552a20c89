"""Sentences of the library, which name parameters of Python, in the words of the command line."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection, Mapping
from typing import Any

# an assignment that a sentence recommends: qid=, alpha=0.1, loss='squared'; not one inside quotes or behind --set
_ASSIGNMENT = re.compile(r"""(?<![\w'"./(-])(?<!--set )(set )?([a-z][a-z0-9_]*)=('[^']*'|[\w.+-]*\w)?""")
# the parameter that is refused, as the first word of a sentence; columns of a table are not parameters here
_REFUSED = re.compile(r"(?!y |qid )([a-z][a-z0-9_]*)(?= is [^;]*; pass )")
# options whose name is not that of the parameter; a pipeline's --scale is no model's scale
_PARAMETERS = {
    "label": "y", "penalty": "alpha", "iterations": "n_steps", "eta": "rate", "seed": "random_state",
    "force": "overwrite", "scale": "--scale", "simulate": "judged",
}  # fmt: skip


def in_options(sentence: str, options: Mapping[str, str], settable: Callable[[], Collection[str]]) -> str:
    """
    Turn ``name=value`` into the option of that name, or into ``--set name=value`` where a model has the parameter.

    A parameter that is refused in the first word is its option too.

    sentence: what the library says.
    options: parameter to option, as the verb has them.
    settable: gives parameters that ``--set`` takes; asked only where there is no option.
    Returns: the sentence; what the verb has no word for stays.

    >>> in_options("a.csv has no column 'label'; name one with y=.", {"y": "--label"}, list)
    "a.csv has no column 'label'; name one with --label."
    >>> in_options("set l1=0, or choose solver='sgd'.", {}, lambda: ["l1", "solver"])
    'pass --set l1=0, or choose --set solver=sgd.'
    """

    def option(found: re.Match[str]) -> str:
        name, value = found[2], found[3] or ""
        if name in options:
            said = options[name] if value in ("", "True") else f"{options[name]} {value}"
        elif value and name in settable():
            said = f"--set {name}=" + value.strip("'")
        else:
            return found[0]
        return ("pass " if found[1] else "") + said

    refused = _REFUSED.match(sentence)
    if refused and refused[1] in options:
        sentence = options[refused[1]] + sentence[refused.end() :]
    return _ASSIGNMENT.sub(option, sentence)


def spoken(sentence: str, command: Any, words: list[str]) -> str:
    """
    Say a sentence of the library in the words of the verb that is run.

    command: the whole command, as click knows it.
    words: what the user typed.
    """
    verb = next((word for word in words if word in getattr(command, "commands", ())), None)
    if verb is None:
        return sentence
    options = {"docid": "the column docid"}
    for parameter in command.commands[verb].params:
        if parameter.opts[0].startswith("--"):
            options[_PARAMETERS.get(parameter.name, parameter.name)] = parameter.opts[0]
    return in_options(sentence, options, _model_parameters if verb == "fit" else list)


def _model_parameters() -> set[str]:
    from corank.cli.learn.models import find_ranker, rankers

    return {name for model in rankers() for name in inspect.signature(find_ranker(model)).parameters}
