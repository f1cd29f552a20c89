"""Formulas in CSV: a spreadsheet runs none, and reading gives the texts back."""

from __future__ import annotations

import csv
import io
import itertools

import pandas as pd
import pyarrow as pa
import pytest

from corank.data.io.read import read
from corank.data.io.tables import csv_table, csv_text, defuse, read_table, restore
from corank.errors import InputError
from corank.parameters import number
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
    table = csv_table(written, "a.csv")
    assert table.names == rows[0]
    assert [list(row.values()) for _, row in table.rows()] == [[*texts, "-1.5"] for *texts, _ in rows[1:]]
    kept = csv.reader(io.StringIO(csv_text(rows, keep_formulas=True), newline=""))
    assert [row[:2] for row in kept] == [row[:2] for row in rows]


@pytest.mark.parametrize(("separator", "other"), [(",", ";"), (";", ","), ("\t", ";")])
def test_separators_within_a_quoted_header_are_not_counted(separator, other, tmp_path):
    names = ["label", "qid", f"price{other} in{other} EUR{other} net"]
    text = separator.join(f'"{name}"' for name in names) + "\n" + separator.join("123") + "\n"
    assert csv_table(text, "a").names == names
    path = tmp_path / "a.csv"
    path.write_text(text)
    assert read(path).names == names[2:]
    path.write_text(text.replace("label", "title"))
    assert list(read_records(path).fields[0]) == ["title", *names[1:]]


def test_every_source_of_a_table_gives_the_same_columns(tmp_path):
    rows = [{"query": "7", "docid": "x", "grade": 2}, {"query": "7", "docid": "y", "grade": 0}]
    frame = pd.DataFrame(rows)
    frame.to_parquet(tmp_path / "t.parquet")
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_csv(tmp_path / "t.tsv.gz", index=False, sep="\t")
    frame.to_json(tmp_path / "t.jsonl", orient="records", lines=True)
    sources = [frame, rows, frame.to_dict("list"), *tmp_path.iterdir()]
    sources += [io.StringIO((tmp_path / "t.csv").read_text()), io.BytesIO((tmp_path / "t.jsonl").read_bytes())]
    for source in sources:
        table = read_table(source)
        assert table.names == ["query", "docid", "grade"]
        assert table.texts("docid") == ["x", "y"]
        assert table.numbers("grade").tolist() == [2.0, 0.0]
        roles = table.roles()
        assert (roles.y, roles.qid, roles.docid) == ("grade", "query", "docid")
        assert table.find(("title", "docid")) == "docid"
    gaps = read_table(pd.DataFrame({"a": [1.5, None], "b": pd.array(["x", None], dtype="string")}))
    assert (gaps.texts("a"), gaps.texts("b"), gaps.texts(None)) == (["1.5", ""], ["x", ""], ["", ""])
    with pytest.raises(InputError, match="line 3: grade"):
        read_table(tmp_path / "t.csv").numbers("grade", number(1.0))
    for wrong in (7, [1, 2], {"a": [1], "b": []}, {"a": 1}, {"a": "xy"}, frame[["grade", "grade"]]):
        with pytest.raises(InputError):
            read_table(wrong)


def test_open_files_are_read_as_files_are_and_arrow_tables_as_frames():
    assert read_table(io.BytesIO(b"\xef\xbb\xbfa,b\n1,2\n")).columns == {"a": ["1"], "b": ["2"]}
    assert read_table(io.StringIO('\ufeff{"a": 1}\n')).columns == {"a": [1]}
    with pytest.raises(InputError, match="line 2"):
        read_table(io.BytesIO(b"a,b\n\xff,2\n"))
    with pytest.raises(InputError, match="one object per line"):
        read_table(io.StringIO('[{"a": 1}]'))
    assert read_table(pa.table({"a": [1, None], "A": ["x", "y"]})).columns == {"a": [1, None], "A": ["x", "y"]}
