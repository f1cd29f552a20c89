"""What may reach a terminal: the one function that decides, and all that apply it."""

from __future__ import annotations

import io
import re
import sys
import unicodedata

import pytest

from corank.console import one_line, printable, printable_console, printable_streams
from corank.errors import InputError, UsageWarning, warn

CONTROLS = [chr(code) for code in (*range(32), *range(0x7F, 0xA0)) if chr(code) not in "\n\t"]
BIDI = [chr(code) for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A))]


@pytest.mark.parametrize("letter", [*CONTROLS, *BIDI, "\udcff", chr(0xD800), "\u2028", "\ufeff"], ids=ascii)
def test_no_control_character_stays(letter):
    assert letter not in printable(f"a{letter}b")
    assert printable(f"a{letter}b").isprintable()


def test_every_character_is_printable_or_a_line_end():
    text = "".join(map(chr, range(sys.maxunicode + 1)))
    kept = set(printable(text)) - set("\n\t\u200c\u200d")
    assert all(letter.isprintable() for letter in kept)
    assert {unicodedata.category(letter) for letter in kept} & {"Cc", "Cf", "Cs"} == set()


def test_ordinary_text_is_unchanged():
    text = "Größe – 健康\tنمی\u200cخواهم 👩\u200d🔬\r\n"
    assert printable(text) == text
    assert one_line("a\r\nb\tc") == "a\\r\\nb\\tc"
    assert printable("file\udcff.csv") == "file\\xff.csv"


def test_errors_and_warnings_are_one_printable_line():
    assert str(InputError("a\x1b[31m\n.csv is empty.")) == "a\\x1b[31m\\n.csv is empty."
    with pytest.warns(UsageWarning, match=r"^\\x9bK is a column\.$"):
        warn("\x9bK is a column.")


class Terminal(io.TextIOWrapper):
    """A terminal in memory."""

    def __init__(self, encoding="utf-8"):
        super().__init__(io.BytesIO(), encoding)

    def isatty(self):
        return True

    @property
    def drawn(self):
        self.flush()
        return self.buffer.getvalue().decode(self.encoding)


def test_a_console_draws_its_own_sequences_only(monkeypatch):
    from rich.table import Table

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stdout", Terminal())
    console = printable_console(markup=False)
    table = Table("a\x1b]0;title\x07", title="\x1b[31mred")
    table.add_row("\x9b2J\u202e")
    console.print(table, style="bold")
    console.rule("\x1b[2J")
    assert "\x1b[1m" in sys.stdout.drawn  # bold, by rich
    left = re.sub(r"\x1b\[[0-9;]*m", "", sys.stdout.drawn)
    assert left == printable(left)
    assert "\\x1b[31mred" in left
    lines = left.splitlines()
    assert len({len(line) for line in lines[2:6]}) == 1  # the columns stay aligned


@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "latin-1"])
def test_streams_pass_on_printable_text_and_give_consoles_the_terminal(encoding, monkeypatch):
    out, err = Terminal(encoding), io.TextIOWrapper(io.BytesIO(), encoding)
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    with printable_streams():
        print("a\x1b[31m ± \udcff")
        sys.stdout.buffer.write(b"\x1b]0;b\x07")
        print("c\x08\n", file=sys.stderr, end="")
        console = printable_console(force_terminal=True, highlight=False)
        console.print("d\x1b[31m", style="bold")
    assert (sys.stdout, sys.stderr) == (out, err)
    plus = "\\xb1" if encoding == "ascii" else "±"
    assert out.drawn == f"a\\x1b[31m {plus} \\udcff\n\\x1b]0;b\\x07\x1b[1md\\x1b[31m\x1b[0m\n"
    assert err.buffer.getvalue() == b"c\\x08\n"


def test_a_pipe_carries_exact_data(monkeypatch):
    out = io.TextIOWrapper(io.BytesIO(), "ascii")
    monkeypatch.setattr(sys, "stdout", out)
    with printable_streams():
        sys.stdout.buffer.write(b"\x1b[31m\xff\n")
        print("±")
        sys.stdout.flush()
    assert out.buffer.getvalue() == b"\x1b[31m\xff\n\\xb1\n"
    assert out.errors == "strict"
