"""
Options from a TOML file: keys are the options of a verb, what is typed wins, and nothing is passed over.

A verb takes ``config: Config = None`` among its options, and has nothing else to do.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated, Any

import typer

from corank.errors import InputError, suggest_names


def _configure(context: typer.Context, path: Path | None) -> Path | None:
    """Take the values of a file for the defaults of the options that are read after this one."""
    if path is None or context.resilient_parsing:
        return path
    parameters = {_key(one): one for one in context.command.params if one.name not in ("config", "help")}
    values = {}
    for key, value in _read(path).items():
        name = key.replace("_", "-")
        if name not in parameters:
            raise InputError(
                f"{path} has a key {key!r}, which is no option; {suggest_names(name, sorted(parameters))}."
            )
        if isinstance(value, dict):
            raise InputError(f"{path}: {key} is a table; write one value, or a list of values.")
        values[str(parameters[name].name)] = _checked(value, parameters[name], f"{path}: {key}")
    context.default_map = {**(context.default_map or {}), **values}
    return path


def _checked(value: Any, parameter: Any, where: str) -> Any:
    """Hold a value against its option; a single value is a list of one, where an option may be repeated."""
    wants_list = getattr(parameter, "multiple", False) or parameter.nargs != 1
    if isinstance(value, list) and not wants_list:
        raise InputError(f"{where} is a list; write one value.")
    listed = value if isinstance(value, list) else [value]
    is_flag = getattr(parameter, "is_flag", False)
    wrong = next((one for one in listed if isinstance(one, bool) != is_flag), None)
    if wrong is not None:
        wanted = "true or false" if is_flag else "what the option takes, not true or false"
        raise InputError(f"{where} is {wrong!r}; write {wanted}.")
    return listed if wants_list else value


Config = Annotated[
    Path | None,
    typer.Option(
        "--config",
        callback=_configure,
        is_eager=True,
        help="TOML file of options; what is typed wins.",
    ),
]
"""The option of a verb that has many."""


def _key(parameter: Any) -> str:
    """An option without its dashes, or the name of an argument."""
    return next((one[2:] for one in parameter.opts if one.startswith("--")), str(parameter.name))


def _read(path: Path) -> dict[str, Any]:
    from corank.data.formats.table_text import read_utf8

    try:
        return tomllib.loads(read_utf8(path))
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path} is no TOML ({error}); write lines such as model = 'spd'.") from None
