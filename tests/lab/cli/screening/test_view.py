"""Drawings of records fit on terminals of any size, with the title at the top and the keys at the bottom."""

from __future__ import annotations

import io
import random

import pytest

pytest.importorskip("rich")

from rich.text import Text

from corank.console import printable_console
from corank_lab.cli.screening.view import Highlights, ListScreen, View, details_of, draw, lay_out, texts, turned
from corank_lab.records.records import RecordDetails

SIZES = [(60, 20), (80, 24), (200, 50), (20, 8), (10, 6), (3, 2)]
WORDS = ["tin", "ore", "結果は有意でした", "mines", "gold-price", "Größe", "étude", "\u200d", "copper", "a", "🦀"]


def console_of(width, height):
    return printable_console(width=width, height=height, force_terminal=True, color_system="truecolor")


def text_of(n, seed):
    rng = random.Random(seed)
    return " ".join(rng.choice(WORDS) for _ in range(n))


@pytest.mark.thin(5)
@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("n", [0, 30, 200])
@pytest.mark.parametrize("n_title", [0, 8, 100])
def test_every_page_fits_and_all_words_are_shown(size, n, n_title):
    console = console_of(*size)
    title, abstract = text_of(n_title, 1) or "(no title)", text_of(n, 2) or "(no abstract)"
    view = View("record W1", Text(title), texts(["Roe; Doe"]), texts([abstract]), texts([text_of(40, 3), "q quit"]))
    page, shown, lines = 0, "", []
    while True:
        lines, n_pages = lay_out(view, page, console)
        assert len(lines) <= max(size[1], 6)
        assert all(line.cell_len <= max(size[0], 10) for line in lines)
        if size[0] >= 60:
            assert lines[0].plain.startswith("record W1")
            assert lines[1].plain.split()[0] == title.split()[0]
            assert lines[-1].plain == "q quit"
        shown += " ".join(line.plain for line in lines) + " "
        if page == n_pages - 1:
            break
        assert turned(page, " ", n_pages) == page + 1
        page += 1
    assert turned(page, " ", n_pages) == page
    if size[0] >= 20:
        assert [word for word in abstract.split() if word not in shown] == []
    assert lay_out(view, 10**6, console)[0] == lines


def test_highlighted_words_differ_without_colours():
    marks = Highlights(("tin", "gold mine*"), ("price",))
    text = marks.apply(Text("Tin, gold\n mines and prices; price (tinny) martin"))
    found = {text.plain[span.start : span.end]: str(span.style) for span in text.spans}
    assert found == {"Tin": "bold green", "gold\n mines": "bold green", "price": "underline red"}
    assert marks.apply(Text("nothing")).spans == []


def test_regular_expressions_in_words_have_no_effect():
    assert [text.plain for text in [Highlights(("a.c", "(")).apply(Text("abc ( a.c"))]] == ["abc ( a.c"]
    assert len(Highlights(("a.c",)).apply(Text("abc a.c")).spans) == 1


def test_details_are_short():
    authors = tuple(f"Author{at}, A" for at in range(9))
    lines = details_of(RecordDetails(1999, authors, "J Tin", doi="10.1/x", pmid="7"))
    assert lines == ["Author0, A; Author1, A; Author2, A and 6 more · 1999 · J Tin", "doi 10.1/x · PMID 7"]
    assert details_of(RecordDetails()) == []


def test_escape_sequences_in_records_are_not_drawn():
    out = io.StringIO()
    console = printable_console(width=40, height=10, force_terminal=True, color_system=None)
    console.file = out
    view = View("record \x1b[2J", texts(["\x1b]0;evil\x07"])[0], [], texts(["a\x1b[31mb"]), texts(["q quit"]))
    draw(lay_out(view, 0, console)[0], console)
    assert "evil" in out.getvalue()
    assert "\x1b]0" not in out.getvalue()
    assert "\x1b[31m" not in out.getvalue()


@pytest.mark.parametrize("size", SIZES[:4], ids=str)
def test_a_list_fits_and_its_cursor_moves(size):
    keys = iter(["j", "down", "k", " ", "b", "end", "home", "x", "end", "q"])
    out = io.StringIO()
    console = console_of(*size)
    console.file = out
    screen = ListScreen(console, lambda: next(keys))
    rows = [f"row {at} {text_of(30, at)}" for at in range(100)]
    assert screen.choose("heading", rows, ("r",), lambda at: [f"foot {at}", text_of(200, at)], "q back") == "q"
    assert screen.at == 99
    empty = ListScreen(console, lambda: "escape")
    assert empty.choose("empty", [], ("r",), lambda at: [f"foot {at}"], "q back") == "escape"
