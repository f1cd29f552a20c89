"""Write docs/api/: one page for each public package, with its classes and functions."""

from __future__ import annotations

import inspect
from importlib import import_module
from pathlib import Path

import corank
from corank.metrics import Measure

API = Path(__file__).parent / "api"
# public packages by purpose; a package that is missing here is an error
SECTIONS = {
    "Learn a ranker": (
        "auto", "linear", "rls", "pursuit", "lambdarank", "gp", "collaborative", "label_ranking", "text", "clicks",
        "distributed", "estimator",
    ),
    "Decide what to judge": (
        "judging.suggestions", "judging.screening", "judging.stopping", "judging.preferences", "judging.grading",
        "judging.agreement",
    ),
    "Measure and use": ("metrics", "evaluation.compare", "evaluation.bounds", "evaluation.report", "persist", "export"),
    "Read and write": ("data",),
    "Parts to build with": ("kernels", "pairwise", "solvers", "errors"),
}  # fmt: skip


def packages() -> set[str]:
    """Return every public package: those of `import corank`, their public parts, and where names are defined."""
    containers = {"evaluation", "judging"}
    homes = {home.removeprefix("corank.") for home in corank._HOMES.values()}
    parts = {f"{package}.{part}" for package in containers for part in getattr(corank, package)._HOMES}
    return {*corank._PACKAGES, *homes, *parts} - containers


def placed() -> dict[str, list[str]]:
    """Return the existing packages of each section."""
    return {section: [package for package in members if package in packages()] for section, members in SECTIONS.items()}


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
    """Return the shortest name that users can type: `corank.SPD`, but `corank.models.gp.Posterior`."""
    return f"corank.{name}" if corank._HOMES.get(name) == module_name else f"{module_name}.{name}"


def listing(package: str) -> dict[str, object]:
    """Return the names of a package, each once in the whole reference."""
    module_name = f"corank.{package}"
    things = {full_name(module_name, name): thing for name, thing in offered(module_name).items()}
    return {name: thing for name, thing in things.items() if not is_elsewhere(package, name, thing)}


def is_elsewhere(package: str, full: str, thing: object) -> bool:
    """Return whether a name is listed elsewhere: at the top level, or in the package that defines it."""
    name = full.rpartition(".")[2]
    if full == f"corank.{name}":
        return corank._HOMES[name] != f"corank.{package}"
    if name in corank._HOMES and getattr(corank, name) is thing:
        return True
    made_in = getattr(thing, "__module__", "")
    others = [other for other in packages() - {package} if made_in.startswith(f"corank.{other}")]
    return not made_in.startswith(f"corank.{package}") and any(name in offered(f"corank.{other}") for other in others)


def table(names: list[str], template: str = "") -> str:
    """Return the lines that let Sphinx make a table of names, and a page for each."""
    options = ["   :toctree: generated", "   :nosignatures:", *([f"   :template: {template}"] if template else [])]
    return "\n".join(["```{eval-rst}", ".. autosummary::", *options, "", *(f"   {name}" for name in names), "```", ""])


def page(package: str) -> str:
    """Return the page of a package."""
    summary = (import_module(f"corank.{package}").__doc__ or "").strip().splitlines()[0]
    parts = [f"# corank.{package}\n", f"{summary}\n"]
    things = listing(package)
    plain = [name for name, thing in things.items() if not isinstance(thing, Measure)]
    measures = [name for name, thing in things.items() if isinstance(thing, Measure)]
    parts.append(table(plain))
    if measures:
        parts += ["Metrics as functions:\n", table(measures, "measure.rst")]
    return "\n".join(parts)


def first_line(thing: object) -> str:
    """Return the first sentence of a docstring, for a cell of a table."""
    lines = (inspect.getdoc(thing) or "").split("\n\n")[0]
    return " ".join(lines.split()).replace("|", "\\|")


def index() -> str:
    """Return the page that lists every name with one line."""
    parts = [
        "# API reference\n",
        "Every public class and function, by package. Names that `import corank` provides are listed as `corank.SPD`, "
        "all\nothers under their package, `corank.models.gp.Posterior`. Generated by `python docs/make_api.py`.\n",
    ]
    for section, members in placed().items():
        parts.append(f"## {section}\n")
        for package in members:
            parts += [f"### [{package}]({package}.md)\n", "| name | |", "|---|---|"]
            for name, thing in listing(package).items():
                short = name.removeprefix("corank.").removeprefix(f"{package}.")
                parts.append(f"| `{short}` | {first_line(thing)} |")
            parts.append("")
        parts += ["```{toctree}", ":hidden:", f":caption: {section}", "", *members, "```", ""]
    return "\n".join(parts)


def pages() -> dict[str, str]:
    """Return the text of every page of the reference, by the name of its file."""
    shown = [package for members in placed().values() for package in members]
    if forgotten := packages() - set(shown):
        raise SystemExit(f"put {', '.join(sorted(forgotten))} into SECTIONS of docs/make_api.py.")
    return {"index.md": index(), **{f"{package}.md": page(package) for package in shown}}


if __name__ == "__main__":
    made = pages()
    for old in API.glob("*.md"):
        if old.name not in made:
            old.unlink()
    for name, text in made.items():
        (API / name).write_text(text, encoding="utf-8")
