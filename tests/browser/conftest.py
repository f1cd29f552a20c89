"""A server and a browser for the tests of this folder."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent))
from helpers.server import ServerProcess

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
AXE = (os.environ.get("CORANK_AXE", ""), str(Path(sys.prefix) / "axe" / "package" / "axe.min.js"))


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        pytest.skip("no browser: install chromium")
    with playwright.sync_playwright() as running:
        opened = running.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture
def server(tmp_path):
    running = ServerProcess(tmp_path)
    yield running
    running.kill()


@pytest.fixture
def owner(browser, server):
    """A page of the owner."""
    context = browser.new_context()
    page = context.new_page()
    page.set_default_timeout(60_000)
    page.goto(server.link)
    page.wait_for_url("**/")
    yield page
    context.close()


@pytest.fixture(scope="session")
def axe():
    """The script that checks accessibility."""
    path = next((one for one in AXE if one and os.path.exists(one)), None)
    if path is None:
        pytest.skip("axe-core is absent: run make .venv/.axe, or set CORANK_AXE to axe.min.js")
    return Path(path).read_text(encoding="utf-8")
