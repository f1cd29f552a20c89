"""Records are written in every format and come back; every field of the source is in the file."""

from __future__ import annotations

import gzip
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corank.data.io.tables import defuse
from corank.errors import InputError
from corank_lab.records.parsed import clean_line
from corank_lab.records.records import RecordDetails, Records, RecordSource, read_records
from corank_lab.records.tables import CELL
from corank_lab.records.tagged import decode_latex
from corank_lab.records.writer import (
    WRITTEN,
    family_of,
    guess_family,
    require_records_suffix,
    squeeze,
    write_records,
)
from experiments.datasets.catalog import data_root

DETAILS = [
    RecordDetails(
        2001, ("Roe, A.", "Müller, Zoë"), "Journal of Tin & Zinc", "10.1000/a_b(1)", "123", "WOS:0001", "W1",
        ("tin", "ore {old}"), "https://example.org/?a=1&b=2", "a.csv",
    ),
    RecordDetails(None, (), "", "", "", "", "W2", (), "", "a.csv"),
    RecordDetails(1999, ("Group for R and D",), "", "10.1000/c", "", "", "W3", (), "", "a.csv"),
]  # fmt: skip
FIELDS = [
    {"Volume": ["7"], "Author full names": ["Roe, Ann; Müller, Zoë"], "DOI": ["https://doi.org/10.1000/A_B(1)"]},
    {"Comment": ["=1+1"], "Year": ["n.d."]},
    {"Comment": ["50 % of {x} \\ y_z ~ ^ # $"], "Größe in µm": ["3"]},
]


def some_records(fields=FIELDS, form="CSV"):
    return Records(
        ["W1", "W2", "W3"],
        ["Tin & <ore>", "=gold, or: not", "Über ~5 % {copper}"],
        ["First.", "", "Third; with semicolon."],
        [("W2", "10.1/x"), (), ("W1",)],
        labels=[1, 0, np.nan],
        fields=fields,
        details=DETAILS,
        sources=[RecordSource("a.csv", "0" * 64, form, 3)],
    )


def cells_of(path: Path):
    """Return all rows of a workbook as text."""
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.load_workbook(path)
    rows = [list(row) for row in book.active.iter_rows()]
    assert all(cell.data_type in ("s", "n") for row in rows for cell in row)
    return [["" if cell.value is None else cell.value for cell in row] for row in rows]


def content(path: Path) -> str:
    if path.suffix == ".xlsx":
        return "\n".join(cell for row in cells_of(path) for cell in row)
    return path.read_text(encoding="utf-8")


@pytest.mark.parametrize("suffix", WRITTEN)
@pytest.mark.parametrize("form", ["CSV", "EndNote XML"])
def test_every_value_and_every_field_is_in_the_file(suffix, form, tmp_path):
    records = some_records(form=form)
    more = {"note": ["a remark", "", "x"], "included_ann": ["1", "", "0"]}
    assert write_records(tmp_path / f"a{suffix}", records, None, more) == ()
    text = content(tmp_path / f"a{suffix}")
    flat = squeeze(text.replace("\u00ae", " "))
    shown = {".jsonl": lambda value: json.dumps(value, ensure_ascii=False)[1:-1]}.get(suffix, str)
    values = [*records.titles, *filter(None, records.abstracts), "W2", "10.1/x", "W1", "a remark"]
    for one, fields in zip(DETAILS, FIELDS, strict=True):
        values += [*one.authors, one.journal, one.accession, *one.keywords]
        values += [value for field in fields.values() for value in field]
        for verbatim in (one.doi, one.url, one.pmid):
            assert verbatim in text
    for value in filter(None, values):
        named = shown(value)
        table = suffix in (".csv", ".tsv", ".xlsx")
        assert (defuse(value) if table else named) in (text if table else flat), value


def require_same(again, records):
    """Require that records are equal in all that is understood."""
    assert again.titles == records.titles
    assert [*map(squeeze, again.abstracts)] == [*map(squeeze, records.abstracts)]
    assert [list(of) for of in again.references] == [list(of) for of in records.references]
    np.testing.assert_array_equal(again.labels, records.labels)
    for one, other in zip(again.details, records.details, strict=True):
        assert one == replace(other, source=one.source)


@pytest.mark.parametrize("suffix", WRITTEN)
@pytest.mark.parametrize("form", ["CSV", "RIS", "Web of Science", "EndNote XML", "OpenAlex JSON"])
def test_records_are_read_back(suffix, form, tmp_path):
    records = some_records(form=form)
    write_records(tmp_path / f"b{suffix}", records)
    again = read_records(tmp_path / f"b{suffix}")
    assert again.ids == records.ids
    require_same(again, records)
    for fields, found in zip(FIELDS, again.fields, strict=True):
        text = squeeze(" ".join(value for values in found.values() for value in values))
        assert all(value in text for values in fields.values() for value in values)


SAMPLES = {
    "a.ris": """TY  - CONF
T1  - On <i>tin</i> &amp; ore
A1  - Roe, A.
A1  - Müller, Zoë
Y1  - 2001/03/02/
JF  - Ores
VL  - 7
DO  - https://doi.org/10.1000/A_b
N2  - First.
KW  - tin
KW  - Child, Preschool
UR  - https://example.org/a
N1  - a remark
ER  -

TY  - JOUR
ID  - W2
TI  - Zinc
CR  - 10.1000/a_b
N1  - ASReview_irrelevant
ER  -
""",
    "a.nbib": """PMID- 11111
OWN - NLM
TI  - A long title on tin ores and the miners who find them in the hills of Wales, of
      Cornwall and of other places
AB  - BACKGROUND: Tin. METHODS: {Ore} & =1+1.
FAU - Roe, Ann
AU  - Roe A
DP  - 2001 Mar
JT  - Journal of tin
AID - 10.1000/xyz [doi]
MH  - Mining/*history
OT  - tin

PMID- 22222
TI  - Gold
DP  - 1999
""",
    "a.bib": """@inproceedings{roe2001,
  title = {{T}in \\& {\\"u}bel 5 \\%},
  author = {Roe, Ann and M{\\"u}ller, Zo{\\"e}},
  year = {2001},
  booktitle = {Ores},
  doi = {10.1000/a_b},
  keywords = {tin, ore},
  annote = {mine}
}
""",
    "a.csv": "Authors,Title,Year,Source title,DOI,Abstract,Author Keywords,References,EID,Funding\n"
    "Roe A.; Poe B.,Tin,2001,Ores,10.1000/a,[No abstract available],tin; ore,"
    '"Roe A., Ore, (1999); Poe B., Tin, 10.1000/q, (1998)",2-s2.0-1,"=A"\n'
    "Coe C.,Gold,2002,Ores,,Gold; it is.,,,2-s2.0-2,\n",
    "a.txt": """FN Clarivate Analytics Web of Science
VR 1.0
PT J
AU Roe, A
   Poe, B
TI Tin of
   Wales
SO ORES
DE tin; ore
ID KEYWORDS PLUS
AB First.
CR Roe A, 1999, ORE, V1, P2, DOI 10.1000/q
   Poe B, 1998, TIN, V3, P4
PY 2001
UT WOS:0001
ER

EF
""",
    "a.jsonl": '{"id": "https://openalex.org/W1", "title": "Tin", "publication_year": 2001, '
    '"authorships": [{"author": {"display_name": "A Roe"}}], "referenced_works": ["W2", "W3"], '
    '"ids": {"pmid": "https://pubmed.ncbi.nlm.nih.gov/123456"}, '
    '"abstract_inverted_index": {"Ore": [0], "is": [1]}, "open_access": {"is_oa": true}}\n',
}


@pytest.mark.parametrize("suffix", WRITTEN)
@pytest.mark.parametrize("sample", SAMPLES)
def test_samples_of_all_formats_are_converted_to_all_formats(sample, suffix, tmp_path):
    (tmp_path / sample).write_text(SAMPLES[sample].replace("\\\\", "\\"), encoding="utf-8")
    records = read_records(tmp_path / sample)
    write_records(tmp_path / f"b{suffix}", records)
    again = read_records(tmp_path / f"b{suffix}")
    require_same(again, records)
    for fields, found in zip(records.fields, again.fields, strict=True):
        there = plain(value for values in found.values() for value in values)
        for values in fields.values():
            for part in (part for value in values for part in re.split(r";|\band\b|,", value)):
                assert plain([part]) in there or part.casefold().startswith("asreview"), part


def plain(values):
    return re.sub(r"[\W_]+", " ", decode_latex(" ".join(values))).casefold().strip()


@pytest.mark.long
@pytest.mark.parametrize("suffix", WRITTEN)
def test_exports_of_databases_are_converted(suffix, tmp_path):
    folder = data_root() / "record_exports"
    if not folder.exists():
        pytest.skip("needs record_exports under CORANK_DATA")
    for path in sorted(folder.rglob("*.xz")):
        records = read_records(path)
        records = records.take(range(min(len(records), 60)))
        write_records(tmp_path / f"b{suffix}", records, overwrite=True)
        if suffix == ".dat":  # the mark is a line break there
            abstracts = [text.replace("®", "(R)") for text in records.abstracts]
            records = replace(records, abstracts=abstracts)
        require_same(read_records(tmp_path / f"b{suffix}"), records)


def test_a_table_keeps_its_columns_and_order(tmp_path):
    text = "EID,Title,Source title,Year,Funding\n2-s2.0-1,Tin,Ores,2001,A\n2-s2.0-2,Zinc,,2002,\n"
    (tmp_path / "a.csv").write_text(text)
    records = read_records(tmp_path / "a.csv")
    fields = [
        {"EID": ["2-s2.0-1"], "Title": ["Tin"], "Source title": ["Ores"], "Year": ["2001"], "Funding": ["A"]},
        {"EID": ["2-s2.0-2"], "Title": ["Zinc"], "Year": ["2002"]},
    ]
    details = [
        RecordDetails(2001, journal="Ores", accession="2-s2.0-1", given_id="2-s2.0-1"),
        RecordDetails(2002, accession="2-s2.0-2", given_id="2-s2.0-2"),
    ]
    records = Records(["2-s2.0-1", "2-s2.0-2"], records.titles, records.abstracts, fields=fields, details=details)
    write_records(tmp_path / "b.csv", records)
    assert (tmp_path / "b.csv").read_text() == text
    write_records(tmp_path / "c.csv", records, np.array([1.0, np.nan]))
    assert (tmp_path / "c.csv").read_text().splitlines()[0] == "EID,Title,Source title,Year,Funding,included"


def test_tables_of_several_files_have_standard_columns(tmp_path):
    fields = [{"Title": ["Tin"], "Year": ["2001"]}, {"Article Title": ["Zinc"], "Publication Year": ["2002"]}]
    details = [RecordDetails(2001, source="a.csv"), RecordDetails(2002, source="b.csv")]
    sources = [RecordSource(name, "", "CSV", 1) for name in ("a.csv", "b.csv")]
    records = Records(
        ["title:1", "title:2"], ["Tin", "Zinc"], ["", ""], fields=fields, details=details, sources=sources
    )
    write_records(tmp_path / "c.csv", records)
    assert (tmp_path / "c.csv").read_text() == "title,abstract,year\nTin,,2001\nZinc,,2002\n"


def test_ris_keeps_its_own_lines(tmp_path):
    fields = [
        {
            "TY": ["CONF"], "T1": ["On <i>tin</i>"], "A1": ["Roe, A.", "Poe, B."], "Y1": ["2001/03/02/"], "C7": ["x"],
            "N1": ["ASReview_irrelevant", "mine"], "DO": ["https://doi.org/10.1000/A"], "AN": ["L1"],
        }
    ]  # fmt: skip
    details = [RecordDetails(2001, ("Roe, A.", "Poe, B."), "", "10.1000/a", "", "L1", source="a.ris")]
    records = Records(["doi:10.1000/a"], ["On tin"], ["Ore."], fields=fields, details=details, labels=[1])
    write_records(tmp_path / "b.ris", records)
    assert (tmp_path / "b.ris").read_text().splitlines() == [
        "TY  - CONF", "AB  - Ore.", "T1  - On <i>tin</i>", "A1  - Roe, A.", "A1  - Poe, B.", "Y1  - 2001/03/02/",
        "C7  - x", "N1  - mine", "DO  - https://doi.org/10.1000/A", "AN  - L1", "N1  - ASReview_relevant", "ER  - ", "",
    ]  # fmt: skip


def test_excel_replaces_control_characters_and_refuses_long_texts(tmp_path):
    records = Records(
        ["a", "b"], ["=1+1", "#N/A"], ["x" * CELL, "bell\x07 and \x1b"], fields=[{"x": ["1"]}, {"x": ["2"]}]
    )
    changes = write_records(tmp_path / "a.xlsx", records)
    assert len(changes) == 1
    assert "2 control characters were replaced by \ufffd" in changes[0]
    header, first, second = cells_of(tmp_path / "a.xlsx")
    assert (header, first[0:2], first[3]) == (["id", "title", "abstract", "x"], ["a", "'=1+1"], "1")
    again = read_records(tmp_path / "a.xlsx")
    assert again.titles == ["=1+1", "#N/A"]
    assert again.abstracts[0] == "x" * CELL
    assert second == ["b", "#N/A", "bell\ufffd and \ufffd", "2"]
    for long in ("x" * (CELL + 1), "𝔸" * (CELL // 2 + 1)):
        with pytest.raises(InputError, match=r"characters in a text.*\.csv"):
            write_records(tmp_path / "b.xlsx", Records(["a"], ["Tin"], [long]))
        assert not (tmp_path / "b.xlsx").exists()


def test_excel_gives_the_same_bytes_and_keeps_formulas_as_text(tmp_path):
    records = some_records()
    for name in ("a.xlsx", "b.xlsx"):
        write_records(tmp_path / name, records, keep_formulas=True)
    assert (tmp_path / "a.xlsx").read_bytes() == (tmp_path / "b.xlsx").read_bytes()
    assert "=gold, or: not" in content(tmp_path / "a.xlsx").splitlines()


def test_names_of_columns_that_clash(tmp_path):
    fields = [{"Title": ["Another"], "note": ["mine"], "NOTE": ["too"], "included": ["0"]}]
    records = Records(["a"], ["Tin"], [""], fields=fields, labels=[1])
    write_records(tmp_path / "a.csv", records, None, {"note": ["theirs"]})
    rows = [line.split(",") for line in (tmp_path / "a.csv").read_text().splitlines()]
    cells = dict(zip(*rows, strict=True))
    assert cells["title"] == "Tin"
    assert cells["Title (source)"] == "Another"
    assert (cells["note"], cells["included"], cells["included (source)"]) == ("theirs", "1", "0")
    assert {"mine", "too"} < set(rows[1])
    assert len({name.casefold() for name in rows[0]}) == len(rows[0])


def test_suffixes(tmp_path):
    records = some_records()
    assert require_records_suffix("x.RIS.gz") == ".ris"
    with pytest.raises(InputError, match=r"a\.doc has an unknown suffix"):
        write_records(tmp_path / "a.doc", records)
    with pytest.raises(InputError, match=r"\.xlsx is compressed; leave it out"):
        write_records(tmp_path / "a.xlsx.gz", records)
    write_records(tmp_path / "a.ris.gz", records)
    assert gzip.decompress((tmp_path / "a.ris.gz").read_bytes()).startswith(b"TY  - ")
    for suffix in WRITTEN:
        (tmp_path / f"b{suffix}").write_text("mine")
        with pytest.raises(InputError, match="exists already"):
            write_records(tmp_path / f"b{suffix}", records)
        write_records(tmp_path / f"b{suffix}", records, overwrite=True)


def test_families_of_sources():
    named = ["RIS", "PubMed", "BibTeX", "Web of Science", "Excel", "OpenAlex JSON", "PubMed XML"]
    assert [family_of(form) for form in named] == ["ris", "nbib", "bibtex", "wos", "table", "other", "pubmed xml"]
    assert [guess_family(fields) for fields in ({"TY": []}, {"PT": []}, {"PMID": [], "PT": []}, {"x": []})] == [
        "ris", "wos", "nbib", "table",
    ]  # fmt: skip


TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc", "Cf", "Zl", "Zp", "Co"]), min_size=1, max_size=30)
NAME = st.text("abcXYZ ü:_-=", min_size=1, max_size=8).filter(str.strip)


@settings(max_examples=12)
@given(st.lists(st.tuples(TEXT, st.text(max_size=30), st.dictionaries(NAME, TEXT, max_size=3)), min_size=1, max_size=4))
def test_any_text_is_written_in_any_format_and_read_back(tmp_path_factory, rows):
    folder = tmp_path_factory.getbasetemp()
    records = Records(
        [f"W{at}" for at in range(len(rows))],
        [title for title, _, _ in rows],
        [abstract.encode("utf-8", "replace").decode() for _, abstract, _ in rows],
        fields=[{f"x{name}": [value] for name, value in fields.items()} for _, _, fields in rows],
        labels=np.arange(len(rows)) % 2,
    )
    for suffix in (".ris", ".csv", ".tsv", ".jsonl"):
        write_records(folder / f"any{suffix}", records, overwrite=True)
    for suffix in (".csv", ".tsv", ".jsonl", ".ris"):
        if not any(map(clean_line, records.titles)):
            with pytest.raises(InputError, match=r"no titles|no records"):
                read_records(folder / f"any{suffix}")
            continue
        again = read_records(folder / f"any{suffix}")
        assert again.titles == [clean_line(title) for title in records.titles]
        assert again.ids == records.ids
        np.testing.assert_array_equal(again.labels, records.labels)
