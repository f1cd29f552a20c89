"""
Options from a TOML file: keys are the options of a verb, what is typed wins, and nothing is passed over.

A verb takes ``config: Config = None`` among its options, and has nothing else to do.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated, Any

import typer

from corank.errors import InputError, known


def _configure(context: typer.Context, path: Path | None) -> Path | None:
    """Take the values of a file for the defaults of the options that are read after this one."""
    if path is None or context.resilient_parsing:
        return path
    parameters = {_key(one): one.name for one in context.command.params if one.name not in ("config", "help")}
    values = {}
    for key, value in _read(path).items():
        name = key.replace("_", "-")
        if name not in parameters:
            raise InputError(f"{path} has a key {key!r}, which is no option; {known(name, sorted(parameters))}.")
        if isinstance(value, dict):
            raise InputError(f"{path}: {key} is a table; write one value, or a list of values.")
        values[str(parameters[name])] = value
    context.default_map = {**(context.default_map or {}), **values}
    return path


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
    from corank.data.table_text import decoded

    try:
        return tomllib.loads(decoded(path))
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path} is no TOML ({error}); write lines such as model = 'spd'.") from None
