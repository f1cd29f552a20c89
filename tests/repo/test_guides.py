"""
What README, CONTRIBUTING and the guides show runs as shown.

The blocks of a page run one after the other in one namespace and one empty folder: sessions (`>>>`) as doctests, other
Python as it stands, commands through the same entry as the shell's, and `bash` in a shell. A block that cannot run says
why in a comment on the line before it, `<!-- not run: ... -->`; its commands must still be accepted. A page that shows
another library is left out where that is not installed.
"""

from __future__ import annotations

import contextlib
import doctest
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
import typer
from typer.testing import CliRunner

from corank.cli import app
from experiments.command import app as experiments_app
from experiments.datasets.command import app as datasets_app

with contextlib.suppress(ImportError):  # whole, before a command imports it without its estimators
    import lightgbm  # noqa: F401

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("", "guide", "tours", "coming-from")
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md")),
    *(page for folder in FOLDERS for page in sorted((ROOT / "docs" / folder).glob("*.md"))),
]
FENCE = re.compile(r"(?:<!-- not run: ([^\n]+) -->\n)?^```([\w{}-]*)[^\n]*\n(.*?)^```$", flags=re.DOTALL | re.MULTILINE)
# files that a reader has, made by Python in a comment, which the page does not show
FILES = re.compile(r"^<!-- files\n(.*?)^-->$", flags=re.DOTALL | re.MULTILINE)
SHOWN = {"xgboost.md": "xgboost"}
# these start many processes, or learn for more than two seconds
LONG = {
    "auto", "clicks", "command-line", "comparing", "data", "deploy", "descent", "distributed", "explain",
    "few-judgements", "fusion", "gaussian-processes", "gaussian-processes-ordinal", "label-ranking", "preferences",
    "screening", "search-engineer",
    "coming-from/lightgbm", "guide/lambdarank", "guide/logged-clicks", "guide/reports", "tours/service",
}  # fmt: skip


def is_long(page):
    return page.stem in LONG or f"{page.parent.name}/{page.stem}" in LONG


class Block(NamedTuple):
    language: str
    text: str
    line: int
    excuse: str | None


def blocks(page):
    text = page.read_text(encoding="utf-8")
    for found in sorted([*FENCE.finditer(text), *FILES.finditer(text)], key=lambda one: one.start()):
        if found.re is FILES:
            yield Block("python", found[1], 1 + text.count("\n", 0, found.start(1)), None)
        else:
            yield Block(found[2], found[3], 1 + text.count("\n", 0, found.start(3)), found[1])


def commands(block):
    """The words of each line, comments left out, lines that end in a backslash joined."""
    lines = block.text.replace("\\\n", " ").splitlines()
    return [words for line in lines if (words := shlex.split(line, comments=True))]


def run_session(page, block, namespace):
    test = doctest.DocTestParser().get_doctest(block.text, {}, page.name, str(page), block.line - 1)
    test.globs = namespace
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    said = []
    assert runner.run(test, out=said.append, clear_globs=False).failed == 0, "".join(said)


def run_command(program, *words):
    if program == "make":
        targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE)
        assert set(words) <= set(targets), f"the Makefile makes {targets}"
        return
    whole, words = application(program, words)
    result = CliRunner().invoke(whole, words, catch_exceptions=False)
    assert result.exit_code == 0, f"corank {shlex.join(words)}\n{result.output}"


def application(program, words):
    """The application of a command, and what it is given."""
    if program == "corank":
        return app, list(words)
    assert (program, words[0]) == ("python", "-m"), f"no test knows what {program} does; mark the block as not run"
    return {"experiments": experiments_app, "experiments.datasets": datasets_app}[words[1]], list(words[2:])


def run_script(block):
    """Lines for a shell, such as pipes, with the command `corank` of this Python."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    script = ["bash", "-euo", "pipefail", "-c", block.text]
    result = subprocess.run(script, env={**os.environ, "PATH": path}, capture_output=True, text=True, timeout=1800)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=f"{page.parent.name}/{page.stem}", marks=[pytest.mark.long] if is_long(page) else [])
        for page in PAGES
    ],
)
def test_every_block_of_a_page_runs(page, tmp_path, monkeypatch):
    if page.name in SHOWN:
        pytest.importorskip(SHOWN[page.name])
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "__main__"}
    for block in blocks(page):
        if block.excuse is not None or block.language.startswith("{"):  # of the site: Sphinx reads it
            continue
        if block.language == "sh":
            for words in commands(block):
                run_command(*words)
        elif block.language == "bash":
            run_script(block)
        elif block.text.startswith(">>> "):
            run_session(page, block, namespace)
        elif block.language == "python":
            # as many empty lines before it as it has on its page, so that errors name the line
            exec(compile("\n" * (block.line - 1) + block.text, str(page), "exec"), namespace)
        else:
            assert not block.language, f"{page.name}, line {block.line}: no test runs {block.language}"


def test_commands_of_blocks_that_are_not_run_are_accepted():
    for block in [block for page in PAGES for block in blocks(page) if block.excuse]:
        assert block.language in ("sh", "bash"), f"{block.line}: {block.text}"
        for program, *words in commands(block) if block.language == "sh" else ():
            if program not in ("export", "pip"):
                whole, rest = application(program, words)
                command = typer.main.get_command(whole)
                command, rest = (command.commands[rest[0]], rest[1:]) if program == "corank" else (command, rest)
                command.make_context(program, rest)


def test_nothing_that_looks_like_a_block_escapes():
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        assert text.count("```") == 2 * len(FENCE.findall(text)), page.name
