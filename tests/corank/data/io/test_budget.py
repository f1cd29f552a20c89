"""Budgets of reading: every container is counted while it is read, and shares one budget with those around it."""

from __future__ import annotations

import gzip
import io
import json
import zipfile

import pytest

from corank.data.durable.compressed import ROW_CELLS, Budget, current_budget, spending
from corank.data.io.items import read_items
from corank.data.io.tables import json_values
from corank.errors import InputError
from corank_lab.grading.task import read_grading_task
from corank_lab.records.records import read_records

SHEET = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"


def n_values(value):
    """Count the values and keys of JSON by walking through it."""
    if isinstance(value, dict):
        return 1 + sum(1 + n_values(inner) for inner in value.values())
    return 1 + sum(map(n_values, value)) if isinstance(value, list) else 1


@pytest.mark.parametrize(
    "value",
    [[], [[], [], []], {"a": [1, 2, {"b": None}]}, ["a,[{:", 'quote " and \\', "\\\\"], {"x,y": {"": []}}, 7, "a"],
)
def test_values_of_json_are_counted_outside_of_strings(value):
    text = json.dumps(value)
    count = n_values(value)
    Budget(values=2 * count).take_json(text, "a")
    with pytest.raises(InputError, match=f"a unpacks to more than {count - 1:,} values"):
        Budget(values=count - 1).take_json(text, "a")


def sparse_workbook(n_rows):
    """Return a workbook whose rows have one cell in the last column of Excel, so that the others are empty."""
    openpyxl = pytest.importorskip("openpyxl")
    plain, out = io.BytesIO(), io.BytesIO()
    openpyxl.Workbook().save(plain)
    rows = "".join(f'<row r="{row}"><c r="XFD{row}"><v>1</v></c></row>' for row in range(1, n_rows + 1))
    with zipfile.ZipFile(plain) as source, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as target:
        for member in source.infolist():
            sheet = f'<worksheet xmlns="{SHEET}"><sheetData>{rows}</sheetData></worksheet>'
            target.writestr(member.filename, sheet if "sheet1" in member.filename else source.read(member))
    return out.getvalue()


def test_empty_cells_of_a_workbook_are_counted(tmp_path, monkeypatch):
    from corank_lab.records import tables as excel

    path = tmp_path / "sparse.xlsx"
    path.write_bytes(sparse_workbook(50))
    seen = []
    monkeypatch.setattr(excel, "_text", lambda cell: seen.append(cell) or str(cell))
    with (
        spending(Budget(cells=200_000)) as budget,
        pytest.raises(InputError, match="more than 200,000 cells, which is the limit"),
    ):
        read_records(path)
    assert budget.is_exceeded
    assert len(seen) == 200_000 // (16_384 + ROW_CELLS)  # the row that exceeds the limit is not read
    monkeypatch.setattr(excel, "MAX_CELLS", 200_000)  # the limit of a command
    with pytest.raises(InputError, match="more than 200,000 cells"):
        read_records(path)


def test_elements_of_a_workbook_are_counted_before_it_is_read(tmp_path):
    path = tmp_path / "sparse.xlsx"
    path.write_bytes(sparse_workbook(2000))
    with spending(Budget(values=3000)), pytest.raises(InputError, match="more than 3,000 values"):
        read_records(path)
    with spending(Budget(n_bytes=20_000)), pytest.raises(InputError, match="more than 20,000 bytes"):
        read_records(path)


@pytest.mark.parametrize(
    ("name", "content", "unit"),
    [
        ("a.csv", "title,b\n" + "x,\n" * 999, "cells"),
        ("a.json", json.dumps([{"title": "x"}] * 1000), "values"),
        ("a.jsonl", '{"title": "x"}\n' * 1000, "values"),
        ("a.xml", "<records>" + "<record/>" * 1000 + "</records>", "values"),
    ],
)
@pytest.mark.parametrize("read", [read_records, read_items, read_grading_task])
def test_texts_are_counted(tmp_path, read, name, content, unit):
    if (read is not read_records and name == "a.xml") or (read is read_items and name == "a.json"):
        return
    path = tmp_path / name
    path.write_text(content)
    with spending(Budget(**{unit: 900})), pytest.raises(InputError, match=f"a.*more than 900 {unit}"):
        read(path)


def test_a_stream_of_json_is_counted():
    with spending(Budget(values=10)), pytest.raises(InputError, match="more than 10 values"):
        list(json_values("[] " * 6 + "[[],[],[],[],[]]", "a"))


def test_parquet_is_counted_by_its_rows(tmp_path):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "a.parquet"
    parquet.write_table(arrow.table({"name": ["x"] * 10_000}), path)
    with spending(Budget(cells=20_000)), pytest.raises(InputError, match="more than 20,000 cells"):
        read_items(path)


def test_files_of_a_block_share_a_budget_and_others_do_not(tmp_path):
    paths = [tmp_path / f"{k}.ris.gz" for k in range(3)]
    for path in paths:
        path.write_bytes(gzip.compress(b"TY  - JOUR\nTI  - Tin\nER  -\n\n" * 10))
    with spending(Budget(n_bytes=800)):
        read_records(*paths[:2])
        with pytest.raises(InputError, match=r"2\.ris\.gz unpacks to more than 800 bytes"):
            read_records(paths[2])
    assert len(read_records(*paths)) == 30
    assert current_budget() is not current_budget()


def shared_workbook(n_rows, text):
    """Return a workbook whose rows share one text."""
    openpyxl = pytest.importorskip("openpyxl")
    plain, out = io.BytesIO(), io.BytesIO()
    openpyxl.Workbook().save(plain)
    rows = '<row r="1"><c r="A1" t="s"><v>0</v></c></row>'
    rows += "".join(f'<row r="{row}"><c r="A{row}" t="s"><v>1</v></c></row>' for row in range(2, n_rows + 2))
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml.sharedStrings+xml"
    types = f'<Override PartName="/xl/sharedStrings.xml" ContentType="{kind}"/></Types>'
    with zipfile.ZipFile(plain) as source, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as target:
        for member in source.infolist():
            content = source.read(member).decode().replace("</Types>", types)
            if "sheet1" in member.filename:
                content = f'<worksheet xmlns="{SHEET}"><sheetData>{rows}</sheetData></worksheet>'
            if "sharedStrings" not in member.filename:
                target.writestr(member.filename, content)
        shared = f'<sst xmlns="{SHEET}"><si><t>title</t></si><si><t>{text}</t></si></sst>'
        target.writestr("xl/sharedStrings.xml", shared)
    return out.getvalue()


def test_a_text_counts_as_often_as_it_is_used(tmp_path):
    """A small file repeats a long text: cells of a workbook, rows of Parquet, elements of XML within each other."""
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    book, table, xml = tmp_path / "a.xlsx", tmp_path / "a.parquet", tmp_path / "a.xml"
    book.write_bytes(shared_workbook(100, "y" * 10_000))
    parquet.write_table(arrow.table({"name": list("ab") * 50, "text": ["y" * 10_000] * 100}), table)
    xml.write_text("<a>" + "<r><title>t</title>" * 100 + "<b>" + "y" * 10_000 + "</b>" + "</r>" * 100 + "</a>")
    for read, path in ((read_records, book), (read_items, table), (read_records, xml)):
        with spending(Budget(n_bytes=500_000)), pytest.raises(InputError, match="more than 500,000 bytes"):
            read(path)


def test_lists_in_parquet_are_refused_where_bytes_are_limited(tmp_path):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "a.parquet"
    parquet.write_table(arrow.table({"name": ["a", "b"], "tags": [[1] * 9, []]}), path)
    assert len(read_items(path)[0].names) == 2
    with spending(Budget(n_bytes=1 << 20)), pytest.raises(InputError, match="'tags' holds lists or structs"):
        read_items(path)
