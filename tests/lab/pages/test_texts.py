"""Messages of templates, formatted texts, and the size of what is shipped."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from jinja2 import nodes

import corank_lab.pages
from corank_lab.database.backends import open_database
from corank_lab.pages.app import ANSWERED, KINDS, Site
from corank_lab.pages.markup import rich

FOLDER = Path(corank_lab.pages.__file__).parent


def test_messages_of_templates_get_what_they_name(tmp_path):
    with open_database(tmp_path / "corank.db") as store:
        environment = Site(store, KINDS).templates
    n_messages = 0
    for name in environment.list_templates(["html"]):
        source, _, _ = environment.loader.get_source(environment, name)
        for call in environment.parse(source).find_all(nodes.Call):
            if getattr(call.node, "name", "") == "_":
                given = {word.key: "x" for word in call.kwargs}
                assert set(re.findall(r"%\((\w+)\)s", call.args[0].value)) == set(given), (name, call.args[0].value)
                assert call.args[0].value % given
                n_messages += 1
    assert n_messages > 200


def test_every_shown_answer_has_words():
    for kind in KINDS.values():
        hidden = {"undo", "settle", "topic", "note", "distinct"}
        assert set(kind.entry.ACTIONS) - hidden <= set(ANSWERED), kind


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
