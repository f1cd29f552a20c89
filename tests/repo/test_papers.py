"""Every name, parameter, test and page on docs/papers.md exists."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "papers.md"
STATES = ("as in the paper", "by a switch", "substitute data", "measured", "not done")
ROWS = [
    [cell.strip() for cell in line.strip("| ").split(" | ")] if not line.endswith("| |") else
    [cell.strip() for cell in line.strip()[1:-1].split("|")]
    for line in PAGE.read_text(encoding="utf-8").splitlines()
    if line.startswith("|") and not line.startswith(("| item |", "|---"))
]  # fmt: skip


def spans(cell):
    return re.findall(r"`([^`]+)`", cell)


@cache
def functions_of(path):
    nodes = ast.parse((ROOT / "tests" / path).read_text(encoding="utf-8")).body
    return {node.name for node in nodes if isinstance(node, ast.FunctionDef)}


def find(name):
    """Import a module, or a name from the longest module that its dotted name begins with."""
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            thing = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for part in parts[cut:]:
            thing = getattr(thing, part)
        return thing
    raise ModuleNotFoundError(name)


def test_the_table_covers_all_papers():
    titles = re.findall(r"^##+ (.*)", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert len(titles) == 5 + 7  # the fifth document holds seven papers
    assert len(ROWS) > 70


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0][:50])
def test_a_row_leads_to_code_test_and_page(row):
    _, state, code, test, figures = row
    assert any(word in state for word in STATES)
    # only what was not done may lack evidence
    assert (code and test) or state.startswith("not done")
    for span in spans(code):
        name, _, parameter = span.partition("(")
        thing = find(name)
        if parameter:
            assert parameter.removesuffix("=)") in inspect.signature(thing).parameters, span
    for span in spans(test):
        path, _, function = span.partition("::")
        assert not function or function in functions_of(path), span
        assert (ROOT / "tests" / path).is_file(), span
    for link in re.findall(r"\]\(([^)#]+)", figures):
        assert (PAGE.parent / link).is_file(), link
