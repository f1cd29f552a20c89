"""Citation, continuous integration and packaging: what users and their tools read beside the package."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import re
import shlex
import tomllib
from pathlib import Path

import yaml
from sklearn.base import BaseEstimator

import corank
from corank import registry

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
EXTRAS = PROJECT["project"]["optional-dependencies"]
WORKFLOWS = [yaml.safe_load(path.read_text("utf-8")) for path in sorted((ROOT / ".github/workflows").glob("*.yml"))]


def test_the_citation_has_what_the_format_requires():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    # required keys of https://citation-file-format.github.io, 1.2.0
    assert {"cff-version", "message", "title", "authors"} <= citation.keys()
    assert citation["license"] == PROJECT["project"]["license"]
    assert citation["repository-code"] == PROJECT["project"]["urls"]["Homepage"]
    for paper in citation["references"]:
        assert {"type", "title", "authors", "year", "notes"} <= paper.keys()


def test_every_command_of_a_workflow_exists():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE))
    jobs = [job for workflow in WORKFLOWS for job in workflow["jobs"].values()]
    runs = [(job["runs-on"], step["run"]) for job in jobs for step in job["steps"] if "run" in step]
    lines = [(system, line) for system, run in runs for line in run.splitlines() if line.strip()]
    assert lines
    for system, line in lines:
        program, *words = shlex.split(line)
        if program == "make":
            assert system == "ubuntu-latest", line  # other systems have no make
            assert set(words) <= targets, line
        else:
            assert (program, words[0]) == ("python", "-m"), line
            assert words[1] in {"pip", "uv", "pytest"} or importlib.util.find_spec(words[1]), line
        for extra in re.findall(r"\.\[([\w,]+)\]", line):
            assert set(extra.split(",")) <= EXTRAS.keys(), line


def test_the_package_ships_types_and_the_source_distribution_what_it_lists():
    build = PROJECT["tool"]["hatch"]["build"]["targets"]
    for package in build["wheel"]["packages"]:
        assert (ROOT / package / "__init__.py").is_file()
    assert (Path(corank.__file__).parent / "py.typed").is_file()
    assert not [name for name in build["sdist"]["include"] if not (ROOT / name).exists()]


def test_files_that_contributors_are_sent_to_are_there():
    guide = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    names = re.findall(r"`((?:src|tests|docs|fuzz|benchmarks|examples|experiments)/[\w/.-]+)`", guide)
    assert names
    assert not [name for name in names if not (ROOT / name).exists()]


def test_the_overview_names_files_layers_and_types_that_exist():
    page = (ROOT / "docs" / "overview.md").read_text(encoding="utf-8")
    names = re.findall(r"`(?:corank/)?([\w/]+\.py)`", page)
    assert names
    assert not [name for name in names if not (ROOT / "src" / "corank" / name).is_file()]
    drawings = [rule["layers"] for rule in PROJECT["tool"]["importlinter"]["contracts"] if rule.get("exhaustive")]
    layers = re.findall(r"\w+", " ".join(line for lines in drawings for line in lines))
    drawn = page[page.index("```") : page.rindex("```")]
    assert not [layer for layer in layers if not re.search(rf"^ .*\b{layer}\b", drawn, re.MULTILINE)]
    assert not set(re.findall(r"(\w+)/", drawn)) - {path.name for path in (ROOT / "src").rglob("*/")}
    source = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
    table = page[page.index("## Main types") : page.index("## Conventions")]
    types = [name for row in re.findall(r"^\| (`.*?) \|", table, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)]
    assert len(types) > 20
    assert not [name for name in types if not re.search(rf"^class {name}\b", source, re.MULTILINE)]


POSIX_MODULES = {"fcntl", "termios", "tty", "pty", "resource", "pwd", "grp"}
POSIX_NAMES = {"os.O_CLOEXEC", "os.O_NOFOLLOW", "os.fork", "os.getuid", "os.preadv", "signal.SIGKILL", "signal.SIGALRM"}


def run_at_import(tree):
    """Nodes that run when a module is imported, on every system: not in functions, `if` or `try`."""
    waiting = list(tree.body)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.If | ast.Try | ast.IfExp):
            waiting += ast.iter_child_nodes(node)


def test_modules_import_without_posix():
    for path in sorted((ROOT / "src").rglob("*.py")):
        for node in run_at_import(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [part.name for part in node.names]
                assert not POSIX_MODULES & set(names), path
            elif isinstance(node, ast.Attribute):
                assert ast.unparse(node) not in POSIX_NAMES, path


DEFAULTS = {
    "early_stopping": False, "validation_fraction": 0.1, "n_iter_no_change": 5, "n_jobs": None, "query_weight": "pairs",
    "random_state": None, "scale": True, "verbose": False, "alpha": None, "warm_start": False, "ties": False,
}  # fmt: skip


def test_parameters_have_the_same_default_everywhere():
    kinds = [kind for name in registry.names() if inspect.isclass(kind := registry.find(name))]
    for kind in (kind for kind in kinds if issubclass(kind, BaseEstimator)):
        for part in inspect.signature(kind).parameters.values():
            assert part.default == DEFAULTS.get(part.name, part.default), f"{kind.__name__}({part.name}=)"
