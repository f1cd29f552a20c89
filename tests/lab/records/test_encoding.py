from __future__ import annotations

import gzip
import lzma

import pytest

from corank.errors import InputError
from corank_lab.records.parsed import clean_abstract, clean_line
from helpers.record_samples import read

TEXT = "title,abstract,year\nÜber Zinn – “ore”,Größe 5 µm,2001\n"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "cp1252"])
def test_encodings_are_detected_and_said(encoding, tmp_path):
    found = read(tmp_path, TEXT.encode(encoding))
    assert (found.titles, found.abstracts) == (["Über Zinn – “ore”"], ["Größe 5 µm"])
    said = " ".join(found.sources[0].remarks)
    assert ("UTF-16" in said, "UTF-32" in said, "Windows-1252" in said) == (
        "utf-16" in encoding, "utf-32" in encoding, encoding == "cp1252"
    )  # fmt: skip
    assert bool(said) == (encoding not in ("utf-8", "utf-8-sig"))


def test_lines_in_two_encodings(tmp_path):
    content = "title,year\nÜber Zinn,2001\n".encode() + "Größe,2002\n".encode("latin-1")
    found = read(tmp_path, content)
    assert found.titles == ["Über Zinn", "Größe"]
    assert found.sources[0].remarks[0].startswith("1 of 4 lines are not UTF-8")


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress])
def test_compressed_files_under_any_name(pack, tmp_path):
    assert read(tmp_path, pack(TEXT.encode()), "works.csv").titles == ["Über Zinn – “ore”"]


def test_a_decompression_bomb_is_refused(tmp_path):
    with pytest.raises(InputError, match="expands to more than"):
        read(tmp_path, gzip.compress(b"\0" * 200_000_000))


def test_a_missing_file(tmp_path):
    from corank_lab.records.records import read_records

    with pytest.raises(InputError, match=r"there is no file .*absent\.ris"):
        read_records(tmp_path / "absent.ris")


@pytest.mark.parametrize(
    "text",
    [
        "[No abstract available]", "No abstract", "no abstract available.", "Abstract not available", "N/A", "n.a.",
        "None", "nan", "Not available", "There is no abstract available for this article", "(No abstract provided)",
        "This article does not have an abstract.", "<p>No abstract available</p>", "Abstract unavailable", "-",
        "ABSTRACT", "No abstract is available.", "[Abstract not available]", " null ",
    ],
)  # fmt: skip
def test_placeholders_are_not_abstracts(text):
    assert clean_abstract(text) == ""


@pytest.mark.parametrize(
    "text", ["No abstract reasoning was needed.", "Not available data were imputed.", "None of the rats slept.", "A"]
)
def test_short_abstracts_are_kept(text):
    assert clean_abstract(text) == text


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("a < b and c > d", "a < b and c > d"),
        ("p<0.05, n>3", "p<0.05, n>3"),
        ("<b>x</b><br/>y", "x y"),
        ("&amp;lt;i&amp;gt;x&amp;lt;/i&amp;gt;", "x"),
        ("A&nbsp;B &copy; &unknown; AT&T", "A B © &unknown; AT&T"),
        ('<span class="a">x</span> <mml:math><mml:mi>n</mml:mi></mml:math>', "x n"),
        ("<jats:title>Aim</jats:title><jats:p>Tin</jats:p>", "Aim Tin"),
        ("soft\u00adhyphen zero\u200bwidth \x00nul", "softhyphen zerowidth nul"),
        ("<foo>kept</foo>", "<foo>kept</foo>"),
    ],
)
def test_markup_is_cleaned(text, plain):
    assert clean_line(text) == plain
