"""The files that people and their tools read beside the package."""

from __future__ import annotations

import ast
import importlib.util
import re
import shlex
import tomllib
from pathlib import Path

import pytest
import yaml

import corank

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def read(name):
    return yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))


def test_the_citation_has_what_the_format_requires():
    cited = read("CITATION.cff")
    # required keys and types of https://citation-file-format.github.io, 1.2.0
    assert {"cff-version", "message", "title", "authors"} <= cited.keys()
    assert cited["cff-version"] == "1.2.0"
    assert cited["authors"] == [{"name": "The corank developers"}]
    assert cited["license"] == PROJECT["project"]["license"]
    assert len(cited["references"]) >= 6
    for paper in cited["references"]:
        assert {"type", "title", "authors", "year", "notes"} <= paper.keys()
        assert all(author.keys() == {"family-names", "given-names"} for author in paper["authors"])
        assert isinstance(paper["year"], int)


def test_the_citation_names_the_paper_of_every_method_that_has_one():
    named = {name.strip() for paper in read("CITATION.cff")["references"] for name in paper["notes"].split(",")}
    assert {name for name in named if hasattr(corank, name)} == {
        "CRR", "CalibratedLabelRanker", "CoRankRLS", "CoRankingPursuit", "LCRA", "OnlineLabelRanker", "RankRLS",
        "RankingPursuit", "SPD",
    }  # fmt: skip


def test_hooks_before_a_commit_are_the_lines_of_make_lint():
    (repo,) = read(".pre-commit-config.yaml")["repos"]
    assert repo["repo"] == "local"
    assert all(hook["language"] == "system" and not hook["pass_filenames"] for hook in repo["hooks"])
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    lint = re.search(r"^lint:.*\n((?:\t.*\n)+)", makefile, flags=re.MULTILINE)[1]
    assert [hook["entry"] for hook in repo["hooks"]] == lint.replace("\t$(BIN)", ".venv/bin").splitlines()


def test_types_travel_with_the_package():
    assert (Path(corank.__file__).parent / "py.typed").is_file()
    assert PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"] == ["src/corank", "src/corank_lab"]


@pytest.mark.parametrize("name", PROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]["include"])
def test_what_the_source_distribution_lists_is_there(name):
    assert (ROOT / name).exists()


def test_files_that_contributors_are_sent_to_are_there():
    guide = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:src|tests|docs|benchmarks)/[\w/.-]+)`", guide))
    assert len(named) > 10
    assert not [name for name in named if not (ROOT / name).exists()]


WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
EXTRAS = PROJECT["project"]["optional-dependencies"]
INSTALLED_BY_PIP = {"pip", "uv", "pytest"}


def steps():
    for path in WORKFLOWS:
        for name, job in read(path)["jobs"].items():
            for step in job["steps"]:
                yield f"{path.stem}, {name}", step


def commands():
    return [(where, line) for where, step in steps() for line in step.get("run", "").splitlines() if line.strip()]


def make_targets():
    return set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE))


@pytest.mark.parametrize(("where", "line"), commands())
def test_every_command_of_a_workflow_exists(where, line):
    program, *words = shlex.split(line)
    if program == "make":
        assert set(words) <= make_targets()
    else:
        assert (program, words[0]) == ("python", "-m")
        assert words[1] in INSTALLED_BY_PIP or importlib.util.find_spec(words[1])
    for extra in re.findall(r"\.\[([\w,]+)\]", line):
        assert set(extra.split(",")) <= EXTRAS.keys()


def test_windows_and_macos_need_no_make():
    for path in WORKFLOWS:
        for job in read(path)["jobs"].values():
            if job["runs-on"] != "ubuntu-latest":
                assert not [step for step in job["steps"] if step.get("run", "").startswith("make")]


def test_workflows_run_every_supported_python_on_three_systems_and_the_bounds_of_dependencies():
    jobs = read(".github/workflows/tests.yml")["jobs"]
    classifiers = PROJECT["project"]["classifiers"]
    supported = [one.rpartition(" ")[2] for one in classifiers if re.search(r":: 3\.\d+$", one)]
    assert jobs["test"]["strategy"]["matrix"]["python"] == supported
    assert [name.partition("-")[0] for name in jobs["test"]["strategy"]["matrix"]["os"]] == [
        "ubuntu", "macos", "windows",
    ]  # fmt: skip
    pinned = jobs["dependencies"]["strategy"]["matrix"]["include"]
    assert {one["resolution"] for one in pinned} == {"lowest-direct", "highest"}
    assert pinned[0]["python"] == PROJECT["project"]["requires-python"].removeprefix(">=")
    # without a lower bound, the job with the oldest dependencies has nothing to install
    assert all(">=" in one for one in PROJECT["project"]["dependencies"])


def test_read_the_docs_builds_what_make_docs_builds():
    built = read(".readthedocs.yaml")
    assert built["version"] == 2
    assert (ROOT / built["sphinx"]["configuration"]).is_file()
    assert built["sphinx"]["fail_on_warning"] is True
    (installed,) = built["python"]["install"]
    assert set(installed["extra_requirements"]) <= EXTRAS.keys()


@pytest.mark.parametrize("name", ["bug_report", "feature_request"])
def test_issue_forms_have_what_github_requires(name):
    form = read(f".github/ISSUE_TEMPLATE/{name}.yml")
    assert {"name", "description", "body"} <= form.keys()
    ids = [field["id"] for field in form["body"]]
    assert len(ids) == len(set(ids))
    assert all(field["type"] in ("textarea", "input") and field["attributes"]["label"] for field in form["body"])


def test_addresses_of_the_project_are_the_same_everywhere():
    home = PROJECT["project"]["urls"]["Homepage"]
    assert all(address.startswith(home) for address in PROJECT["project"]["urls"].values())
    assert read("CITATION.cff")["repository-code"] == home
    for name in ("SECURITY.md", ".github/ISSUE_TEMPLATE/config.yml"):
        assert f"{home}/security/advisories/new" in (ROOT / name).read_text(encoding="utf-8")


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
                names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [one.name for one in node.names]
                assert not POSIX_MODULES & set(names), path
            elif isinstance(node, ast.Attribute):
                assert ast.unparse(node) not in POSIX_NAMES, path
