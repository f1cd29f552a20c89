from __future__ import annotations

import re
import sys

import pytest

from corank.console import printable
from corank.errors import MissingExtra
from corank.tables import ReportTable, escape_markdown
from helpers.page_reader import Page

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
    assert lines[2:6] == [r"| a\|b | p |", "|---|---:|", "| x & y z | 1.2e-03 |", "| &lt;i> |  |"]
    assert ReportTable("", ("a",), ()).markdown() == "| a |\n|---:|"


HOSTILE = (
    "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "[click](javascript:alert(1))", "![x](http://a.example)",
    "<http://a.example>", "&lt;b&gt; &#60;", "**bold** __b__ _i_ *i*", "`code` ~~s~~ $x$", "# head", "- item", "+ item",
    "1. one", "7) x", "> quote", "---", "a | b", "back\\slash \\<b>", "a_b_c f_1", "-5.2", "3.5 %", "trailing \\",
    "two\n\nparagraphs\n# head", "<!-- -->", "    indented", "[x]: http://a.example", "a\x1b[31mb", "* * *", "~~~",
)  # fmt: skip


def read_markdown(text):
    """The document as a second reader of Markdown sees it: a flat list of tokens."""
    parser = (
        pytest.importorskip("markdown_it").MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    )
    return [one for token in parser.parse(text) for one in (token, *(token.children or ()))]


@pytest.mark.parametrize("text", HOSTILE)
def test_markdown_shows_any_text_as_it_is(text):
    shown = " ".join(printable(" ".join(text.split("\n\n"))).split())
    for markdown, around in (
        (escape_markdown(text), 0),
        (f"- {escape_markdown(text)}", 0),
        (f"# {escape_markdown(text)}", 0),
    ):
        tokens = read_markdown(markdown)
        read = "".join(token.content for token in tokens if token.type in ("text", "text_special"))
        assert " ".join(read.split()) == shown, around
        assert {token.type for token in tokens} <= {
            "paragraph_open", "inline", "text", "text_special", "paragraph_close", "bullet_list_open", "list_item_open",
            "list_item_close", "bullet_list_close", "heading_open", "heading_close",
        }  # fmt: skip


def test_a_table_of_hostile_texts_stays_a_table():
    table = ReportTable("<b>", ("`a", "b|c"), tuple((text, text) for text in HOSTILE), note="<i>[x](y)")
    tokens = read_markdown(table.markdown())
    kinds = [token.type for token in tokens]
    assert kinds.count("tr_open") == 1 + len(HOSTILE)
    assert kinds.count("td_open") == 2 * len(HOSTILE)
    assert not {"html_inline", "html_block", "link_open", "image", "code_inline", "em_open"} & set(kinds)


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


def test_latex_of_hostile_texts_is_one_line_each():
    """An empty line ends a caption with an error, and a bracket after a line end is an argument of it."""
    texts = ("two\n\nparagraphs", "[x]", "* y", "a\x1b[31m")
    table = ReportTable("A\n\n\nb", ("[c", "d"), tuple((text, 1) for text in texts), note="e\n \nf")
    lines = table.to_latex().splitlines()
    assert lines[1] == r"\caption{A b. e f}"
    assert lines[4] == r"{}[c & d \\"
    assert lines[6:10] == [
        r"two paragraphs & 1 \\",
        r"{}[x] & 1 \\",
        r"{}* y & 1 \\",
        r"a\textbackslash{}x1b[31m & 1 \\",
    ]
    assert "" not in lines


def test_no_attribute_is_written_twice():
    for table in (TABLE, ODD, ReportTable("", ("a",), ())):
        for tag in re.findall(r"<[a-z]+ [^>]*>", table.html()):
            names = re.findall(r' ([a-z-]+)="', tag)
            assert len(names) == len(set(names)), tag


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
