"""Write docs/api/: one page for each public package, with its classes and functions."""

from __future__ import annotations

import inspect
import pkgutil
from importlib import import_module
from pathlib import Path

import corank
import corank_lab
from corank.metrics import Metric

API = Path(__file__).parent / "api"
# public packages by purpose; a package that is missing here is an error
SECTIONS = {
    "Learn a ranker": (
        "corank.models.auto", "corank.models.fusion", "corank.models.linear", "corank.models.rls",
        "corank.models.pursuit", "corank.models.lambdarank", "corank.models.gp", "corank.models.votes",
        "corank.models.ratings",
        "corank.models.labels", "corank.text", "corank.clicks", "corank.deploy.distributed", "corank.base",
    ),
    "Decide what to judge": (
        "corank_lab.screening", "corank_lab.screening.stopping", "corank_lab.preferences",
        "corank_lab.grading",
    ),
    "Measure and use": (
        "corank.metrics", "corank.comparison", "corank.metrics.bounds",
        "corank.deploy.persist", "corank.deploy.export",
    ),
    "Read and write": ("corank.data", "corank_lab.records"),
    "Parts to build with": ("corank.base.kernels", "corank.base.pairs", "corank.base.solvers", "corank.errors"),
}  # fmt: skip
COLLECTIONS = {"corank.cli", "corank.models", "corank.deploy"}
"""Packages that only collect the names of their parts, or of the command line."""


def packages() -> set[str]:
    """Return every public package: those with `__all__`, and the errors."""
    found = {
        module.name
        for package in (corank, corank_lab)
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
        if module.ispkg and getattr(import_module(module.name), "__all__", ())
    }
    return found - COLLECTIONS | {"corank.errors"}


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
        if inspect.isclass(thing) or inspect.isfunction(inspect.unwrap(thing)) or isinstance(thing, Metric)
    }


def full_name(module_name: str, name: str) -> str:
    """Return the shortest name that users can type: `corank.SPD`, but `corank.models.gp.Posterior`."""
    is_top = name in corank.__all__ and getattr(corank, name) is getattr(import_module(module_name), name)
    return f"corank.{name}" if is_top else f"{module_name}.{name}"


def listing(package: str) -> dict[str, object]:
    """Return the names of a package, each once in the whole reference: in the smallest package that exports it."""
    inner = [other for other in packages() if other.startswith(f"{package}.")]
    hidden = {id(thing) for other in inner for thing in offered(other).values()}
    for other in packages() - {package, *inner}:  # what another package defines and exports
        own = {id(thing) for thing in offered(other).values() if getattr(thing, "__module__", "").startswith(other)}
        hidden |= own - {
            id(thing) for thing in offered(package).values() if getattr(thing, "__module__", "").startswith(package)
        }
    return {full_name(package, name): thing for name, thing in offered(package).items() if id(thing) not in hidden}


def table(names: list[str], template: str = "") -> str:
    """Return the lines that let Sphinx make a table of names, and a page for each."""
    options = ["   :toctree: generated", "   :nosignatures:", *([f"   :template: {template}"] if template else [])]
    return "\n".join(["```{eval-rst}", ".. autosummary::", *options, "", *(f"   {name}" for name in names), "```", ""])


def page(package: str) -> str:
    """Return the page of a package."""
    summary = (import_module(package).__doc__ or "").strip().splitlines()[0]
    parts = [f"# {package}\n", f"{summary}\n"]
    things = listing(package)
    plain = [name for name, thing in things.items() if not isinstance(thing, Metric)]
    measures = [name for name, thing in things.items() if isinstance(thing, Metric)]
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
    for section, members in SECTIONS.items():
        parts.append(f"## {section}\n")
        for package in members:
            parts += [f"### [{package}]({package}.md)\n", "| name | |", "|---|---|"]
            for name, thing in listing(package).items():
                short = name.removeprefix(f"{package}.").removeprefix("corank.")
                parts.append(f"| `{short}` | {first_line(thing)} |")
            parts.append("")
        parts += ["```{toctree}", ":hidden:", f":caption: {section}", "", *members, "```", ""]
    return "\n".join(parts)


def pages() -> dict[str, str]:
    """Return the text of every page of the reference, by the name of its file."""
    shown = [package for members in SECTIONS.values() for package in members]
    if forgotten := packages() ^ set(shown):
        raise SystemExit(f"put {', '.join(sorted(forgotten))} into SECTIONS of docs/make_api.py.")
    return {"index.md": index(), **{f"{package}.md": page(package) for package in shown}}


if __name__ == "__main__":
    made = pages()
    for old in API.glob("*.md"):
        if old.name not in made:
            old.unlink()
    for name, text in made.items():
        (API / name).write_text(text, encoding="utf-8")
