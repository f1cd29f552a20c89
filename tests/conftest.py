"""
What all tests share.

Two marks keep `make test` short; `make test-all` ignores both. A test marked `long` is left out, and so is one that
reads real data. Of a test marked ``thin(n)`` every n-th case runs; n shares no factor with the numbers of values of its
parameters, so that the cases that run are spread over all of them. ``--every n`` runs every n-th
test.
"""

from __future__ import annotations

import gc
import os
import signal
from collections import Counter
from collections.abc import Callable, Generator
from functools import cache
from pathlib import Path

import pytest
import typer
from hypothesis import settings

# processor seconds at the last report
SPENT = pytest.StashKey[float]()

# a first call may compile, so no deadline; the same examples every time, so that a failure can be repeated
settings.register_profile("short", deadline=None, derandomize=True, max_examples=30)
settings.register_profile("all", deadline=None, derandomize=True, max_examples=200)

# a shell lets what it runs in the background ignore SIGINT, and so would every process that a test starts
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# a command takes milliseconds to build, and hundreds of tests run one
typer.main.get_command = cache(typer.main.get_command)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that thins all tests."""
    parser.addoption("--every", type=int, default=1, metavar="n", help="run every n-th test")
    parser.addoption("--processor-time", action="store_true", help="report processor seconds, also of child processes")


def pytest_configure(config: pytest.Config) -> None:
    """Choose how many examples hypothesis draws."""
    settings.load_profile("short" if "not long" in config.getoption("markexpr") else "all")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Replace the duration of a test by its processor seconds, which other work on the machine does not change."""
    report = yield
    if item.config.getoption("processor_time"):
        spent = sum(os.times()[:4])
        report.duration = spent - item.config.stash.get(SPENT, 0.0)
        item.config.stash[SPENT] = spent
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Generator[None]:
    """Mark as long what `thin` leaves out and what reads real data; keep every n-th of the tests that pytest leaves."""
    cases: Counter[str] = Counter()
    for item in items:
        if "real_data" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.long)
        if thin := item.get_closest_marker("thin"):
            name = item.nodeid.partition("[")[0]
            if cases[name] % thin.args[0]:
                item.add_marker(pytest.mark.long)
            cases[name] += 1
    yield
    items[:] = items[:: config.getoption("every")]


def pytest_collection_finish() -> None:
    """Leave modules and tests, which stay, to no garbage collection: it took a tenth of the time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 100)


@pytest.fixture(scope="session")
def real_data() -> Path:
    """Folder of the real data sets, or skip."""
    root = os.environ.get("CORANK_DATA")
    if not root:
        pytest.skip("needs real data: set CORANK_DATA to the folder that holds it")
    return Path(root)


@pytest.fixture
def says() -> Callable[..., str]:
    """Run a command that must end well, and return its standard output; what it raises is raised."""

    from typer.testing import CliRunner

    from corank.cli import app

    def run(*words: object) -> str:
        result = CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)
        assert result.exit_code == 0, result.output
        return result.stdout

    return run
