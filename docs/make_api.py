"""Write docs/api/: one page a room, with every class and function that users may import from it."""

from __future__ import annotations

import inspect
from importlib import import_module
from pathlib import Path

import corank
from corank.metrics import Measure

API = Path(__file__).parent / "api"
# rooms by what they are for; a room that stands in none is an error, one that corank does not have is passed over
SECTIONS = {
    "Learn a ranker": (
        "linear", "rls", "pursuit", "lambdarank", "gp", "collaborative", "label_ranking", "text", "clicks",
        "distributed", "estimator",
    ),
    "Decide what to judge": ("judging.suggestions", "judging.screening", "judging.preferences"),
    "Measure and use": ("metrics", "evaluation.compare", "evaluation.bounds", "evaluation.report", "persist"),
    "Read and write": ("data",),
    "Parts to build with": ("kernels", "pairwise", "solvers", "errors"),
}  # fmt: skip


def rooms() -> set[str]:
    """Return every public package: those of `import corank`, their public parts, and where names are defined."""
    containers = {"evaluation", "judging"}
    homes = {home.removeprefix("corank.") for home in corank._HOMES.values()}
    parts = {f"{package}.{part}" for package in containers for part in getattr(corank, package)._HOMES}
    return {*corank._PACKAGES, *homes, *parts} - containers


def placed() -> dict[str, list[str]]:
    """Return the rooms of each section that there are."""
    return {section: [room for room in members if room in rooms()] for section, members in SECTIONS.items()}


def offered(module_name: str) -> dict[str, object]:
    """Return classes, functions and measures of a module, by name: what `__all__` lists, else what it defines."""
    module = import_module(module_name)
    listed = getattr(module, "__all__", None)
    names = listed or [name for name, thing in vars(module).items() if getattr(thing, "__module__", "") == module_name]
    things = {name: getattr(module, name) for name in sorted(names, key=str.lower) if not name.startswith("_")}
    return {
        name: thing
        for name, thing in things.items()
        # functions that remember what they returned are functions too
        if inspect.isclass(thing) or inspect.isfunction(inspect.unwrap(thing)) or isinstance(thing, Measure)
    }


def full_name(module_name: str, name: str) -> str:
    """Return the shortest name that users can type: `corank.SPD`, but `corank.gp.Posterior`."""
    return f"corank.{name}" if corank._HOMES.get(name) == module_name else f"{module_name}.{name}"


def listing(room: str) -> dict[str, object]:
    """Return what a package offers, each thing under its full name and once in the whole reference."""
    module_name = f"corank.{room}"
    things = {full_name(module_name, name): thing for name, thing in offered(module_name).items()}
    return {name: thing for name, thing in things.items() if not is_elsewhere(room, name, thing)}


def is_elsewhere(room: str, full: str, thing: object) -> bool:
    """Whether a thing is shown under another name: that of `import corank`, or that of the package that defines it."""
    name = full.rpartition(".")[2]
    if full == f"corank.{name}":
        return corank._HOMES[name] != f"corank.{room}"
    if name in corank._HOMES and getattr(corank, name) is thing:
        return True
    made_in = getattr(thing, "__module__", "")
    others = [other for other in rooms() - {room} if made_in.startswith(f"corank.{other}")]
    return not made_in.startswith(f"corank.{room}") and any(name in offered(f"corank.{other}") for other in others)


def table(names: list[str], template: str = "") -> str:
    """Return the lines that let Sphinx make a table of names, and a page for each."""
    options = ["   :toctree: generated", "   :nosignatures:", *([f"   :template: {template}"] if template else [])]
    return "\n".join(["```{eval-rst}", ".. autosummary::", *options, "", *(f"   {name}" for name in names), "```", ""])


def page(room: str) -> str:
    """Return the page of a room."""
    summary = (import_module(f"corank.{room}").__doc__ or "").strip().splitlines()[0]
    parts = [f"# corank.{room}\n", f"{summary}\n"]
    things = listing(room)
    plain = [name for name, thing in things.items() if not isinstance(thing, Measure)]
    measures = [name for name, thing in things.items() if isinstance(thing, Measure)]
    parts.append(table(plain))
    if measures:
        parts += ["Metrics as functions:\n", table(measures, "measure.rst")]
    return "\n".join(parts)


def index() -> str:
    """Return the page that lists the rooms."""
    parts = [
        "# API reference\n",
        "Every public class and function, room by room. What `import corank` gives directly is shown under that name, "
        "`corank.SPD`;\nthe rest under its room, `corank.gp.Posterior`. Made by `python docs/make_api.py`.\n",
    ]
    for section, members in placed().items():
        parts.append(f"## {section}\n")
        for room in members:
            shown = ", ".join(f"`{name.removeprefix('corank.').removeprefix(f'{room}.')}`" for name in listing(room))
            parts.append(f"- [{room}]({room}.md): {shown}")
        parts += ["", "```{toctree}", ":hidden:", f":caption: {section}", "", *members, "```", ""]
    return "\n".join(parts)


def pages() -> dict[str, str]:
    """Return the text of every page of the reference, by the name of its file."""
    shown = [room for members in placed().values() for room in members]
    if forgotten := rooms() - set(shown):
        raise SystemExit(f"put {', '.join(sorted(forgotten))} into SECTIONS of docs/make_api.py.")
    return {"index.md": index(), **{f"{room}.md": page(room) for room in shown}}


if __name__ == "__main__":
    made = pages()
    for old in API.glob("*.md"):
        if old.name not in made:
            old.unlink()
    for name, text in made.items():
        (API / name).write_text(text, encoding="utf-8")
