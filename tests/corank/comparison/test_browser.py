"""The page in a real browser: no requests, not blank, and no horizontal scrolling."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from corank.comparison.outcomes import study_html
from corank.comparison.report import Report
from corank.tables import ReportTable
from helpers.study import HOSTILE, full_study

NAMES = ("chromium", "chromium-browser", "google-chrome")
# what the browser asks for by itself: updates, lists, its own search for proxies
QUIET = (
    "--disable-background-networking", "--disable-component-update", "--disable-default-apps", "--disable-sync",
    "--disable-extensions", "--no-first-run", "--no-default-browser-check", "--metrics-recording-only",
)  # fmt: skip
HOST = "http://study.example"
# a page of the same place, which may run scripts, looks at the report through a window of a given width
FRAME = """<!doctype html><body><iframe src="/report.html" width="{width}" height="800"></iframe>
<script>addEventListener("load", () => {{
  const page = frames[0].document.documentElement;
  document.body.setAttribute("data-found", page.scrollWidth + "/" + page.clientWidth);
}});</script>"""


# and asks whether its images were shown, and whether a script of its texts was run
PICTURE_FRAME = """<!doctype html><body><iframe src="/picture.html" width="800" height="800"></iframe>
<script>addEventListener("load", () => {
  const page = frames[0].document;
  const widths = [...page.images].map(image => image.naturalWidth).join();
  const weight = frames[0].getComputedStyle(page.querySelector("caption")).fontWeight;
  document.body.setAttribute("data-found", widths + "/" + weight + "/" + frames[0].hacked);
});</script>"""


def page_with_picture():
    """A report of hostile texts with an image of 7 columns."""
    from matplotlib.image import imsave

    with tempfile.TemporaryDirectory() as folder:
        imsave(Path(folder, "a.png"), np.zeros((5, 7)))
        table = ReportTable(HOSTILE, (HOSTILE,), ((HOSTILE,),))
        text = Report(HOSTILE, HOSTILE, (table,), (HOSTILE,), (Path(folder, "a.png"),)).html()
    # what a reader would inject if the texts were not escaped, and what the policy must stop
    return text.replace("</main>", "<script>hacked = 1</script><img src=x onerror='hacked = 1'></main>")


class Proxy(ThreadingHTTPServer):
    """Everything the browser asks any server for goes through here, and is noted."""

    def __init__(self, pages):
        super().__init__(("127.0.0.1", 0), Answer)
        self.pages, self.asked = pages, []
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Answer(BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.asked.append(self.path)
        text = self.server.pages.get(self.path.removeprefix(HOST))
        self.send_response(404 if text is None else 200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.end_headers()
        self.wfile.write((text or "").encode())

    def do_CONNECT(self):
        self.server.asked.append(self.path)
        self.send_error(502)

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def browser():
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        said = f"needs a browser: none of {', '.join(NAMES)} is installed; apt-get install chromium"
        pytest.fail(said) if os.environ.get("CI") == "true" else pytest.skip(said)
    return found


@pytest.fixture
def served():
    text = study_html(full_study())
    pages = {f"/{width}.html": FRAME.format(width=width) for width in (320, 390, 1280)}
    pages |= {"/pictures.html": PICTURE_FRAME, "/picture.html": page_with_picture()}
    pages |= {"/report.html": text, "/loud.html": '<img src="http://elsewhere.example/a.png"><p>loud</p>'}
    proxy = Proxy(pages)
    yield proxy
    proxy.shutdown()
    proxy.server_close()


def visit(browser, proxy, page, folder, *options):
    """What the browser prints when it has shown a page."""
    words = [
        browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", *QUIET,
        f"--user-data-dir={folder / 'profile'}", f"--proxy-server=127.0.0.1:{proxy.server_port}",
        "--proxy-bypass-list=<-loopback>", *options, f"{HOST}/{page}",
    ]  # fmt: skip
    done = subprocess.run(words, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def asked(proxy):
    """What a page asked for; a browser may call its maker whatever it is told."""
    own = re.compile(r"(^|\.|/)(google|googleapis|gstatic|gvt1|debian)\.")
    return [path for path in proxy.asked if not own.search(path)]


def test_it_asks_for_nothing_but_itself(browser, served, tmp_path):
    visit(browser, served, "report.html", tmp_path, "--dump-dom")
    assert asked(served) == [f"{HOST}/report.html"]
    # and a page that does ask for more is noticed
    visit(browser, served, "loud.html", tmp_path, "--dump-dom")
    assert "http://elsewhere.example/a.png" in asked(served)


def test_images_and_styles_work_under_the_policy_and_scripts_do_not(browser, served, tmp_path):
    found = re.search(r'data-found="([^"]*)"', visit(browser, served, "pictures.html", tmp_path, "--dump-dom"))
    assert found[1] == "7,0/600/undefined"  # the injected image has no width, since it is not requested
    requests = set(asked(served)) - {f"{HOST}/favicon.ico"}  # of the frame
    assert requests == {f"{HOST}/pictures.html", f"{HOST}/picture.html"}


@pytest.mark.thin(2)
@pytest.mark.parametrize("dark", [False, True])
def test_it_is_not_blank(browser, served, tmp_path, dark):
    from matplotlib.image import imread

    picture = tmp_path / "page.png"
    scheme = ["--blink-settings=preferredColorScheme=0"] if dark else []
    visit(browser, served, "report.html", tmp_path, f"--screenshot={picture}", "--window-size=1280,3000", *scheme)
    pixels = (imread(picture)[..., :3] * 255).round().astype(int)
    assert pixels.shape[:2] == (3000, 1280)
    paper = pixels[5, 5]
    assert (paper.mean() < 60) == dark
    ink = (pixels != paper).any(axis=2)
    # words and lines in every part of the page, and colours of several series
    assert 0.02 < ink.mean() < 0.5
    assert all(block.mean() > 0.004 for block in np.array_split(ink, 6))
    assert len(np.unique(pixels @ [65536, 256, 1])) > 100


@pytest.mark.thin(3)
@pytest.mark.parametrize("width", [320, 390, 1280])
def test_it_never_scrolls_sideways(browser, served, tmp_path, width):
    found = re.search(r'data-found="(\d+)/(\d+)"', visit(browser, served, f"{width}.html", tmp_path, "--dump-dom"))
    needed, given = map(int, found.groups())
    assert given > 0.9 * width
    assert needed <= given


@pytest.mark.long
def test_it_is_printed_on_a_few_pages(browser, served, tmp_path):
    target = tmp_path / "page.pdf"
    visit(browser, served, "report.html", tmp_path, f"--print-to-pdf={target}", "--no-pdf-header-footer")
    pages = len(re.findall(rb"/Type\s*/Page\b", target.read_bytes()))
    assert 3 <= pages <= 20
