from __future__ import annotations

import io
import json

import numpy as np
import pytest

from corank.data.io.tables import csv_text
from corank.errors import InputError
from corank_lab.records.parsed import split_authors, split_keywords, split_references
from corank_lab.records.records import read_records
from helpers.record_samples import ABSTRACT, FACTS, TITLE, check_works, read

NAMES = {
    "title": TITLE, "authors": "Roe, Ann B.; Doe, Ben", "year": "2001", "journal": "Journal of Ore",
    "abstract": ABSTRACT, "doi": "10.1000/ore.1", "pmid": "12345678", "keywords": "tin; deep sleep",
    "url": "https://ore.example/1",
}  # fmt: skip
SECOND = {"title": "Gold dust", "year": "1999", "abstract": "No abstract available."}

HEADERS = {
    "PubMed": "title:Title authors:Authors journal:Journal/Book year:Publication_Year doi:DOI pmid:PMID",
    "Scopus": "authors:Authors title:Title year:Year journal:Source_title doi:DOI url:Link abstract:Abstract "
    "keywords:Author_Keywords pmid:PubMed_ID",
    "Web of Science": "authors:Authors title:Article_Title journal:Source_Title keywords:Author_Keywords "
    "abstract:Abstract year:Publication_Year doi:DOI pmid:Pubmed_Id",
    "IEEE Xplore": "title:Document_Title authors:Authors journal:Publication_Title year:Publication_Year "
    "abstract:Abstract doi:DOI url:PDF_Link keywords:IEEE_Terms",
    "EBSCO": "title:Article_Title authors:Author journal:Journal_Title year:Publication_Date doi:DOI "
    "keywords:Subjects abstract:Abstract url:PLink",
    "ProQuest": "title:Title abstract:Abstract authors:Authors journal:pubtitle year:year doi:digitalObjectIdentifier "
    "url:DocumentURL keywords:subjectTerms",
    "Cochrane": "authors:Author(s) title:Title journal:Source year:Year abstract:Abstract pmid:PubMed_ID "
    "keywords:Keywords doi:DOI url:URL",
    "Lens": "title:Title year:Publication_Year journal:Source_Title authors:Author/s abstract:Abstract "
    "keywords:Keywords url:External_URL pmid:PMID doi:DOI",
    "Dimensions": "title:Title abstract:Abstract authors:Authors journal:Source_title year:PubYear doi:DOI pmid:PMID "
    "url:Dimensions_URL keywords:MeSH_terms",
    "Publish or Perish": "authors:Authors title:Title year:Year journal:Source url:ArticleURL doi:DOI "
    "abstract:Abstract",
    "Zotero": "year:Publication_Year authors:Author title:Title journal:Publication_Title doi:DOI url:Url "
    "abstract:Abstract_Note keywords:Manual_Tags",
    "Covidence": "title:Title authors:Authors abstract:Abstract year:Published_Year journal:Journal doi:DOI",
    "Rayyan": "title:title year:year journal:journal authors:authors url:url abstract:abstract keywords:keywords "
    "pmid:pubmed_id doi:doi",
    "Semantic Scholar": "title:title authors:authors year:year journal:venue abstract:abstract url:url doi:DOI",
    "ASReview": "title:title authors:authors abstract:abstract doi:doi url:url keywords:keywords year:year",
    "ERIC": "title:Title authors:Author journal:Source year:PublicationDate abstract:Description keywords:Descriptors",
    "ScienceDirect": "title:Title authors:Authors journal:Journal_Title year:Publication_Year doi:DOI "
    "abstract:Abstract",
    "ACM": "title:Document_Title authors:Author year:Year doi:DOI abstract:Abstract keywords:Keywords "
    "journal:Publication_Title",
    "bioRxiv": "title:paper_title authors:author_names abstract:paper_abstract doi:paper_doi year:publication_date",
}  # fmt: skip


def header_of(tool: str) -> dict[str, str]:
    return {field: name.replace("_", " ") for field, name in (one.split(":") for one in HEADERS[tool].split())}


def table_of(columns: dict[str, str], separator: str = ",") -> str:
    rows = [[work.get(field, "") for field in columns] for work in (NAMES, SECOND)]
    return csv_text([list(columns.values()), *rows], separator=separator)


@pytest.mark.parametrize("tool", HEADERS)
def test_columns_of_databases_and_tools(tool, tmp_path):
    columns = header_of(tool)
    absent = [name for name in (*FACTS, "abstract") if name not in columns]
    check_works(read(tmp_path, table_of(columns)), "CSV", without=" ".join(absent))


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "cp1252"])
def test_separators_and_encodings(separator, encoding, tmp_path):
    columns = {**header_of("Scopus"), "note": "Café"}
    found = read(tmp_path, table_of(columns, separator).encode(encoding), "works.xls")
    check_works(found, "TSV" if separator == "\t" else "CSV")


def test_text_above_the_header_and_headings_within(tmp_path):
    above = (
        '"About the data: Exported on Mar 07, 2024; Criteria: ""title, abstract"""\r\n\r\nSEARCH QUERY,tin:ti\n------\n'
    )
    text = table_of(header_of("Scopus"))
    text = text.replace("\nGold", "\nrecords that nobody has seen,,,,,,,,\nGold") + "Copyright of all the records,,,\n"
    found = read(tmp_path, above + text)
    check_works(found, "CSV")
    assert "rows above the header were skipped" in found.sources[0].remarks[0]


def test_repeated_columns_short_rows_and_formulas_of_excel(tmp_path):
    text = 'Title,note,Issue,Date,note,DOI,Rating\nTin,,="19326203",="4/3/2024",b,10.1000/x\nOre,a\n'
    found = read(tmp_path, text)
    assert found.fields[0] == {
        "Title": ["Tin"], "Issue": ["19326203"], "Date": ["4/3/2024"], "note": ["b"], "DOI": ["10.1000/x"]
    }  # fmt: skip
    assert found.details[0].year == 2024
    assert found.sources[0].remarks == (
        "2 rows with fewer cells than the header; the rest is empty.",
        "Column 'note' occurs more than once; the first value that is not empty is used.",
    )


def test_tabs_without_quoting_rules(tmp_path):
    text = 'PT\tAU\tTI\tSO\tID\tDE\tAB\tCR\tPY\tUT\nJ\tRoe, A\t"Tin" and ore\tJ ORE\tGOLD; DUST\ttin\t"Rats\t'
    text += "Coe C, 1990, ORE, V1; Zoe Z, 1991, TIN, V2\t2001\tWOS:1\n"
    found = read(tmp_path, text, "savedrecs.txt")
    assert (found.titles, found.abstracts, found.ids) == (['"Tin" and ore'], ['"Rats'], ["WOS:1"])
    assert found.details[0].keywords == ("tin", "GOLD", "DUST")
    assert list(found.references[0]) == ["Coe C, 1990, ORE, V1", "Zoe Z, 1991, TIN, V2"]


def test_one_field_per_row(tmp_path):
    text = "".join(
        f'"TITLE","{work["title"]}"\n"AUTHOR NAMES","Roe, Ann B.","Doe, Ben"\n"SOURCE TITLE","Journal of Ore"\n'
        f'"PUBLICATION YEAR","{work["year"]}"\n"ABSTRACT","{work["abstract"]}"\n"DOI","{work.get("doi", "")}"\n'
        f'"EMTREE MEDICAL INDEX TERMS","tin","deep sleep"\n"PUI","L{at}00000"\n\n'
        for at, work in enumerate((NAMES, SECOND), 1)
    )
    found = read(tmp_path, text)
    check_works(found, "CSV, one field per row", without="pmid url")
    assert found.ids == ["L100000", "L200000"]


@pytest.mark.parametrize(
    ("column", "values", "labels"),
    [
        ("included", ["1", "0", ""], [1, 0, np.nan]),
        ("label_included", ["Yes", "no", "-1"], [1, 0, np.nan]),
        ("Included", ["included", "excluded", "maybe"], [1, 0, np.nan]),
        ("decision", ["Include", "Exclude", "Conflict"], [1, 0, np.nan]),
        ("asreview_label", ["1.0", "0.0", "nan"], [1, 0, np.nan]),
        ("Screening decision", ["Relevant", "Irrelevant", "not screened"], [1, 0, np.nan]),
        ("ItemStatus", ["I", "E", ""], [1, 0, np.nan]),
        ("label", ["Duplicate_in_trash", "In_database", "1"], [np.nan] * 3),
        ("notes", ['RAYYAN-INCLUSION: {""Ann""=>""Included""}', "Exclusion reason: late", "x"], [1, 0, np.nan]),
    ],
)
def test_labels(column, values, labels, tmp_path):
    text = f"title,{column}\n" + "".join(f'Tin {at},"{value}"\n' for at, value in enumerate(values))
    found = read(tmp_path, text)
    np.testing.assert_array_equal(found.labels, labels)
    assert bool(found.sources[0].remarks) == any(one in values for one in ("maybe", "Conflict", "In_database"))


def test_judges_that_disagree(tmp_path):
    text = "title,included (Ann),included (Bo),include reason\nTin,1,1,x\nOre,1,0,y\nGold,0,,z\n"
    found = read(tmp_path, text)
    np.testing.assert_array_equal(found.labels, [1, np.nan, 0])
    assert found.sources[0].remarks == ("Reviewers disagree on 1 record, read as not judged.",)


def test_abstrackr(tmp_path):
    text = "(internal) id,title,authors,consensus,labeled_at,Ann,labeled_at,Bo,labeled_at,"
    text += "general notes (Ann),general notes (Bo)\n"
    text += '7,Tin,"Roe, A.\n and Doe, B.\n",o,,1,,-1\n8,Ore,,o,,-1,,\n9,Gold,,1,,,,\n10,Zinc,,o,,0,,o\n'
    found = read(tmp_path, text)
    np.testing.assert_array_equal(found.labels, [np.nan, 0, 1, np.nan])
    assert found.details[0].authors == ("Roe, A.", "Doe, B.")


@pytest.mark.parametrize(
    ("cell", "authors"),
    [
        ("Griffin DK, Larkin DM, O'Connor RE.", ("Griffin DK", "Larkin DM", "O'Connor RE")),
        ("Yang Z., Jiang B., McNamara M.E.", ("Yang Z.", "Jiang B.", "McNamara M.E.")),
        ("Yang, Z., Jiang, B., Xu, J.", ("Yang, Z.", "Jiang, B.", "Xu, J.")),
        ("Zixiao Yang, Baoyu Jiang, Xing Xu", ("Zixiao Yang", "Baoyu Jiang", "Xing Xu")),
        ("Roe, Ann; Doe, Ben; ", ("Roe, Ann", "Doe, Ben")),
        ("Roe, Ann (5897554780); Doe, Ben (5719039466)", ("Roe, Ann", "Doe, Ben")),
        ("Roe, Ann and Doe, Ben", ("Roe, Ann", "Doe, Ben")),
        ("Ann Roe|Ben Doe", ("Ann Roe", "Ben Doe")),
        ("Roe, Ann", ("Roe, Ann")),
        ("van der Berg, Jan", ("van der Berg, Jan",)),
        ("Department of Health and Human Services", ("Department of Health and Human Services",)),
        ("n/a", ()),
        (", ,", ()),
        (" ", ()),
    ],
)
def test_authors_of_a_cell(cell, authors):
    assert split_authors([cell], is_cell=True) == (authors if isinstance(authors, tuple) else (authors,))


def test_keywords_of_a_cell():
    assert split_keywords(["tin, ore (raw, fine), gold"], is_cell=True) == ("tin", "ore (raw, fine)", "gold")
    assert split_keywords(["tin; ore, raw; tin"], is_cell=True) == ("tin", "ore, raw")


@pytest.mark.parametrize(
    ("cell", "cited"),
    [
        ("W1 W2|W3", ["W1", "W2", "W3"]),
        ("https://openalex.org/W1; https://openalex.org/W2", ["https://openalex.org/W1", "https://openalex.org/W2"]),
        ("10.1000/a 10.1000/b", ["10.1000/a", "10.1000/b"]),
        ("000-463-679-101-319; 002-042-026-423-65X", ["000-463-679-101-319", "002-042-026-423-65X"]),
        ("Roe A., Tin; a, Ore, 1, (2001); Doe B., (1999)", ["Roe A., Tin; a, Ore, 1, (2001)", "Doe B., (1999)"]),
        ("Roe A 2001 Tin\nDoe B 1999 Gold", ["Roe A 2001 Tin", "Doe B 1999 Gold"]),
        ("Only words here", ["Only words here"]),
        ("Copyright 2001 Ore", []),
        (" ;, ", []),
    ],
)  # fmt: skip
def test_references_are_never_split_on_blanks_unless_all_are_ids(cell, cited):
    assert list(split_references([cell])) == cited


def workbook(sheets: dict[str, list[list[object]]]) -> bytes:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.remove(book.active)
    for title, rows in sheets.items():
        sheet = book.create_sheet(title)
        for row in rows:
            sheet.append(row)
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def test_excel(tmp_path):
    columns = header_of("Scopus")
    rows = [[work.get(field) for field in columns] for work in (NAMES, SECOND)]
    rows[0][list(columns).index("year")] = 2001
    rows[0][list(columns).index("pmid")] = 12345678.0
    content = workbook({"About": [["A search"]], "Works": [["SEARCH QUERY", "tin"], [], [*columns.values()], *rows]})
    found = read(tmp_path, content, "works.csv")
    check_works(found, "Excel")
    assert found.sources[0].remarks[:2] == ("Sheet 'Works' was read, one of 2.", "1 row above the header was skipped.")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda one: one[:200], "is a damaged zip archive or Excel file"),
        (lambda one: one.replace(b"xl/workbook.xml", b"xl/w0rkbook.xml"), "is a zip archive but not an Excel workbook"),
        (lambda one: one[:300] + b"\0" * 200 + one[500:], "cannot be read as an Excel workbook|is a damaged zip"),
    ],
)
def test_damaged_workbooks_are_refused(damage, message, tmp_path):
    content = damage(workbook({"Works": [["Title"], *([f"Tin {at}"] for at in range(50))]}))
    with pytest.raises(InputError, match=message):
        read(tmp_path, content, "works.xlsx")


@pytest.mark.parametrize(
    ("column", "cell"),
    [
        ("keywords", " " * 200_000 + "tin"),
        ("authors", " " * 200_000 + "and"),
        ("authors", "a b, " * 50_000),
        ("notes", "RAYYAN-INCLUSION: {" * 50_000),
        ("doi", "10.1000/" + "(x)" * 50_000 + ")" * 50_000),
        ("references", "word; " * 50_000),
        ("abstract", "<!-- " * 20_000),
    ],
)
def test_long_cells_take_linear_time(column, cell, tmp_path):
    found = read(tmp_path, f'title,{column}\nTin,"{cell}"\n')
    assert found.titles == ["Tin"]
    assert found.fields[0][column] == [cell]


def test_a_million_columns_are_refused(tmp_path):
    with pytest.raises(InputError, match="has 1,000,001 columns, more than 20,000"):
        read(tmp_path, "title" + ",x" * 1_000_000 + "\nTin\n")


def test_columns_of_emails_and_documents(tmp_path):
    path = tmp_path / "production.csv"
    path.write_text(
        "Bates Number,Custodian,Sent,Email Subject,Body\n"
        'A001,"Roe, Ann",2001-03-04,Lunch tomorrow,Shall we meet at noon?\n'
        'A002,"Doe, Bob",2001-03-05,Gas prices,The price of gas rises.\n'
    )
    found = read_records(path)
    assert (found.ids, found.titles) == (["A001", "A002"], ["Lunch tomorrow", "Gas prices"])
    assert found.abstracts[1] == "The price of gas rises."
    assert (found.details[0].authors, found.details[0].year) == (("Roe, Ann",), 2001)


@pytest.mark.parametrize(
    "header",
    ["BEGDOC,EMAILSUBJECT,EXTRACTEDTEXT", "BEGBATES,SUBJECT,BODYTEXT", "DocId,EmailSubject,FullText",
     "Control Number,File Name,Extracted Text", "doc_id,Subject,Summary,Body", "message-id,subject,description,text"],
)  # fmt: skip
def test_texts_of_load_files_are_found(header, tmp_path):
    """Names without blanks, and an empty summary beside the text."""
    path, gap = tmp_path / "a.csv", "," * (header.count(",") - 1)
    path.write_text(f"{header}\nA001,Gas prices{gap}The price of gas rises.\n")
    found = read_records(path)
    assert (found.ids, found.titles, found.abstracts) == (["A001"], ["Gas prices"], ["The price of gas rises."])


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
def test_without_titles_texts_begin_with_them(name, tmp_path):
    path, text = tmp_path / name, "The price of gas rises.\n" + "More of it. " * 30
    table = {"a.csv": f'id,text\nx1,"{text}"\n', "a.jsonl": json.dumps({"id": "x1", "text": text})}
    path.write_text(table[name])
    found = read_records(path)
    assert (found.ids, len(found.abstracts[0]) > 300) == (["x1"], True)
    assert found.titles[0].startswith("The price of gas rises.")
    assert len(found.titles[0]) <= 100
    assert "There is no column of titles; each title is the beginning of 'text'." in found.sources[0].remarks


def test_columns_of_title_and_text_can_be_named(tmp_path):
    path, other = tmp_path / "a.csv", tmp_path / "b.csv"
    path.write_text("title,Betreff,abstract,Inhalt\nno,Gas prices,no,The price rises.\n")
    other.write_text("title,abstract\nTin,Of tin.\n")
    found = read_records(path, other, title="Betreff", text="Inhalt")  # files without the column keep theirs
    assert (found.titles, found.abstracts) == (["Gas prices", "Tin"], ["The price rises.", "Of tin."])
    with pytest.raises(InputError, match="text is 'Inhalte'"):
        read_records(path, text="Inhalte")
