"""Formulas in CSV: a spreadsheet runs none, and reading gives the texts back."""

from __future__ import annotations

import csv
import io
import itertools

import pytest

from corank.data.io.read import read
from corank.data.io.table_text import csv_rows, csv_text, defuse, restore
from corank_lab.records.records import read_records

FORMULAS = [
    "=1+1",
    "=cmd|' /C calc'!A0",
    "+1+cmd",
    "-2+3",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
    "\n=1",
    "＝1",
    "＋1",
    "－1",
    "＠x",
]
RUNS = "=+-@\t\r\n＝＋－＠"


@pytest.mark.parametrize("text", [*FORMULAS, "-", "--", "- a list", "-inf", "+49 (0) 1", "'=1", "''=1", "-1,5", "-٣"])
def test_texts_that_a_spreadsheet_runs_begin_with_an_apostrophe(text):
    assert defuse(text).startswith(f"'{text[0]}")
    assert restore(defuse(text)) == text


@pytest.mark.parametrize("text", ["-5", "+.5e-3", "-1.", "3", "a=1", "", "'tis", "'", "it's -1", "–", " =1"])
def test_numbers_and_other_texts_stay(text):
    assert defuse(text) == text
    assert restore(text) == text


def test_every_short_text_survives_and_none_is_run():
    assert restore("'-5") == "'-5"
    for letters in itertools.product("'=-5e.a\t\n;\"", repeat=4):
        text = "".join(letters)
        assert restore(defuse(text)) == text
        assert defuse(text)[0] not in RUNS or float(text) == float(text)


@pytest.mark.parametrize(
    ("text", "defused"),
    [("x;=1+1;y", "x;'=1+1;y"), ("a\n@SUM(1)", "a\n'@SUM(1)"), ("\t=1", "'\t'=1"), ("a;'=1", "a;''=1")],
)
def test_a_spreadsheet_with_semicolons_between_cells_runs_no_part_of_a_text(text, defused):
    """In most of Europe a spreadsheet splits a .csv at semicolons, and ignores quotes inside its cells."""
    assert defuse(text) == defused
    assert restore(defused) == text


def test_csv_gives_back_texts_columns_and_numbers():
    rows = [["=cmd", "-x", "n"], *([text, f"a, {text}", -1.5] for text in FORMULAS)]
    written = csv_text(rows)
    assert not any(
        cell and cell[0] in RUNS and cell != "-1.5"
        for row in csv.reader(io.StringIO(written, newline=""))
        for cell in row
    )
    header, found = csv_rows(written, "a.csv")
    assert header == rows[0]
    assert [list(row.values()) for _, row in found] == [[first, second, "-1.5"] for first, second, _ in rows[1:]]
    kept = csv.reader(io.StringIO(csv_text(rows, keep_formulas=True), newline=""))
    assert [row[:2] for row in kept] == [row[:2] for row in rows]


@pytest.mark.parametrize(("separator", "other"), [(",", ";"), (";", ","), ("\t", ";")])
def test_separators_within_a_quoted_header_are_not_counted(separator, other, tmp_path):
    names = ["label", "qid", f"price{other} in{other} EUR{other} net"]
    text = separator.join(f'"{name}"' for name in names) + "\n" + separator.join("123") + "\n"
    assert csv_rows(text, "a")[0] == names
    path = tmp_path / "a.csv"
    path.write_text(text)
    assert read(path).names == names[2:]
    path.write_text(text.replace("label", "title"))
    assert list(read_records(path).fields[0]) == ["title", *names[1:]]
