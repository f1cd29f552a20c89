"""Tables on screens of any width: whatever is drawn holds every name and every number."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from corank.cli.output import ENDLESS, make_console, show
from corank.tables import ReportTable

METHODS = ("AdaRank-MAP", "AdaRank-NDCG", "RankSVM-Struct", "regression, its share tuned on [validation] parts")
COLUMNS = ("method", "published MAP", "MAP", "MeanNDCG", "NDCG@1", "NDCG@5", "NDCG@10", "P@10", "queries", "chosen")
ROWS = tuple((name, *(at + step / 7 for step in range(7)), 784 + at, f"{at} / 1") for at, name in enumerate(METHODS))
TABLE = ReportTable("Ours beside the paper's", COLUMNS, ROWS, note="A note that says how it was made, at some length.")


def drawn(table, width, terminal=True):
    options = {"markup": False, "highlight": False, "color_system": None, "force_jupyter": False}
    console = Console(file=io.StringIO(), width=width, force_terminal=terminal, **options)
    show(table, console)
    return console.file.getvalue()


def columns_of(text):
    """The text of each column of a framed table, its lines joined."""
    lines = [line[1:-1].split("│") for line in text.splitlines() if line.startswith("│")]
    return ["".join(part.strip() for part in column) for column in zip(*lines, strict=True)]


@pytest.mark.parametrize("width", [300, 120, 100, 80, 60, 40, 20])
def test_no_number_is_broken_and_nothing_is_lost_at_any_width(width):
    said = drawn(TABLE, width)
    assert "…" not in said
    assert all(len(line) <= width for line in said.splitlines())
    words = said.split()
    for row in ROWS:
        for cell in row[1:-1]:
            assert TABLE.text(cell) in words
    letters = "".join(sorted("".join(words).replace("│", "")))
    for wanted in (TABLE.title, TABLE.note, *METHODS):
        assert all(letters.count(letter) >= wanted.count(letter) for letter in set(wanted) - {" "})


@pytest.mark.parametrize("width", [115, 130])
def test_names_are_whole_in_their_column_of_a_framed_table(width):
    first, *_ = columns_of(drawn(TABLE, width))
    assert first.replace(" ", "") == "".join(METHODS).replace(" ", "")


def test_at_80_columns_every_method_stands_before_its_numbers():
    lines = drawn(ReportTable("", COLUMNS[:-1], tuple(row[:-1] for row in ROWS)), 80).splitlines()
    for row in ROWS:
        (line,) = [line for line in lines if TABLE.text(row[2]) in line.split()]
        assert line.split()[0] == row[0].split()[0]


def test_where_a_table_has_no_room_each_row_is_a_record():
    lines = drawn(TABLE, 40).splitlines()
    assert lines[:3] == ["Ours beside the paper's", "method: AdaRank-MAP", "  published MAP: 0.0000"]
    assert lines.count("  queries: 784") == 1


def test_elsewhere_than_on_a_terminal_lines_do_not_end(capsys):
    console = make_console()
    assert (console.is_terminal, console.width) == (False, ENDLESS)
    show(TABLE, console)
    console.print("word " * 500)
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split() == " ".join(COLUMNS).split()
    assert [line.split()[: len(name.split())] for line, name in zip(lines[2:6], METHODS, strict=True)] == [
        name.split() for name in METHODS
    ]
    assert lines[-1].split() == ["word"] * 500


def test_a_table_of_no_rows_shows_its_columns():
    assert drawn(ReportTable("", ("a", "b"), ()), 80).count("a") == 1
    assert drawn(ReportTable("", ("a", "b"), (("x", None),)), 3) == "a: \nx\n"
