"""The catalogue of texts, and the size of what is shipped."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import corank_lab.pages
from corank_lab.pages.app import ERRORS, KINDS
from corank_lab.pages.imports import TASKS
from corank_lab.pages.markup import rich
from corank_lab.pages.texts import TEXTS

USED_BY_PREFIX = ("answered.", "export.", "compare.left", "compare.right", "nav.", "upload.stage.")
FOLDER = Path(corank_lab.pages.__file__).parent


def test_every_text_is_used_and_every_used_text_exists():
    sources = [path.read_text(encoding="utf-8") for path in (*FOLDER.rglob("*.html"), *FOLDER.rglob("*.py"))]
    source = "\n".join(text for text in sources if '"frame.skip": ' not in text)
    used = set(re.findall(r"""\b(?:t|text)\(["']([\w.]+)["'][,)]""", source))
    used |= {key for key in TEXTS if f'"{key}"' in source}
    for kind in KINDS.values():
        used |= {f"kind.{kind.kind}", f"task.{kind.kind}"}
        for one in kind.settings:
            used |= {f"setting.{one.name}", f"setting.{one.name}.help", *(f"choice.{name}" for name in one.choices)}
    used |= {key for key in TEXTS if key.startswith(USED_BY_PREFIX)}
    used |= {f"task.{task}{end}" for task in TASKS for end in ("", ".help", ".files")}
    used |= {"task.project", "task.project.help"} | {f"{key}.help" for key in ("error.input", *ERRORS.values())}
    assert used == set(TEXTS)


def test_scripts_are_small():
    assert sum(path.stat().st_size for path in FOLDER.rglob("*.js")) < 60_000


def test_static_files_name_no_other_host():
    for path in FOLDER.rglob("static/*"):
        assert not re.findall(r"https?://(?!www\.w3\.org)", path.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("a & <b>", "<p>a &amp; &lt;b&gt;</p>"),
        ("**x** and *y* and `z*z*`", "<p><strong>x</strong> and <em>y</em> and <code>z*z*</code></p>"),
        ("2*3*4", "<p>2*3*4</p>"),
        ("one\ntwo\n\nthree", "<p>one<br>two</p>\n<p>three</p>"),
        ("- a\n- b", "<ul><li>a</li><li>b</li></ul>"),
        ("javascript:alert(1) data:x", "<p>javascript:alert(1) data:x</p>"),
        ('"><img onerror=x>', "<p>&#34;&gt;&lt;img onerror=x&gt;</p>"),
        ("", ""),
    ],
)
def test_formatting_is_safe(text, html):
    assert rich(text) == html


def test_links_open_elsewhere_and_end_before_punctuation():
    html = str(rich('see (https://example.org/a_(b).html), or http://x.example/?q="onclick=1'))
    assert re.findall(r'href="([^"]+)"', html) == ["https://example.org/a_(b).html", "http://x.example/?q="]
    assert html.count('rel="noopener noreferrer nofollow"') == 2
