from __future__ import annotations

import sys

import pytest

from corank.errors import MissingExtra
from corank.tables import ReportTable
from read_page import Page

TABLE = ReportTable(
    "Runs", ("method", "MAP", "n"), (("SPD", 0.12345, 3), ("none", float("nan"), None)), digits=2, note="A note."
)
ODD = ReportTable(
    "50 % of {a_b}", ("a|b", "p"), (("x & y\nz", 0.00123), ("<i>", None)), formats=("", ".1e"), note="~ and ^ and \\"
)


def test_markdown_shows_every_cell_once():
    lines = TABLE.markdown().splitlines()
    assert lines[2:6] == ["| method | MAP | n |", "|---|---:|---:|", "| SPD | 0.12 | 3 |", "| none |  |  |"]
    assert lines[-1] == "A note."


def test_markdown_of_odd_cells_keeps_the_columns():
    lines = ODD.markdown().splitlines()
    assert lines[2:6] == [r"| a\|b | p |", "|---|---:|", "| x & y z | 1.2e-03 |", r"| \<i> |  |"]
    assert ReportTable("", ("a",), ()).markdown() == "| a |\n|---:|"


def test_a_ragged_row_and_formats_of_other_columns_are_refused():
    with pytest.raises(ValueError, match="a row has 1 cells"):
        ReportTable("t", ("a", "b"), (("x",),))
    with pytest.raises(ValueError, match="there are 1 formats for 2 columns"):
        ReportTable("t", ("a", "b"), (), formats=("",))


def test_html_names_rows_and_columns_and_escapes():
    page = Page(ODD.html())
    (table,) = page.tables
    assert (table.caption, table.head, table.rows) == (
        "50 % of {a_b}",
        ["a|b", "p"],
        [["x & y\nz", "1.2e-03"], ["<i>", ""]],
    )
    assert [cell.get("scope") for cell in page.all("th")] == ["col", "col", "row", "row"]
    region = page.all("div")[0]
    assert (region["role"], region["tabindex"], region["aria-label"]) == ("region", "0", "50 % of {a_b}")
    assert Page(ReportTable("", ("a",), ()).html()).all("caption") == []
    assert TABLE._repr_html_() == TABLE.html()


def unescaped(text):
    """LaTeX read back as TeX would print it."""
    for name, sign in (("textasciitilde", "~"), ("textasciicircum", "^")):
        text = text.replace(f"\\{name}{{}}", sign)
    for sign in "&%$#_{}":
        text = text.replace(f"\\{sign}", sign)
    return text.replace("\\textbackslash{}", "\\")


def test_latex_reads_back_as_the_same_cells():
    lines = ODD.to_latex().splitlines()
    assert unescaped(lines[1]) == r"\caption{50 % of {a_b}. ~ and ^ and \}"
    assert lines[2] == r"\begin{tabular}{lr}"
    body = lines[lines.index(r"\toprule") + 1 : lines.index(r"\bottomrule")]
    rows = [row.removesuffix(r" \\").split(" & ") for row in body if row != r"\midrule"]
    assert [[unescaped(cell) for cell in row] for row in rows] == [["a|b", "p"], ["x & y z", "1.2e-03"], ["<i>", ""]]
    assert lines.count(r"\begin{table}") == lines.count(r"\end{table}") == 1


def test_a_frame_keeps_unrounded_numbers():
    frame = TABLE.to_frame()
    assert list(frame.columns) == ["method", "MAP", "n"]
    assert frame["MAP"].iloc[0] == 0.12345
    assert frame["MAP"].dtype == frame["n"].dtype == float  # a missing count is NaN
    assert frame["MAP"].isna().tolist() == [False, True]
    assert list(ReportTable("", ("a", "a"), ((1, "x"),)).to_frame().columns) == ["a", "a"]
    assert ReportTable("", ("a", "b"), ()).to_frame().shape == (0, 2)


def test_without_pandas_one_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtra, match=r"pip install 'corank\[frames\]'"):
        TABLE.to_frame()
