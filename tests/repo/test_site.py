"""Every link and anchor of the site leads somewhere, every page is listed, and generated pages are up to date."""

from __future__ import annotations

import inspect
import re
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from pkgutil import resolve_name

import corank

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
GENERATED = ("_build/", "gallery/", "api/generated/", "map.md", "map/")
PAGES = sorted(path for path in DOCS.rglob("*.md") if not path.relative_to(DOCS).as_posix().startswith(GENERATED))
LINK = re.compile(r"!?\[[^\]]*\]\(([^()\s]+)\)")
TOCTREE = re.compile(r"```\{toctree\}\n(.*?)```", flags=re.DOTALL)


def text_of(path):
    return path.read_text(encoding="utf-8")


def prose(path):
    """Return the text of a page without its blocks of code."""
    return re.sub(r"^```.*?^```$", "", text_of(path), flags=re.DOTALL | re.MULTILINE)


@cache
def anchors(path):
    """Return the anchors of the headings of a page as Markdown viewers make them."""
    text = prose(path) + (prose(ROOT / "CONTRIBUTING.md") if path == DOCS / "contributing.md" else "")
    headings = re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_links_lead_to_files_and_headings():
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *PAGES):
        for target in (target for target in LINK.findall(prose(page)) if not re.match(r"\w+:", target)):
            name, _, anchor = target.partition("#")
            path = (page.parent / name).resolve() if name else page
            assert path.is_file(), f"{page} links to {target}, which does not exist"
            assert not anchor or anchor in anchors(path), f"{page} links to {target}; there are {anchors(path)}"
            assert path.is_relative_to(DOCS) or not page.is_relative_to(DOCS), f"{page}: {target} is outside the site"


def toctree(page):
    """Return the pages that the toctrees of a page name."""
    for line in (line for body in TOCTREE.findall(text_of(page)) for line in body.splitlines()):
        entry = re.sub(r"^.*<(.*)>$", r"\1", line.strip())
        if entry and not entry.startswith(":"):
            paths = sorted(page.parent.glob(f"{entry}.md"))
            assert paths or f"{entry}/".startswith(GENERATED), f"{page} lists {entry}, which does not exist"
            yield from (path.resolve() for path in paths)


def test_every_page_is_reached_from_the_first():
    reached, waiting = set(), [DOCS / "index.md"]
    while waiting:
        if (page := waiting.pop()) not in reached:
            reached.add(page)
            waiting += toctree(page)
    assert set(PAGES) - reached == set(), "no toctree lists these"


def script(name):
    spec = spec_from_file_location(name, DOCS / f"{name}.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_generated_pages_are_up_to_date():
    made = script("make_api")
    assert {path.name: text_of(path) for path in (DOCS / "api").glob("*.md")} == made.pages(), "python docs/make_api.py"
    guides = made.guides()
    assert {name for path in guides for name in re.findall("<!-- registry (.*) -->", text_of(path))} == {
        *made.REGISTRIES
    }
    assert {path: text_of(path) for path in guides} == guides, "python docs/make_api.py"


def test_every_public_name_is_in_the_reference():
    names = set(re.findall(r"^   (corank[\w.]+)$", "\n".join(map(text_of, (DOCS / "api").glob("*.md"))), re.MULTILINE))
    assert {f"corank.{name}" for name in corank.__all__ if name != "__version__"} <= names


def test_the_table_of_papers_names_code_and_tests_that_exist():
    page = text_of(DOCS / "papers.md")
    for path, function in re.findall(r"`([\w/]+\.py)::(\w+)`", page):
        assert f"\ndef {function}(" in text_of(ROOT / "tests" / path), f"{path}::{function}"
    for name, parameter in re.findall(r"`(corank\.[\w.]+)(?:\((\w+)=\))?`", page):
        thing = resolve_name(name)
        assert not parameter or parameter in inspect.signature(thing).parameters, f"{name}({parameter}=)"


def test_every_example_is_listed():
    shown = re.findall(r"examples/(plot_\w+\.py)", text_of(DOCS / "examples.md"))
    assert sorted(shown) == sorted(path.name for path in (ROOT / "examples").glob("plot_*.py"))


def test_pages_ask_the_network_for_nothing():
    for path in (*(DOCS / "_static").glob("*.css"), *(DOCS / "_templates").rglob("*.rst"), DOCS / "conf.py"):
        assert not re.search(r"https?://", text_of(path)), path.name
