"""The pages of the site hang together: every link and anchor leads somewhere, every page and public name is listed."""

from __future__ import annotations

import importlib.util
import inspect
import re
import tomllib
from functools import cache
from pathlib import Path

import pytest

import corank

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
# what Sphinx makes is not there before it ran
MADE = ("_build/", "gallery/", "api/generated/")
PAGES = sorted(path for path in DOCS.rglob("*.md") if not path.relative_to(DOCS).as_posix().startswith(MADE))
READ = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *PAGES]
LINK = re.compile(r"!?\[[^\]]*\]\(([^()\s]+)\)")
TOCTREE = re.compile(r"```\{toctree\}\n(.*?)```", flags=re.DOTALL)
EXAMPLES = sorted((ROOT / "examples").glob("plot_*.py"))


def prose(path):
    """The text of a page without its blocks of code."""
    return re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


@cache
def anchors(path):
    """The anchors of a page's headings as Markdown viewers make them."""
    headings = re.findall(r"^#+ (.+)$", prose(path), flags=re.MULTILINE)
    if path == DOCS / "contributing.md":
        headings += re.findall(r"^#+ (.+)$", prose(ROOT / "CONTRIBUTING.md"), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def links(path):
    return [target for target in LINK.findall(prose(path)) if not re.match(r"\w+:", target)]


@pytest.mark.parametrize("page", READ, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_lead_to_files_and_headings(page):
    for target in links(page):
        name, _, anchor = target.partition("#")
        path = (page.parent / name).resolve() if name else page
        assert path.is_file(), f"{page.name} links to {target}, which is not there"
        if anchor:
            assert anchor in anchors(path), f"{page.name} links to {target}; {path.name} has {sorted(anchors(path))}"
        if page.is_relative_to(DOCS):
            assert path.is_relative_to(DOCS), f"{page.name} links to {target}, which is no part of the site"


def test_there_are_links_to_check():
    assert sum(len(links(page)) for page in READ) > 100


def listed(page):
    """The pages that the toctrees of a page name."""
    for body in TOCTREE.findall(page.read_text(encoding="utf-8")):
        for line in body.splitlines():
            entry = re.sub(r"^.*<(.*)>$", r"\1", line.strip())
            if entry and not entry.startswith(":"):
                found = sorted(page.parent.glob(f"{entry}.md"))
                assert found or f"{entry}/".startswith(MADE), f"{page.name} lists {entry}, which is not there"
                yield from (path.resolve() for path in found)


def test_every_page_is_reached_from_the_first():
    reached, waiting = set(), [DOCS / "index.md"]
    while waiting:
        page = waiting.pop()
        if page not in reached:
            reached.add(page)
            waiting += listed(page)
    left = [page.relative_to(DOCS).as_posix() for page in PAGES if page not in reached]
    assert not left, f"no toctree lists {left}"


def make_api():
    spec = importlib.util.spec_from_file_location("make_api", DOCS / "make_api.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_reference_is_as_the_code_is():
    made = make_api().pages()
    assert {path.name for path in (DOCS / "api").glob("*.md")} == set(made), "run: python docs/make_api.py"
    for name, text in made.items():
        assert (DOCS / "api" / name).read_text(encoding="utf-8") == text, "run: python docs/make_api.py"


def test_every_public_name_is_in_the_reference():
    """By the names of `import corank`, and by the names that the folders export."""
    shown = set()
    for page in (DOCS / "api").glob("*.md"):
        shown |= set(re.findall(r"^   (corank[\w.]+)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE))
    assert {f"corank.{name}" for name in corank.__all__ if name != "__version__"} <= shown
    things = [getattr(importlib.import_module(name.rpartition(".")[0]), name.rpartition(".")[2]) for name in shown]
    for folder in (
        corank.base,
        corank.clicks,
        corank.comparison,
        corank.data,
        corank.metrics,
        corank.text,
    ):
        for name in folder.__all__:
            thing = getattr(folder, name)
            if inspect.isclass(thing) or inspect.isfunction(thing):
                assert any(thing is other for other in things), f"{folder.__name__}.{name} is in no page of docs/api"


def test_every_example_has_a_task():
    page = (DOCS / "examples.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"examples/(plot_\w+\.py)", page)) == [path.name for path in EXAMPLES]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_begin_with_a_title_and_a_sentence(path):
    title, line, empty, first, *_ = inspect.cleandoc(path.read_text(encoding="utf-8").split('"""')[1]).splitlines()
    assert set(line) == {"="}
    assert len(line) == len(title)
    assert not empty
    assert first


def rows_of(page):
    """The cells of the first table of a page, below its head."""
    text = re.sub(r"<!--=.*?-->", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[2:]]


@pytest.mark.parametrize("claim", rows_of(DOCS / "measured.md"), ids=lambda row: row[0][:40])
def test_a_measured_figure_stands_on_the_page_it_points_to(claim):
    _, figure, command, where = claim
    assert command.startswith("`") or command == "the same"
    text = (DOCS / LINK.findall(where)[0].partition("#")[0]).read_text(encoding="utf-8")
    for number in re.findall(r"[+−]?\d*\.\d+|[+−]?\d+ %", figure):
        assert re.search(rf"(?<!\d)0?{re.escape(number.lstrip('+'))}", text), f"{number} does not stand on {where}"


def test_extras_of_the_site_are_those_it_loads():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    loaded = re.search(
        r"^extensions = \[\n(.*?)^\]", (DOCS / "conf.py").read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )
    named = {name.split(".")[0].replace("_", "-") for name in re.findall(r'"([\w.]+)"', loaded[1])}
    installed = {re.match(r"[\w-]+", one)[0] for one in extras["docs"]}
    assert named <= installed


def test_pages_ask_the_network_for_nothing():
    for path in (*(DOCS / "_static").glob("*.css"), *(DOCS / "_templates").rglob("*.rst"), DOCS / "conf.py"):
        assert not re.search(r"https?://", path.read_text(encoding="utf-8")), path.name
