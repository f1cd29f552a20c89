"""Write docs/api/, one page for each public package, and the tables of registries in the guides."""

from __future__ import annotations

import inspect
import pkgutil
import re
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from pathlib import Path

import corank
import corank_lab
from corank.base import STRATEGIES
from corank.base.docs import first_sentence
from corank.cli.commands import GROUPS
from corank.cli.options import all_verbs
from corank.clicks import CLICK_MODELS
from corank.data.io.judgements import COMPLETE_FORMATS, JUDGEMENT_WRITERS
from corank.deploy.export import FUSION_TARGETS, TARGETS
from corank.metrics import METRICS, Metric
from corank.models.lambdarank import LAMBDAS
from corank.parameters import PAIR_STRATEGIES

DOCS = Path(__file__).parent
API = DOCS / "api"
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


def cells(*columns: str, rows: Iterable[tuple[str, ...]]) -> str:
    """Return a table in Markdown."""
    escaped = [tuple(cell.replace("|", "\\|") for cell in row) for row in rows]
    lines = [f"| {' | '.join(row)} |\n" for row in (columns, *escaped)]
    return "".join([lines[0], f"|{'---|' * len(columns)}\n", *lines[1:]])


def metric_names(metric: Metric) -> str:
    """Return the name of a metric with its parameters and depth, and its other names."""
    inside = ",".join(f"{key}=" + ("" if default is None else f"{default:g}") for key, default in metric.params)
    depth = {"none": "", "optional": "[@k]", "needed": "@k"}[metric.cut]
    names = (f"{metric.name}{f'[({inside})]' if inside else ''}{depth}", *metric.spellings[2:])
    return ", ".join(f"`{name}`" for name in names)


def lambda_name(name: str) -> str:
    """Return the name of a λ with its parameter and depth."""
    kind = LAMBDAS[name]
    default = "" if kind.default is None else f"{kind.default:g}"
    return f"`{name}{f'({kind.parameter}={default})' if kind.parameter else ''}{'[@k]' if kind.has_depth else ''}`"


def command_rows() -> Iterator[tuple[str, ...]]:
    """Yield each command with one line of help and an example, below the title of its group."""
    for title, entries in GROUPS.items():
        yield f"**{title}**", "", ""
        for name, verb in all_verbs(entries):
            yield f"`{name}`", verb.summary.rstrip("."), f"`corank {verb.example}`"


REGISTRIES: dict[str, Callable[[], str]] = {
    "commands": lambda: cells("command", "task", "example", rows=command_rows()),
    "metrics": lambda: cells(
        "name", "function", "definition",
        rows=[(metric_names(each), f"`{each.__name__}`", first_sentence(each)) for each in METRICS.values()],
    ),
    "judgements": lambda: cells(
        "`--to`", "file", 'judges, notes, "unrateable", "later"',
        rows=[
            (f"`{name}`", first_sentence(write), "kept" if name in COMPLETE_FORMATS else "counted, not kept")
            for name, write in JUDGEMENT_WRITERS.items()
        ],
    ),
    "targets": lambda: cells(
        "`--to`", "engine", "takes", rows=[(f"`{name}`", each.label, each.takes) for name, each in TARGETS.items()]
    ),
    "lambdas": lambda: cells(
        "name", "moves", "metric", rows=[(lambda_name(name), each.about, each.metric) for name, each in LAMBDAS.items()]
    ),
    "click models": lambda: ", ".join(f"`{name}`" for name in CLICK_MODELS) + "\n",
    "strategies for rows": lambda: cells(
        "`strategy`", "takes", rows=[(f'`"{name}"`', first_sentence(each)) for name, each in STRATEGIES.items()]
    ),
    "strategies for pairs": lambda: cells(
        "`strategy`", "takes", rows=[(f'`"{name}"`', each) for name, each in PAIR_STRATEGIES.items()]
    ),
    "fusions": lambda: cells(
        "target", "since", "weighted RRF", "takes", "writes",
        rows=[
            (
                f"`{each.name}`", each.label, each.weighted_rrf, each.takes,
                first_sentence(each.write).removeprefix("Return "),
            )
            for each in FUSION_TARGETS.values()
        ],
    ),
}  # fmt: skip
"""Tables of guides by the name in their marks, ``<!-- registry NAME -->`` and ``<!-- end of registry -->``."""
_BLOCK = re.compile(r"(<!-- registry ([\w ]+) -->\n).*?(<!-- end of registry -->)", re.DOTALL)


def guides() -> dict[Path, str]:
    """Return the text of every guide that lists a registry, by its path."""
    old = {path: path.read_text(encoding="utf-8") for path in sorted((DOCS / "guide").glob("*.md"))}
    return {
        path: _BLOCK.sub(lambda match: f"{match[1]}\n{REGISTRIES[match[2]]()}\n{match[3]}", text)
        for path, text in old.items()
        if _BLOCK.search(text)
    }


if __name__ == "__main__":
    made = pages()
    for old in API.glob("*.md"):
        if old.name not in made:
            old.unlink()
    for name, text in made.items():
        (API / name).write_text(text, encoding="utf-8")
    for path, text in guides().items():
        path.write_text(text, encoding="utf-8")
